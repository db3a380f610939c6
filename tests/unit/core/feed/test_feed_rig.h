/* SPDX-License-Identifier: MIT */
/* test_feed_rig.h - a gateway with a feed of its own, and readers of it.
 */
#ifndef NOTEGATE_TEST_FEED_RIG_H
#define NOTEGATE_TEST_FEED_RIG_H

#include "harness.h"

#include <pthread.h>

#include "core/feed/feed_types.h"

struct bench {
    struct harness harness;
    struct gateway gateway; /* the harness's, with another store and feed */
    struct ng_documents backend;
    const struct ng_documents *inner;
    void *db;
};

/* How the store reads: as ever, with failures, or not just now. */
struct reading {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int fail;   /* of the next reads */
    bool hold;  /* reads wait until it is false */
    int inside; /* reads that are under way */
    const struct ng_documents *inner;
    void *db;
};

extern struct reading reading;
void reading_set(int fail, bool hold);
extern const struct ng_collection things;
void bench_open_as(struct bench *bench, size_t backlog, uint32_t flags);
void bench_open(struct bench *bench, size_t backlog);
void bench_close(struct bench *bench);

/* A change to make. */
struct put {
    const char *collection, *space, *id;
    size_t data_bytes; /* of the event's data; 0: none */
};

void put_as(struct bench *bench, const struct put *put);
void put_thing(struct bench *bench, const char *id);
/* Each of its own document, so that each is a change. */
void put_things(struct bench *bench, const char *prefix, unsigned count);

struct reader {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool woken;
    unsigned wakes;
    struct feed_reader *feed;
};

extern const struct feed_filter everything;
int reader_try(struct bench *bench, struct reader *reader, const struct feed_filter *filter,
               uint64_t since);
void reader_open(struct bench *bench, struct reader *reader, const struct feed_filter *filter,
                 uint64_t since);
void reader_close(struct reader *reader);
/* The next event, waited for. */
int reader_next(struct reader *reader, const struct ng_event **ret);
uint64_t expect_event(struct reader *reader, const char *id);
void expect_things(struct reader *reader, const char *prefix, unsigned from, unsigned count);
void expect_nothing(struct reader *reader);
/* Until the feed's thread has shown the readers all there is. */
void wait_told(struct bench *bench);

#endif
