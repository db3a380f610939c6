/* SPDX-License-Identifier: MIT */
/* queue.c - the queue of batches, and the writer thread. */
#include "db.h"

#include <stdio.h>
#include <time.h>

/* Waits of the idle writer: before it updates the search index, and between retries after a
 * failure. */
#define IDLE_MS 100
#define RETRY_MS 1000

static void job_free(struct db *db, struct job *job)
{
    (void)db;
    for (size_t i = 0; i < job->batch->put_count; i++) {
        bytes_done(&job->puts[i].fields);
    }
    free(job);
}

/* Prepares a put for the writer, on the thread of the caller. */
static int prepare(struct db *db, struct ng_batch *batch, const struct ng_put *put,
                   struct prepared *ret)
{
    const struct ng_key *key = &put->key;
    ret->collection = collection_find(db, key->collection);
    if (ret->collection == NULL) {
        (void)snprintf(batch->error, sizeof(batch->error),
                       "the collection \"%.*s\" was not declared",
                       key->collection.len < NG_COLLECTION_MAX ? (int)key->collection.len
                                                               : NG_COLLECTION_MAX,
                       key->collection.data != NULL ? key->collection.data : "");
        return NG_EINVAL;
    }
    if (key->space.len > NG_SPACE_MAX || key->id.len > NG_ID_MAX) {
        (void)snprintf(batch->error, sizeof(batch->error),
                       "a space has at most %d bytes and an id %d, these have %zu and %zu",
                       NG_SPACE_MAX, NG_ID_MAX, key->space.len, key->id.len);
        return NG_EINVAL;
    }
    if (put->revision == put->base_revision) {
        return NG_OK;
    }
    if (put->revision != put->base_revision + 1) {
        (void)snprintf(batch->error, sizeof(batch->error), "revision %llu cannot follow %llu",
                       (unsigned long long)put->revision,
                       (unsigned long long)put->base_revision);
        return NG_EINVAL;
    }
    content_hash(CONTENT_HASH_MIXED, put->json, put->text, put->deleted, ret->hash);
    int rc = values_encode(ret->collection, put->fields, put->field_count, put->deleted,
                           &ret->fields);
    if (rc != NG_OK) {
        (void)snprintf(batch->error, sizeof(batch->error), "%s",
                       rc == NG_EINVAL ? "a field of the document was not declared"
                                       : "no memory to queue the change");
    }
    return rc;
}

static size_t put_bytes(const struct ng_put *put)
{
    return sizeof(*put) + put->json.len + put->text.len + put->key.id.len + put->event_data.len;
}

/* Queues the job, or refuses it. */
static int enqueue(struct db *db, struct job *job)
{
    lock_take(&db->queue_lock);
    bool full = db->queue_batches >= QUEUE_BATCHES_MAX ||
                (db->queue_batches > 0 && db->queue_bytes + job->bytes > QUEUE_BYTES_MAX);
    bool closing = db->closing;
    if (!full && !closing) {
        if (db->last != NULL) {
            db->last->next = job;
        } else {
            db->first = job;
        }
        db->last = job;
        db->queue_batches++;
        db->queue_bytes += job->bytes;
        pthread_cond_signal(&db->queued);
    }
    lock_release(&db->queue_lock);
    if (full || closing) {
        (void)snprintf(job->batch->error, sizeof(job->batch->error),
                       full ? "the queue of %s is full: try again in a moment"
                            : "%s is being closed",
                       db->path);
        if (full) {
            return NG_EBUSY;
        }
        return NG_EUNAVAILABLE;
    }
    return NG_OK;
}

