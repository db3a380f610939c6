/* SPDX-License-Identifier: MIT */
/* watchdog.c - looks every WATCHDOG_TICK_MS at what event loops, start() and stop() do. */
#include "watchdog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/call/metrics.h"
#include "core/fault/crash.h"
#include "registry.h"

#define WATCHDOG_TICK_MS 250
/* Threads that may run tools inline; further ones are not watched. */
#define WATCHDOG_LOOPS_MAX 64

struct watchdog {
    pthread_t thread;
    struct lock lock;
    pthread_cond_t wake;
    bool stopping;
    struct watched *first;
    struct metrics *metrics;
    struct watchdog_loop loops[WATCHDOG_LOOPS_MAX];
};

/* Each thread has the same slot in every watchdog of the process. 0: none yet. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static atomic_uint watchdog_threads;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static _Thread_local unsigned watchdog_slot;

struct watchdog_loop *watchdog_loop_begin(struct watchdog *watchdog, const struct tool *tool,
                                          int64_t now_ns)
{
    if (watchdog_slot == 0) {
        watchdog_slot = atomic_fetch_add(&watchdog_threads, 1) + 1;
        crash_thread();
    }
    if (watchdog == NULL || watchdog_slot > WATCHDOG_LOOPS_MAX) {
        return NULL;
    }
    struct watchdog_loop *loop = &watchdog->loops[watchdog_slot - 1];
    atomic_store_explicit(&loop->tool, tool, memory_order_relaxed);
    atomic_store_explicit(&loop->since_ns, now_ns, memory_order_release);
    return loop;
}

static void look_at_loop(struct watchdog *watchdog, struct watchdog_loop *slot, int64_t now_ns)
{
    int64_t since = atomic_load_explicit(&slot->since_ns, memory_order_acquire);
    if (since == 0 || now_ns - since < (int64_t)WATCHDOG_LOOP_MS * 1000000) {
        return;
    }
    const struct tool *tool = atomic_load_explicit(&slot->tool, memory_order_relaxed);
    /* The loop may have gone on to another tool between the two looks. */
    if (atomic_load_explicit(&slot->since_ns, memory_order_acquire) != since) {
        return;
    }
    struct tool *writable = (struct tool *)(uintptr_t)tool; /* for its mark */
    if (atomic_exchange(&writable->blocked_loop, true)) {
        return;
    }
    metrics_count(watchdog->metrics, METRICS_BLOCKED_LOOPS);
    log_write(NG_LOG_ERROR, "watchdog",
              "the tool %s of the plugin %s has blocked an event loop for %lld ms, although "
              "NG_TOOL_MEMORY promises that it does not: it runs on workers from now on",
              tool->desc.name, tool->plugin->desc.name,
              (long long)((now_ns - since) / 1000000));
}

/* With the lock held. */
static void look_at_lives(struct watchdog *watchdog, int64_t now_ns)
{
    for (struct watched *watched = watchdog->first; watched != NULL; watched = watched->next) {
        if (!watched->told &&
            now_ns - watched->since_ns >= (int64_t)WATCHDOG_LIFE_MS * 1000000) {
            watched->told = true;
            log_write(NG_LOG_ERROR, "watchdog",
                      "%s of the plugin %s has not returned for %d s; the gateway waits for it",
                      watched->what, watched->module, WATCHDOG_LIFE_MS / 1000);
        }
    }
}

static void *watchdog_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-watchdog");
    struct watchdog *watchdog = user;
    lock_take(&watchdog->lock);
    while (!watchdog->stopping) {
        int64_t now = clock_monotonic_ns();
        for (size_t i = 0; i < WATCHDOG_LOOPS_MAX; i++) {
            look_at_loop(watchdog, &watchdog->loops[i], now);
        }
        look_at_lives(watchdog, now);
        int64_t until_ns = now + (int64_t)WATCHDOG_TICK_MS * 1000000;
        struct timespec until = {(time_t)(until_ns / 1000000000),
                                 (long)(until_ns % 1000000000)};
        (void)lock_wait_until(&watchdog->wake, &watchdog->lock, &until);
    }
    lock_release(&watchdog->lock);
    return NULL;
}

int watchdog_new(struct metrics *metrics, struct watchdog **ret)
{
    struct watchdog *watchdog = alloc_zeroed(1, sizeof(*watchdog));
    if (watchdog == NULL) {
        return NG_EINTERNAL;
    }
    watchdog->metrics = metrics;
    lock_init(&watchdog->lock, LOCK_WATCHDOG);
    lock_cond_init(&watchdog->wake);
    if (pthread_create(&watchdog->thread, NULL, watchdog_run, watchdog) != 0) {
        pthread_cond_destroy(&watchdog->wake);
        lock_done(&watchdog->lock);
        free(watchdog);
        return NG_EINTERNAL;
    }
    *ret = watchdog;
    return NG_OK;
}

void watchdog_free(struct watchdog *watchdog)
{
    if (watchdog == NULL) {
        return;
    }
    lock_take(&watchdog->lock);
    watchdog->stopping = true;
    pthread_cond_signal(&watchdog->wake);
    lock_release(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->wake);
    lock_done(&watchdog->lock);
    free(watchdog);
}

void watchdog_begin(struct watchdog *watchdog, struct watched *watched, const char *module,
                    const char *what)
{
    *watched = (struct watched){module, what, clock_monotonic_ns(), false, NULL};
    if (watchdog != NULL) {
        lock_take(&watchdog->lock);
        watched->next = watchdog->first;
        watchdog->first = watched;
        lock_release(&watchdog->lock);
    }
}

void watchdog_end(struct watchdog *watchdog, struct watched *watched)
{
    if (watchdog == NULL) {
        return;
    }
    lock_take(&watchdog->lock);
    struct watched **at = &watchdog->first;
    while (*at != watched) {
        at = &(*at)->next;
    }
    *at = watched->next;
    lock_release(&watchdog->lock);
    if (watched->told) {
        log_write(NG_LOG_INFO, "watchdog", "%s of the plugin %s has returned", watched->what,
                  watched->module);
    }
}
