/* SPDX-License-Identifier: MIT */
/* clock.h - the clocks: monotonic for durations of this process, that since the boot, in which
 * the sleep of the machine counts, for what other machines wait for, and Unix time for what
 * people see. */
#ifndef NOTEGATE_CORE_CLOCK_H
#define NOTEGATE_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The monotonic time in `ms`, for lock_wait_until(). */
static inline struct timespec clock_deadline(int64_t ms)
{
    int64_t at = clock_monotonic_ns() + ms * 1000000;
    struct timespec until = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
    return until;
}

static inline int64_t clock_boot_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_uptime_ms(void)
{
    return clock_boot_ns() / 1000000;
}

static inline int64_t clock_unix_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
