/* SPDX-License-Identifier: MIT */
/* lock.c - locks, and in debug builds a stack of the locks that each thread holds. */
#include "lock.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lock_kind {
    LOCK_IS_PLAIN,
    LOCK_IS_RECURSIVE,
    LOCK_IS_SIBLINGS,
};

#define LOCK_KIND(rank, kind) [LOCK_##rank] = LOCK_IS_##kind,
static const enum lock_kind lock_kinds[LOCK_RANKS] = {LOCK_ORDER(LOCK_KIND)};
#undef LOCK_KIND

static void set_rank(struct lock *lock, enum lock_rank rank);
static void set_rwlock_rank(struct rwlock *lock, enum lock_rank rank);

void lock_init(struct lock *lock, enum lock_rank rank)
{
    pthread_mutexattr_t attributes;
    (void)pthread_mutexattr_init(&attributes);
    if (lock_kinds[rank] == LOCK_IS_RECURSIVE) {
        (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    }
    (void)pthread_mutex_init(&lock->mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    set_rank(lock, rank);
}

void lock_done(struct lock *lock)
{
    (void)pthread_mutex_destroy(&lock->mutex);
}

void rwlock_init(struct rwlock *lock, enum lock_rank rank)
{
    (void)pthread_rwlock_init(&lock->rwlock, NULL);
    set_rwlock_rank(lock, rank);
}

void rwlock_done(struct rwlock *lock)
{
    (void)pthread_rwlock_destroy(&lock->rwlock);
}

void lock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

#ifdef NDEBUG
static void set_rank(struct lock *lock, enum lock_rank rank)
{
    (void)lock;
    (void)rank;
}

static void set_rwlock_rank(struct rwlock *lock, enum lock_rank rank)
{
    (void)lock;
    (void)rank;
}
#else
enum { LOCKS_HELD_MAX = 256 };

struct held_lock {
    const void *lock;
    enum lock_rank rank;
};

static _Thread_local struct held_lock held_locks[LOCKS_HELD_MAX];
static _Thread_local size_t held_count;

#define LOCK_NAME(rank, kind) [LOCK_##rank] = #rank,
static const char *const lock_names[LOCK_RANKS] = {LOCK_ORDER(LOCK_NAME)};
#undef LOCK_NAME

static void set_rank(struct lock *lock, enum lock_rank rank)
{
    lock->rank = rank;
}

static void set_rwlock_rank(struct rwlock *lock, enum lock_rank rank)
{
    lock->rank = rank;
}

static bool may_follow(const struct held_lock *held, const void *lock, enum lock_rank rank)
{
    if (held->rank != rank) {
        return held->rank < rank;
    }
    return lock_kinds[rank] == LOCK_IS_SIBLINGS ? held->lock != lock
                                                : lock_kinds[rank] == LOCK_IS_RECURSIVE;
}

/* Ends the process when the thread holds a lock that must come after this one. */
static void check_order(const void *lock, enum lock_rank rank)
{
    for (size_t i = 0; i < held_count; i++) {
        if (!may_follow(&held_locks[i], lock, rank)) {
            (void)fprintf(stderr, "lock order: %s is taken by a thread that holds %s\n",
                          lock_names[rank], lock_names[held_locks[i].rank]);
            abort();
        }
    }
}

static void note_taken(const void *lock, enum lock_rank rank)
{
    if (held_count == LOCKS_HELD_MAX) {
        (void)fprintf(stderr, "lock order: a thread holds %d locks\n", LOCKS_HELD_MAX);
        abort();
    }
    held_locks[held_count++] = (struct held_lock){lock, rank};
}

static void note_released(const void *lock, enum lock_rank rank)
{
    for (size_t i = held_count; i-- > 0;) {
        if (held_locks[i].lock == lock) {
            held_count--;
            memmove(&held_locks[i], &held_locks[i + 1],
                    (held_count - i) * sizeof(held_locks[0]));
            return;
        }
    }
    (void)fprintf(stderr, "lock order: %s is released by a thread that does not hold it\n",
                  lock_names[rank]);
    abort();
}

void lock_take(struct lock *lock)
{
    check_order(lock, lock->rank);
    (void)pthread_mutex_lock(&lock->mutex);
    note_taken(lock, lock->rank);
}

/* It does not wait: no order is wrong. */
bool lock_try(struct lock *lock)
{
    if (pthread_mutex_trylock(&lock->mutex) != 0) {
        return false;
    }
    note_taken(lock, lock->rank);
    return true;
}

void lock_release(struct lock *lock)
{
    note_released(lock, lock->rank);
    (void)pthread_mutex_unlock(&lock->mutex);
}

/* The lock is taken again at the end of a wait, while the thread holds all its others. */
static void note_wait(struct lock *lock)
{
    note_released(lock, lock->rank);
    check_order(lock, lock->rank);
}

void lock_wait(pthread_cond_t *cond, struct lock *lock)
{
    note_wait(lock);
    (void)pthread_cond_wait(cond, &lock->mutex);
    note_taken(lock, lock->rank);
}

int lock_wait_until(pthread_cond_t *cond, struct lock *lock, const struct timespec *until)
{
    note_wait(lock);
    int rc = pthread_cond_timedwait(cond, &lock->mutex, until);
    note_taken(lock, lock->rank);
    return rc;
}

void rwlock_read(struct rwlock *lock)
{
    check_order(lock, lock->rank);
    (void)pthread_rwlock_rdlock(&lock->rwlock);
    note_taken(lock, lock->rank);
}

void rwlock_write(struct rwlock *lock)
{
    check_order(lock, lock->rank);
    (void)pthread_rwlock_wrlock(&lock->rwlock);
    note_taken(lock, lock->rank);
}

void rwlock_release(struct rwlock *lock)
{
    note_released(lock, lock->rank);
    (void)pthread_rwlock_unlock(&lock->rwlock);
}
#endif
