/* SPDX-License-Identifier: MIT */
/* log_queue.c - a ring of bytes and the thread that writes them to stderr. */
#include "log_queue.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "clock.h"
#include "core/base/str.h"
#include "lock.h"
#include "minmax.h"

/* Written at once. */
#define LOG_PIECE ((size_t)64 * 1024)
/* A stderr that does not block is asked again after this. */
#define LOG_POLL_MS 100

/* Process-wide by contract, as stderr is. */
static struct {
    struct lock lock;
    pthread_cond_t filled;  /* for the thread */
    pthread_cond_t drained; /* signalled when `written` advances or the thread ends */
    bool has_drained;       /* initialised, with the monotonic clock */
    char *bytes;            /* LOG_QUEUE_BYTES; NULL: not started */
    uint64_t put, taken;    /* bytes ever; what lies between waits */
    uint64_t written;
    bool waits; /* the thread waits for lines */
    bool stopping, ended;
    pthread_t thread;
    /* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
} queue = {.lock = LOCK_INITIALIZER(LOCK_LOG_QUEUE), .filled = PTHREAD_COND_INITIALIZER};

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static atomic_uint_fast64_t dropped;

/* False: stderr takes nothing any more. */
static bool write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(STDERR_FILENO, data, len);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0 && errno == EAGAIN) {
            struct pollfd poll_fd = {.fd = STDERR_FILENO, .events = POLLOUT};
            if (poll(&poll_fd, 1, LOG_POLL_MS) >= 0 || errno == EINTR) {
                continue;
            }
        }
        if (wrote <= 0) {
            return false; /* there is no place to report it */
        }
        data += wrote;
        len -= (size_t)wrote;
    }
    return true;
}

static void *run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-log");
    char *piece = user;
    lock_take(&queue.lock);
    for (;;) {
        size_t have = (size_t)(queue.put - queue.taken);
        if (have == 0 && queue.stopping) {
            break;
        }
        if (have == 0) {
            queue.waits = true;
            lock_wait(&queue.filled, &queue.lock);
            queue.waits = false;
            continue;
        }
        size_t at = (size_t)(queue.taken % LOG_QUEUE_BYTES);
        size_t len = size_min(have, LOG_PIECE);
        len = size_min(len, LOG_QUEUE_BYTES - at);
        memcpy(piece, queue.bytes + at, len);
        queue.taken += len;
        lock_release(&queue.lock);
        if (!write_all(piece, len)) {
            (void)atomic_fetch_add(&dropped, str_count(str_make(piece, len), '\n'));
        }
        lock_take(&queue.lock);
        queue.written = queue.taken;
        (void)pthread_cond_broadcast(&queue.drained);
    }
    queue.ended = true;
    (void)pthread_cond_broadcast(&queue.drained);
    lock_release(&queue.lock);
    free(piece);
    return NULL;
}

/* With all signals blocked: a reader that is gone gives EPIPE, and the gateway's signals are
 * not this thread's. */
static int start_thread(char *piece)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&queue.thread, NULL, run, piece);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

/* With the lock. A clock that is set back must not make a stop wait for longer. */
static void make_drained(void)
{
    if (queue.has_drained) {
        return;
    }
    lock_cond_init(&queue.drained);
    queue.has_drained = true;
}

int log_queue_start(void)
{
    int rc = NG_EINTERNAL;
    char *bytes = alloc_bytes(LOG_QUEUE_BYTES);
    char *piece = alloc_bytes(LOG_PIECE);
    lock_take(&queue.lock);
    if (bytes != NULL && piece != NULL && queue.bytes == NULL) {
        make_drained();
        queue.bytes = bytes;
        queue.put = queue.taken = queue.written = 0;
        queue.stopping = queue.ended = false;
        rc = start_thread(piece);
        if (rc != NG_OK) {
            queue.bytes = NULL;
        }
    }
    lock_release(&queue.lock);
    if (rc != NG_OK) {
        free(bytes);
        free(piece);
    }
    return rc;
}

/* With the lock: until `written` has come to `until`, or the thread has ended if `until` is
 * UINT64_MAX. False: not in time. */
static bool wait_written(uint64_t until, int64_t wait_ms)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(wait_ms / 1000);
    at.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    while (!queue.ended && queue.written < until) {
        if (lock_wait_until(&queue.drained, &queue.lock, &at) == ETIMEDOUT) {
            return queue.ended || queue.written >= until;
        }
    }
    return true;
}

void log_queue_flush(int64_t wait_ms)
{
    lock_take(&queue.lock);
    if (queue.bytes != NULL) {
        (void)wait_written(queue.put, wait_ms);
    }
    lock_release(&queue.lock);
}

void log_queue_stop(void)
{
    lock_take(&queue.lock);
    if (queue.bytes == NULL) {
        lock_release(&queue.lock);
        return;
    }
    queue.stopping = true;
    (void)pthread_cond_signal(&queue.filled);
    bool ended = wait_written(UINT64_MAX, LOG_QUEUE_STOP_MS);
    pthread_t thread = queue.thread;
    if (ended) {
        free(queue.bytes);
        queue.bytes = NULL;
    }
    lock_release(&queue.lock);
    if (ended) {
        (void)pthread_join(thread, NULL);
    }
    /* Else it hangs in write(2) and the process ends without it: its memory stays. */
}

void log_queue_put(const char *line, size_t len, bool minor)
{
    size_t room = LOG_QUEUE_BYTES;
    if (minor) {
        room = LOG_QUEUE_MINOR_BYTES;
    }
    bool direct = false;
    lock_take(&queue.lock);
    if (queue.bytes == NULL) {
        direct = true;
        (void)write_all(line, len);
    } else if (queue.put - queue.taken + len > room) {
        (void)atomic_fetch_add(&dropped, 1);
    } else {
        size_t at = (size_t)(queue.put % LOG_QUEUE_BYTES);
        size_t first = size_min(len, LOG_QUEUE_BYTES - at);
        memcpy(queue.bytes + at, line, first);
        memcpy(queue.bytes, line + first, len - first);
        queue.put += len;
    }
    bool wake = !direct && queue.waits;
    lock_release(&queue.lock);
    if (wake) {
        (void)pthread_cond_signal(&queue.filled);
    }
}

uint64_t log_queue_dropped(void)
{
    return atomic_load(&dropped);
}
