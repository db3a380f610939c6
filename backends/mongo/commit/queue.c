/* SPDX-License-Identifier: MIT */
/* queue.c - queues batches for the writers. Documents are spread over lanes by their hash. A
 * batch is in the lane of each of its documents and is ready when it is first in all of them.
 * So changes of one document are made in commit order, those of different documents in
 * parallel. */
#include "commit.h"
#include "core/base/hash.h"
#include "core/base/lock.h"

#include <stdio.h>

/* Batches and bytes that may be queued for the writers; more is NG_EBUSY. */
#define QUEUE_BATCHES_MAX 65536
#define QUEUE_BYTES_MAX ((size_t)256 * 1024 * 1024)
#define LANES 1024
/* Puts and bytes of one document combined into one update. */
#define GROUP_MAX 128
#define GROUP_BYTES_MAX ((size_t)4 * 1024 * 1024)

/* The documents of one hash, changed one after the other. */
STAILQ_HEAD(lane, lane_node);

struct queue {
    struct lock lock;
    pthread_cond_t moved;
    pthread_t threads[WRITERS_MAX];
    size_t thread_count;
    struct lane lanes[LANES];
    STAILQ_HEAD(, job) ready;
    size_t batches, bytes;
    bool closing;
};

static uint64_t hash_of(const struct prepared *prepared)
{
    uint64_t hash = hash_fnv(HASH_FNV_BASIS, bytes_str(&prepared->name));
    return hash_fnv(hash, ng_str_of(prepared->collection->name));
}

static void job_free(struct job *job)
{
    for (size_t i = 0; i < job->put_count; i++) {
        bytes_done(&job->puts[i].name);
    }
    free(job->nodes);
    free(job);
}

