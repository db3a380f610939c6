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

#define LOOK_EVERY_MS 1000
/* Tasks in one query, or ended in one look; the rest comes next. */
#define LOOK_TASKS_MAX NG_IN_MAX

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

/* With the lock held. Is the status in the document another one, to be settled? */
static bool take_state(const struct mcp_tasks *tasks, struct mcp_task_entry *entry,
                       const struct mcp_task *task)
{
    bool is_elsewhere = task->gateway.len > 0 && !is_ours(tasks, task->gateway);
    if (entry->call != NULL) {
        if (task->status == MCP_TASK_CANCELLED) {
            call_cancel(entry->call); /* another gateway was asked to */
        }
        return false; /* the end of the run settles it */
    }
    if (is_elsewhere) {
        take_gateway(tasks, entry, task->gateway);
    }
    return entry->status != task->status && (is_elsewhere || mcp_task_is_over(task->status));
}

/* With the lock held. Not where there is no room, or it is none that could be here. */
static void add_entry(struct mcp_tasks *tasks, const struct mcp_task *task)
{
    struct mcp_task_entry *entry = NULL;
    if (tasks->count >= MCP_TASKS_MAX || mcp_task_entry_of(tasks, task, &entry) != NG_OK ||
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
    bool has_changed = false;
    if (!store_is_shared(tasks->gateway->store) || id.len != MCP_TASK_ID_LEN) {
        return;
    }
    struct result before = call->staged;
    int rc = mcp_task_load(call, id, &task);
    call->staged = before;
    if (rc != NG_OK) {
        return;
    }
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    if (entry == NULL) {
        add_entry(tasks, &task);
    } else {
        has_changed = take_state(tasks, entry, &task);
    }
    mcp_tasks_unlock(tasks);
    if (has_changed) {
        mcp_tasks_settle(tasks, id, NULL, task.status, false);
    }
}

/* A row of the stored tasks: those that are not in the table yet enter it. */
static int sweep_row(const struct mcp_task *task, void *user)
{
    struct mcp_tasks *tasks = user;
    mcp_tasks_lock(tasks);
    if (mcp_task_entry_find(tasks, task->id) == NULL) {
        add_entry(tasks, task);
    }
    mcp_tasks_unlock(tasks);
    return NG_OK;
}

int mcp_task_remote_find_owned(struct mcp_tasks *tasks, struct call *call, struct ng_str owner)
{
    if (!store_is_shared(tasks->gateway->store)) {
        return NG_OK;
    }
    return mcp_task_each_owned(call, owner, sweep_row, tasks);
}

/* ---- looking ---- */

/* A task of the table that is not over. */
struct open_task {
    char id[MCP_TASK_ID_LEN + 1];
    char gateway[MCP_TASK_GATEWAY_MAX + 1];
    bool is_there;    /* its document is */
    bool has_changed; /* to this status */
    enum mcp_task_status status;
};

struct looking {
    struct mcp_tasks *tasks;
    struct open_task *items;
    size_t count;
};

static int look_row(const struct mcp_task *task, void *user)
{
    struct looking *looking = user;
    struct mcp_tasks *tasks = looking->tasks;
    struct open_task *open = looking->items;
    while (open < looking->items + looking->count && !str_is(task->id, open->id)) {
        open++;
    }
    if (open == looking->items + looking->count) {
        return NG_OK;
    }
    open->is_there = true;
    if (task->is_broken) {
        return NG_OK;
    }
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, task->id);
    if (entry != NULL) {
        open->has_changed = take_state(tasks, entry, task);
        open->status = task->status;
    }
    mcp_tasks_unlock(tasks);
    return NG_OK;
}

/* The next tasks that are not over, from *place on. */
static void collect_open(struct mcp_tasks *tasks, struct looking *looking,
                         struct mcp_task_place *place)
{
    looking->count = 0;
    mcp_tasks_lock(tasks);
    const struct mcp_task_entry *at = mcp_task_entry_after(tasks, place);
    for (; at != NULL && looking->count < LOOK_TASKS_MAX; at = LIST_NEXT(at, link)) {
        place->created_ms = at->created_ms;
        memcpy(place->id, at->id, sizeof(place->id));
        if (at->is_stored && !at->is_gone && !mcp_task_is_over(at->status)) {
            struct open_task *open = &looking->items[looking->count++];
            *open = (struct open_task){0};
            memcpy(open->id, at->id, sizeof(open->id));
        }
    }
    mcp_tasks_unlock(tasks);
}