int queue_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    struct db *db = self;
    size_t count = batch->put_count;
    batch->error[0] = '\0';
    if (count > (SIZE_MAX - sizeof(struct job)) / sizeof(struct prepared)) {
        return NG_ETOOLARGE;
    }
    struct job *job = calloc(1, sizeof(*job) + count * sizeof(struct prepared));
    if (job == NULL) {
        (void)snprintf(batch->error, sizeof(batch->error), "no memory to queue the change");
        return NG_EINTERNAL;
    }
    job->batch = batch;
    job->done = done;
    job->user = user;
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = prepare(db, batch, batch->puts[i], &job->puts[i]);
        job->bytes += put_bytes(batch->puts[i]);
    }
    if (rc == NG_OK && batch->answer != NULL) {
        job->bytes += batch->answer->reply.len + batch->answer->scope.len;
    }
    if (rc == NG_OK) {
        rc = enqueue(db, job);
    }
    if (rc != NG_OK) {
        job_free(db, job);
    }
    return rc;
}

/* Takes the jobs of one transaction off the queue. With the lock held. */
static struct job *dequeue(struct db *db)
{
    struct job *first = db->first;
    struct job *last = NULL;
    size_t count = 0;
    size_t bytes = 0;
    for (struct job *job = first; job != NULL; job = job->next) {
        if (count == TRANSACTION_BATCHES_MAX ||
            (count > 0 && bytes + job->bytes > TRANSACTION_BYTES_MAX)) {
            break;
        }
        count++;
        bytes += job->bytes;
        last = job;
    }
    db->first = last->next;
    last->next = NULL;
    if (db->first == NULL) {
        db->last = NULL;
    }
    db->queue_batches -= count;
    db->queue_bytes -= bytes;
    return first;
}

static void finish(struct db *db, struct job *jobs)
{
    while (jobs != NULL) {
        struct job *job = jobs;
        jobs = job->next;
        struct ng_batch *batch = job->batch;
        ng_done_fn *done = job->done;
        void *user = job->user;
        int rc = job->rc;
        job_free(db, job);
        done(user, batch, rc);
    }
}

/* Waits for work. With the lock held. true: timeout. */
static bool wait_for_work(struct db *db)
{
    bool dirty = atomic_load(&db->dirty);
    bool trouble = atomic_load(&db->trouble) != TROUBLE_NONE;
    if (!dirty && !trouble) {
        lock_wait(&db->queued, &db->queue_lock);
        return false;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t wait = (dirty && !trouble ? IDLE_MS : RETRY_MS) * INT64_C(1000000);
    int64_t nanos = until.tv_nsec + wait;
    until.tv_sec += (time_t)(nanos / 1000000000);
    until.tv_nsec = (long)(nanos % 1000000000);
    return lock_wait_until(&db->queued, &db->queue_lock, &until) != 0;
}

/* Work of the idle writer. A failed commit may have left pages behind the end of the log, which
 * a crash would revive: a small commit overwrites them. */
static void idle_step(struct db *db)
{
    if (atomic_load(&db->trouble) != TROUBLE_NONE) {
        writer_commit(db, NULL);
    } else if (disk_free(db) >= DISK_INDEX_BYTES) { /* the last free space is for documents */
        bool more = false;
        char error[DB_ERROR_MAX];
        /* If it fails, a search reports the error; here it is retried. */
        (void)fts_step(db, 0, &more, error, sizeof(error));
    }
}

static void *writer_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-writer");
    struct db *db = user;
    lock_take(&db->queue_lock);
    while (db->first != NULL || !db->closing) {
        if (db->first == NULL) {
            if (wait_for_work(db) && db->first == NULL && !db->closing) {
                lock_release(&db->queue_lock);
                idle_step(db);
                lock_take(&db->queue_lock);
            }
            continue;
        }
        struct job *jobs = dequeue(db);
        lock_release(&db->queue_lock);
        writer_commit(db, jobs);
        finish(db, jobs);
        lock_take(&db->queue_lock);
    }
    lock_release(&db->queue_lock);
    return NULL;
}

int queue_start(struct db *db)
{
    if (pthread_create(&db->thread, NULL, writer_main, db) == 0) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

void queue_stop(struct db *db)
{
    lock_take(&db->queue_lock);
    db->closing = true;
    pthread_cond_signal(&db->queued);
    lock_release(&db->queue_lock);
    pthread_join(db->thread, NULL);
}
