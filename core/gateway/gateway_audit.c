/* SPDX-License-Identifier: MIT */
/* gateway_audit.c - opens the audit log with the gateway, and tells it of start and stop. */
#include "gateway_audit.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/audit/audit_disk.h"
#include "core/audit/audit_mark.h"
#include "core/audit/audit_read.h"
#include "core/audit/writer/audit_writer.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/key.h"
#include "core/cluster/cluster.h"
#include "core/config/config.h"
#include "core/dispatch/audit_put.h"
#include "core/dispatch/audit_refusals.h"
#include "core/dispatch/record.h"
#include "core/store/store.h"
#include "gateway_audit_shared.h"
#include "gateway_open.h"

/* "notegate/", and the id of the gateway. */
#define AUDIT_NAME_PREFIX "notegate/"
#define AUDIT_LOG_NAME_SIZE (sizeof(AUDIT_NAME_PREFIX) + CLUSTER_ID_LEN)
/* Changes that are read at once. */
#define RECOVERY_PAGE 1000

/* ---- changes without an entry ---- */

struct recovery {
    struct gateway *gateway;
    struct audit_seqs seqs; /* those that have one */
    uint64_t seq;           /* the newest that was read */
    size_t count, page;
};

/* Which changes have entries: those of calls of tools, of keys, and of plugins outside of
 * calls; not the gateway's record of calls. */
static int recover_one(void *user, const struct ng_event *event)
{
    struct recovery *recovery = user;
    recovery->seq = event->seq;
    recovery->page++;
    if (!str_is(event->key.collection, RECORD_COLLECTION) &&
        !audit_seqs_have(&recovery->seqs, event->seq)) {
        audit_put_recovered(recovery->gateway, event);
        recovery->count++;
    }
    return 0;
}

/* Waits until the log has taken most of them. */
static int recover_pace(const struct gateway *gateway, struct buf *error)
{
    struct audit_writer *writer = gateway->audit.writer;
    while (audit_writer_waiting(writer) > AUDIT_WAITING_MAX / 2) {
        struct timespec step = {0, 1000000};
        if (audit_writer_is_failing(writer, error)) {
            return NG_EUNAVAILABLE;
        }
        (void)nanosleep(&step, NULL);
    }
    return NG_OK;
}

static int recover_from(struct recovery *recovery, struct call *call, struct buf *error)
{
    struct gateway *gateway = recovery->gateway;
    int rc;
    do {
        recovery->page = 0;
        rc = store_changes(gateway->store, call, recovery->seq, RECOVERY_PAGE, recover_one,
                           recovery);
        if (rc != NG_OK) {
            (void)buf_add_str(error, str_or(call->staged.message, ng_str_of("out of memory")));
        } else {
            rc = recover_pace(gateway, error);
        }
    } while (rc == NG_OK && recovery->page == RECOVERY_PAGE);
    if (recovery->count > 0) {
        log_write(NG_LOG_WARNING, "audit",
                  "%zu changes that the audit log had no entries of were added (recovered)",
                  recovery->count);
    }
    return rc;
}

/* The first start with this log, or another store than the one that it has followed. */
static int recover_begin(int dir, const struct gateway *gateway, const char *path,
                         struct buf *error)
{
    struct audit_reader *reader = NULL;
    int rc = audit_reader_open(path, &reader, error);
    if (rc != NG_OK) {
        return rc;
    }
    const struct audit_mark mark = {store_last_seq(gateway->store), audit_reader_size(reader)};
    audit_reader_close(reader);
    return audit_mark_write(dir, &mark, error);
}

