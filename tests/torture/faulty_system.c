/* SPDX-License-Identifier: MIT */
/*
 * faulty_system.c - preloaded into a gateway under test: its disk, memory and clock fail as the
 * control file says, which FAULTY_SYSTEM names and gateways.py writes while the
 * gateway runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    PATH_PART_MAX = 64,
    LINK_MAX_BYTES = 512,
    CONTROL_SIZE = 4096,
};

/* The order is that of KINDS in gateways.py. `every` 0: nothing fails; N: each Nth call that
 * fits. */
enum {
    WRITE,
    SHORT,
    SYNC,
    NAME,
    ALLOC,
    KINDS,
};

struct kind {
    _Atomic uint32_t every;
    _Atomic int32_t error;
    _Atomic uint32_t calls;
    _Atomic uint32_t failed;
};

struct control {
    struct kind kinds[KINDS];
    _Atomic int64_t clock_ns;
    /* Only files whose path has this part; empty: all. Written while no kind is armed. */
    char path_part[PATH_PART_MAX];
};

static struct control *control;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("FAULTY_SYSTEM");
    /* Programs that the gateway starts, for example kernels, are not disturbed. */
    if (path == NULL || strcmp(program_invocation_short_name, "notegate") != 0) {
        return;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    void *map = mmap(NULL, CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    control = map == MAP_FAILED ? NULL : map;
}

/* 1: this call fails, and errno says how. */
static int fails(int which)
{
    struct kind *kind = &control->kinds[which];
    uint32_t every = atomic_load(&kind->every);
    if (every == 0 || atomic_fetch_add(&kind->calls, 1) % every != every - 1) {
        return 0;
    }
    atomic_fetch_add(&kind->failed, 1);
    errno = atomic_load(&kind->error);
    return 1;
}

static int armed(int which)
{
    return control != NULL && atomic_load(&control->kinds[which].every) != 0;
}

/* A file, and one of those that fail: not a socket, not the log. */
static int fits(int fd)
{
    char link[32], path[LINK_MAX_BYTES];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length <= 0 || path[0] != '/' || fd <= STDERR_FILENO) {
        return 0;
    }
    path[length] = '\0';
    return strstr(path, control->path_part) != NULL;
}

static int file_fails(int which, int fd)
{
    return armed(which) && fits(fd) && fails(which);
}

/* ---- writing ---- */

static size_t shortened(int fd, size_t size)
{
    return size > 1 && file_fails(SHORT, fd) ? size / 2 : size;
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (file_fails(WRITE, fd)) {
        return -1;
    }
    return syscall(SYS_write, fd, data, shortened(fd, size));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    if (file_fails(WRITE, fd)) {
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, shortened(fd, size), at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    return pwrite(fd, data, size, at);
}

int ftruncate(int fd, off_t size)
{
    return file_fails(WRITE, fd) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

int fsync(int fd)
{
    return file_fails(SYNC, fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return file_fails(SYNC, fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* ---- names ---- */

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
    if (armed(NAME) && fails(NAME)) {
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    if (armed(NAME) && fails(NAME)) {
        return -1;
    }
    return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    if (armed(NAME) && fails(NAME)) {
        return -1;
    }
    return (int)syscall(SYS_mkdirat, dir, path, mode);
}

/* ---- memory ---- */

void *malloc(size_t size)
{
    return armed(ALLOC) && fails(ALLOC) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return armed(ALLOC) && fails(ALLOC) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return armed(ALLOC) && fails(ALLOC) ? NULL : __libc_realloc(old, size);
}

/* ---- the clock on the wall ---- */

static const int64_t second = 1000000000;

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (rc == 0 && control != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t now =
            ret_time->tv_sec * second + ret_time->tv_nsec + atomic_load(&control->clock_ns);
        ret_time->tv_sec = now / second;
        ret_time->tv_nsec = now % second;
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

time_t time(time_t *ret_time)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time != NULL) {
        *ret_time = now.tv_sec;
    }
    return now.tv_sec;
}

/* Until the moved clock says so, also where it is moved meanwhile, as the kernel does. Those of
 * the monotonic clock are known by their small numbers. */
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    static const int64_t slice = 100000000;
    static const int64_t wall = (int64_t)1000000000 * 1000000000;
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int64_t end = until->tv_sec * second + until->tv_nsec;
    struct timespec now;
    if (wait == NULL) {
        *(void **)&wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    }
    if (control == NULL || end < wall) {
        return wait(cond, mutex, until);
    }
    for (;;) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        int64_t left = end - (now.tv_sec * second + now.tv_nsec);
        if (left <= 0) {
            return ETIMEDOUT;
        }
        (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
        int64_t next = now.tv_sec * second + now.tv_nsec + (left < slice ? left : slice);
        struct timespec soon = {next / second, next % second};
        int rc = wait(cond, mutex, &soon);
        if (rc != ETIMEDOUT) {
            return rc;
        }
    }
}
