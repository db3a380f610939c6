/* SPDX-License-Identifier: MIT */
/* timers.c - deadlines in a list ordered by time; nearly always the new one belongs at the end.
 * Calls that have not ended at their deadline stay in a second list, and are told of. */
#include "timers.h"

#include <limits.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/text_choice.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "dispatch.h"

#define NS_PER_S ((int64_t)1000000000)
/* How often late calls are looked at. */
#define LATE_LOOK_NS NS_PER_S
/* A call is told of so long after its deadline: a tool that ends when it is cancelled is fine.
 */
#define LATE_GRACE_NS NS_PER_S
/* And again in this interval. */
#define LATE_TELL_NS (60 * NS_PER_S)
/* Calls that a stop names. */
#define TIMERS_NAMED_MAX 10

struct call_list {
    struct call *first, *last;
};

struct timers {
    struct lock lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct call_list due, late;
    int64_t next_look_ns; /* at the late ones */
    int64_t target_ns;    /* when the thread will wake by itself */
    int64_t upkeep_ns, next_upkeep_ns;
    void (*upkeep)(void *user);
    void *user;
    bool stopping;
};

static void timers_unlink(struct timers *timers, struct call *call)
{
    struct call_list *list = call->timer == CALL_LATE ? &timers->late : &timers->due;
    *(call->timer_prev == NULL ? &list->first : &call->timer_prev->timer_next) =
        call->timer_next;
    *(call->timer_next == NULL ? &list->last : &call->timer_next->timer_prev) =
        call->timer_prev;
    call->timer_prev = NULL;
    call->timer_next = NULL;
    call->timer = CALL_UNTIMED;
}

/* Behind `before`; NULL: as the first one. */
static void timers_link(struct call_list *list, struct call *call, struct call *before)
{
    call->timer_prev = before;
    call->timer_next = before == NULL ? list->first : before->timer_next;
    *(before == NULL ? &list->first : &before->timer_next) = call;
    *(call->timer_next == NULL ? &list->last : &call->timer_next->timer_prev) = call;
}

/* ---- calls that have not ended at their deadline ---- */

static const char *plugin_name(const struct call *call)
{
    const struct plugin *plugin = call_plugin(call);
    return plugin != NULL ? plugin->desc.name : "none";
}

static void count_stuck(const struct call *call, unsigned more)
{
    if (call->tool != NULL) {
        struct tool *tool = (struct tool *)(uintptr_t)call->tool; /* for its count */
        (void)atomic_fetch_add(&tool->stuck, more);
    }
}

static void tell_stuck(struct call *call, int64_t now_ns)
{
    struct ng_str name = call->pub.tool;
    if (call->told_ns == 0) {
        count_stuck(call, 1);
    }
    call->told_ns = now_ns;
    log_write(
        NG_LOG_ERROR, "call",
        "%.*s (plugin %s) of %.*s has not ended %lld s after its timeout: it holds a worker "
        "or memory until it does",
        (int)name.len, text_or(name.data, ""), plugin_name(call), (int)call->caller.agent.len,
        call->caller.agent.data, (long long)((now_ns - call->deadline_ns) / NS_PER_S));
}

static void tell_ended(const struct call *call, int64_t now_ns)
{
    struct ng_str name = call->pub.tool;
    count_stuck(call, UINT_MAX);
    log_write(NG_LOG_INFO, "call",
              "%.*s (plugin %s) of %.*s has ended, %lld s after its timeout", (int)name.len,
              text_or(name.data, ""), plugin_name(call), (int)call->caller.agent.len,
              call->caller.agent.data, (long long)((now_ns - call->deadline_ns) / NS_PER_S));
}

/* One that waits for a worker is not stuck itself. */
static void timers_look(struct timers *timers, int64_t now_ns)
{
    for (struct call *call = timers->late.first; call != NULL; call = call->timer_next) {
        int64_t since = call->told_ns == 0 ? call->deadline_ns + LATE_GRACE_NS - LATE_TELL_NS
                                           : call->told_ns;
        if (now_ns - since >= LATE_TELL_NS &&
            atomic_load_explicit(&call->begun, memory_order_relaxed)) {
            tell_stuck(call, now_ns);
        }
    }
    timers->next_look_ns = now_ns + LATE_LOOK_NS;
}

