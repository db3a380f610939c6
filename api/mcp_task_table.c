/* SPDX-License-Identifier: MIT */
/* mcp_task_table.c - the tasks that live, in memory: whose they are, what runs, who waits or
 * watches, when they end. Made from the documents at the start. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "clock.h"
#include "log.h"
#include "mcp_tasks.h"
#include "str.h"

#define TASK_BUCKETS 4096
/* Expired tasks removed from disk by one upkeep. */
#define TASK_REAPED_MAX 512

struct mcp_task_waiter {
    struct call *call; /* a reference */
    struct ng_deferred *deferred;
    ng_step_fn *step;
    void *user;
    struct mcp_task_waiter *next;
};

struct mcp_task_watch {
    char (*ids)[MCP_TASK_ID_LEN + 1];
    size_t count;
    void (*changed)(void *user, const char *id);
    void *user;
    struct mcp_task_watch *prev, *next;
};

struct mcp_tasks {
    struct gateway *gateway;
    pthread_mutex_t lock;
    struct mcp_task_entry *buckets[TASK_BUCKETS];
    struct mcp_task_entry *newest;
    size_t count;
    pthread_mutex_t watch_lock; /* never taken inside `lock` */
    struct mcp_task_watch *watches;
    size_t watch_count;
};

struct mcp_tasks *mcp_tasks_of(struct gateway *gateway)
{
    return gateway->tasks.self;
}

void mcp_tasks_lock(struct mcp_tasks *tasks)
{
    (void)pthread_mutex_lock(&tasks->lock);
}

void mcp_tasks_unlock(struct mcp_tasks *tasks)
{
    (void)pthread_mutex_unlock(&tasks->lock);
}

/* ---- entries ---- */

static struct mcp_task_entry **bucket_of(struct mcp_tasks *tasks, const char *id)
{
    return &tasks->buckets[str_hash(ng_str_of(id)) % TASK_BUCKETS];
}

static void link_entry(struct mcp_tasks *tasks, struct mcp_task_entry *entry)
{
    struct mcp_task_entry **bucket = bucket_of(tasks, entry->id);
    entry->hash_next = *bucket;
    *bucket = entry;
    entry->next = tasks->newest;
    if (tasks->newest != NULL) {
        tasks->newest->prev = entry;
    }
    tasks->newest = entry;
    tasks->count++;
}

/* With the lock held. */
static void unlink_entry(struct mcp_tasks *tasks, struct mcp_task_entry *entry)
{
    struct mcp_task_entry **at = bucket_of(tasks, entry->id);
    while (*at != entry) {
        at = &(*at)->hash_next;
    }
    *at = entry->hash_next;
    if (entry->next != NULL) {
        entry->next->prev = entry->prev;
    }
    if (entry->prev != NULL) {
        entry->prev->next = entry->next;
    } else {
        tasks->newest = entry->next;
    }
    tasks->count--;
}

static bool is_owned(const struct mcp_task_entry *entry, struct ng_str owner)
{
    return str_is(owner, entry->owner);
}

/* With the lock held: whoever asks. */
static struct mcp_task_entry *find_any(struct mcp_tasks *tasks, struct ng_str id)
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
    struct mcp_task_entry *entry = find_any(tasks, id);
    bool is_found = entry != NULL && entry->is_stored && !entry->is_gone &&
                    is_owned(entry, owner) && entry->expires_ms > clock_unix_ms();
    return is_found ? entry : NULL;
}

int mcp_tasks_hold(struct mcp_tasks *tasks, struct ng_str id, struct call *call,
                   struct call *asker)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = find_any(tasks, id);
    bool is_free = entry != NULL && entry->call == NULL && !mcp_task_is_over(entry->status);
    if (is_free) {
        entry->call = call;
        entry->status = MCP_TASK_WORKING;
    }
    mcp_tasks_unlock(tasks);
    return is_free ? NG_OK : call_fail(asker, NG_ECONFLICT, "the task has ended meanwhile");
}

void mcp_tasks_let_go(struct mcp_tasks *tasks, struct ng_str id)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = find_any(tasks, id);
    if (entry != NULL) {
        entry->call = NULL;
    }
    mcp_tasks_unlock(tasks);
}

void mcp_tasks_cancel_run(struct mcp_tasks *tasks, struct ng_str id)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = find_any(tasks, id);
    if (entry != NULL && entry->call != NULL) {
        call_cancel(entry->call);
    }
    mcp_tasks_unlock(tasks);
}

