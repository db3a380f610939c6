/* SPDX-License-Identifier: MIT */
/* test_clock.c - stands in for the C library's clock_gettime(); see the header. */
#include "test_clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"

#define CLOCKS 16 /* more than Linux has */
#define SECOND_MS 1000
#define MS_NS 1000000
#define SECOND_NS 1000000000

static struct test_clock {
    _Atomic int64_t ahead_ms;
    atomic_uint jumps_at; /* the reading; 0: the clock does not stand still */
    atomic_uint readings;
    _Atomic int64_t stands_ms, jump_ms;
} clocks[CLOCKS];

/* False: it does not stand still. */
static bool stands(struct test_clock *clock, struct timespec *ret)
{
    unsigned jumps_at = atomic_load(&clock->jumps_at);
    if (jumps_at == 0) {
        return false;
    }
    int64_t ms = atomic_load(&clock->stands_ms);
    if (atomic_fetch_add(&clock->readings, 1) + 1 >= jumps_at) {
        ms += atomic_load(&clock->jump_ms);
    }
    ret->tv_sec = (time_t)(ms / SECOND_MS);
    ret->tv_nsec = (long)(ms % SECOND_MS * MS_NS);
    return true;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
    long rc = syscall(SYS_clock_gettime, id, ret);
    if (rc == 0 && id >= 0 && id < CLOCKS && !stands(&clocks[id], ret)) {
        int64_t ahead_ms = atomic_load(&clocks[id].ahead_ms);
        int64_t ns = ret->tv_nsec + ahead_ms % SECOND_MS * MS_NS;
        ret->tv_sec += (time_t)(ahead_ms / SECOND_MS + ns / SECOND_NS);
        ret->tv_nsec = (long)(ns % SECOND_NS);
    }
    return (int)rc;
}

void test_clock_set_ahead(clockid_t id, int64_t ms)
{
    atomic_store(&clocks[id].ahead_ms, ms);
}

void test_clock_pass(int64_t ms)
{
    atomic_fetch_add(&clocks[CLOCK_REALTIME].ahead_ms, ms);
    atomic_fetch_add(&clocks[CLOCK_BOOTTIME].ahead_ms, ms);
}

void test_clock_begin_day(void)
{
    test_clock_pass(TEST_CLOCK_DAY_MS - clock_unix_ms() % TEST_CLOCK_DAY_MS);
}

void test_clock_jump_at(clockid_t id, unsigned reading, int64_t ms)
{
    struct test_clock *clock = &clocks[id];
    struct timespec now;
    atomic_store(&clock->jumps_at, 0);
    (void)clock_gettime(id, &now);
    atomic_store(&clock->stands_ms, (int64_t)now.tv_sec * SECOND_MS + now.tv_nsec / MS_NS);
    atomic_store(&clock->jump_ms, ms);
    atomic_store(&clock->readings, 0);
    atomic_store(&clock->jumps_at, reading);
}

unsigned test_clock_readings(clockid_t id)
{
    return atomic_load(&clocks[id].readings);
}

void test_clock_reset(void)
{
    for (unsigned i = 0; i < CLOCKS; i++) {
        atomic_store(&clocks[i].ahead_ms, 0);
        atomic_store(&clocks[i].jumps_at, 0);
    }
}
