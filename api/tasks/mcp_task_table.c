/* SPDX-License-Identifier: MIT */
/* mcp_task_table.c - the tasks that live, in memory: whose they are, what runs, when they
 * expire. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/cluster/cluster.h"
#include "core/store/store.h"
#include "mcp_task_table.h"

struct mcp_tasks *mcp_tasks_of(struct gateway *gateway)
{
    return gateway->tasks.self;
}

void mcp_tasks_lock(struct mcp_tasks *tasks)
{
    lock_take(&tasks->lock);
}

void mcp_tasks_unlock(struct mcp_tasks *tasks)
{
    lock_release(&tasks->lock);
}

/* ---- entries ---- */

static struct mcp_task_entry **bucket_of(struct mcp_tasks *tasks, const char *id)
{
    return &tasks->buckets[str_hash(ng_str_of(id)) % TASK_BUCKETS];
}

/* Newest first; those of one millisecond by their ids, so that the order is the same after a
 * restart. */
static bool comes_before(const struct mcp_task_entry *entry, int64_t created_ms, const char *id)
{
    return entry->created_ms > created_ms ||
           (entry->created_ms == created_ms && strcmp(entry->id, id) > 0);
}

void mcp_task_entry_link(struct mcp_tasks *tasks, struct mcp_task_entry *entry)
{
    struct mcp_task_entry **bucket = bucket_of(tasks, entry->id);
    struct mcp_task_entry *before = NULL;
    struct mcp_task_entry *next = LIST_FIRST(&tasks->entries);
    entry->hash_next = *bucket;
    *bucket = entry;
    while (next != NULL && comes_before(next, entry->created_ms, entry->id)) {
        before = next; /* few: most are newer than all that are there */
        next = LIST_NEXT(next, link);
    }
    if (before != NULL) {
        LIST_INSERT_AFTER(before, entry, link);
    } else {
        LIST_INSERT_HEAD(&tasks->entries, entry, link);
    }
    tasks->count++;
}

void mcp_task_entry_unlink(struct mcp_tasks *tasks, struct mcp_task_entry *entry)
{
    struct mcp_task_entry **at = bucket_of(tasks, entry->id);
    while (*at != entry) {
        at = &(*at)->hash_next;
    }
    *at = entry->hash_next;
    LIST_REMOVE(entry, link);
    tasks->count--;
}

int64_t mcp_task_expires(const struct mcp_tasks *tasks, const struct mcp_task *task)
{
    bool is_own_clock = !store_is_shared(tasks->gateway->store) ||
                        str_equal(task->maker, cluster_id(tasks->gateway->cluster));
    int64_t left_ms = task->ttl_ms;
    if (is_own_clock) {
        left_ms = task->created_ms + task->ttl_ms - clock_unix_ms();
    }
    return clock_uptime_ms() + left_ms;
}

int mcp_task_entry_of(const struct mcp_tasks *tasks, const struct mcp_task *task,
                      struct mcp_task_entry **ret)
{
    int64_t expires_ms = mcp_task_expires(tasks, task);
    *ret = NULL;
    if (expires_ms <= clock_uptime_ms() || task->id.len != MCP_TASK_ID_LEN ||
        task->owner.len >= MCP_TASK_OWNER_MAX) {
        return NG_OK;
    }
    struct mcp_task_entry *entry = alloc_zeroed(1, sizeof(*entry));
    if (entry == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(entry->id, task->id.data, task->id.len);
    memcpy(entry->owner, task->owner.data, task->owner.len);
    entry->created_ms = task->created_ms;
    entry->expires_ms = expires_ms;
    entry->status = task->status;
    entry->is_stored = true;
    *ret = entry;
    return NG_OK;
}

static bool is_owned(const struct mcp_task_entry *entry, struct ng_str owner)
{
    return str_is(owner, entry->owner);
}

struct mcp_task_entry *mcp_task_entry_find(struct mcp_tasks *tasks, struct ng_str id)
{
    struct mcp_task_entry *entry = tasks->buckets[str_hash(id) % TASK_BUCKETS];
    while (entry != NULL && !str_is(id, entry->id)) {
        entry = entry->hash_next;
    }
    return entry;
}

struct mcp_task_entry *mcp_tasks_find(struct mcp_tasks *tasks, struct ng_str id,
                                      struct ng_str owner)
{
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    bool is_found = entry != NULL && entry->is_stored && !entry->is_gone &&
                    is_owned(entry, owner) && entry->expires_ms > clock_uptime_ms();
    if (is_found) {
        return entry;
    }
    return NULL;
}

int mcp_tasks_hold(struct mcp_tasks *tasks, struct ng_str id, struct call *call,
                   struct call *asker)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    bool is_free = entry != NULL && (entry->call == NULL || entry->is_ending) &&
                   !mcp_task_is_over(entry->status);
    if (is_free) {
        entry->call = call;
        entry->is_ending = false;
        entry->message[0] = '\0';
        entry->status = MCP_TASK_WORKING;
    }
    mcp_tasks_unlock(tasks);
    if (is_free) {
        return NG_OK;
    }
    return call_fail(asker, NG_ECONFLICT, "the task has ended in the meantime");
}