void mcp_tasks_say(struct mcp_tasks *tasks, struct ng_str id, const char *message)
{
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = find_any(tasks, id);
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
        *ret_error = "the gateway keeps as many tasks as it may; try again when some expired";
        return NG_EBUSY;
    }
    for (const struct mcp_task_entry *at = tasks->newest; at != NULL; at = at->next) {
        bool own = is_owned(at, owner);
        kept += own ? 1 : 0;
        running += own && at->call != NULL ? 1 : 0;
    }
    if (kept >= MCP_TASKS_PER_CALLER_MAX) {
        *ret_error = "512 tasks of this caller are kept already; wait until some expired, or "
                     "ask for a shorter ttl";
        return NG_ERATE;
    }
    if (running >= MCP_TASKS_RUNNING_PER_CALLER_MAX) {
        *ret_error = "64 tasks of this caller are running already; wait for one, or cancel it";
        return NG_ERATE;
    }
    return NG_OK;
}

static bool make_id(char *id)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[MCP_TASK_ID_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        id[2 * i] = digits[bytes[i] >> 4];
        id[2 * i + 1] = digits[bytes[i] & 15];
    }
    id[MCP_TASK_ID_LEN] = '\0';
    return true;
}

int mcp_tasks_add(struct mcp_tasks *tasks, struct ng_str owner, int64_t ttl_ms,
                  struct call *call, struct mcp_task_entry **ret, const char **ret_error)
{
    struct mcp_task_entry *entry = alloc_zeroed(1, sizeof(*entry));
    *ret_error = "the gateway ran out of memory";
    if (entry == NULL || owner.len >= sizeof(entry->owner) || !make_id(entry->id)) {
        free(entry);
        return NG_EINTERNAL;
    }
    memcpy(entry->owner, owner.data, owner.len);
    entry->created_ms = clock_unix_ms();
    entry->expires_ms = entry->created_ms + ttl_ms;
    entry->call = call;
    mcp_tasks_lock(tasks);
    int rc = check_room(tasks, owner, ret_error);
    if (rc == NG_OK) {
        link_entry(tasks, entry);
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
    unlink_entry(tasks, entry);
    mcp_tasks_unlock(tasks);
    free(entry);
}

bool mcp_tasks_page(struct mcp_tasks *tasks, struct ng_str owner, struct ng_str after,
                    char (*ids)[MCP_TASK_ID_LEN + 1], size_t *count)
{
    size_t most = *count;
    int64_t now = clock_unix_ms();
    const struct mcp_task_entry *at = tasks->newest;
    *count = 0;
    if (after.data != NULL) {
        const struct mcp_task_entry *last = mcp_tasks_find(tasks, after, owner);
        if (last == NULL) {
            return false;
        }
        at = last->next;
    }
    for (; at != NULL && *count < most; at = at->next) {
        if (is_owned(at, owner) && at->is_stored && !at->is_gone && at->expires_ms > now) {
            memcpy(ids[(*count)++], at->id, sizeof(at->id));
        }
    }
    return true;
}

/* ---- waiting ---- */

static void wake_waiters(struct mcp_task_waiter *waiters)
{
    while (waiters != NULL) {
        struct mcp_task_waiter waiter = *waiters; /* it lies in its call's memory */
        (void)call_host.continue_on_worker(&waiter.call->pub, waiter.step, waiter.user);
        call_host.finish(waiter.deferred, NG_OK);
        call_unref(waiter.call);
        waiters = waiter.next;
    }
}

int mcp_tasks_await(struct mcp_tasks *tasks, struct call *call, struct ng_str id,
                    struct ng_str owner, ng_step_fn *step, void *user)
{
    struct mcp_task_waiter *waiter = arena_zalloc(&call->arena, sizeof(*waiter));
    size_t waiting = 0;
    int rc = NG_OK;
    if (waiter == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_tasks_find(tasks, id, owner);
    if (entry == NULL) {
        rc = NG_ENOTFOUND;
    } else if (!mcp_task_is_over(entry->status)) {
        for (const struct mcp_task_waiter *at = entry->waiters; at != NULL; at = at->next) {
            waiting++;
        }
        rc = waiting < MCP_TASK_WAITERS_MAX ? NG_PENDING : NG_EBUSY;
    }
    if (rc == NG_PENDING) {
        call_ref(call);
        *waiter = (struct mcp_task_waiter){.call = call,
                                           .deferred = call_host.defer(&call->pub),
                                           .step = step,
                                           .user = user,
                                           .next = entry->waiters};
        entry->waiters = waiter;
    }
    mcp_tasks_unlock(tasks);
    if (rc == NG_ENOTFOUND) {
        return call_fail(call, rc, "there is no such task");
    }
    return rc == NG_EBUSY ? call_fail(call, rc, "%d requests wait for this task already",
                                      MCP_TASK_WAITERS_MAX)
                          : rc;
}

/* ---- watching ---- */

int mcp_tasks_watch(struct mcp_tasks *tasks, struct ng_str owner, const struct ng_str *ids,
                    size_t count, void (*changed)(void *user, const char *id), void *user,
                    struct mcp_task_watch **ret)
{
    struct mcp_task_watch *watch = alloc_zeroed(1, sizeof(*watch));
    size_t most = count < MCP_TASK_WATCHED_MAX ? count : MCP_TASK_WATCHED_MAX;
    if (watch != NULL) {
        watch->ids = alloc_zeroed(most == 0 ? 1 : most, sizeof(*watch->ids));
    }
    if (watch == NULL || watch->ids == NULL) {
        free(watch);
        return NG_EINTERNAL;
    }
    watch->changed = changed;
    watch->user = user;
    mcp_tasks_lock(tasks);
    for (size_t i = 0; i < count && watch->count < most; i++) {
        const struct mcp_task_entry *entry = mcp_tasks_find(tasks, ids[i], owner);
        if (entry != NULL) {
            memcpy(watch->ids[watch->count++], entry->id, sizeof(entry->id));
        }
    }
    mcp_tasks_unlock(tasks);
    (void)pthread_mutex_lock(&tasks->watch_lock);
    bool fits = tasks->watch_count < MCP_TASK_WATCHES_MAX;
    if (fits) {
        tasks->watch_count++;
        watch->next = tasks->watches;
        if (watch->next != NULL) {
            watch->next->prev = watch;
        }
        tasks->watches = watch;
    }
    (void)pthread_mutex_unlock(&tasks->watch_lock);
    if (!fits) {
        free(watch->ids);
        free(watch);
        return NG_EBUSY;
    }
    *ret = watch;
    return NG_OK;
}

void mcp_tasks_unwatch(struct mcp_tasks *tasks, struct mcp_task_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&tasks->watch_lock);
    tasks->watch_count--;
    if (watch->next != NULL) {
        watch->next->prev = watch->prev;
    }
    if (watch->prev != NULL) {
        watch->prev->next = watch->next;
    } else {
        tasks->watches = watch->next;
    }
    (void)pthread_mutex_unlock(&tasks->watch_lock);
    free(watch->ids);
    free(watch);
}

static void tell_watches(struct mcp_tasks *tasks, const char *id)
{
    (void)pthread_mutex_lock(&tasks->watch_lock);
    for (const struct mcp_task_watch *watch = tasks->watches; watch != NULL;
         watch = watch->next) {
        for (size_t i = 0; i < watch->count; i++) {
            if (strcmp(watch->ids[i], id) == 0) {
                watch->changed(watch->user, id);
                break;
            }
        }
    }
    (void)pthread_mutex_unlock(&tasks->watch_lock);
}

void mcp_tasks_settle(struct mcp_tasks *tasks, struct ng_str id, bool run_ended,
                      enum mcp_task_status status, bool is_lost)
{
    struct mcp_task_waiter *waiters = NULL;
    struct mcp_task_entry *gone = NULL;
    char name[MCP_TASK_ID_LEN + 1] = "";
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = find_any(tasks, id);
    bool changes = entry != NULL && entry->status != status;
    if (entry != NULL) {
        memcpy(name, entry->id, sizeof(name));
        /* A cancelled run may end later than the task did. */
        if (!mcp_task_is_over(entry->status)) {
            entry->status = status;
            entry->is_lost = is_lost;
        } else {
            changes = false;
        }
        if (mcp_task_is_over(entry->status)) {
            waiters = entry->waiters;
            entry->waiters = NULL;
        }
        if (run_ended) {
            entry->call = NULL;
            entry->message[0] = '\0';
        }
        if (entry->is_gone && entry->call == NULL) {
            unlink_entry(tasks, entry);
            gone = entry;
        }
    }
    mcp_tasks_unlock(tasks);
    free(gone);
    if (changes) {
        tell_watches(tasks, name);
    }
    wake_waiters(waiters);
}

/* ---- upkeep ---- */

/* What expired leaves the table; a run of it is cancelled, and leaves when it ends. Ids go to
 * `ids`, for the documents. */
static size_t expire(struct mcp_tasks *tasks, char (*ids)[MCP_TASK_ID_LEN + 1], size_t most,
                     struct mcp_task_waiter **ret_waiters)
{
    int64_t now = clock_unix_ms();
    size_t count = 0;
    mcp_tasks_lock(tasks);
    for (struct mcp_task_entry *at = tasks->newest, *next = NULL; at != NULL && count < most;
         at = next) {
        next = at->next;
        if (!at->is_stored || at->is_gone || at->expires_ms > now) {
            continue;
        }
        memcpy(ids[count++], at->id, sizeof(at->id));
        struct mcp_task_waiter *last = at->waiters;
        while (last != NULL && last->next != NULL) {
            last = last->next;
        }
        if (last != NULL) {
            last->next = *ret_waiters;
            *ret_waiters = at->waiters;
            at->waiters = NULL;
        }
        if (at->call != NULL) {
            at->is_gone = true;
            call_cancel(at->call);
        } else {
            unlink_entry(tasks, at);
            free(at);
        }
    }
    mcp_tasks_unlock(tasks);
    return count;
}

/* Requests whose clients have left need not wait any longer. */
static void drop_left(struct mcp_tasks *tasks, struct mcp_task_waiter **ret_waiters)
{
    mcp_tasks_lock(tasks);
    for (struct mcp_task_entry *at = tasks->newest; at != NULL; at = at->next) {
        struct mcp_task_waiter **link = &at->waiters;
        while (*link != NULL) {
            struct mcp_task_waiter *waiter = *link;
            if (!atomic_load(&waiter->call->cancelled)) {
                link = &waiter->next;
                continue;
            }
            *link = waiter->next;
            waiter->next = *ret_waiters;
            *ret_waiters = waiter;
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
    wake_waiters(waiters);
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
    int64_t expires = task->created_ms + task->ttl_ms;
    bool is_expired = expires <= clock_unix_ms();
    if (is_expired || task->status == MCP_TASK_WORKING) {
        if (found->count == found->room) {
            size_t room = found->room == 0 ? 64 : 2 * found->room;
            struct ng_str *ids = arena_alloc(&found->call->arena, room * sizeof(*ids));
            if (ids == NULL) {
                return NG_EINTERNAL;
            }
            if (found->count > 0) {
                memcpy(ids, found->ids, found->count * sizeof(*ids));
            }
            found->ids = ids;
            found->room = room;
        }
        found->ids[found->count++] = task->id;
    }
    if (is_expired || task->id.len != MCP_TASK_ID_LEN ||
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
    entry->expires_ms = expires;
    entry->status = task->status == MCP_TASK_WORKING ? MCP_TASK_FAILED : task->status;
    entry->is_stored = true;
    link_entry(tasks, entry);
    return NG_OK;
}

static bool fail_died(struct mcp_task *task, struct call *call, void *user)
{
    (void)call;
    (void)user;
    if (task->status != MCP_TASK_WORKING) {
        return false;
    }
    task->status = MCP_TASK_FAILED;
    task->message = ng_str_of("the gateway was restarted while the tool ran");
    task->outcome = ng_str_of(
        "{\"code\":-32603,\"message\":\"the gateway was restarted while the tool ran; what it "
        "had changed until then is kept. Read before calling it again\"}");
    return true;
}

/* The documents say what the table says. */
static int settle_found(struct found *found)
{
    struct mcp_task_edit edit = {.fn = fail_died};
    int rc = NG_OK;
    for (size_t i = 0; i < found->count && rc == NG_OK; i++) {
        bool lives = find_any(found->tasks, found->ids[i]) != NULL;
        rc = lives ? mcp_task_change(found->call, found->ids[i], &edit)
                   : mcp_task_delete(found->call, found->ids[i]);
    }
    return rc;
}

static void tasks_close(void *self)
{
    struct mcp_tasks *tasks = self;
    struct mcp_task_entry *entry = tasks->newest;
    while (entry != NULL) {
        struct mcp_task_entry *next = entry->next;
        free(entry);
        entry = next;
    }
    (void)pthread_mutex_destroy(&tasks->watch_lock);
    (void)pthread_mutex_destroy(&tasks->lock);
    free(tasks);
}

int mcp_tasks_open(struct gateway *gateway, struct buf *error)
{
    if (gateway->store == NULL || gateway->tasks.self != NULL) {
        return NG_OK;
    }
    struct call *call = call_new(gateway);
    struct mcp_tasks *tasks = alloc_zeroed(1, sizeof(*tasks));
    if (call == NULL || tasks == NULL || pthread_mutex_init(&tasks->lock, NULL) != 0 ||
        pthread_mutex_init(&tasks->watch_lock, NULL) != 0) {
        buf_add_c(error, "out of memory");
        free(tasks);
        call_unref(call);
        return NG_EINTERNAL;
    }
    struct found found = {.tasks = tasks, .call = call};
    tasks->gateway = gateway;
    int rc = mcp_task_declare(gateway->store, call);
    rc = rc != NG_OK ? rc : mcp_task_each(call, find_task, &found);
    rc = rc != NG_OK ? rc : settle_found(&found);
    if (rc != NG_OK) {
        buf_printf(error, "the stored tasks cannot be read: %.*s", (int)call->work.message.len,
                   call->work.message.data == NULL ? "" : call->work.message.data);
        tasks_close(tasks);
    } else {
        gateway->tasks.self = tasks;
        gateway->tasks.upkeep = tasks_upkeep;
        gateway->tasks.close = tasks_close;
    }
    if (rc == NG_OK && found.count > 0) {
        log_write(NG_LOG_INFO, "mcp", "%zu tasks had ended or expired", found.count);
    }
    call_unref(call);
    return rc;
}