static int recover(struct gateway *gateway, const char *path, struct buf *error)
{
    struct recovery recovery = {.gateway = gateway};
    struct audit_mark mark;
    int dir = -1;
    struct call *call = call_new(gateway);
    if (call == NULL) {
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    call->may_block = true;
    int rc = audit_disk_open(path, false, &dir, error);
    if (rc == NG_OK) {
        rc = audit_mark_read(dir, &mark, error);
    }
    if (rc == NG_ENOTFOUND || (rc == NG_OK && mark.seq > store_last_seq(gateway->store))) {
        rc = recover_begin(dir, gateway, path, error);
    } else if (rc == NG_OK) {
        recovery.seq = mark.seq;
        rc = audit_seqs_read(path, &mark, &recovery.seqs, error);
        if (rc == NG_OK) {
            rc = recover_from(&recovery, call, error);
        }
        audit_seqs_done(&recovery.seqs);
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    call_unref(call);
    return rc;
}

/* ---- opening and closing ---- */

/* After each commit, before its call goes on. */
static void audit_watch(void *user, const struct ng_event *events, size_t count)
{
    struct gateway *gateway = user;
    atomic_store(&gateway->audit.last_seq, events[count - 1].seq);
}

static int audit_follow(struct gateway *gateway, const char *path, enum audit_begin begin,
                        struct buf *error)
{
    int rc = NG_OK;
    atomic_store(&gateway->audit.last_seq, store_last_seq(gateway->store));
    if (store_is_shared(gateway->store)) {
        rc = audit_shared_open(gateway, path, begin == AUDIT_AT_ONCE, error);
        if (rc == NG_OK) {
            audit_writer_follow(gateway->audit.writer, NULL, &gateway->audit.last_seq);
        }
        return rc;
    }
    if (begin == AUDIT_AT_ONCE) {
        rc = recover(gateway, path, error);
    }
    if (rc == NG_OK) {
        rc = store_watch(gateway->store, NULL, audit_watch, gateway);
    }
    if (rc == NG_OK) {
        audit_writer_follow(gateway->audit.writer, &gateway->audit.epochs,
                            &gateway->audit.last_seq);
    }
    return rc;
}

int gateway_open_audit(struct gateway *gateway, struct buf *error)
{
    char path[PATH_MAX];
    char name[AUDIT_LOG_NAME_SIZE];
    struct ng_str when = config_text(gateway->config, "audit");
    struct ng_str id = cluster_id(gateway->cluster);
    if (str_is(when, "off")) {
        return NG_OK;
    }
    gateway->audit.always = str_is(when, "on");
    enum audit_begin begin = gateway->audit.always || gateway_has_keys(gateway)
                                 ? AUDIT_AT_ONCE
                                 : AUDIT_AT_FIRST_ENTRY;
    (void)snprintf(path, sizeof(path), "%s/" GATEWAY_AUDIT_FOLDER, gateway->data_dir);
    (void)snprintf(name, sizeof(name), AUDIT_NAME_PREFIX "%.*s", (int)id.len, id.data);
    gateway->audit.refusals = audit_refusals_new(AUDIT_REFUSALS_ENTRIES);
    if (gateway->audit.refusals == NULL) {
        (void)buf_add_c(error, "the audit log: out of memory");
        return NG_EINTERNAL;
    }
    int rc = audit_writer_open(path, ng_str_of(name), begin, &gateway->audit.writer, error);
    if (rc == NG_OK) {
        gateway_audit_limits(gateway, gateway->config);
        rc = audit_follow(gateway, path, begin, error);
    }
    return rc;
}

void gateway_audit_limits(struct gateway *gateway, const struct config *config)
{
    atomic_store(&gateway->audit.reads, config_bool(config, "audit.reads"));
    if (gateway->audit.writer != NULL) {
        audit_writer_keep(gateway->audit.writer, config_int(config, "audit.keep"),
                          (uint64_t)config_int(config, "audit.max_size"));
    }
}

void gateway_audit_seen(struct gateway *gateway)
{
    if (gateway->audit.writer != NULL && !store_is_shared(gateway->store)) {
        atomic_store(&gateway->audit.last_seq, store_look_seq(gateway->store));
    }
}

static void audit_tell(const struct gateway *gateway, const char *what)
{
    audit_put_event(&(struct audit_event){.gateway = gateway, .what = what, .outcome = "ok"});
}

void gateway_tell_start(struct gateway *gateway)
{
    gateway->audit.serves = true;
    if (gateway_keeps_audit(gateway)) {
        audit_tell(gateway, "start");
    }
}

void gateway_close_audit(struct gateway *gateway)
{
    if (gateway->audit.serves && gateway_keeps_audit(gateway)) {
        audit_tell(gateway, "stop");
    }
    audit_shared_close(gateway->audit.shared);
    gateway->audit.shared = NULL;
    audit_writer_close(gateway->audit.writer);
    gateway->audit.writer = NULL;
    audit_refusals_free(gateway->audit.refusals);
}
