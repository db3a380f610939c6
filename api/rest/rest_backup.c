/* SPDX-License-Identifier: MIT */
/* rest_backup.c - a backup as it is made: a thread writes the archive, the event loop sends it.
 */
#include "rest_backup.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/http/http_stream.h"
#include "core/archive/archive.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/call/call.h"
#include "core/call/gateway.h"

/* Maximum of bytes that are made and not sent yet (plus one part of an archive). */
#define BACKUP_QUEUE_MAX ((size_t)1024 * 1024)
/* Handed over at a time. */
#define BACKUP_FILL ((size_t)256 * 1024)
/*
 * A reader that takes nothing for this time is given up. While documents are written the
 * backend holds one snapshot of the store open: that blocks no writer, but sqlite's write-ahead
 * log grows by everything that is written meanwhile, so a reader may be slow but must not stop.
 * While files are written no snapshot is held.
 */
#define BACKUP_STALL_MS 60000
#define BACKUP_TEXT_MAX ((size_t)4096)

/* Three hold a reference: the thread, the stream, and the call that asked until it is answered.
 */
struct backup_job {
    atomic_int refs;
    struct gateway *gateway;
    bool with_files;
    struct http_stream *stream;
    struct lock lock;
    pthread_cond_t moved; /* something was made, taken or has ended; CLOCK_MONOTONIC */
    struct buf queue;
    size_t taken; /* of queue */
    bool ended;   /* nothing more is made */
    bool closed;  /* nothing more is taken */
    int rc;       /* once it has ended */
    struct buf why;
};

static void backup_unref(struct backup_job *job)
{
    if (atomic_fetch_sub(&job->refs, 1) != 1) {
        return;
    }
    buf_done(&job->queue);
    buf_done(&job->why);
    (void)pthread_cond_destroy(&job->moved);
    lock_done(&job->lock);
    free(job);
}

/* ---- the event loop ---- */

static int backup_fill(void *user, struct buf *out)
{
    struct backup_job *job = user;
    lock_take(&job->lock);
    size_t len = job->queue.len - job->taken;
    len = size_min(len, BACKUP_FILL);
    if (len > 0) {
        (void)buf_add(out, job->queue.data + job->taken, len);
        job->taken += len;
    }
    bool end = job->ended && job->taken == job->queue.len;
    bool failed = end && job->rc != NG_OK;
    pthread_cond_broadcast(&job->moved);
    lock_release(&job->lock);
    if (failed) {
        return HTTP_STREAM_BROKEN;
    }
    if (end) {
        return HTTP_STREAM_END;
    }
    return HTTP_STREAM_OPEN;
}

static void backup_closed(void *user)
{
    struct backup_job *job = user;
    lock_take(&job->lock);
    job->closed = true;
    pthread_cond_broadcast(&job->moved);
    lock_release(&job->lock);
    backup_unref(job);
}

static const struct http_stream_source backup_source = {
    .fill = backup_fill, .closed = backup_closed, .plain = true};

/* ---- the thread ---- */

static struct timespec backup_until(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += BACKUP_STALL_MS / 1000;
    return until;
}

/* Waits for room. With the lock held. */
static int backup_wait(struct backup_job *job)
{
    struct timespec until = backup_until();
    size_t taken = job->taken;
    while (!job->closed && job->queue.len - job->taken >= BACKUP_QUEUE_MAX) {
        if (lock_wait_until(&job->moved, &job->lock, &until) == ETIMEDOUT) {
            return NG_ETIMEOUT;
        }
        if (job->taken != taken) {
            taken = job->taken;
            until = backup_until();
        }
    }
    if (job->closed) {
        return NG_ECANCELLED;
    }
    return NG_OK;
}

static int backup_put(void *user, struct ng_str bytes)
{
    struct backup_job *job = user;
    lock_take(&job->lock);
    int rc = backup_wait(job);
    if (rc == NG_OK) {
        size_t rest = job->queue.len - job->taken;
        if (job->taken > 0) {
            memmove(job->queue.data, job->queue.data + job->taken, rest);
            job->queue.len = rest;
            job->taken = 0;
        }
        rc = buf_add_str(&job->queue, bytes);
    }
    pthread_cond_broadcast(&job->moved);
    lock_release(&job->lock);
    if (rc == NG_OK) {
        http_stream_wake(job->stream);
    }
    return rc;
}

