/* SPDX-License-Identifier: MIT */
#include "test_clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"

#define CLOCKS 16 /* more than Linux has */

static _Atomic int64_t ahead_ms[CLOCKS];
/* Of a clock that stands still. */
static _Atomic int64_t stands_ms[CLOCKS], jump_ms[CLOCKS];
static atomic_uint readings[CLOCKS], jumps_at[CLOCKS]; /* 0: it does not stand still */

/* False: it does not stand still. */
static bool stands(clockid_t id, struct timespec *ret)
{
    unsigned jumps = atomic_load(&jumps_at[id]);
    if (jumps == 0) {
        return false;
    }
    int64_t ms = atomic_load(&stands_ms[id]);
    if (atomic_fetch_add(&readings[id], 1) + 1 >= jumps) {
        ms += atomic_load(&jump_ms[id]);
    }
    ret->tv_sec = (time_t)(ms / 1000);
    ret->tv_nsec = (long)(ms % 1000 * 1000000);
    return true;
}

/* In place of the C library's, for the gateway and its modules. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
    long rc = syscall(SYS_clock_gettime, id, ret);
    if (rc == 0 && id >= 0 && id < CLOCKS && !stands(id, ret)) {
        int64_t ahead = atomic_load(&ahead_ms[id]);
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

void test_clock_jump_at(clockid_t id, unsigned reading, int64_t ms)
{
    struct timespec now;
    atomic_store(&jumps_at[id], 0);
    (void)clock_gettime(id, &now);
    atomic_store(&stands_ms[id], (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    atomic_store(&jump_ms[id], ms);
    atomic_store(&readings[id], 0);
    atomic_store(&jumps_at[id], reading);
}

unsigned test_clock_readings(clockid_t id)
{
    return atomic_load(&readings[id]);
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