static int refuse(struct ng_batch *batch, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(struct ng_batch *batch, int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(batch->error, sizeof(batch->error), format, args);
    va_end(args);
    return rc;
}

static bool fields_known(const struct db_collection *collection, const struct ng_put *put)
{
    for (size_t i = 0; i < put->field_count; i++) {
        bool known = false;
        for (size_t j = 0; j < collection->field_count && !known; j++) {
            known = str_equal(put->fields[i].name, ng_str_of(collection->fields[j].name));
        }
        if (!known) {
            return false;
        }
    }
    return true;
}

/* Prepares a put for the writers, on the caller's thread. */
static int prepare(struct mongo *db, struct ng_batch *batch, const struct ng_put *put,
                   struct prepared *ret)
{
    const struct ng_key *key = &put->key;
    ret->collection = collection_find(db, key->collection);
    if (ret->collection == NULL) {
        return refuse(batch, NG_EINVAL, "the collection \"%.*s\" was not declared",
                      str_clip(key->collection, NG_COLLECTION_MAX), key->collection.data);
    }
    if (key->space.len > NG_SPACE_MAX || key->id.len > NG_ID_MAX) {
        return refuse(batch, NG_EINVAL,
                      "a space has at most %d bytes and an id %d, these have %zu and %zu",
                      NG_SPACE_MAX, NG_ID_MAX, key->space.len, key->id.len);
    }
    int rc = name_document(ret->collection, key->space, key->id, &ret->name);
    if (rc != NG_OK) {
        return refuse(batch, rc, "the document's space or id is not UTF-8");
    }
    uint64_t hash = hash_of(ret);
    ret->lane = (size_t)(hash ^ (hash >> 32)) % LANES;
    if (put->revision == put->base_revision) {
        return NG_OK;
    }
    if (put->revision != put->base_revision + 1) {
        return refuse(batch, NG_EINVAL, "revision %llu cannot follow %llu",
                      (unsigned long long)put->revision,
                      (unsigned long long)put->base_revision);
    }
    size_t bytes = put->json.len + put->text.len + DOCUMENT_ROOM;
    if (bytes > DOCUMENT_BYTES_MAX) {
        return refuse(batch, NG_ETOOLARGE,
                      "the document would have %zu bytes, more than " DOCUMENT_LIMIT, bytes);
    }
    if (!fields_known(ret->collection, put)) {
        return refuse(batch, NG_EINVAL, "a field of the document was not declared");
    }
    content_hash(CONTENT_HASH_ROTATED, put->json, put->text, put->deleted, ret->hash);
    return NG_OK;
}

static size_t put_bytes(const struct ng_put *put)
{
    return sizeof(*put) + put->json.len + put->text.len + put->key.id.len + put->event_data.len;
}

/* ---- lanes; all with the lock held ---- */

static void make_ready(struct queue *queue, struct job *job)
{
    STAILQ_INSERT_TAIL(&queue->ready, job, ready);
    pthread_cond_signal(&queue->moved);
}

/* It ends after all jobs before it: its lanes are all there are. */
static bool is_barrier(const struct ng_batch *batch)
{
    return batch->put_count == 0 && batch->answer == NULL;
}

static void add_node(struct job *job, size_t lane)
{
    job->nodes[job->node_count++] = (struct lane_node){.job = job, .lane = lane};
}

/* One node per lane, as two documents of a batch may share one. */
static void add_nodes(struct job *job)
{
    for (size_t i = 0; i < job->put_count; i++) {
        bool seen = false;
        for (size_t j = 0; j < job->node_count; j++) {
            seen = seen || job->nodes[j].lane == job->puts[i].lane;
        }
        if (!seen) {
            add_node(job, job->puts[i].lane);
        }
    }
    for (size_t i = 0; i < LANES && is_barrier(job->batch); i++) {
        add_node(job, i);
    }
}

static void enter_lanes(struct queue *queue, struct job *job)
{
    for (size_t i = 0; i < job->node_count; i++) {
        struct lane *lane = &queue->lanes[job->nodes[i].lane];
        job->waiting += !STAILQ_EMPTY(lane);
        STAILQ_INSERT_TAIL(lane, &job->nodes[i], next);
    }
    if (job->waiting == 0) {
        make_ready(queue, job);
    }
}

/* Whether the job is first in its lanes, or follows one that leaves them in the same step. */
static void leave_lanes(struct queue *queue, struct job *job)
{
    for (size_t i = 0; i < job->node_count; i++) {
        struct lane *lane = &queue->lanes[job->nodes[i].lane];
        STAILQ_REMOVE_HEAD(lane, next);
        const struct lane_node *first = STAILQ_FIRST(lane);
        if (first != NULL && !first->job->taken && --first->job->waiting == 0) {
            make_ready(queue, first->job);
        }
    }
    queue->batches--;
    queue->bytes -= job->bytes;
}

static int enqueue(struct mongo *db, struct job *job)
{
    struct queue *queue = db->queue;
    struct fault fault;
    int rc = NG_OK;
    bool is_down = conn_is_down(db);
    if (is_down) {
        conn_refuse(db, &fault);
    }
    lock_take(&queue->lock);
    if (queue->closing) {
        rc = refuse(job->batch, NG_EUNAVAILABLE, "the connection to MongoDB is being closed");
    } else if (queue->batches > 0 && is_down) {
        /* It would wait for changes with an unknown outcome, which try until their calls end.
         */
        rc = refuse(job->batch, NG_EUNAVAILABLE, "%s", fault.text);
    } else if (queue->batches >= QUEUE_BATCHES_MAX ||
               (queue->batches > 0 && queue->bytes + job->bytes > QUEUE_BYTES_MAX)) {
        rc =
            refuse(job->batch, NG_EBUSY, "the queue to MongoDB is full: try again in a moment");
    } else {
        queue->batches++;
        queue->bytes += job->bytes;
        enter_lanes(queue, job);
    }
    lock_release(&queue->lock);
    return rc;
}

int queue_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    struct mongo *db = self;
    size_t count = batch->put_count;
    batch->error[0] = '\0';
    struct job *job = calloc(1, sizeof(*job) + count * sizeof(job->puts[0]));
    size_t most = is_barrier(batch) ? LANES : count + 1;
    struct lane_node *nodes = calloc(most, sizeof(*nodes));
    if (job == NULL || nodes == NULL) {
        free(job);
        free(nodes);
        return refuse(batch, NG_EINTERNAL, "no memory to queue the change");
    }
    job->batch = batch;
    job->done = done;
    job->user = user;
    job->put_count = count;
    job->nodes = nodes;
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = prepare(db, batch, batch->puts[i], &job->puts[i]);
        batch->puts[i]->seq = 0; /* the relay assigns it later */
        job->bytes += put_bytes(batch->puts[i]);
    }
    if (rc == NG_OK && batch->answer != NULL) {
        job->bytes += batch->answer->reply.len + batch->answer->scope.len;
    }
    if (rc == NG_OK) {
        add_nodes(job);
        rc = enqueue(db, job);
    }
    if (rc != NG_OK) {
        job_free(job);
    }
    return rc; /* NOLINT(clang-analyzer-unix.Malloc): the queue has the job */
}

/* ---- writers ---- */

static bool follows(const struct job *job, const struct job *last, const struct lane_node *node)
{
    if (!job_is_plain(job)) {
        return false;
    }
    const struct ng_put *put = job->batch->puts[0];
    const struct ng_put *former = last->batch->puts[0];
    return node == &job->nodes[0] && job->waiting == 1 &&
           (put->base_ticket == 0 || put->base_ticket == former->ticket) &&
           put->base_revision == former->revision &&
           job->puts[0].collection == last->puts[0].collection &&
           str_equal(bytes_str(&job->puts[0].name), bytes_str(&last->puts[0].name));
}

