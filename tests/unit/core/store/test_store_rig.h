/* SPDX-License-Identifier: MIT */
/* test_store_rig.h - a store on a backend that holds its commits until the case lets them
 * go. */
#ifndef NOTEGATE_TEST_STORE_RIG_H
#define NOTEGATE_TEST_STORE_RIG_H

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/store/store_types.h"

#define HELD_MAX 64

/* The backend between the store and the real one. */
struct held {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    const struct ng_documents *inner;
    void *db;
    bool hold;
    bool refuse;
    unsigned fail_each; /* 0: none; each nth commit fails */
    atomic_uint commits;
    struct {
        struct ng_batch *batch;
        ng_done_fn *done;
        void *user;
    } batches[HELD_MAX];
    size_t count;
};

extern struct held held;

struct bench {
    struct harness harness;
    struct ng_documents backend;
    struct store *store;
};

struct store *bench_store(struct bench *bench, uint32_t flags);
void bench_open(struct bench *bench, uint32_t flags);
void bench_close(struct bench *bench);

/* A change that is under way. */
struct write {
    struct call *call;
    struct ng_change changes[3];
    size_t count;
    const char *text; /* NULL: no change, "-": delete, "!": fail, else what is appended */
    unsigned runs;
    void (*inside)(void); /* in the function's first run */
    bool done;
    int rc; /* of store_change */
};

struct ng_key key_of(const char *id);
void write_new(struct bench *bench, struct write *write, const char *id, const char *text);
/* As a run does: it holds the call until the change is on its way. */
void write_start(struct bench *bench, struct write *write);
/* The end of it; returns the revision, 0 where it failed. */
uint64_t write_end(struct write *write, int rc);
/* Both, with nothing in between. */
uint64_t change(struct bench *bench, const char *id, const char *text, int rc);

#endif
