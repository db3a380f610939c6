/* SPDX-License-Identifier: MIT */
/* undo_unfinished.c - undos that were begun and that no process does any more: which ones they
 * are, and how a process takes one over. */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/cluster/cluster.h"
#include "core/store/store.h"
#include "undo.h"

/* Records that are read at once. */
#define RECORDS_PAGE 1000
/* Undos that a start logs. */
#define RECORDS_TOLD_MAX 1000
/* Levels of a record. */
#define RECORD_DEPTH 4
#define RECORD_MEMORY_MAX ((size_t)16 << 20)
/* For an undo that was cut off to be free for others. */
#define RELEASE_TIMEOUT_MS 5000

/* ---- its process ---- */

/* The process of a gateway that does an undo. Old records have none. */
static struct ng_str record_holder(const struct ng_value *record)
{
    return str_or(json_get_text(record, "gateway"), ng_str_of(""));
}

/* Another one than this? */
static bool holder_is_other(struct call *call, struct ng_str holder)
{
    return holder.len > 0 && !str_equal(holder, cluster_name(call->gateway->cluster));
}

int undo_record_runs(struct call *call, struct ng_str run, const struct ng_value *record,
                     bool *ret)
{
    struct ng_str holder = record_holder(record);
    struct ng_str where;
    *ret = undo_is_running(call->gateway, run);
    if (*ret || !holder_is_other(call, holder)) {
        return NG_OK;
    }
    return cluster_find(call->gateway->cluster, call, holder, ret, &where);
}

static void put_details(struct call *call, struct ng_str run, struct ng_str holder,
                        struct ng_str where)
{
    struct ng_writer *details = call->pub.host->details(&call->pub);
    json_object(details);
    json_member_string(details, "undo", run);
    if (holder.len > 0) {
        json_member_string(details, "gateway", holder);
    }
    if (where.len > 0) {
        json_member_string(details, "where", where);
    }
    json_end(details);
}

static int fail_runs(struct undo *undo, struct ng_str holder, struct ng_str where)
{
    struct call *call = undo->call;
    int rc = NG_OK;
    if (holder.len == 0) {
        rc = call_fail(call, NG_ECONFLICT, "the undo \"%s\" runs just now, on this gateway",
                       undo->run);
    } else {
        rc = call_fail(call, NG_ECONFLICT,
                       "the undo \"%s\" runs just now, on another gateway: %.*s%s%.*s",
                       undo->run, (int)holder.len, holder.data, where.len > 0 ? " at " : "",
                       (int)where.len, where.len > 0 ? where.data : "");
    }
    call->pub.host->hint(&call->pub, "It can be continued if it is cut off: then it stands in "
                                     "`unfinished` of history_log");
    put_details(call, ng_str_of(undo->run), holder, where);
    return rc;
}

/* ---- taken over and given back ---- */

/* An undo goes from one process to another. */
struct handover {
    struct ng_str from, to;
    bool lost; /* out: it was not the first one's */
};

/* The record with another process. */
static int handover_write(struct call *call, const struct ng_value *record, struct ng_str to,
                          struct ng_draft *next)
{
    struct ng_writer writer;
    struct buf json;
    buf_init(&json, RECORD_MEMORY_MAX);
    json_writer_init(&writer, &json);
    json_object(&writer);
    for (const struct ng_value *at = json_first(record); at != NULL; at = at->next) {
        if (!str_is(at->key, "gateway")) {
            json_name_str(&writer, at->key);
            json_copy(&writer, at);
        }
    }
    if (to.len > 0) {
        json_member_string(&writer, "gateway", to);
    }
    json_end(&writer);
    int rc = json.rc == NG_OK ? store_draft_json(next, buf_str(&json)) : call_no_memory(call);
    buf_done(&json);
    return rc;
}

static int handover_fn(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    struct handover *handover = user;
    bool exists = present->revision != 0 && !present->deleted;
    handover->lost = !exists || !str_equal(record_holder(present->body), handover->from);
    return handover->lost ? NG_OK
                          : handover_write(call_of(call), present->body, handover->to, next);
}

