/* SPDX-License-Identifier: MIT */
/* pool.c - worker threads over one lane per agent; lanes take turns. */
#include "pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/fault/crash.h"
#include "metrics.h"

#define POOL_LANE_NAME_MAX 64
#define POOL_BUCKETS 64
#define THREAD_NAME_SIZE 16 /* of the kernel */
#define POOL_STACK_BYTES ((size_t)1024 * 1024)

/* How many tasks of a group a lane runs. */
struct lane_group {
    struct pool_group *group; /* NULL: a free place */
    unsigned running;
};

struct lane {
    char name[POOL_LANE_NAME_MAX];
    size_t name_len;
    struct task *first, **last;
    unsigned running, queued;
    bool ready;             /* in the ring: has tasks and may run one */
    struct lane *ring_next; /* ready lanes, in turn */
    struct lane *bucket_next;
    struct lane_group groups[]; /* pool->share: it runs no more tasks */
};

struct pool {
    struct lock lock;
    pthread_cond_t work;
    struct lane *buckets[POOL_BUCKETS];
    struct lane *ring_first, **ring_last;
    struct task *resumed, **resumed_last; /* go ahead of all lanes */
    struct metrics *metrics;
    unsigned queued, queue_max;
    unsigned workers, workers_max;
    unsigned joined;      /* of the workers, by pool_stop */
    unsigned idle;        /* workers that wait */
    unsigned signalled;   /* of these, how many were woken and have not come round yet */
    unsigned group_share; /* workers that one group may have */
    unsigned share;       /* workers that one lane may have */
    atomic_uint waking;   /* threads that wake one, behind the lock */
    bool stopping;
    pthread_t *threads;
};

/* The lane's place for the group; NULL: it runs none of its tasks. group NULL: a free place. */
static struct lane_group *lane_group(const struct pool *pool, struct lane *lane,
                                     const struct pool_group *group)
{
    for (unsigned i = 0; i < pool->share; i++) {
        if (lane->groups[i].group == group) {
            return &lane->groups[i];
        }
    }
    return NULL;
}

static bool group_has_room(const struct pool *pool, struct lane *lane,
                           const struct pool_group *group)
{
    if (group == NULL || group->running >= pool->group_share) {
        return group == NULL;
    }
    const struct lane_group *own = NULL;
    if (lane != NULL) {
        own = lane_group(pool, lane, group);
    }
    return own == NULL || own->running + 1 < pool->group_share;
}

/* lane: NULL for resumed tasks. Counts a running task, or removes it. */
static void group_count(struct pool *pool, struct lane *lane, struct pool_group *group,
                        bool runs)
{
    if (group == NULL) {
        return;
    }
    if (runs) {
        group->running += 1;
    } else {
        group->running += UINT_MAX;
    }
    struct lane_group *own = NULL;
    if (lane != NULL) {
        own = lane_group(pool, lane, group);
    }
    if (lane != NULL && own == NULL) {
        own = lane_group(pool, lane, NULL);
        own->group = group;
    }
    if (own != NULL) {
        if (runs) {
            own->running += 1;
        } else {
            own->running += UINT_MAX;
        }
        if (own->running == 0) {
            own->group = NULL;
        } else {
            own->group = group;
        }
    }
}

/* Link of the first task that has a worker left in its group; NULL: none. */
static struct task **pool_runnable(const struct pool *pool, struct lane *lane,
                                   struct task **first)
{
    for (struct task **at = first; *at != NULL; at = &(*at)->next) {
        if (group_has_room(pool, lane, (*at)->group)) {
            return at;
        }
    }
    return NULL;
}

/* Takes the task out of its list. last: where the list's next one would hang. */
static struct task *pool_unlink(struct task **at, struct task ***last)
{
    struct task *task = *at;
    *at = task->next;
    if (*at == NULL) {
        *last = at;
    }
    return task;
}

static void pool_make_ready(struct pool *pool, struct lane *lane)
{
    if (lane->ready || lane->running >= pool->share ||
        pool_runnable(pool, lane, &lane->first) == NULL) {
        return;
    }
    lane->ready = true;
    lane->ring_next = NULL;
    *pool->ring_last = lane;
    pool->ring_last = &lane->ring_next;
}

static struct lane *pool_lane(struct pool *pool, struct ng_str name)
{
    if (name.len > POOL_LANE_NAME_MAX) {
        name.len = POOL_LANE_NAME_MAX;
    }
    struct lane **bucket = &pool->buckets[str_hash(name) % POOL_BUCKETS];
    for (struct lane *lane = *bucket; lane != NULL; lane = lane->bucket_next) {
        if (str_equal(str_make(lane->name, lane->name_len), name)) {
            return lane;
        }
    }
    struct lane *lane = alloc_zeroed(1, sizeof(*lane) + pool->share * sizeof(lane->groups[0]));
    if (lane == NULL) {
        return NULL;
    }
    memcpy(lane->name, name.data, name.len);
    lane->name_len = name.len;
    lane->last = &lane->first;
    lane->bucket_next = *bucket;
    *bucket = lane;
    return lane;
}

