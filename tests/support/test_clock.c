/* SPDX-License-Identifier: MIT */
#include "test_clock.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"

#define CLOCKS 16 /* more than Linux has */

static _Atomic int64_t ahead_ms[CLOCKS];
static _Atomic int64_t step_ms[CLOCKS];

/* In place of the C library's, for the gateway and its modules. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
    long rc = syscall(SYS_clock_gettime, id, ret);
    if (rc == 0 && id >= 0 && id < CLOCKS) {
        int64_t step = atomic_load(&step_ms[id]);
        int64_t ahead = atomic_fetch_add(&ahead_ms[id], step);
        int64_t ns = ret->tv_nsec + ahead % 1000 * 1000000;
        ret->tv_sec += (time_t)(ahead / 1000 + ns / 1000000000);
        ret->tv_nsec = (long)(ns % 1000000000);
    }
    return (int)rc;
}

void test_clock_set_ahead(clockid_t id, int64_t ms)
{
    atomic_store(&ahead_ms[id], ms);
}

void test_clock_set_step(clockid_t id, int64_t ms)
{
    atomic_store(&step_ms[id], ms);
}

void test_clock_pass(int64_t ms)
{
    atomic_fetch_add(&ahead_ms[CLOCK_REALTIME], ms);
    atomic_fetch_add(&ahead_ms[CLOCK_BOOTTIME], ms);
}

void test_clock_pass_to_noon(void)
{
    test_clock_pass((DAY_MS + DAY_MS / 2 - clock_unix_ms() % DAY_MS) % DAY_MS);
}