static int handover_store(struct call *call, struct ng_str run, struct handover *handover)
{
    const struct ng_change change = {.size = sizeof(change),
                                     .key = undo_record_key(run),
                                     .fn = handover_fn,
                                     .user = handover};
    return store_write_wait(call->gateway->store, call, &change, 1);
}

/* From the process that the record names, in one commit: only one of several that take it over
 * at the same time gets it. */
static int take_from(struct undo *undo, struct ng_str holder)
{
    struct call *call = undo->call;
    struct ng_str run = ng_str_of(undo->run);
    struct handover handover = {.from = holder, .to = cluster_name(call->gateway->cluster)};
    int rc = cluster_announce(call->gateway->cluster, call);
    if (rc == NG_OK) {
        rc = handover_store(call, run, &handover);
    }
    if (rc != NG_OK) {
        undo_release(undo); /* a commit of unknown outcome may have been made */
    }
    if (rc == NG_OK && handover.lost) {
        rc = call_fail(call, NG_ECONFLICT,
                       "the undo \"%s\" was just now continued by another call; history_log "
                       "tells whether it is unfinished",
                       undo->run);
        put_details(call, run, STR_NONE, STR_NONE);
    }
    return rc;
}

int undo_take_over(struct undo *undo, const struct ng_value *record)
{
    struct call *call = undo->call;
    struct ng_str holder = record_holder(record);
    struct ng_str where = STR_NONE;
    bool is_dry = undo->work->dry_run;
    bool runs =
        is_dry ? undo_is_running(call->gateway, ng_str_of(undo->run)) : !undo_running_add(undo);
    if (runs) {
        return fail_runs(undo, STR_NONE, STR_NONE);
    }
    int rc = NG_OK;
    if (holder_is_other(call, holder)) {
        rc = cluster_find(call->gateway->cluster, call, holder, &runs, &where);
    }
    if (rc == NG_OK && runs) {
        rc = fail_runs(undo, holder, where);
    }
    if (rc == NG_OK && !is_dry && store_is_shared(call->gateway->store)) {
        rc = take_from(undo, holder);
    }
    if (rc != NG_OK) {
        undo_running_remove(undo);
    }
    return rc;
}

/* With a call of its own: that of the undo may be cancelled, or over its deadline. */
void undo_release(struct undo *undo)
{
    struct gateway *gateway = undo->call->gateway;
    struct handover handover = {.from = cluster_name(gateway->cluster), .to = STR_NONE};
    if (!undo->is_running || !store_is_shared(gateway->store)) {
        return;
    }
    struct call *call = call_new(gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        call->may_block = true;
        call->deadline_ns = clock_monotonic_ns() + (int64_t)RELEASE_TIMEOUT_MS * 1000000;
        rc = handover_store(call, ng_str_of(undo->run), &handover);
        call_unref(call);
    }
    if (rc != NG_OK) {
        log_write(NG_LOG_WARNING, "undo",
                  "the undo %s has ended early, and the database does not know it: other "
                  "gateways can continue it only when this one has stopped",
                  undo->run);
    }
}

/* ---- the list ---- */

struct record_row {
    struct record_row *next;
    struct ng_str run, agent;
    int64_t time_ms;
};

/* A process that was looked for. */
struct record_process {
    struct record_process *next;
    struct ng_str name;
    bool runs;
};

struct record_list {
    struct call *call;
    struct record_row *first, **last;
    struct record_process *processes;
    uint32_t seen; /* in this page */
    int rc;
};

/* Keeps the row if the caller may continue that undo. */
static int row_keep(struct record_list *list, const struct ng_doc *row,
                    const struct ng_value *record)
{
    const struct ng_caller *caller = &list->call->caller;
    struct arena *arena = &list->call->arena;
    struct ng_str agent = str_or(json_get_text(record, "agent"), ng_str_of(""));
    if (caller->role != NG_ROLE_ADMIN && !str_equal(agent, caller->agent)) {
        return NG_OK;
    }
    struct record_row *kept = arena_alloc(arena, sizeof(*kept));
    if (kept == NULL) {
        return call_no_memory(list->call);
    }
    *kept = (struct record_row){.run = arena_copy(arena, row->key.id),
                                .agent = arena_copy(arena, agent),
                                .time_ms = json_get_integer(record, "time")};
    if (kept->run.data == NULL || kept->agent.data == NULL) {
        return call_no_memory(list->call);
    }
    *list->last = kept;
    list->last = &kept->next;
    return NG_OK;
}

