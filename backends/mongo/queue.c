/* SPDX-License-Identifier: MIT */
/* queue.c - queues batches for the writers. Documents are spread over lanes by their hash. A
 * batch is in the lane of each of its documents and is ready when it is first in all of them.
 * So changes of one document are made in commit order, those of different documents in
 * parallel. */
#include "core/base/hash.h"
#include "core/base/lock.h"
#include "db.h"

#include <stdio.h>

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
    free(job->puts);
    free(job->nodes);
    free(job);
}

static int refuse(struct ng_batch *batch, int rc, const char *text)
{
    (void)snprintf(batch->error, sizeof(batch->error), "%s", text);
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
    ret->ticket = put->ticket;
    ret->base_ticket = put->base_ticket;
    ret->collection = collection_find(db, key->collection);
    if (ret->collection == NULL) {
        (void)snprintf(batch->error, sizeof(batch->error),
                       "the collection \"%.*s\" was not declared",
                       str_clip(key->collection, NG_COLLECTION_MAX),
                       key->collection.data != NULL ? key->collection.data : "");
        return NG_EINVAL;
    }
    if (key->space.len > NG_SPACE_MAX || key->id.len > NG_ID_MAX) {
        (void)snprintf(batch->error, sizeof(batch->error),
                       "a space has at most %d bytes and an id %d, these have %zu and %zu",
                       NG_SPACE_MAX, NG_ID_MAX, key->space.len, key->id.len);
        return NG_EINVAL;
    }
    int rc = name_document(ret->collection, key->space, key->id, &ret->name);
    if (rc != NG_OK) {
        return refuse(batch, rc, "the document's space or id is not UTF-8");
    }
    ret->hash_of_name = hash_of(ret);
    ret->lane = (size_t)(ret->hash_of_name ^ (ret->hash_of_name >> 32)) % LANES;
    if (put->revision == put->base_revision) {
        return NG_OK;
    }
    if (put->revision != put->base_revision + 1) {
        (void)snprintf(batch->error, sizeof(batch->error), "revision %llu cannot follow %llu",
                       (unsigned long long)put->revision,
                       (unsigned long long)put->base_revision);
        return NG_EINVAL;
    }
    size_t bytes = put->json.len + put->text.len;
    if (bytes + DOCUMENT_ROOM > DOCUMENT_BYTES_MAX) {
        (void)snprintf(
            batch->error, sizeof(batch->error),
            "the document would have %zu bytes, the most that MongoDB takes here are "
            "%zu",
            bytes + DOCUMENT_ROOM, DOCUMENT_BYTES_MAX);
        return NG_ETOOLARGE;
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
    job->ready_next = NULL;
    if (queue->ready_last != NULL) {
        queue->ready_last->ready_next = job;
    } else {
        queue->ready_first = job;
    }
    queue->ready_last = job;
    pthread_cond_signal(&queue->moved);
}

/* One node per lane, as two documents of a batch may share one. */
static void add_nodes(struct job *job)
{
    for (size_t i = 0; i < job->batch->put_count; i++) {
        bool seen = false;
        for (size_t j = 0; j < job->node_count; j++) {
            seen = seen || job->nodes[j].lane == job->puts[i].lane;
        }
        if (!seen) {
            job->nodes[job->node_count++] =
                (struct lane_node){.job = job, .lane = job->puts[i].lane};
        }
    }
}

static bool built_on_failed(const struct queue *queue, const struct job *job)
{
    for (size_t i = 0; i < job->put_count; i++) {
        const struct lane *lane = &queue->lanes[job->puts[i].lane];
        for (size_t j = 0; j < LANE_FAILED && job->puts[i].base_ticket != 0; j++) {
            if (lane->failed[j] == job->puts[i].base_ticket) {
                return true;
            }
        }
    }
    return false;
}

static void enter_lanes(struct queue *queue, struct job *job)
{
    job->poisoned = built_on_failed(queue, job);
    for (size_t i = 0; i < job->node_count; i++) {
        struct lane *lane = &queue->lanes[job->nodes[i].lane];
        if (lane->last != NULL) {
            lane->last->next = &job->nodes[i];
            job->waiting++;
        } else {
            lane->first = &job->nodes[i];
        }
        lane->last = &job->nodes[i];
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
        lane->first = job->nodes[i].next;
        if (lane->first == NULL) {
            lane->last = NULL;
        } else if (!lane->first->job->taken && --lane->first->job->waiting == 0) {
            make_ready(queue, lane->first->job);
        }
    }
}

static bool is_barrier(const struct job *job)
{
    return job->batch->put_count == 0 && job->batch->answer == NULL;
}

static void forget(struct queue *queue, struct job *job)
{
    if (job->all_prev != NULL) {
        job->all_prev->all_next = job->all_next;
    } else {
        queue->all_first = job->all_next;
    }
    if (job->all_next != NULL) {
        job->all_next->all_prev = job->all_prev;
    } else {
        queue->all_last = job->all_prev;
    }
    queue->batches--;
    queue->bytes -= job->bytes;
    struct job *first = queue->all_first;
    if (first != NULL && !first->taken && is_barrier(first)) {
        first->taken = true;
        make_ready(queue, first);
    }
}

static int enqueue(struct mongo *db, struct job *job)
{
    struct queue *queue = &db->queue;
    int rc = NG_OK;
    lock_take(&queue->lock);
    if (queue->closing) {
        rc = refuse(job->batch, NG_EUNAVAILABLE, "the connection to MongoDB is being closed");
    } else if (queue->batches >= QUEUE_BATCHES_MAX ||
               (queue->batches > 0 && queue->bytes + job->bytes > QUEUE_BYTES_MAX)) {
        rc =
            refuse(job->batch, NG_EBUSY, "the queue to MongoDB is full: try again in a moment");
    } else {
        job->all_prev = queue->all_last;
        if (queue->all_last != NULL) {
            queue->all_last->all_next = job;
        } else {
            queue->all_first = job;
        }
        queue->all_last = job;
        queue->batches++;
        queue->bytes += job->bytes;
        if (!is_barrier(job)) {
            enter_lanes(queue, job);
        } else if (queue->all_first == job) {
            job->taken = true;
            make_ready(queue, job);
        }
    }
    lock_release(&queue->lock);
    return rc;
}

int queue_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    struct mongo *db = self;
    size_t count = batch->put_count;
    batch->error[0] = '\0';
    struct job *job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->batch = batch;
        job->done = done;
        job->user = user;
        job->put_count = count;
        job->puts = calloc(count + 1, sizeof(*job->puts));
        job->nodes = calloc(count + 1, sizeof(*job->nodes));
    }
    if (job == NULL || job->puts == NULL || job->nodes == NULL) {
        if (job != NULL) {
            free(job->puts);
            free(job->nodes);
            free(job);
        }
        return refuse(batch, NG_EINTERNAL, "no memory to queue the change");
    }
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
    return rc;
}