static void backup_end(struct backup_job *job, int rc, struct ng_str why)
{
    lock_take(&job->lock);
    job->rc = rc;
    (void)buf_add_str(&job->why, why);
    bool told = job->closed;
    job->ended = true;
    pthread_cond_broadcast(&job->moved);
    lock_release(&job->lock);
    if (rc != NG_OK && !told) {
        log_write(NG_LOG_WARNING, "backup", "%.*s", (int)why.len, why.data);
    }
    http_stream_wake(job->stream);
}

static void *backup_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-backup");
    struct backup_job *job = user;
    struct gateway *gateway = job->gateway;
    struct archive_counts counts;
    struct call *call = call_new(gateway);
    if (call == NULL) {
        backup_end(job, NG_EINTERNAL, ng_str_of("Out of memory"));
    } else {
        call->options |= CALL_NO_DEADLINE;
        int rc = archive_write_store(call, job->with_files, backup_put, job, &counts);
        backup_end(job, rc, call->staged.message);
        call_unref(call);
    }
    http_stream_unref(job->stream);
    backup_unref(job);
    atomic_fetch_sub(&gateway->active, 1); /* last: modules may go now */
    return NULL;
}

/* ---- beginning ---- */

static struct backup_job *backup_new(struct gateway *gateway, bool files)
{
    struct backup_job *job = alloc_zeroed(1, sizeof(*job));
    if (job == NULL) {
        return NULL;
    }
    atomic_init(&job->refs, 1);
    job->gateway = gateway;
    job->with_files = files;
    buf_init(&job->queue, ARCHIVE_LINE_MAX);
    buf_init(&job->why, BACKUP_TEXT_MAX);
    lock_init(&job->lock, LOCK_REST_BACKUP);
    lock_cond_init(&job->moved);
    job->stream = http_stream_new(&backup_source, job, NULL);
    if (job->stream == NULL) {
        backup_unref(job);
        return NULL;
    }
    return job;
}

static bool backup_start(struct backup_job *job)
{
    pthread_t thread;
    pthread_attr_t detached;
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&job->refs, 2); /* the thread's and the caller's */
    http_stream_ref(job->stream);    /* the thread's */
    atomic_fetch_add(&job->gateway->active, 1);
    bool started = pthread_create(&thread, &detached, backup_run, job) == 0;
    (void)pthread_attr_destroy(&detached);
    if (!started) {
        atomic_fetch_sub(&job->gateway->active, 1);
        http_stream_unref(job->stream);
        atomic_fetch_sub(&job->refs, 1); /* never the last one */
    }
    return started;
}

int rest_backup_begin(struct call *call, bool files, struct http_stream **ret)
{
    struct backup_job *job = backup_new(call->gateway, files);
    if (job == NULL) {
        return call_fail(call, NG_EINTERNAL, "Out of memory");
    }
    struct http_stream *stream = job->stream; /* with the first reference to the job */
    if (!backup_start(job)) {
        backup_unref(job);
        http_stream_unref(stream);
        return call_fail(call, NG_EBUSY, "no thread can be started for the backup; try again");
    }
    /* A failure at the start is answered with an error instead of an archive that breaks
     * off. */
    lock_take(&job->lock);
    while (job->queue.len == 0 && !job->ended) {
        lock_wait(&job->moved, &job->lock);
    }
    int rc;
    if (job->queue.len > 0 || job->rc == NG_OK) {
        rc = NG_OK;
    } else {
        rc = call_fail(call, job->rc, "%s", buf_cstr(&job->why));
    }
    lock_release(&job->lock);
    backup_unref(job);
    if (rc != NG_OK) {
        http_stream_unref(stream);
        return rc;
    }
    *ret = stream;
    return NG_OK;
}