void mcp_tasks_let_go(struct mcp_tasks *tasks, struct ng_str id)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    if (entry != NULL) {
        entry->call = NULL;
    }
    mcp_tasks_unlock(tasks);
}

void mcp_tasks_run_ends(struct mcp_tasks *tasks, struct ng_str id, const struct call *run)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    if (entry != NULL && entry->call == run) {
        entry->is_ending = true;
    }
    mcp_tasks_unlock(tasks);
}

void mcp_tasks_cancel_run(struct mcp_tasks *tasks, struct ng_str id)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    if (entry != NULL && entry->call != NULL) {
        call_cancel(entry->call);
    }
    mcp_tasks_unlock(tasks);
}

void mcp_tasks_say(struct mcp_tasks *tasks, struct ng_str id, const char *message)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    if (entry != NULL) {
        (void)snprintf(entry->message, sizeof(entry->message), "%s", message);
    }
    mcp_tasks_unlock(tasks);
}

static int check_room(struct mcp_tasks *tasks, struct ng_str owner, const char **ret_error)
{
    size_t kept = 0;
    size_t running = 0;
    if (tasks->count >= MCP_TASKS_MAX) {
        *ret_error =
            "the gateway has the maximum number of tasks; try again when some have expired";
        return NG_EBUSY;
    }
    for (const struct mcp_task_entry *at = LIST_FIRST(&tasks->entries); at != NULL;
         at = LIST_NEXT(at, link)) {
        bool own = is_owned(at, owner);
        kept += own;
        running += own && at->call != NULL;
    }
    if (kept >= MCP_TASKS_PER_CALLER_MAX) {
        *ret_error = "this caller has 512 tasks, the maximum; wait until some have expired, or "
                     "ask for a shorter ttl";
        return NG_ERATE;
    }
    if (running >= MCP_TASKS_RUNNING_PER_CALLER_MAX) {
        *ret_error =
            "this caller has 64 running tasks, the maximum; wait for one, or cancel it";
        return NG_ERATE;
    }
    return NG_OK;
}

int mcp_tasks_add(struct mcp_tasks *tasks, struct ng_str owner, int64_t ttl_ms,
                  struct call *call, struct mcp_task_entry **ret, const char **ret_error)
{
    struct mcp_task_entry *entry = alloc_zeroed(1, sizeof(*entry));
    *ret_error = "the gateway ran out of memory";
    if (entry == NULL || owner.len >= sizeof(entry->owner) ||
        !random_hex(MCP_TASK_ID_BYTES, entry->id)) {
        free(entry);
        return NG_EINTERNAL;
    }
    memcpy(entry->owner, owner.data, owner.len);
    entry->created_ms = clock_unix_ms();
    entry->expires_ms = clock_uptime_ms() + ttl_ms;
    entry->call = call;
    mcp_tasks_lock(tasks);
    int rc = check_room(tasks, owner, ret_error);
    if (rc == NG_OK) {
        mcp_task_entry_link(tasks, entry);
    }
    mcp_tasks_unlock(tasks);
    if (rc != NG_OK) {
        free(entry);
        return rc;
    }
    *ret = entry;
    return NG_OK;
}

void mcp_tasks_remove(struct mcp_tasks *tasks, struct mcp_task_entry *entry)
{
    mcp_tasks_lock(tasks);
    mcp_task_entry_unlink(tasks, entry);
    mcp_tasks_unlock(tasks);
    free(entry);
}

struct mcp_task_entry *mcp_task_entry_after(struct mcp_tasks *tasks,
                                            const struct mcp_task_place *place)
{
    struct mcp_task_entry *at = LIST_FIRST(&tasks->entries);
    while (at != NULL &&
           (comes_before(at, place->created_ms, place->id) || strcmp(at->id, place->id) == 0)) {
        at = LIST_NEXT(at, link);
    }
    return at;
}

void mcp_tasks_page(struct mcp_tasks *tasks, struct ng_str owner,
                    const struct mcp_task_place *after, struct mcp_task_place *places,
                    size_t *count)
{
    size_t most = *count;
    int64_t now = clock_uptime_ms();
    const struct mcp_task_entry *at = LIST_FIRST(&tasks->entries);
    *count = 0;
    if (after != NULL) {
        at = mcp_task_entry_after(tasks, after);
    }
    for (; at != NULL && *count < most; at = LIST_NEXT(at, link)) {
        if (is_owned(at, owner) && at->is_stored && !at->is_gone && at->expires_ms > now) {
            struct mcp_task_place *place = &places[(*count)++];
            place->created_ms = at->created_ms;
            memcpy(place->id, at->id, sizeof(place->id));
        }
    }
}