/* ---- writers ---- */

static bool follows(const struct job *job, const struct job *last, const struct lane_node *node)
{
    const struct ng_put *put = job->batch->puts[0];
    return job->put_count == 1 && node == &job->nodes[0] && job->waiting == 1 &&
           !job->poisoned &&
           (job->puts[0].base_ticket == 0 ||
            job->puts[0].base_ticket == last->puts[0].ticket) &&
           put->revision != put->base_revision &&
           put->base_revision == last->batch->puts[0]->revision &&
           job->puts[0].collection == last->puts[0].collection &&
           str_equal(bytes_str(&job->puts[0].name), bytes_str(&last->puts[0].name));
}

/* Takes the first ready job, and the jobs behind it that continue its document. */
static size_t take_ready(struct queue *queue, struct job **ret)
{
    struct job *job = queue->ready_first;
    size_t count = 0;
    queue->ready_first = job->ready_next;
    if (queue->ready_first == NULL) {
        queue->ready_last = NULL;
    }
    job->taken = true;
    ret[count++] = job;
    bool plain = !job->poisoned && job->batch->put_count == 1 &&
                 job->batch->puts[0]->revision != job->batch->puts[0]->base_revision;
    size_t bytes = job->bytes;
    for (struct lane_node *node = plain ? job->nodes[0].next : NULL;
         node != NULL && count < GROUP_MAX && follows(node->job, ret[count - 1], node);
         node = node->next) {
        if (bytes + node->job->bytes > GROUP_BYTES_MAX) {
            break;
        }
        bytes += node->job->bytes;
        node->job->taken = true;
        ret[count++] = node->job;
    }
    return count;
}

/* How long a revision that was seen is remembered. */
#define KNOWN_MS 1000

/* No lock needed: a lane's jobs are run by one thread at a time. */
static bool known_to_conflict(struct mongo *db, struct job *const *jobs, size_t count)
{
    const struct prepared *prepared = &jobs[0]->puts[0];
    const struct lane *lane = &db->queue.lanes[prepared->lane];
    if (lane->known_name != prepared->hash_of_name ||
        jobs[0]->batch->puts[0]->base_revision >= lane->known_revision ||
        monotonic_ms() - lane->known_ms > KNOWN_MS) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        jobs[i]->rc =
            refuse(jobs[i]->batch, NG_ECONFLICT,
                   "the document was changed in the meantime; read it again and retry");
        jobs[i]->batch->failed_put = 0;
    }
    return true;
}

