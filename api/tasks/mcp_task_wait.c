/* SPDX-License-Identifier: MIT */
/* mcp_task_wait.c - requests that wait for the end of a task, streams that watch some, and
 * telling them. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "mcp_task_table.h"

/* ---- waiting ---- */

void mcp_task_wake(struct mcp_task_waiter *waiters)
{
    while (waiters != NULL) {
        struct mcp_task_waiter waiter = *waiters; /* it lies in its call's memory */
        const struct ng_host *host = waiter.call->pub.host;
        (void)host->continue_on_worker(&waiter.call->pub, waiter.step, waiter.user);
        host->finish(waiter.deferred, NG_OK);
        call_unref(waiter.call);
        waiters = waiter.next;
    }
}

size_t mcp_task_take_left(struct mcp_task_entry *entry, struct mcp_task_waiter **ret_left)
{
    struct mcp_task_waiter **link = &entry->waiters;
    size_t stay = 0;
    while (*link != NULL) {
        struct mcp_task_waiter *waiter = *link;
        if (!call_has(waiter->call, CALL_CANCELLED)) {
            link = &waiter->next;
            stay++;
            continue;
        }
        *link = waiter->next;
        waiter->next = *ret_left;
        *ret_left = waiter;
    }
    return stay;
}

int mcp_tasks_await(struct mcp_tasks *tasks, struct call *call, struct ng_str id,
                    struct ng_str owner, ng_step_fn *step, void *user)
{
    struct mcp_task_waiter *waiter = arena_zalloc(&call->arena, sizeof(*waiter));
    struct mcp_task_waiter *left = NULL;
    int rc = NG_OK;
    if (waiter == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_tasks_find(tasks, id, owner);
    if (entry == NULL) {
        rc = NG_ENOTFOUND;
    } else if (tasks->is_stopping) {
        rc = NG_OK;
    } else if (entry->status == MCP_TASK_INPUT_REQUIRED && !entry->is_asking &&
               call->client_asks != 0) {
        entry->is_asking = true;
    } else if (!mcp_task_is_over(entry->status)) {
        size_t waiting = mcp_task_take_left(entry, &left);
        rc = NG_EBUSY;
        if (waiting < MCP_TASK_WAITERS_MAX) {
            rc = NG_PENDING;
        }
    }
    if (rc == NG_PENDING) {
        call_ref(call);
        *waiter = (struct mcp_task_waiter){.call = call,
                                           .deferred = call->pub.host->defer(&call->pub),
                                           .step = step,
                                           .user = user,
                                           .next = entry->waiters};
        entry->waiters = waiter;
    }
    mcp_tasks_unlock(tasks);
    mcp_task_wake(left);
    if (rc == NG_ENOTFOUND) {
        return call_fail(call, rc, "there is no such task");
    }
    if (rc != NG_EBUSY) {
        return rc;
    }
    return call_fail(call, rc, "%d requests wait for this task already", MCP_TASK_WAITERS_MAX);
}

/* With the lock held: takes out the first waiting request whose client can be asked. */
static struct mcp_task_waiter *take_asker(struct mcp_task_entry *entry)
{
    struct mcp_task_waiter **link = &entry->waiters;
    while (*link != NULL && (*link)->call->client_asks == 0) {
        link = &(*link)->next;
    }
    struct mcp_task_waiter *asker = *link;
    if (asker != NULL) {
        *link = asker->next;
        asker->next = NULL;
        entry->is_asking = true;
    }
    return asker;
}

void mcp_tasks_ask_over(struct mcp_tasks *tasks, struct ng_str id)
{
    struct mcp_task_waiter *asker = NULL;
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    if (entry != NULL) {
        entry->is_asking = false;
    }
    if (entry != NULL && entry->status == MCP_TASK_INPUT_REQUIRED && !tasks->is_stopping) {
        asker = take_asker(entry);
    }
    mcp_tasks_unlock(tasks);
    mcp_task_wake(asker);
}

size_t mcp_tasks_waiting(struct mcp_tasks *tasks)
{
    size_t count = 0;
    mcp_tasks_lock(tasks);
    for (const struct mcp_task_entry *at = LIST_FIRST(&tasks->entries); at != NULL;
         at = LIST_NEXT(at, link)) {
        for (const struct mcp_task_waiter *waiter = at->waiters; waiter != NULL;
             waiter = waiter->next) {
            count++;
        }
    }
    mcp_tasks_unlock(tasks);
    return count;
}

/* ---- watching ---- */

int mcp_tasks_subscribe(struct mcp_tasks *tasks, struct ng_str owner, const struct ng_str *ids,
                        size_t count, mcp_task_changed_fn *changed, void *user,
                        struct mcp_task_subscription **ret)
{
    struct mcp_task_subscription *subscription = alloc_zeroed(1, sizeof(*subscription));
    size_t most = size_min(count, MCP_TASK_WATCHED_MAX);
    if (subscription != NULL) {
        subscription->ids = alloc_zeroed(most == 0 ? 1 : most, sizeof(*subscription->ids));
    }
    if (subscription == NULL || subscription->ids == NULL) {
        free(subscription);
        return NG_EINTERNAL;
    }
    subscription->changed = changed;
    subscription->user = user;
    mcp_tasks_lock(tasks);
    for (size_t i = 0; i < count && subscription->count < most; i++) {
        const struct mcp_task_entry *entry = mcp_tasks_find(tasks, ids[i], owner);
        if (entry != NULL) {
            memcpy(subscription->ids[subscription->count++], entry->id, sizeof(entry->id));
        }
    }
    mcp_tasks_unlock(tasks);
    lock_take(&tasks->subscription_lock);
    bool fits = tasks->subscription_count < MCP_TASK_SUBSCRIPTIONS_MAX;
    if (fits) {
        tasks->subscription_count++;
        LIST_INSERT_HEAD(&tasks->subscriptions, subscription, link);
    }
    lock_release(&tasks->subscription_lock);
    if (!fits) {
        free(subscription->ids);
        free(subscription);
        return NG_EBUSY;
    }
    *ret = subscription;
    return NG_OK;
}

void mcp_tasks_unsubscribe(struct mcp_tasks *tasks, struct mcp_task_subscription *subscription)
{
    if (subscription == NULL) {
        return;
    }
    lock_take(&tasks->subscription_lock);
    tasks->subscription_count--;
    LIST_REMOVE(subscription, link);
    lock_release(&tasks->subscription_lock);
    free(subscription->ids);
    free(subscription);
}

size_t mcp_tasks_subscribed(const struct mcp_task_subscription *subscription)
{
    return subscription->count;
}

const char *mcp_tasks_subscribed_id(const struct mcp_task_subscription *subscription,
                                    size_t index)
{
    return subscription->ids[index];
}

static bool has_task(const struct mcp_task_subscription *subscription, const char *id)
{
    for (size_t i = 0; i < subscription->count; i++) {
        if (strcmp(subscription->ids[i], id) == 0) {
            return true;
        }
    }
    return false;
}

/* With the lock of the subscriptions held, so that none is removed meanwhile. */
static void tell_state(struct mcp_tasks *tasks, const char *id, const char *owner)
{
    struct call *call = call_new(tasks->gateway);
    struct mcp_task task;
    struct buf text;
    if (call == NULL) {
        return;
    }
    buf_init(&text, CALL_MEMORY_MAX);
    if (mcp_task_view(tasks, call, ng_str_of(id), ng_str_of(owner), &task) == NG_OK) {
        mcp_task_print(&text, &task, true, true);
    }
    for (const struct mcp_task_subscription *subscription = LIST_FIRST(&tasks->subscriptions);
         subscription != NULL && text.rc == NG_OK && text.len > 0;
         subscription = LIST_NEXT(subscription, link)) {
        if (has_task(subscription, id)) {
            subscription->changed(subscription->user, buf_str(&text));
        }
    }
    buf_done(&text);
    call_unref(call);
}

static void notify_subscribers(struct mcp_tasks *tasks, const char *id, const char *owner)
{
    lock_take(&tasks->subscription_lock);
    const struct mcp_task_subscription *subscription = LIST_FIRST(&tasks->subscriptions);
    while (subscription != NULL && !has_task(subscription, id)) {
        subscription = LIST_NEXT(subscription, link);
    }
    if (subscription != NULL) {
        tell_state(tasks, id, owner);
    }
    lock_release(&tasks->subscription_lock);
}

void mcp_tasks_settle(struct mcp_tasks *tasks, struct ng_str id, const struct call *ended,
                      enum mcp_task_status status, bool is_lost)
{
    struct mcp_task_waiter *waiters = NULL;
    struct mcp_task_entry *gone = NULL;
    char name[MCP_TASK_ID_LEN + 1] = "";
    char owner[MCP_TASK_OWNER_MAX] = "";
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, id);
    /* Another run has taken the place of the one that ended: its state is the task's. */
    bool is_former = entry != NULL && ended != NULL && entry->call != ended;
    bool changes = entry != NULL && !is_former && entry->status != status;
    if (entry != NULL && !is_former) {
        memcpy(name, entry->id, sizeof(name));
        memcpy(owner, entry->owner, sizeof(owner));
        /* A cancelled run may end later than the task did. */
        if (!mcp_task_is_over(entry->status)) {
            entry->status = status;
            entry->is_lost = is_lost;
        } else {
            changes = false;
        }
        entry->is_asking = entry->is_asking && entry->status == MCP_TASK_INPUT_REQUIRED;
        if (mcp_task_is_over(entry->status)) {
            waiters = entry->waiters;
            entry->waiters = NULL;
        } else if (entry->status == MCP_TASK_INPUT_REQUIRED && !entry->is_asking) {
            waiters = take_asker(entry);
        }
        if (ended != NULL) {
            entry->call = NULL;
            entry->is_ending = false;
            entry->message[0] = '\0';
        }
        if (entry->is_gone && entry->call == NULL) {
            mcp_task_entry_unlink(tasks, entry);
            gone = entry;
        }
    }
    mcp_tasks_unlock(tasks);
    free(gone);
    if (changes) {
        notify_subscribers(tasks, name, owner);
    }
    mcp_task_wake(waiters);
}
