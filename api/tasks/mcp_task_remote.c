/* SPDX-License-Identifier: MIT */
/* mcp_task_remote.c - tasks that other gateways on the same documents run: finding them,
 * following them, and ending those whose gateway died. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "core/store/store.h"
#include "mcp_task_table.h"

/* How often it is looked, and by how much the clocks of gateways may differ. */
#define LOOK_EVERY_MS 1000
#define LOOK_SKEW_MS 120000
/* Changes taken in by one look; the rest comes with the next one. */
#define LOOK_CHANGES_MAX 256

/* ---- entries of others' tasks ---- */

static bool is_ours(const struct mcp_tasks *tasks, struct ng_str gateway)
{
    return str_equal(gateway, cluster_id(tasks->gateway->cluster));
}

/* With the lock held. */
static void take_gateway(const struct mcp_tasks *tasks, struct mcp_task_entry *entry,
                         struct ng_str gateway)
{
    size_t len = 0;
    if (gateway.len < sizeof(entry->gateway)) {
        len = gateway.len;
    }
    if (len > 0) {
        memcpy(entry->gateway, gateway.data, len);
    }
    entry->gateway[len] = '\0';
    if (len > 0 && !is_ours(tasks, gateway)) {
        entry->host = MCP_TASK_ELSEWHERE;
    }
}

/* With the lock held. Not where there is no room, or it is none that could be here. */
static void add_entry(struct mcp_tasks *tasks, const struct mcp_task *task)
{
    struct mcp_task_entry *entry = NULL;
    if (tasks->count >= MCP_TASKS_MAX || mcp_task_entry_of(task, &entry) != NG_OK ||
        entry == NULL) {
        return;
    }
    take_gateway(tasks, entry, task->gateway);
    if (task->status == MCP_TASK_WORKING && entry->host == MCP_TASK_HERE) {
        entry->host = MCP_TASK_FORMER;
    }
    mcp_task_entry_link(tasks, entry);
}

void mcp_task_remote_find(struct mcp_tasks *tasks, struct call *call, struct ng_str id)
{
    struct mcp_task task;
    if (!store_is_shared(tasks->gateway->store) || id.len != MCP_TASK_ID_LEN) {
        return;
    }
    struct result before = call->staged;
    int rc = mcp_task_load(call, id, &task);
    call->staged = before;
    mcp_tasks_lock(tasks);
    if (rc == NG_OK && mcp_task_entry_find(tasks, id) == NULL) {
        add_entry(tasks, &task);
    }
    mcp_tasks_unlock(tasks);
}

/* ---- looking ---- */

struct change {
    char id[MCP_TASK_ID_LEN + 1];
    char gateway[MCP_TASK_GATEWAY_MAX + 1];
    enum mcp_task_status status;
};

struct looking {
    struct mcp_tasks *tasks;
    struct change *changes;
    size_t count;
};

static int look_row(const struct mcp_task *task, void *user)
{
    struct looking *looking = user;
    struct mcp_tasks *tasks = looking->tasks;
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, task->id);
    if (entry == NULL) {
        add_entry(tasks, task);
    } else if (entry->call != NULL) {
        if (task->status == MCP_TASK_CANCELLED) {
            call_cancel(entry->call); /* another gateway was asked to */
        }
    } else if (!is_ours(tasks, task->gateway) && task->gateway.len > 0) {
        take_gateway(tasks, entry, task->gateway);
        bool is_news = entry->status != task->status && !mcp_task_is_over(entry->status);
        if (is_news && looking->count < LOOK_CHANGES_MAX) {
            struct change *change = &looking->changes[looking->count++];
            memcpy(change->id, entry->id, sizeof(change->id));
            change->status = task->status;
        }
    }
    mcp_tasks_unlock(tasks);
    return NG_OK;
}

static void collect_dead(struct mcp_tasks *tasks, struct looking *looking)
{
    looking->count = 0;
    mcp_tasks_lock(tasks);
    for (const struct mcp_task_entry *at = LIST_FIRST(&tasks->entries);
         at != NULL && looking->count < LOOK_CHANGES_MAX; at = LIST_NEXT(at, link)) {
        bool runs = at->call != NULL || at->status != MCP_TASK_WORKING;
        bool died = at->host == MCP_TASK_FORMER ||
                    (at->host == MCP_TASK_ELSEWHERE &&
                     !cluster_is_alive(tasks->gateway->cluster, ng_str_of(at->gateway)));
        if (!runs && died) {
            struct change *change = &looking->changes[looking->count++];
            memcpy(change->id, at->id, sizeof(change->id));
            memcpy(change->gateway, at->gateway, sizeof(change->gateway));
        }
    }
    mcp_tasks_unlock(tasks);
}

static bool fail_dead(struct mcp_task *task, struct call *call, void *user)
{
    const struct change *change = user;
    (void)call;
    if (task->status != MCP_TASK_WORKING || !str_is(task->gateway, change->gateway)) {
        return false;
    }
    mcp_task_fail_died(task);
    return true;
}

/* Runs on a gateway that died are failed, by the first gateway to notice. */
static int end_dead(struct mcp_tasks *tasks, struct call *call, struct looking *looking)
{
    int rc = NG_OK;
    collect_dead(tasks, looking);
    for (size_t i = 0; i < looking->count && rc == NG_OK; i++) {
        struct change *change = &looking->changes[i];
        struct mcp_task_edit edit = {.fn = fail_dead, .user = change};
        rc = mcp_task_change(call, ng_str_of(change->id), &edit);
        if (rc == NG_OK) {
            mcp_tasks_settle(tasks, ng_str_of(change->id), false, MCP_TASK_FAILED, false);
            log_write(NG_LOG_INFO, "mcp", "task %s failed: its gateway %s died", change->id,
                      change->gateway);
        } else if (rc == NG_ENOTFOUND) {
            call_reset_result(call); /* it has expired */
            rc = NG_OK;
        }
    }
    return rc;
}

int mcp_tasks_poll_remote(void *self, struct call *call)
{
    struct mcp_tasks *tasks = self;
    int64_t now_ns = clock_monotonic_ns();
    int64_t now = clock_unix_ms();
    if (tasks->looked_ns != 0 && now_ns - tasks->looked_ns < (int64_t)LOOK_EVERY_MS * 1000000) {
        return NG_OK;
    }
    struct looking looking = {.tasks = tasks};
    looking.changes = arena_zalloc(&call->arena, LOOK_CHANGES_MAX * sizeof(*looking.changes));
    if (looking.changes == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int64_t since = 0;
    if (tasks->looked_ns != 0) {
        since = tasks->looked_ms - LOOK_SKEW_MS;
    }
    int rc = mcp_task_each_since(call, since, look_row, &looking);
    if (rc != NG_OK) {
        return rc;
    }
    tasks->looked_ns = now_ns;
    tasks->looked_ms = now;
    for (size_t i = 0; i < looking.count; i++) {
        mcp_tasks_settle(tasks, ng_str_of(looking.changes[i].id), false,
                         looking.changes[i].status, false);
    }
    return end_dead(tasks, call, &looking);
}