/* Takes the first ready job, and the jobs behind it that continue its document. */
static size_t take_ready(struct queue *queue, struct job **ret)
{
    struct job *job = STAILQ_FIRST(&queue->ready);
    size_t count = 0;
    STAILQ_REMOVE_HEAD(&queue->ready, ready);
    job->taken = true;
    ret[count++] = job;
    size_t bytes = job->bytes;
    struct lane_node *node = NULL;
    if (job_is_plain(job)) {
        node = &job->nodes[0];
    }
    while (node != NULL && count < GROUP_MAX) {
        node = STAILQ_NEXT(node, next);
        if (node == NULL || !follows(node->job, ret[count - 1], node) ||
            bytes + node->job->bytes > GROUP_BYTES_MAX) {
            break;
        }
        bytes += node->job->bytes;
        node->job->taken = true;
        ret[count++] = node->job;
    }
    return count;
}

static void count_failures(struct mongo *db, struct job *const *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->rc != NG_OK && jobs[i]->rc != NG_ECONFLICT &&
            jobs[i]->rc != NG_EKEYREUSED) {
            atomic_fetch_add(&db->stat_failures, 1);
        }
    }
}

static void run(struct mongo *db, struct job **jobs, size_t count)
{
    if (!is_barrier(jobs[0]->batch)) {
        commit_jobs(db, jobs, count);
    }
    atomic_fetch_add(&db->stat_batches, count);
    count_failures(db, jobs, count);
}

/* Leaves the lanes only after done(): until then changes based on these may be queued. */
static void finish(struct mongo *db, struct job **jobs, size_t count)
{
    struct queue *queue = db->queue;
    for (size_t i = 0; i < count; i++) {
        jobs[i]->done(jobs[i]->user, jobs[i]->batch, jobs[i]->rc);
    }
    lock_take(&queue->lock);
    for (size_t i = 0; i < count; i++) {
        leave_lanes(queue, jobs[i]);
    }
    lock_release(&queue->lock);
    for (size_t i = 0; i < count; i++) {
        job_free(jobs[i]);
    }
}

void queue_shed(struct mongo *db)
{
    struct queue *queue = db->queue;
    struct job *jobs[GROUP_MAX];
    struct fault fault;
    if (!conn_is_down(db)) {
        return;
    }
    conn_refuse(db, &fault);
    lock_take(&queue->lock);
    while (conn_is_down(db) && !STAILQ_EMPTY(&queue->ready)) {
        size_t count = take_ready(queue, jobs);
        lock_release(&queue->lock);
        for (size_t i = 0; i < count; i++) {
            jobs[i]->rc = refuse(jobs[i]->batch, fault.rc, "%s", fault.text);
        }
        count_failures(db, jobs, count);
        finish(db, jobs, count);
        lock_take(&queue->lock);
    }
    lock_release(&queue->lock);
}

static void *writer_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-writer");
    struct mongo *db = user;
    struct queue *queue = db->queue;
    struct job *jobs[GROUP_MAX];
    lock_take(&queue->lock);
    while (queue->batches > 0 || !queue->closing) {
        if (STAILQ_EMPTY(&queue->ready)) {
            lock_wait(&queue->moved, &queue->lock);
            continue;
        }
        size_t count = take_ready(queue, jobs);
        lock_release(&queue->lock);
        run(db, jobs, count);
        finish(db, jobs, count);
        lock_take(&queue->lock);
        if (queue->closing && queue->batches == 0) {
            pthread_cond_broadcast(&queue->moved);
        }
    }
    lock_release(&queue->lock);
    return NULL;
}

int queue_open(struct mongo *db)
{
    struct queue *queue = calloc(1, sizeof(*queue));
    db->queue = queue;
    if (queue == NULL) {
        return NG_EINTERNAL;
    }
    lock_init(&queue->lock, LOCK_MONGO_QUEUE);
    lock_cond_init(&queue->moved);
    STAILQ_INIT(&queue->ready);
    for (size_t i = 0; i < LANES; i++) {
        STAILQ_INIT(&queue->lanes[i]);
    }
    for (size_t i = 0; i < db->writers; i++) {
        if (pthread_create(&queue->threads[i], NULL, writer_main, db) != 0) {
            return NG_EINTERNAL;
        }
        queue->thread_count++;
    }
    return NG_OK;
}

void queue_stats(struct mongo *db, void (*stat)(void *user, const char *name, double value),
                 void *user)
{
    struct queue *queue = db->queue;
    lock_take(&queue->lock);
    double waiting = (double)queue->batches;
    double bytes = (double)queue->bytes;
    lock_release(&queue->lock);
    stat(user, "queue_batches", waiting);
    stat(user, "queue_bytes", bytes);
}

void queue_close(struct mongo *db)
{
    struct queue *queue = db->queue;
    if (queue == NULL) {
        return;
    }
    lock_take(&queue->lock);
    queue->closing = true;
    pthread_cond_broadcast(&queue->moved);
    lock_release(&queue->lock);
    for (size_t i = 0; i < queue->thread_count; i++) {
        pthread_join(queue->threads[i], NULL);
    }
    lock_done(&queue->lock);
    pthread_cond_destroy(&queue->moved);
    free(queue);
    db->queue = NULL;
}