/* Lanes without work are freed, so that their number is bounded by the queue and the workers.
 */
static void pool_drop_lane(struct pool *pool, struct lane *lane)
{
    if (lane->first != NULL || lane->running > 0 || lane->ready) {
        return;
    }
    struct ng_str name = str_make(lane->name, lane->name_len);
    struct lane **at = &pool->buckets[str_hash(name) % POOL_BUCKETS];
    while (*at != lane) {
        at = &(*at)->bucket_next;
    }
    *at = lane->bucket_next;
    free(lane);
}

/* The next lane in turn that has a task to run. A lane leaves the ring if all its tasks wait
 * for their groups: pool_end_task() brings it back. */
static struct lane *pool_next_lane(struct pool *pool, struct task ***ret_at)
{
    while (pool->ring_first != NULL) {
        struct lane *lane = pool->ring_first;
        pool->ring_first = lane->ring_next;
        if (pool->ring_first == NULL) {
            pool->ring_last = &pool->ring_first;
        }
        lane->ready = false;
        *ret_at = pool_runnable(pool, lane, &lane->first);
        if (*ret_at != NULL) {
            return lane;
        }
    }
    return NULL;
}

static struct task *pool_take(struct pool *pool, struct lane **ret_lane)
{
    struct task **at = pool_runnable(pool, NULL, &pool->resumed);
    *ret_lane = NULL;
    if (at != NULL) {
        return pool_unlink(at, &pool->resumed_last);
    }
    struct lane *lane = pool_next_lane(pool, &at);
    if (lane == NULL) {
        return NULL;
    }
    struct task *task = pool_unlink(at, &lane->last);
    lane->running++;
    lane->queued--;
    pool->queued--;
    metrics_use(pool->metrics, METRICS_QUEUE, -1);
    *ret_lane = lane;
    return task;
}

/* The group has a worker again: lanes with tasks that waited for it. */
static void pool_group_has_room(struct pool *pool)
{
    for (size_t i = 0; i < POOL_BUCKETS; i++) {
        for (struct lane *lane = pool->buckets[i]; lane != NULL; lane = lane->bucket_next) {
            pool_make_ready(pool, lane);
        }
    }
}

/* *ret_signal: more can run now than this worker takes, and another one is idle. */
static void pool_end_task(struct pool *pool, struct lane *lane, struct pool_group *group,
                          bool *ret_signal)
{
    bool was_full = group != NULL && group->running == pool->group_share;
    group_count(pool, lane, group, false);
    if (lane != NULL) {
        lane->running--;
        pool_make_ready(pool, lane);
        pool_drop_lane(pool, lane);
    }
    if (was_full) {
        pool_group_has_room(pool);
        *ret_signal = pool->idle > pool->signalled;
        pool->signalled += *ret_signal;
    }
}

static void *pool_worker(void *user)
{
    struct pool *pool = user;
    crash_thread();
    lock_take(&pool->lock);
    for (;;) {
        struct lane *lane = NULL;
        struct task *task = pool_take(pool, &lane);
        if (task == NULL) {
            if (pool->stopping) {
                break;
            }
            pool->idle++;
            lock_wait(&pool->work, &pool->lock);
            pool->idle--;
            if (pool->signalled > 0) {
                pool->signalled--;
            }
            continue;
        }
        struct pool_group *group = task->group; /* the task may be gone when it has run */
        bool signal = false;
        group_count(pool, lane, group, true);
        if (lane != NULL) {
            pool_make_ready(pool, lane);
        }
        lock_release(&pool->lock);
        metrics_use(pool->metrics, METRICS_WORKERS, 1);
        task->run(task);
        metrics_use(pool->metrics, METRICS_WORKERS, -1);
        lock_take(&pool->lock);
        pool_end_task(pool, lane, group, &signal);
        if (signal) {
            pthread_cond_signal(&pool->work);
        }
    }
    lock_release(&pool->lock);
    return NULL;
}

