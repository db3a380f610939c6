/* SPDX-License-Identifier: MIT */
/*
 * wall_clock.c - preloaded into a gateway under test: its time of day is CLOCK_OFFSET seconds
 * away from the machine's. Monotonic clocks are as they are.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset_s(void)
{
    const char *text = getenv("CLOCK_OFFSET");
    return text == NULL ? 0 : atoll(text);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret);
    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        ret->tv_sec += offset_s();
    }
    return rc;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    ret->tv_sec = now.tv_sec;
    ret->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL) {
        *ret = now.tv_sec;
    }
    return now.tv_sec;
}
