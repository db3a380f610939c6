/* SPDX-License-Identifier: MIT */
/* timers.c - deadlines in a list ordered by time; nearly always the new one belongs at the end.
 */
#include "timers.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "dispatch.h"

struct timers {
    struct lock lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct call *first, *last;
    int64_t target_ns; /* when the thread will wake by itself */
    int64_t upkeep_ns, next_upkeep_ns;
    void (*upkeep)(void *user);
    void *user;
    bool stopping;
};

static void timers_unlink(struct timers *timers, struct call *call)
{
    *(call->timer_prev == NULL ? &timers->first : &call->timer_prev->timer_next) =
        call->timer_next;
    *(call->timer_next == NULL ? &timers->last : &call->timer_next->timer_prev) =
        call->timer_prev;
    call->timer_prev = NULL;
    call->timer_next = NULL;
    call->on_timer = false;
}

static void timers_wait(struct timers *timers)
{
    timers->target_ns = timers->next_upkeep_ns;
    if (timers->first != NULL && timers->first->deadline_ns < timers->target_ns) {
        timers->target_ns = timers->first->deadline_ns;
    }
    struct timespec until = {(time_t)(timers->target_ns / 1000000000),
                             (long)(timers->target_ns % 1000000000)};
    (void)lock_wait_until(&timers->wake, &timers->lock, &until);
}

static void *timers_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-timers");
    struct timers *timers = user;
    lock_take(&timers->lock);
    while (!timers->stopping) {
        int64_t now = clock_monotonic_ns();
        struct call *call = timers->first;
        if (call != NULL && call->deadline_ns <= now) {
            timers_unlink(timers, call);
            lock_release(&timers->lock);
            dispatch_expire(call);
            call_unref(call);
            lock_take(&timers->lock);
        } else if (timers->next_upkeep_ns <= now) {
            timers->next_upkeep_ns = now + timers->upkeep_ns;
            lock_release(&timers->lock);
            timers->upkeep(timers->user);
            lock_take(&timers->lock);
        } else {
            timers_wait(timers);
        }
    }
    lock_release(&timers->lock);
    return NULL;
}

struct timers *timers_new(void (*upkeep)(void *user), void *user, int64_t upkeep_ms)
{
    struct timers *timers = alloc_zeroed(1, sizeof(*timers));
    if (timers == NULL) {
        return NULL;
    }
    timers->upkeep = upkeep;
    timers->user = user;
    timers->upkeep_ns = upkeep_ms * 1000000;
    timers->next_upkeep_ns = INT64_MAX;
    lock_init(&timers->lock, LOCK_TIMERS);
    lock_cond_init(&timers->wake);
    if (pthread_create(&timers->thread, NULL, timers_run, timers) != 0) {
        pthread_cond_destroy(&timers->wake);
        lock_done(&timers->lock);
        free(timers);
        return NULL;
    }
    return timers;
}

void timers_begin_upkeep(struct timers *timers)
{
    lock_take(&timers->lock);
    timers->next_upkeep_ns = clock_monotonic_ns() + timers->upkeep_ns;
    pthread_cond_signal(&timers->wake);
    lock_release(&timers->lock);
}

void timers_stop(struct timers *timers)
{
    lock_take(&timers->lock);
    bool stopped = timers->stopping;
    timers->stopping = true;
    pthread_cond_signal(&timers->wake);
    lock_release(&timers->lock);
    if (stopped) {
        return;
    }
    pthread_join(timers->thread, NULL);
    lock_take(&timers->lock);
    for (struct call *call = timers->first; call != NULL; call = call->timer_next) {
        call_cancel(call);
    }
    lock_release(&timers->lock);
}

void timers_free(struct timers *timers)
{
    if (timers == NULL) {
        return;
    }
    timers_stop(timers);
    while (timers->first != NULL) {
        struct call *call = timers->first;
        timers_unlink(timers, call);
        call_unref(call);
    }
    pthread_cond_destroy(&timers->wake);
    lock_done(&timers->lock);
    free(timers);
}

void timers_add(struct timers *timers, struct call *call)
{
    call_ref(call);
    call_set(call, CALL_TIMED);
    lock_take(&timers->lock);
    struct call *before = timers->last;
    while (before != NULL && before->deadline_ns > call->deadline_ns) {
        before = before->timer_prev;
    }
    call->timer_prev = before;
    if (before == NULL) {
        call->timer_next = timers->first;
    } else {
        call->timer_next = before->timer_next;
    }
    *(before == NULL ? &timers->first : &before->timer_next) = call;
    *(call->timer_next == NULL ? &timers->last : &call->timer_next->timer_prev) = call;
    call->on_timer = true;
    if (call->deadline_ns < timers->target_ns) {
        pthread_cond_signal(&timers->wake);
    }
    lock_release(&timers->lock);
}

void timers_remove(struct timers *timers, struct call *call)
{
    lock_take(&timers->lock);
    bool removed = call->on_timer;
    if (removed) {
        timers_unlink(timers, call);
    }
    lock_release(&timers->lock);
    if (removed) {
        call_unref(call);
    }
}
