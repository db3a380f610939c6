/* SPDX-License-Identifier: MIT */
/*
 * clock.c - preloaded into a gateway under test: its clocks run CLOCK_RATE times as fast (1),
 * and its time of day is CLOCK_OFFSET seconds away from the machine's (0). What waits, waits as
 * long on those clocks. Programs that it starts have the machine's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    CLOCKS = CLOCK_BOOTTIME + 1,
};

static const int64_t second = 1000000000;
static int64_t rate = 1;
static int64_t offset;
/* Time of each clock of the machine at the start of the program. */
static int64_t begun[CLOCKS];

static int64_t machine_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    (void)syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * second + now.tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
    struct timespec time = {ns / second, ns % second};
    return time;
}

static int64_t number(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoll(text, NULL, 10);
}

__attribute__((constructor)) static void start(void)
{
    for (clockid_t clock = 0; clock < CLOCKS; clock++) {
        begun[clock] = machine_ns(clock);
    }
    if (strcmp(program_invocation_short_name, "notegate") != 0) {
        return;
    }
    rate = number("CLOCK_RATE", 1);
    offset = number("CLOCK_OFFSET", 0) * second;
}

static int is_of_day(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

/* Times of processors are not touched. */
static int is_moved(clockid_t clock)
{
    return is_of_day(clock) || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
           clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
}

static int64_t now_ns(clockid_t clock)
{
    return begun[clock] + (machine_ns(clock) - begun[clock]) * rate +
           (is_of_day(clock) ? offset : 0);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (!is_moved(clock)) {
        return (int)syscall(SYS_clock_gettime, clock, ret);
    }
    *ret = time_of(now_ns(clock));
    return 0;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now = time_of(now_ns(CLOCK_REALTIME));
    (void)zone;
    ret->tv_sec = now.tv_sec;
    ret->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret)
{
    time_t now = now_ns(CLOCK_REALTIME) / second;
    if (ret != NULL) {
        *ret = now;
    }
    return now;
}

/* The kernel tells how long ago the last data came. */
int getsockopt(int fd, int level, int option, void *restrict ret, socklen_t *restrict size)
{
    long rc = syscall(SYS_getsockopt, fd, level, option, ret, size);
    if (rc == 0 && level == IPPROTO_TCP && option == TCP_INFO &&
        *size >= sizeof(struct tcp_info)) {
        struct tcp_info *info = ret;
        info->tcpi_last_data_recv *= (uint32_t)rate;
    }
    return (int)rc;
}

/* ---- waiting ---- */

/* Longest wait: a moment may be as far as the numbers go. */
static const int64_t wait_max_s = 1000000;

/* A moment of that clock, on the machine's. */
static struct timespec until_of(clockid_t clock, const struct timespec *until)
{
    int64_t now = now_ns(clock);
    int64_t left = wait_max_s * second;
    if (until->tv_sec < now / second + wait_max_s) {
        left = until->tv_sec * second + until->tv_nsec - now;
    }
    return time_of(machine_ns(clock) + (left > 0 ? left / rate : 0));
}

static int shorter_ms(int ms)
{
    return ms <= 0 ? ms : (int)((ms + rate - 1) / rate);
}

static struct timespec shorter(const struct timespec *wait)
{
    return time_of((wait->tv_sec * second + wait->tv_nsec) / rate);
}

#define NEXT(function)                                                                         \
    static __typeof__(function) *next;                                                         \
    if (next == NULL) {                                                                        \
        *(void **)&next = dlsym(RTLD_NEXT, #function);                                         \
    }

int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           clockid_t clock, const struct timespec *restrict until)
{
    struct timespec moment = until_of(clock, until);
    NEXT(pthread_cond_clockwait)
    return next(cond, mutex, clock, &moment);
}

/* The size of the number tells its clock: time since 1970, or since the machine's start. */
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    int64_t today_s = begun[CLOCK_REALTIME] / second;
    clockid_t clock = until->tv_sec > today_s / 2 && until->tv_sec < 2 * today_s
                          ? CLOCK_REALTIME
                          : CLOCK_MONOTONIC;
    struct timespec moment = until_of(clock, until);
    static __typeof__(pthread_cond_timedwait) *next;
    if (next == NULL) {
        *(void **)&next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    }
    if (next == NULL) { /* not x86: there is one version */
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    }
    return next(cond, mutex, &moment);
}

int poll(struct pollfd *fds, nfds_t count, int ms)
{
    NEXT(poll)
    return next(fds, count, shorter_ms(ms));
}

int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t size)
{
    (void)size;
    return poll(fds, count, ms);
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int ms)
{
    NEXT(epoll_wait)
    return next(epoll, events, max, shorter_ms(ms));
}

int select(int count, fd_set *restrict reads, fd_set *restrict writes, fd_set *restrict errors,
           struct timeval *restrict wait)
{
    NEXT(select)
    if (wait == NULL) {
        return next(count, reads, writes, errors, wait);
    }
    int64_t us = (wait->tv_sec * 1000000 + wait->tv_usec) / rate;
    struct timeval less = {us / 1000000, us % 1000000};
    return next(count, reads, writes, errors, &less);
}

int nanosleep(const struct timespec *wait, struct timespec *ret_left)
{
    struct timespec less = shorter(wait);
    NEXT(nanosleep)
    return next(&less, ret_left);
}

int usleep(useconds_t us)
{
    struct timespec wait = time_of((int64_t)us * 1000);
    return nanosleep(&wait, NULL);
}

int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                 const struct timespec *restrict wait)
{
    NEXT(sigtimedwait)
    if (wait == NULL) {
        return next(set, info, wait);
    }
    struct timespec less = shorter(wait);
    return next(set, info, &less);
}
