/* SPDX-License-Identifier: MIT */
/* mcp_task_table.h - the table of living tasks from inside: mcp_task_table.c, _wait.c, _open.c.
 */
#ifndef NOTEGATE_API_MCP_TASK_TABLE_H
#define NOTEGATE_API_MCP_TASK_TABLE_H

#include "core/base/lock.h"
#include "mcp_tasks.h"

#define TASK_BUCKETS 4096

struct mcp_task_waiter {
    struct call *call; /* a reference */
    struct ng_deferred *deferred;
    ng_step_fn *step;
    void *user;
    struct mcp_task_waiter *next;
};

struct mcp_task_subscription {
    char (*ids)[MCP_TASK_ID_LEN + 1];
    size_t count;
    mcp_task_changed_fn *changed;
    void *user;
    LIST_ENTRY(mcp_task_subscription) link;
};

struct mcp_tasks {
    struct gateway *gateway;
    struct lock lock;
    struct mcp_task_entry *buckets[TASK_BUCKETS];
    LIST_HEAD(, mcp_task_entry) entries; /* newest first */
    size_t count;
    bool is_stopping;
    struct lock subscription_lock; /* never taken inside `lock` */
    LIST_HEAD(, mcp_task_subscription) subscriptions;
    size_t subscription_count;
    /* Shared documents, the thread of cluster.h: when it looked last, and the deaths of
     * gateways (cluster_deaths()) that it had seen by then. */
    int64_t looked_ns;
    uint64_t seen_deaths;
};

/* mcp_task_remote.c: with shared documents, tasks of other gateways. A task that is stored gets
 * its entry, or its entry the state that is stored. On workers. */
void mcp_task_remote_find(struct mcp_tasks *tasks, struct call *call, struct ng_str id);
/* The same for all tasks of the owner. NG_OK, or the failure of the database. */
int mcp_task_remote_find_owned(struct mcp_tasks *tasks, struct call *call, struct ng_str owner);
int mcp_tasks_poll_remote(void *self, struct call *call);
/* mcp_task_lifecycle.c: the task's gateway died while its tool ran. */
void mcp_task_fail_died(struct mcp_task *task);

/* With the lock held. Requests that wait. */
struct mcp_task_entry *mcp_task_entry_find(struct mcp_tasks *tasks, struct ng_str id);
/* When the task expires: clock_uptime_ms(). The clock of another gateway may be another: its
 * tasks expire here their whole ttl from now on, unless it removes them earlier. */
int64_t mcp_task_expires(const struct mcp_tasks *tasks, const struct mcp_task *task);
/* The entry of a stored task, not linked; NULL where it has expired or could not be of this
 * gateway. NG_EINTERNAL: out of memory. */
int mcp_task_entry_of(const struct mcp_tasks *tasks, const struct mcp_task *task,
                      struct mcp_task_entry **ret);
/* The first entry behind the place. */
struct mcp_task_entry *mcp_task_entry_after(struct mcp_tasks *tasks,
                                            const struct mcp_task_place *place);
void mcp_task_entry_link(struct mcp_tasks *tasks, struct mcp_task_entry *entry);
void mcp_task_entry_unlink(struct mcp_tasks *tasks, struct mcp_task_entry *entry);
/* With the lock held: requests that wait for the task and whose clients have left, in front of
 * *ret_left. Returns the number of the others. */
size_t mcp_task_take_left(struct mcp_task_entry *entry, struct mcp_task_waiter **ret_left);
/* mcp_task_lifecycle.c: the document of a task is gone. Without the lock. */
void mcp_task_entry_forget(struct mcp_tasks *tasks, struct ng_str id);
/* Continues waiting requests that were taken out of the table. */
void mcp_task_wake(struct mcp_task_waiter *waiters);

#endif
