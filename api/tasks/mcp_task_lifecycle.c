/* SPDX-License-Identifier: MIT */
/* mcp_task_lifecycle.c - the table's life: made from the documents at the start, freed of what
 * expired, stopped. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/array.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/cluster/cluster.h"
#include "core/keys/keys.h"
#include "core/store/store.h"
#include "mcp_task_table.h"

/* Expired tasks removed from disk by one upkeep. */
#define TASK_REAPED_MAX 512

/* ---- upkeep ---- */

static void take_waiters_of(struct mcp_task_entry *entry, struct mcp_task_waiter **ret)
{
    while (entry->waiters != NULL) {
        struct mcp_task_waiter *waiter = entry->waiters;
        entry->waiters = waiter->next;
        waiter->next = *ret;
        *ret = waiter;
    }
}

void mcp_task_entry_forget(struct mcp_tasks *tasks, struct ng_str id)
{
    struct mcp_task_waiter *waiters = NULL;
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    bool runs = entry != NULL && entry->call != NULL;
    if (runs) {
        entry->is_gone = true;
        call_cancel(entry->call);
    }
    if (entry != NULL) {
        take_waiters_of(entry, &waiters);
    }
    if (entry != NULL && !runs) {
        mcp_task_entry_unlink(tasks, entry);
    }
    mcp_tasks_unlock(tasks);
    if (!runs) {
        free(entry);
    }
    mcp_task_wake(waiters);
}

/* Expired tasks leave the table; a run of one is cancelled, and leaves when it ends. Ids go to
 * `ids`, for the documents. */
static size_t expire(struct mcp_tasks *tasks, char (*ids)[MCP_TASK_ID_LEN + 1], size_t most,
                     struct mcp_task_waiter **ret_waiters)
{
    int64_t now = clock_uptime_ms();
    size_t count = 0;
    mcp_tasks_lock(tasks);
    for (struct mcp_task_entry *at = LIST_FIRST(&tasks->entries), *next = NULL;
         at != NULL && count < most; at = next) {
        next = LIST_NEXT(at, link);
        if (!at->is_stored || at->is_gone || at->expires_ms > now) {
            continue;
        }
        memcpy(ids[count++], at->id, sizeof(at->id));
        take_waiters_of(at, ret_waiters);
        if (at->call != NULL) {
            at->is_gone = true;
            call_cancel(at->call);
        } else {
            mcp_task_entry_unlink(tasks, at);
            free(at);
        }
    }
    mcp_tasks_unlock(tasks);
    return count;
}

/* Requests whose clients have left need not wait any longer, and what runs for a key that was
 * taken away need not go on. */
static void drop_left(struct mcp_tasks *tasks, struct mcp_task_waiter **ret_waiters)
{
    mcp_tasks_lock(tasks);
    for (struct mcp_task_entry *at = LIST_FIRST(&tasks->entries); at != NULL;
         at = LIST_NEXT(at, link)) {
        (void)mcp_task_take_left(at, ret_waiters);
        if (at->call != NULL && !key_live(at->call->key)) {
            call_cancel(at->call);
        }
    }
    mcp_tasks_unlock(tasks);
}

/* Wakes all waiting requests; no further ones come. */
static struct mcp_task_waiter *take_waiters(struct mcp_tasks *tasks)
{
    struct mcp_task_waiter *all = NULL;
    mcp_tasks_lock(tasks);
    tasks->is_stopping = true;
    for (struct mcp_task_entry *at = LIST_FIRST(&tasks->entries); at != NULL;
         at = LIST_NEXT(at, link)) {
        take_waiters_of(at, &all);
    }
    mcp_tasks_unlock(tasks);
    return all;
}

bool mcp_tasks_stopping(struct mcp_tasks *tasks)
{
    mcp_tasks_lock(tasks);
    bool is_stopping = tasks->is_stopping;
    mcp_tasks_unlock(tasks);
    return is_stopping;
}

void mcp_tasks_stop(struct gateway *gateway, bool runs_too)
{
    struct mcp_tasks *tasks = mcp_tasks_of(gateway);
    if (tasks == NULL) {
        return;
    }
    mcp_task_wake(take_waiters(tasks));
    mcp_tasks_lock(tasks);
    for (struct mcp_task_entry *at = LIST_FIRST(&tasks->entries); at != NULL && runs_too;
         at = LIST_NEXT(at, link)) {
        if (at->call != NULL) {
            call_cancel(at->call);
        }
    }
    mcp_tasks_unlock(tasks);
}

static int tasks_upkeep(void *self, struct call *call)
{
    struct mcp_tasks *tasks = self;
    struct mcp_task_waiter *waiters = NULL;
    char(*ids)[MCP_TASK_ID_LEN + 1] = arena_alloc(&call->arena, TASK_REAPED_MAX * sizeof(*ids));
    if (ids == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    size_t count = expire(tasks, ids, TASK_REAPED_MAX, &waiters);
    drop_left(tasks, &waiters);
    mcp_task_wake(waiters);
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = mcp_task_delete(call, ng_str_of(ids[i]));
    }
    return rc;
}