static int list_row(void *user, const struct ng_doc *row)
{
    struct record_list *list = user;
    const struct ng_value *record = NULL;
    struct arena arena; /* a record can name many changes */
    list->seen++;
    arena_init(&arena, RECORD_MEMORY_MAX);
    if (json_parse(&arena, row->json, RECORD_DEPTH, &record, NULL) == NG_OK) {
        list->rc = row_keep(list, row, record);
    }
    arena_done(&arena);
    return list->rc != NG_OK;
}

/* All that the caller may continue, the oldest first. */
static int list_load(struct record_list *list)
{
    uint64_t moment = 0;
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of(UNDO_RECORDS),
                             .space = ng_str_of(UNDO_RECORDS_SPACE),
                             .limit = RECORDS_PAGE,
                             .moment = &moment};
    int rc = NG_OK;
    do {
        list->seen = 0;
        rc = store_query(list->call->gateway->store, list->call, &query, list_row, list, NULL);
        rc = rc == NG_OK ? list->rc : rc;
        query.offset += RECORDS_PAGE;
    } while (rc == NG_OK && list->seen == RECORDS_PAGE);
    return rc;
}

/* Each process is looked for once. */
static int list_find(struct record_list *list, struct ng_str name, bool *ret_runs)
{
    struct call *call = list->call;
    struct ng_str where;
    *ret_runs = false;
    if (!holder_is_other(call, name)) {
        return NG_OK;
    }
    for (const struct record_process *at = list->processes; at != NULL; at = at->next) {
        if (str_equal(at->name, name)) {
            *ret_runs = at->runs;
            return NG_OK;
        }
    }
    struct record_process *process = arena_alloc(&call->arena, sizeof(*process));
    if (process == NULL) {
        return call_no_memory(call);
    }
    *process = (struct record_process){.next = list->processes, .name = name};
    int rc = cluster_find(call->gateway->cluster, call, name, &process->runs, &where);
    list->processes = process;
    *ret_runs = process->runs;
    return rc;
}

/* Does no process do it? One that has ended since the list was read has no record any more. */
static int list_check(struct record_list *list, const struct record_row *row, bool *ret)
{
    struct call *call = list->call;
    const struct ng_key key = undo_record_key(row->run);
    const struct ng_doc *doc = NULL;
    bool runs = false;
    *ret = false;
    if (undo_is_running(call->gateway, row->run)) {
        return NG_OK;
    }
    int rc = store_get(call->gateway->store, call, &key, 0, &doc);
    if (rc != NG_OK || doc->revision == 0 || doc->deleted) {
        return rc;
    }
    rc = list_find(list, record_holder(doc->body), &runs);
    *ret = rc == NG_OK && !runs;
    return rc;
}

int undo_unfinished(struct call *call, ng_unfinished_fn *undo, void *user)
{
    struct record_list list = {.call = call};
    list.last = &list.first;
    int rc = list_load(&list);
    for (const struct record_row *row = list.first; rc == NG_OK && row != NULL;
         row = row->next) {
        const struct ng_unfinished one = {
            .size = sizeof(one), .run = row->run, .agent = row->agent, .time_ms = row->time_ms};
        bool is_unfinished = false;
        rc = list_check(&list, row, &is_unfinished);
        if (is_unfinished && undo(user, &one) != 0) {
            break;
        }
    }
    return rc;
}

/* ---- told at the start ---- */

static int tell_one(void *user, const struct ng_unfinished *undo)
{
    size_t *told = user;
    log_write(
        NG_LOG_WARNING, "undo",
        "the undo %.*s of %.*s was cut off; `notegate undo --continue %.*s` does the rest",
        (int)undo->run.len, undo->run.data, (int)undo->agent.len, undo->agent.data,
        (int)undo->run.len, undo->run.data);
    return ++*told == RECORDS_TOLD_MAX;
}

void undo_tell(struct call *call)
{
    size_t told = 0;
    if (undo_unfinished(call, tell_one, &told) != NG_OK) {
        call_reset_result(call); /* a database that is away: `undo --list` tells later */
    }
}
