/* SPDX-License-Identifier: MIT */
/* test_timers.c - upkeep: not before it may, then again and again, and not after the stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <time.h>

#include "core/dispatch/timers.h"

#define EVERY_MS 1
#define TIMES 20

static void count(void *user)
{
    (void)atomic_fetch_add((atomic_int *)user, 1);
}

static void wait_for(atomic_int *counter, int times)
{
    const struct timespec step = {0, 1000000};
    while (atomic_load(counter) < times) {
        (void)nanosleep(&step, NULL);
    }
}

/* A start may take longer than the time between two upkeeps, and what they work on is only
 * being made then. */
static void test_upkeep_waits_until_it_may(void **state)
{
    (void)state;
    atomic_int early = 0;
    atomic_int witness = 0;
    struct timers *timers = timers_new(count, &early, EVERY_MS);
    struct timers *other = timers_new(count, &witness, EVERY_MS);
    assert_non_null(timers);
    assert_non_null(other);
    timers_begin_upkeep(other);
    wait_for(&witness, TIMES);
    assert_int_equal(atomic_load(&early), 0);
    timers_begin_upkeep(timers);
    wait_for(&early, TIMES);
    timers_free(other);
    timers_free(timers);
}

static void test_no_upkeep_after_the_stop(void **state)
{
    (void)state;
    atomic_int runs = 0;
    atomic_int witness = 0;
    struct timers *timers = timers_new(count, &runs, EVERY_MS);
    struct timers *other = timers_new(count, &witness, EVERY_MS);
    assert_non_null(timers);
    assert_non_null(other);
    timers_begin_upkeep(timers);
    wait_for(&runs, 1);
    timers_stop(timers);
    int before = atomic_load(&runs);
    timers_begin_upkeep(other);
    wait_for(&witness, TIMES);
    assert_int_equal(atomic_load(&runs), before);
    timers_free(other);
    timers_free(timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upkeep_waits_until_it_may),
        cmocka_unit_test(test_no_upkeep_after_the_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