static void settle_open(struct mcp_tasks *tasks, const struct looking *looking)
{
    for (size_t i = 0; i < looking->count; i++) {
        const struct open_task *open = &looking->items[i];
        if (!open->is_there) {
            mcp_task_entry_forget(tasks, ng_str_of(open->id)); /* expired at another gateway */
        } else if (open->has_changed) {
            mcp_tasks_settle(tasks, ng_str_of(open->id), NULL, open->status, false);
        }
    }
}

/* Reads the documents of all tasks of the table that are not over: their state, not their time,
 * tells whether another gateway changed them. */
static int follow_open(struct mcp_tasks *tasks, struct call *call, struct looking *looking)
{
    struct mcp_task_place place = {.created_ms = INT64_MAX};
    int rc = NG_OK;
    do {
        struct ng_str ids[LOOK_TASKS_MAX];
        collect_open(tasks, looking, &place);
        for (size_t i = 0; i < looking->count; i++) {
            ids[i] = ng_str_of(looking->items[i].id);
        }
        if (looking->count > 0) {
            rc = mcp_task_each_of(call, ids, looking->count, look_row, looking);
        }
        if (rc == NG_OK) {
            settle_open(tasks, looking);
        }
    } while (rc == NG_OK && looking->count == LOOK_TASKS_MAX);
    return rc;
}

static void collect_dead(struct mcp_tasks *tasks, struct looking *looking)
{
    looking->count = 0;
    mcp_tasks_lock(tasks);
    for (const struct mcp_task_entry *at = LIST_FIRST(&tasks->entries);
         at != NULL && looking->count < LOOK_TASKS_MAX; at = LIST_NEXT(at, link)) {
        bool runs = at->call != NULL || at->status != MCP_TASK_WORKING;
        bool died = at->host == MCP_TASK_FORMER ||
                    (at->host == MCP_TASK_ELSEWHERE &&
                     !cluster_is_alive(tasks->gateway->cluster, ng_str_of(at->gateway)));
        if (!runs && died) {
            struct open_task *dead = &looking->items[looking->count++];
            memcpy(dead->id, at->id, sizeof(dead->id));
            memcpy(dead->gateway, at->gateway, sizeof(dead->gateway));
        }
    }
    mcp_tasks_unlock(tasks);
}

static bool fail_dead(struct mcp_task *task, struct call *call, void *user)
{
    struct open_task *dead = user;
    (void)call;
    dead->has_changed =
        task->status == MCP_TASK_WORKING && str_is(task->gateway, dead->gateway);
    if (dead->has_changed) {
        mcp_task_fail_died(task);
    }
    return dead->has_changed;
}

/* Runs on a gateway that died are failed, by the first gateway to notice. */
static int end_dead(struct mcp_tasks *tasks, struct call *call, struct looking *looking)
{
    int rc = NG_OK;
    collect_dead(tasks, looking);
    for (size_t i = 0; i < looking->count && rc == NG_OK; i++) {
        struct open_task *dead = &looking->items[i];
        struct mcp_task_edit edit = {.fn = fail_dead, .user = dead};
        rc = mcp_task_change(call, ng_str_of(dead->id), &edit);
        if (rc == NG_OK && dead->has_changed) {
            mcp_tasks_settle(tasks, ng_str_of(dead->id), NULL, MCP_TASK_FAILED, false);
            log_write(NG_LOG_INFO, "mcp", "task %s failed: its gateway %s died", dead->id,
                      dead->gateway);
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
    uint64_t deaths = cluster_deaths(tasks->gateway->cluster);
    bool is_first = tasks->looked_ns == 0;
    if (!is_first && now_ns - tasks->looked_ns < (int64_t)LOOK_EVERY_MS * 1000000) {
        return NG_OK;
    }
    struct looking looking = {.tasks = tasks};
    looking.items = arena_zalloc(&call->arena, LOOK_TASKS_MAX * sizeof(*looking.items));
    if (looking.items == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = NG_OK;
    if (is_first || deaths != tasks->seen_deaths) {
        rc = mcp_task_each(call, sweep_row, tasks); /* the rest of a dead one expires here */
    } else {
        rc = mcp_task_each_open(call, sweep_row, tasks);
    }
    if (rc == NG_OK) {
        tasks->seen_deaths = deaths;
        rc = follow_open(tasks, call, &looking);
    }
    if (rc == NG_OK) {
        tasks->looked_ns = now_ns;
        rc = end_dead(tasks, call, &looking);
    }
    return rc;
}