int pool_new(unsigned workers, unsigned queue, struct metrics *metrics, struct pool **ret)
{
    struct pool *pool = alloc_zeroed(1, sizeof(*pool));
    if (pool == NULL) {
        return NG_EINTERNAL;
    }
    if (workers == 0) {
        pool->workers_max = 1;
    } else {
        pool->workers_max = workers;
    }
    pool->threads = alloc_zeroed(pool->workers_max, sizeof(*pool->threads));
    if (pool->threads == NULL) {
        free(pool);
        return NG_EINTERNAL;
    }
    pool->queue_max = queue;
    if (pool->workers_max / 2 == 0) {
        pool->share = 1;
    } else {
        pool->share = pool->workers_max / 2;
    }
    /* With few workers fairness to agents comes first: two of them are not to wait for each
     * other because they use the same plugin. */
    pool->group_share = uint_max(pool->share, 2);
    pool->metrics = metrics;
    pool->ring_last = &pool->ring_first;
    pool->resumed_last = &pool->resumed;
    lock_init(&pool->lock, LOCK_POOL);
    lock_cond_init(&pool->work);
    *ret = pool;
    return NG_OK;
}

void pool_set_queue(struct pool *pool, unsigned queue)
{
    lock_take(&pool->lock);
    pool->queue_max = queue;
    lock_release(&pool->lock);
}

/* With the lock held: makes sure that a worker takes the new task. *ret_signal: wake one after
 * the lock is released, else it would only wait for the lock. */
static int pool_wake(struct pool *pool, bool *ret_signal)
{
    if (pool->idle > pool->signalled) {
        pool->signalled++;
        atomic_fetch_add(&pool->waking, 1);
        *ret_signal = true;
        return NG_OK;
    }
    if (pool->workers == pool->workers_max) {
        return NG_OK;
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, POOL_STACK_BYTES);
    int rc = pthread_create(&pool->threads[pool->workers], &attributes, pool_worker, pool);
    pthread_attr_destroy(&attributes);
    if (rc == 0) {
        char name[THREAD_NAME_SIZE];
        (void)snprintf(name, sizeof(name), "ng-work-%u", pool->workers);
        (void)pthread_setname_np(pool->threads[pool->workers], name);
        pool->workers++;
    }
    if (pool->workers == 0) {
        return NG_EBUSY;
    }
    return NG_OK;
}

/* Without the lock. */
static void pool_signal(struct pool *pool, bool signal)
{
    if (signal) {
        pthread_cond_signal(&pool->work);
        atomic_fetch_sub(&pool->waking, 1);
    }
}

/* With the lock held. One lane's half is rounded up: a queue of one has room for anybody. */
static int pool_admit(struct pool *pool, struct ng_str lane_name, struct lane **ret,
                      bool *ret_signal)
{
    if (pool->stopping || pool->queued >= pool->queue_max) {
        return NG_EBUSY;
    }
    struct lane *lane = pool_lane(pool, lane_name);
    if (lane == NULL) {
        return NG_EINTERNAL;
    }
    if (lane->queued >= pool->queue_max - pool->queue_max / 2) {
        return NG_ERATE;
    }
    /* Last: a refused task wakes no worker. */
    if (pool_wake(pool, ret_signal) != NG_OK) {
        pool_drop_lane(pool, lane);
        return NG_EBUSY;
    }
    *ret = lane;
    return NG_OK;
}

int pool_submit(struct pool *pool, struct ng_str lane_name, struct task *task)
{
    struct lane *lane = NULL;
    bool signal = false;
    lock_take(&pool->lock);
    int rc = pool_admit(pool, lane_name, &lane, &signal);
    if (rc == NG_OK) {
        task->next = NULL;
        *lane->last = task;
        lane->last = &task->next;
        lane->queued++;
        pool->queued++;
        metrics_use(pool->metrics, METRICS_QUEUE, 1);
        pool_make_ready(pool, lane);
    }
    lock_release(&pool->lock);
    pool_signal(pool, signal);
    return rc;
}

void pool_resume(struct pool *pool, struct task *task)
{
    bool signal = false;
    lock_take(&pool->lock);
    task->next = NULL;
    *pool->resumed_last = task;
    pool->resumed_last = &task->next;
    (void)pool_wake(pool, &signal);
    lock_release(&pool->lock);
    pool_signal(pool, signal);
}

void pool_stop(struct pool *pool)
{
    lock_take(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    /* A worker may start another one while it runs the remaining tasks. */
    while (pool->joined < pool->workers) {
        pthread_t thread = pool->threads[pool->joined++];
        lock_release(&pool->lock);
        pthread_join(thread, NULL);
        lock_take(&pool->lock);
    }
    pool->workers_max = pool->workers;
    lock_release(&pool->lock);
}

void pool_free(struct pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pool_stop(pool);
    while (atomic_load(&pool->waking) > 0) {
        (void)sched_yield();
    }
    for (size_t i = 0; i < POOL_BUCKETS; i++) {
        while (pool->buckets[i] != NULL) {
            struct lane *lane = pool->buckets[i];
            pool->buckets[i] = lane->bucket_next;
            free(lane);
        }
    }
    pthread_cond_destroy(&pool->work);
    lock_done(&pool->lock);
    free(pool->threads);
    free(pool);
}
