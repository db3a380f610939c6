/* SPDX-License-Identifier: MIT */
/* test_clock.c - stands in for the C library's clock_gettime(); see the header. */
#include "test_clock.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"

#define MS_NS 1000000
#define SECOND_NS 1000000000

static _Atomic int64_t time_ahead_ms;   /* CLOCK_REALTIME */
static _Atomic int64_t uptime_ahead_ms; /* CLOCK_BOOTTIME */

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
    int64_t ahead_ms = 0;
    if (id == CLOCK_REALTIME) {
        ahead_ms = atomic_load(&time_ahead_ms);
    } else if (id == CLOCK_BOOTTIME) {
        ahead_ms = atomic_load(&uptime_ahead_ms);
    }
    long rc = syscall(SYS_clock_gettime, id, ret);
    int64_t ns = ret->tv_nsec + ahead_ms % 1000 * MS_NS;
    ret->tv_sec += (time_t)(ahead_ms / 1000 + ns / SECOND_NS);
    ret->tv_nsec = (long)(ns % SECOND_NS);
    return (int)rc;
}

void test_clock_ahead(int64_t time_ms, int64_t uptime_ms)
{
    atomic_store(&time_ahead_ms, time_ms);
    atomic_store(&uptime_ahead_ms, uptime_ms);
}

void test_clock_pass(int64_t ms)
{
    atomic_fetch_add(&time_ahead_ms, ms);
    atomic_fetch_add(&uptime_ahead_ms, ms);
}

void test_clock_begin_day(void)
{
    test_clock_pass(TEST_CLOCK_DAY_MS - clock_unix_ms() % TEST_CLOCK_DAY_MS);
}