/* ---- opening ---- */

/* Tasks found at the start. */
struct found {
    struct mcp_tasks *tasks;
    struct call *call;
    struct ng_str *ids; /* whose run died, or which have expired */
    size_t count, room;
};

static int find_task(const struct mcp_task *task, void *user)
{
    struct found *found = user;
    struct mcp_tasks *tasks = found->tasks;
    bool is_expired = mcp_task_expires(tasks, task) <= clock_uptime_ms();
    struct ng_str self = cluster_id(tasks->gateway->cluster);
    bool is_elsewhere = task->gateway.len > 0 && task->gateway.len <= MCP_TASK_GATEWAY_MAX &&
                        !str_equal(task->gateway, self) &&
                        store_is_shared(tasks->gateway->store);
    bool died = task->status == MCP_TASK_WORKING && !is_elsewhere;
    if (is_expired || died) {
        if (array_reserve((void **)&found->ids, &found->room, found->count + 1,
                          sizeof(*found->ids), MCP_TASK_ROWS_MAX) != NG_OK) {
            return NG_EINTERNAL;
        }
        found->ids[found->count++] = task->id;
    }
    struct mcp_task_entry *entry = NULL;
    int rc = mcp_task_entry_of(tasks, task, &entry);
    if (entry == NULL) {
        return rc;
    }
    if (died) {
        entry->status = MCP_TASK_FAILED;
    }
    if (is_elsewhere) {
        entry->host = MCP_TASK_ELSEWHERE;
        memcpy(entry->gateway, task->gateway.data, task->gateway.len);
    }
    mcp_task_entry_link(tasks, entry);
    return NG_OK;
}

void mcp_task_fail_died(struct mcp_task *task)
{
    task->status = MCP_TASK_FAILED;
    task->message = ng_str_of("the gateway was restarted while the tool ran");
    task->outcome = ng_str_of(
        "{\"code\":-32603,\"message\":\"the gateway was restarted while the tool ran; the "
        "changes that it had made are kept. Read before calling it again\"}");
}

static bool fail_died(struct mcp_task *task, struct call *call, void *user)
{
    (void)call;
    (void)user;
    if (task->status != MCP_TASK_WORKING) {
        return false;
    }
    mcp_task_fail_died(task);
    return true;
}

/* The documents agree with the table. */
static int settle_found(struct found *found)
{
    struct mcp_task_edit edit = {.fn = fail_died};
    int rc = NG_OK;
    for (size_t i = 0; i < found->count && rc == NG_OK; i++) {
        bool lives = mcp_task_entry_find(found->tasks, found->ids[i]) != NULL;
        if (lives) {
            rc = mcp_task_change(found->call, found->ids[i], &edit);
        } else {
            rc = mcp_task_delete(found->call, found->ids[i]);
        }
    }
    return rc;
}

static void tasks_close(void *self)
{
    struct mcp_tasks *tasks = self;
    while (!LIST_EMPTY(&tasks->entries)) {
        struct mcp_task_entry *entry = LIST_FIRST(&tasks->entries);
        LIST_REMOVE(entry, link);
        free(entry);
    }
    lock_done(&tasks->subscription_lock);
    lock_done(&tasks->lock);
    free(tasks);
}

int mcp_tasks_open(struct gateway *gateway, struct buf *error)
{
    if (gateway->store == NULL || gateway->tasks.self != NULL) {
        return NG_OK;
    }
    struct call *call = call_new(gateway);
    struct mcp_tasks *tasks = alloc_zeroed(1, sizeof(*tasks));
    if (call == NULL || tasks == NULL) {
        buf_add_c(error, "out of memory");
        free(tasks);
        call_unref(call);
        return NG_EINTERNAL;
    }
    lock_init(&tasks->lock, LOCK_MCP_TASKS);
    lock_init(&tasks->subscription_lock, LOCK_MCP_SUBSCRIPTIONS);
    struct found found = {.tasks = tasks, .call = call};
    tasks->gateway = gateway;
    int rc = mcp_task_declare(gateway->store, call);
    if (rc == NG_OK) {
        rc = mcp_task_each(call, find_task, &found);
    }
    if (rc == NG_OK) {
        rc = settle_found(&found);
    }
    if (store_is_shared(gateway->store) && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT)) {
        rc = NG_OK; /* the database is away: mcp_tasks_poll_remote() reads them when it is back
                     */
    }
    if (rc != NG_OK) {
        buf_printf(error, "the stored tasks cannot be read: %.*s",
                   (int)call->staged.message.len, text_or(call->staged.message.data, ""));
        tasks_close(tasks);
    } else {
        gateway->tasks.upkeep = tasks_upkeep;
        gateway->tasks.poll = mcp_tasks_poll_remote;
        gateway->tasks.close = tasks_close;
        atomic_store(&gateway->tasks.self, tasks);
    }
    if (rc == NG_OK && found.count > 0) {
        log_write(NG_LOG_INFO, "mcp", "%zu tasks had ended or expired", found.count);
    }
    free(found.ids);
    call_unref(call);
    return rc;
}
