/* SPDX-License-Identifier: MIT */
/*
 * lock.h - mutexes and read-write locks with a rank (lock_order.h). A debug build keeps the
 * ranks that a thread holds and ends the process when it takes them in another order: an order
 * that two threads take in opposite directions is a deadlock that tests seldom meet. In a
 * release build a lock is the pthread lock alone.
 *
 * Modules have their own copy of this library: the order is checked among the locks of a
 * module, and among those of the gateway.
 */
#ifndef NOTEGATE_CORE_LOCK_H
#define NOTEGATE_CORE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "core/base/lock_order.h"

struct lock {
    pthread_mutex_t mutex;
#ifndef NDEBUG
    enum lock_rank rank;
#endif
};

struct rwlock {
    pthread_rwlock_t rwlock;
#ifndef NDEBUG
    enum lock_rank rank;
#endif
};

void lock_init(struct lock *lock, enum lock_rank rank);
void lock_done(struct lock *lock);
void rwlock_init(struct rwlock *lock, enum lock_rank rank);
void rwlock_done(struct rwlock *lock);

/* A condition whose lock_wait_until() follows CLOCK_MONOTONIC: the time of day may be set. */
void lock_cond_init(pthread_cond_t *cond);

#ifdef NDEBUG
#define LOCK_INITIALIZER(rank)                                                                 \
    {                                                                                          \
        PTHREAD_MUTEX_INITIALIZER                                                              \
    }

static inline void lock_take(struct lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
}

/* Whether it was free, and is held now. */
static inline bool lock_try(struct lock *lock)
{
    return pthread_mutex_trylock(&lock->mutex) == 0;
}

static inline void lock_release(struct lock *lock)
{
    (void)pthread_mutex_unlock(&lock->mutex);
}

static inline void lock_wait(pthread_cond_t *cond, struct lock *lock)
{
    (void)pthread_cond_wait(cond, &lock->mutex);
}

/* 0, or ETIMEDOUT. */
static inline int lock_wait_until(pthread_cond_t *cond, struct lock *lock,
                                  const struct timespec *until)
{
    return pthread_cond_timedwait(cond, &lock->mutex, until);
}

static inline void rwlock_read(struct rwlock *lock)
{
    (void)pthread_rwlock_rdlock(&lock->rwlock);
}

static inline void rwlock_write(struct rwlock *lock)
{
    (void)pthread_rwlock_wrlock(&lock->rwlock);
}

static inline void rwlock_release(struct rwlock *lock)
{
    (void)pthread_rwlock_unlock(&lock->rwlock);
}
#else
#define LOCK_INITIALIZER(rank)                                                                 \
    {                                                                                          \
        PTHREAD_MUTEX_INITIALIZER, rank                                                        \
    }

void lock_take(struct lock *lock);
bool lock_try(struct lock *lock);
void lock_release(struct lock *lock);
void lock_wait(pthread_cond_t *cond, struct lock *lock);
int lock_wait_until(pthread_cond_t *cond, struct lock *lock, const struct timespec *until);
void rwlock_read(struct rwlock *lock);
void rwlock_write(struct rwlock *lock);
void rwlock_release(struct rwlock *lock);
#endif

#endif
