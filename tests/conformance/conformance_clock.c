/* SPDX-License-Identifier: MIT */
/* conformance_clock.c - the plugin's one thread: it wakes calls that wait, so that a hundred
 * slow ones need no worker. */
#include "conformance.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* How often waiting calls are asked whether they were cancelled. */
#define CLOCK_LOOK_MS 20

struct conformance_clock {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct conformance_wait *waiting; /* guarded by lock */
    bool stopping;                    /* guarded by lock */
};

static int64_t clock_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The first that is due or cancelled, taken out of the list; NULL: none. */
static struct conformance_wait *clock_take(struct conformance_clock *clock, int64_t now)
{
    struct conformance_wait **at = &clock->waiting;
    while (*at != NULL) {
        struct conformance_wait *wait = *at;
        if (wait->due_ms <= now || wait->call->host->cancelled(wait->call)) {
            *at = wait->next;
            return wait;
        }
        at = &wait->next;
    }
    return NULL;
}

static void clock_add(struct conformance_clock *clock, struct conformance_wait *wait)
{
    (void)pthread_mutex_lock(&clock->lock);
    wait->next = clock->waiting;
    clock->waiting = wait;
    (void)pthread_cond_signal(&clock->changed);
    (void)pthread_mutex_unlock(&clock->lock);
}

static void clock_run(struct conformance_clock *clock, struct conformance_wait *wait)
{
    struct ng_call *call = wait->call;
    int rc = call->host->cancelled(call)
                 ? ng_fail(call, NG_ECANCELLED, "the call was cancelled while it waited")
                 : wait->step(call, wait);
    if (rc == NG_PENDING) {
        clock_add(clock, wait);
    } else {
        call->host->finish(wait->deferred, rc);
    }
}

static void clock_sleep(struct conformance_clock *clock)
{
    struct timespec until;
    if (clock->waiting == NULL) {
        (void)pthread_cond_wait(&clock->changed, &clock->lock);
        return;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CLOCK_LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&clock->changed, &clock->lock, &until);
}

static void *clock_main(void *user)
{
    struct conformance_clock *clock = user;
    (void)pthread_mutex_lock(&clock->lock);
    while (!clock->stopping) {
        struct conformance_wait *wait = clock_take(clock, clock_now_ms());
        if (wait == NULL) {
            clock_sleep(clock);
            continue;
        }
        (void)pthread_mutex_unlock(&clock->lock);
        clock_run(clock, wait);
        (void)pthread_mutex_lock(&clock->lock);
    }
    (void)pthread_mutex_unlock(&clock->lock);
    return NULL;
}

int conformance_clock_start(struct ng_call *call, struct conformance_clock **ret_clock)
{
    struct conformance_clock *clock = calloc(1, sizeof(*clock));
    pthread_condattr_t attr;
    if (clock == NULL || pthread_condattr_init(&attr) != 0) {
        free(clock);
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&clock->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&clock->lock, NULL);
    if (pthread_create(&clock->thread, NULL, clock_main, clock) != 0) {
        (void)pthread_cond_destroy(&clock->changed);
        (void)pthread_mutex_destroy(&clock->lock);
        free(clock);
        return ng_fail(call, NG_EINTERNAL, "a thread could not be started");
    }
    *ret_clock = clock;
    return NG_OK;
}

void conformance_clock_stop(struct conformance_clock *clock)
{
    if (clock == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&clock->lock);
    clock->stopping = true;
    (void)pthread_cond_signal(&clock->changed);
    (void)pthread_mutex_unlock(&clock->lock);
    (void)pthread_join(clock->thread, NULL);
    (void)pthread_cond_destroy(&clock->changed);
    (void)pthread_mutex_destroy(&clock->lock);
    free(clock);
}

int conformance_wait(struct conformance_clock *clock, struct ng_call *call, int64_t ms,
                     conformance_step_fn *step)
{
    struct conformance_wait *wait = ng_alloc(call, sizeof(*wait));
    if (wait == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    *wait = (struct conformance_wait){
        .call = call, .step = step, .due_ms = clock_now_ms() + ms, .round = 0};
    wait->deferred = call->host->defer(call);
    clock_add(clock, wait);
    return NG_PENDING;
}

int conformance_wait_more(struct conformance_wait *wait, int64_t ms)
{
    wait->due_ms = clock_now_ms() + ms;
    return NG_PENDING;
}
