/* SPDX-License-Identifier: MIT */
/* test_mongo_clock.c - the wall clock is set back by an hour while the driver waits for a
 * server that is not there: the wait ends all the same. The clock is this program's own. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "backend_fixture.h"

#define HOUR_S 3600
#define NAP_MS 500

static atomic_long ahead_s;

/* The libraries use these in the place of the system's. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        ret_time->tv_sec += atomic_load(&ahead_s);
    }
    return rc;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    ret_time->tv_sec = now.tv_sec;
    ret_time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* Only then do the driver's waits begin. */
static void *set_back(void *user)
{
    const struct timespec nap = {0, NAP_MS * 1000000L};
    (void)user;
    (void)nanosleep(&nap, NULL);
    atomic_store(&ahead_s, 0);
    return NULL;
}

static void test_set_back_without_a_server(void **state)
{
    static const char *const sets[] = {"mongo.uri=mongodb://127.0.0.1:1/?directConnection=true",
                                       "mongo.timeout=2s", NULL};
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    pthread_t thread;
    (void)state;
    assert_non_null(fixture);
    atomic_store(&ahead_s, HOUR_S);
    assert_int_equal(pthread_create(&thread, NULL, set_back, NULL), 0);
    fixture_open(fixture, "mongo", sets);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(fixture->docs->health(fixture->db, fixture_call(fixture)),
                     NG_EUNAVAILABLE);
    fixture_close(fixture);
    free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_set_back_without_a_server)};
    return cmocka_run_group_tests_name("a clock that is set back", tests, NULL, NULL);
}
