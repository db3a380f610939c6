/* SPDX-License-Identifier: MIT */
/* rest_metrics.c - GET /metrics: what core/call/metrics.c counts, and the numbers of its parts.
 */
#include <stdio.h>
#include <string.h>

#include "api/base/build_info.h"
#include "api/http/http_reply.h"
#include "api/http/http_server.h"
#include "api/transport/mcp_http.h"
#include "core/base/clock.h"
#include "core/base/log_queue.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/record.h"
#include "core/files/files.h"
#include "core/journal/journal.h"
#include "core/keys/keys.h"
#include "core/module/registry.h"
#include "core/store/disk.h"
#include "core/store/store.h"
#include "rest.h"

#define STATUS_OK 200
#define METRICS_TEXT_MAX ((size_t)4 * 1024 * 1024)
#define METRICS_NAME_MAX 128
#define METRICS_PATH_MAX ((size_t)8192)

/* A number; a counter where its name ends so, as Prometheus has it. */
static void print_number(struct buf *out, const char *name, const char *help, double value)
{
    static const char counter[] = "_total";
    size_t len = strlen(name);
    bool counts =
        len > sizeof(counter) - 1 && strcmp(name + len - (sizeof(counter) - 1), counter) == 0;
    metrics_head(out, name, counts ? "counter" : "gauge", help);
    (void)buf_printf(out, "%s %.17g\n", name, value);
}

/* The numbers of the store and of its backends, without "notegate_store_". */
static const struct {
    const char *name, *help;
} stat_helps[] = {
    {"cache_bytes", "Documents in the cache."},
    {"cache_documents", "Documents in the cache."},
    {"cache_limit_bytes", "Maximum size of the cache."},
    {"cache_hits_total", "Reads that were answered from the cache."},
    {"cache_misses_total", "Reads that went to the backend."},
    {"batches_in_flight", "Changes on their way to the disk or the database."},
    {"last_seq", "Number of the newest change."},
    {"round_trips_total", "Queries to the backend."},
    {"changes_again_total", "Changes that were retried because another gateway was faster."},
    {"transactions_total", "Transactions that were committed."},
    {"failed_transactions_total", "Transactions that failed."},
    {"batches_total", "Changes handed to the backend, each of one call."},
    {"batches_per_transaction", "Changes in one transaction, on average."},
    {"puts_total", "Documents in these changes."},
    {"queue_batches", "Changes that wait for the writer."},
    {"queue_bytes", "Bytes of the changes that wait for the writer."},
    {"readers", "Connections for reading."},
    {"needed_bytes", "Free bytes that the last refused write needs; 0: writes are taken."},
    {"file_bytes", "The database file."},
    {"wal_bytes", "The write-ahead log of the database."},
    {"updates_total", "Changes sent to the database."},
    {"update_retries_total", "Changes sent to the database again."},
    {"failures_total", "Changes that the database refused or did not answer."},
    {"outbox_documents", "Documents whose events wait for their delivery."},
    {"outbox_relayed_total", "Events that this gateway has numbered."},
    {"outbox_owner", "1 if this gateway delivers events, else 0."},
};

static void print_stat(void *user, const char *name, double value)
{
    char full[METRICS_NAME_MAX];
    const char *help = "A number of the documents' backend.";
    for (size_t i = 0; i < NG_COUNT(stat_helps); i++) {
        if (strcmp(stat_helps[i].name, name) == 0) {
            help = stat_helps[i].help;
        }
    }
    (void)snprintf(full, sizeof(full), "notegate_store_%s", name);
    print_number(user, full, help, value);
}

static void print_counts(struct gateway *gateway, struct buf *out)
{
    print_number(out, "notegate_log_dropped_total",
                 "Log lines dropped because stderr was too slow.", (double)log_queue_dropped());
    if (gateway->recorder != NULL) {
        print_number(out, "notegate_calls_not_recorded_total",
                     "Calls that journal.record_calls could not record.",
                     (double)record_lost(gateway->recorder));
    }
    if (gateway->journal != NULL) {
        print_number(out, "notegate_outbox_backlog", "Events that wait for the journal.",
                     (double)journal_backlog(gateway->journal));
        print_number(out, "notegate_journal_degraded",
                     "1 if the journal does not accept events now, else 0.",
                     journal_degraded(gateway->journal) ? 1 : 0);
    }
    if (gateway->keys != NULL) {
        print_number(out, "notegate_keys", "Keys that are active.",
                     (double)keys_count(gateway->keys));
    }
}

/* Calls that plugins keep from ending. */
static void print_deferrals(const struct gateway *gateway, struct buf *out, bool ages)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    int64_t now = clock_monotonic_ns();
    metrics_head(out,
                 ages ? "notegate_plugin_deferred_oldest_seconds"
                      : "notegate_plugin_deferred_calls",
                 "gauge",
                 ages ? "Age of the oldest of these calls; 0: there is none."
                      : "Calls that the plugin has deferred and not finished yet, including "
                        "calls that were answered with TIMEOUT.");
    for (size_t i = 0; i < count; i++) {
        int64_t since = 0;
        size_t calls = deferrals_look(&plugins[i]->deferrals, &since);
        double age;
        if (since == 0 || since > now) {
            age = 0;
        } else {
            age = (double)(now - since) / 1e9;
        }
        (void)buf_printf(out, "notegate_plugin_deferred_%s{plugin=\"%s\"} %.17g\n",
                         ages ? "oldest_seconds" : "calls", plugins[i]->desc.name,
                         ages ? age : (double)calls);
    }
}