static void name_calls(const struct call *call, unsigned *named, struct buf *out)
{
    for (; call != NULL && *named < TIMERS_NAMED_MAX; call = call->timer_next) {
        struct ng_str name = call->pub.tool;
        if (name.len > 0 && atomic_load_explicit(&call->begun, memory_order_relaxed)) {
            (void)buf_printf(out, "%s%.*s (plugin %s) of %.*s", *named > 0 ? ", " : "",
                             (int)name.len, name.data, plugin_name(call),
                             (int)call->caller.agent.len, call->caller.agent.data);
            ++*named;
        }
    }
}

void timers_name_calls(struct timers *timers, struct buf *out)
{
    unsigned named = 0;
    lock_take(&timers->lock);
    name_calls(timers->late.first, &named, out);
    name_calls(timers->due.first, &named, out);
    lock_release(&timers->lock);
}

/* ---- the thread ---- */

/* Ends the call, which stays among the late ones until its tool has ended too. With the lock
 * held, released meanwhile. */
static void timers_expire(struct timers *timers, struct call *call, int64_t now_ns)
{
    timers_unlink(timers, call);
    if (timers->late.first == NULL) {
        timers->next_look_ns = now_ns + LATE_LOOK_NS;
    }
    timers_link(&timers->late, call, timers->late.last);
    call->timer = CALL_LATE;
    call_ref(call);
    lock_release(&timers->lock);
    dispatch_expire(call);
    call_unref(call);
    lock_take(&timers->lock);
}

static void timers_wait(struct timers *timers)
{
    timers->target_ns = timers->next_upkeep_ns;
    if (timers->due.first != NULL) {
        timers->target_ns = i64_min(timers->target_ns, timers->due.first->deadline_ns);
    }
    if (timers->late.first != NULL) {
        timers->target_ns = i64_min(timers->target_ns, timers->next_look_ns);
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
        struct call *call = timers->due.first;
        if (call != NULL && call->deadline_ns <= now) {
            timers_expire(timers, call, now);
        } else if (timers->late.first != NULL && timers->next_look_ns <= now) {
            timers_look(timers, now);
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
    for (struct call *call = timers->due.first; call != NULL; call = call->timer_next) {
        call_cancel(call);
    }
    lock_release(&timers->lock);
}

static void drop_all(struct timers *timers, const struct call_list *list)
{
    while (list->first != NULL) {
        struct call *call = list->first;
        timers_unlink(timers, call);
        call_unref(call);
    }
}

void timers_free(struct timers *timers)
{
    if (timers == NULL) {
        return;
    }
    timers_stop(timers);
    drop_all(timers, &timers->due);
    drop_all(timers, &timers->late);
    pthread_cond_destroy(&timers->wake);
    lock_done(&timers->lock);
    free(timers);
}

void timers_add(struct timers *timers, struct call *call)
{
    call_ref(call);
    call_set(call, CALL_TIMED);
    lock_take(&timers->lock);
    struct call *before = timers->due.last;
    while (before != NULL && before->deadline_ns > call->deadline_ns) {
        before = before->timer_prev;
    }
    timers_link(&timers->due, call, before);
    call->timer = CALL_ON_TIME;
    if (call->deadline_ns < timers->target_ns) {
        pthread_cond_signal(&timers->wake);
    }
    lock_release(&timers->lock);
}

void timers_remove(struct timers *timers, struct call *call)
{
    lock_take(&timers->lock);
    bool removed = call->timer != CALL_UNTIMED;
    if (removed) {
        timers_unlink(timers, call);
    }
    lock_release(&timers->lock);
    if (!removed) {
        return;
    }
    if (call->told_ns != 0) {
        tell_ended(call, clock_monotonic_ns());
    }
    call_unref(call);
}