static void note_known(struct mongo *db, struct job *const *jobs, size_t count)
{
    const struct prepared *prepared = &jobs[0]->puts[0];
    struct lane *lane = &db->queue.lanes[prepared->lane];
    if (jobs[count - 1]->rc == NG_OK) {
        lane->known_name = prepared->hash_of_name;
        lane->known_revision = jobs[count - 1]->batch->puts[0]->revision;
        lane->known_ms = monotonic_ms();
    }
}

static void run_puts(struct mongo *db, struct job **jobs, size_t count)
{
    if (jobs[0]->batch->answer != NULL || !known_to_conflict(db, jobs, count)) {
        put_group(db, jobs, count);
        note_known(db, jobs, count);
    }
}

static void run(struct mongo *db, struct job **jobs, size_t count)
{
    struct ng_batch *batch = jobs[0]->batch;
    if (jobs[0]->poisoned) {
        jobs[0]->rc = refuse(batch, NG_ECONFLICT,
                             "this change depends on a change that could not be stored");
        batch->failed_put = 0;
    } else if (batch->put_count > 1) {
        intent_commit(db, jobs[0]);
    } else if (batch->put_count == 1) {
        run_puts(db, jobs, count);
    } else if (batch->answer != NULL) {
        answer_only(db, jobs[0]);
    }
    atomic_fetch_add(&db->stat_batches, count);
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->rc != NG_OK && jobs[i]->rc != NG_ECONFLICT &&
            jobs[i]->rc != NG_EKEYREUSED) {
            atomic_fetch_add(&db->stat_failures, 1);
        }
    }
}

/* Called with the lock held. Marks all changes based on a failed change as failing, too. */
static void poison_dependents(struct queue *queue, const struct job *job)
{
    for (size_t i = 0; i < job->put_count; i++) {
        struct lane *lane = &queue->lanes[job->puts[i].lane];
        if (job->puts[i].ticket != 0) {
            lane->failed[lane->failed_at++ % LANE_FAILED] = job->puts[i].ticket;
        }
    }
    for (size_t i = 0; i < job->node_count; i++) {
        for (struct lane_node *node = job->nodes[i].next; node != NULL; node = node->next) {
            for (size_t at = 0; at < node->job->put_count * job->put_count; at++) {
                uint64_t base = node->job->puts[at / job->put_count].base_ticket;
                if (base != 0 && base == job->puts[at % job->put_count].ticket) {
                    node->job->poisoned = true;
                }
            }
        }
    }
}

/* Leaves the lanes only after done(): until then changes based on these may be queued. */
static void finish(struct mongo *db, struct job **jobs, size_t count)
{
    struct queue *queue = &db->queue;
    for (size_t i = 0; i < count; i++) {
        jobs[i]->done(jobs[i]->user, jobs[i]->batch, jobs[i]->rc);
    }
    lock_take(&queue->lock);
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->rc != NG_OK) {
            poison_dependents(queue, jobs[i]);
        }
        leave_lanes(queue, jobs[i]);
        forget(queue, jobs[i]);
    }
    lock_release(&queue->lock);
    for (size_t i = 0; i < count; i++) {
        job_free(jobs[i]);
    }
}

static void *writer_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-writer");
    struct mongo *db = user;
    struct queue *queue = &db->queue;
    struct job *jobs[GROUP_MAX];
    lock_take(&queue->lock);
    while (queue->ready_first != NULL || queue->all_first != NULL || !queue->closing) {
        if (queue->ready_first == NULL) {
            lock_wait(&queue->moved, &queue->lock);
            continue;
        }
        size_t count = take_ready(queue, jobs);
        lock_release(&queue->lock);
        run(db, jobs, count);
        finish(db, jobs, count);
        lock_take(&queue->lock);
        if (queue->closing && queue->all_first == NULL) {
            pthread_cond_broadcast(&queue->moved);
        }
    }
    lock_release(&queue->lock);
    return NULL;
}

int queue_open(struct mongo *db)
{
    struct queue *queue = &db->queue;
    lock_init(&queue->lock, LOCK_MONGO_QUEUE);
    lock_cond_init(&queue->moved);
    for (size_t i = 0; i < WRITERS; i++) {
        if (pthread_create(&queue->threads[i], NULL, writer_main, db) != 0) {
            queue_close(db);
            return NG_EINTERNAL;
        }
        queue->thread_count++;
    }
    return NG_OK;
}

void queue_close(struct mongo *db)
{
    struct queue *queue = &db->queue;
    lock_take(&queue->lock);
    queue->closing = true;
    pthread_cond_broadcast(&queue->moved);
    lock_release(&queue->lock);
    for (size_t i = 0; i < queue->thread_count; i++) {
        pthread_join(queue->threads[i], NULL);
    }
    lock_done(&queue->lock);
    pthread_cond_destroy(&queue->moved);
}