static void print_stuck(const struct gateway *gateway, struct buf *out)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    metrics_head(out, "notegate_calls_stuck", "gauge",
                 "Calls that have begun and not ended after their timeout; tools without one "
                 "are left out.");
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < plugins[i]->tool_count; j++) {
            const struct tool *tool = plugins[i]->tools[j];
            unsigned stuck = atomic_load(&tool->stuck);
            if (stuck > 0) {
                (void)buf_printf(out, "notegate_calls_stuck{plugin=\"%s\",tool=\"%s\"} %u\n",
                                 plugins[i]->desc.name, tool->desc.name, stuck);
            }
        }
    }
}

/* One path of a root on each file system; only for callers that may know all spaces. */
static void print_roots(struct disk *disk, struct buf *out, bool total)
{
    struct disk_room room;
    struct buf path;
    bool more = true;
    buf_init(&path, METRICS_PATH_MAX);
    for (unsigned i = 0; more; i++) {
        buf_clear(&path);
        more = disk_root(disk, i, &path, &room);
        if (more && i == 0) {
            metrics_head(out, total ? "notegate_root_total_bytes" : "notegate_root_free_bytes",
                         "gauge",
                         total ? "Bytes of the file system of roots that lie elsewhere."
                               : "Free bytes of the file system of roots that lie elsewhere.");
        }
        if (more) {
            (void)buf_printf(out, "notegate_root_%s_bytes{root=", total ? "total" : "free");
            (void)buf_add_json(out, buf_str(&path));
            (void)buf_printf(out, "} %.17g\n", (double)(total ? room.total : room.free));
        }
    }
    buf_done(&path);
}

static void print_disk(struct gateway *gateway, struct buf *out, bool admin)
{
    struct disk_room room;
    uint64_t size = 0;
    if (gateway->disk == NULL) {
        return;
    }
    disk_look(gateway->disk);
    disk_get(gateway->disk, &room, &size);
    if (room.total > 0) {
        print_number(out, "notegate_data_free_bytes",
                     "Free bytes of the file system of the data directory.", (double)room.free);
        print_number(out, "notegate_data_total_bytes",
                     "Bytes of the file system of the data directory.", (double)room.total);
    }
    print_number(
        out, "notegate_data_size_bytes",
        "Bytes on disk of the files directly in the data directory: the database and its log.",
        (double)size);
    if (admin) {
        print_roots(gateway->disk, out, false);
        print_roots(gateway->disk, out, true);
    }
}

static void print_files(struct gateway *gateway, struct buf *out)
{
    struct files_kept_stats stats;
    if (gateway->files == NULL) {
        return;
    }
    files_kept_stats(gateway->files, &stats);
    print_number(out, "notegate_files_kept_bytes", "Contents of files in memory.",
                 (double)stats.bytes);
    print_number(out, "notegate_files_kept", "Files whose contents are in memory.",
                 (double)stats.count);
    print_number(out, "notegate_files_kept_limit_bytes",
                 "Maximum size of the contents in memory.", (double)stats.limit);
    print_number(out, "notegate_files_kept_hits_total",
                 "Reads of files that had the content in memory.", (double)stats.hits);
    print_number(out, "notegate_files_kept_misses_total",
                 "Reads of files that had another content.", (double)stats.misses);
}

static void print_build(struct buf *out)
{
    metrics_head(out, "notegate_build_info", "gauge", "The version that is running.");
    (void)buf_printf(out,
                     "notegate_build_info{version=\"" NOTEGATE_VERSION
                     "\",commit=\"%s\",date=\"%s\"} 1\n",
                     build_commit(), build_date());
}

static bool sees_tool(void *user, const char *tool)
{
    return key_allows_tool(user, tool);
}

/* Right here and not on a worker: it has to be readable above all when these are all busy. It
 * only reads counters. */
int rest_ops_metrics(struct http_request *request)
{
    struct gateway *gateway = request->gateway;
    struct http_reply *reply = &request->reply;
    struct buf out;
    buf_init(&out, METRICS_TEXT_MAX);
    struct metrics_reader reader = {request->caller.agent, sees_tool, request->caller.key};
    bool admin = request->caller.role == NG_ROLE_ADMIN;
    (void)metrics_print(gateway->metrics, admin ? NULL : &reader, &out);
    print_counts(gateway, &out);
    print_number(&out, "notegate_mcp_sessions", "Open MCP sessions over HTTP.",
                 (double)mcp_http_sessions(request->server->service));
    print_deferrals(gateway, &out, false);
    print_deferrals(gateway, &out, true);
    print_stuck(gateway, &out);
    print_build(&out);
    metrics_print_process(&out);
    print_disk(gateway, &out, admin);
    print_files(gateway, &out);
    if (gateway->store != NULL) {
        store_stats(gateway->store, print_stat, &out);
    }
    if (out.rc == NG_OK) {
        reply->status = STATUS_OK;
        reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
        (void)buf_add_str(&reply->body, buf_str(&out));
    } else {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    buf_done(&out);
    return NG_OK;
}
