/* SPDX-License-Identifier: MIT */
/* commit.h - batches in order, each stored by one update or one transaction. */
#ifndef NOTEGATE_MONGO_COMMIT_H
#define NOTEGATE_MONGO_COMMIT_H

#include <sys/queue.h>

#include "../index/indexes.h"

/* ---- queue.c ---- */

struct lane_node {
    STAILQ_ENTRY(lane_node) next;
    struct job *job;
    size_t lane;
};

struct job {
    STAILQ_ENTRY(job) ready;
    struct ng_batch *batch;
    ng_done_fn *done;
    void *user;
    size_t bytes;
    int rc;
    bool taken;
    size_t put_count;
    size_t waiting; /* lanes in which other jobs are before it */
    struct lane_node *nodes;
    size_t node_count;
    struct prepared puts[];
};

/* One update may store it together with others of its document. */
static inline bool job_is_plain(const struct job *job)
{
    const struct ng_batch *batch = job->batch;
    return batch->put_count == 1 && batch->answer == NULL &&
           batch->puts[0]->revision != batch->puts[0]->base_revision;
}

int queue_open(struct mongo *db);
void queue_close(struct mongo *db);
int queue_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user);
/* While the server does not answer: ends the batches that wait for a writer, as all of those
 * may be with changes that try until their calls end. */
void queue_shed(struct mongo *db);
void queue_stats(struct mongo *db, void (*stat)(void *user, const char *name, double value),
                 void *user);

/* ---- commit.c, put.c ---- */

/* Stores a job of any form, and the jobs that continue its only document. */
void commit_jobs(struct mongo *db, struct job **jobs, size_t count);
void batch_id(char ret[BATCH_ID_MAX]);
uint64_t stamp_next(struct mongo *db);

/* ---- answers.c ---- */

/* Stores the answer of a call. NG_EKEYREUSED: a valid one is stored. */
int answer_store(struct session *session, const struct ng_answer *answer, struct fault *fault);
/* After a conflict: NG_EKEYREUSED if a valid answer is stored, else NG_ECONFLICT. */
int answer_check(struct mongo *db, const struct ng_answer *answer, struct fault *fault);
int answer_get(void *self, struct ng_call *call, struct ng_str scope, struct ng_answer *ret);
/* Appends the stored form of an answer. */
void answer_doc(const struct ng_answer *answer, bson_t *ret);

/* ---- former.c ---- */

/* Finishes the changes that an older version of the gateway left unfinished. */
bool former_finish(struct session *session, struct fault *fault);

#endif
