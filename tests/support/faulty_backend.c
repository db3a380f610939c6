/* SPDX-License-Identifier: MIT */
/* faulty_backend.c - passes every call on, but for the one that is to fail. */
#include "faulty_backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct faulty {
    const struct ng_documents *inner;
    void *db;
    pthread_mutex_t lock;
    enum fault fault;
    unsigned after;
};

void *faulty_new(const struct ng_documents *inner, void *db)
{
    struct faulty *faulty = calloc(1, sizeof(*faulty));
    if (faulty != NULL) {
        faulty->inner = inner;
        faulty->db = db;
        pthread_mutex_init(&faulty->lock, NULL);
    }
    return faulty;
}

void faulty_arm(void *self, enum fault fault, unsigned after)
{
    struct faulty *faulty = self;
    pthread_mutex_lock(&faulty->lock);
    faulty->fault = fault;
    faulty->after = after;
    pthread_mutex_unlock(&faulty->lock);
}

static bool strikes(struct faulty *faulty, enum fault fault)
{
    bool strike = false;
    pthread_mutex_lock(&faulty->lock);
    if (faulty->fault == fault && faulty->after-- == 0) {
        strike = true;
        faulty->fault = FAULT_NONE;
    }
    pthread_mutex_unlock(&faulty->lock);
    return strike;
}

static int fails(struct ng_call *call)
{
    return ng_fail(call, NG_EUNAVAILABLE, "a fault was injected");
}

static void faulty_close(void *self)
{
    struct faulty *faulty = self;
    if (faulty != NULL) {
        faulty->inner->close(faulty->db);
        pthread_mutex_destroy(&faulty->lock);
        free(faulty);
    }
}

static int faulty_declare(void *self, struct ng_call *call,
                          const struct ng_collection *collection)
{
    struct faulty *faulty = self;
    return faulty->inner->declare(faulty->db, call, collection);
}

static int faulty_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    struct faulty *faulty = self;
    if (strikes(faulty, FAULT_BUSY)) {
        (void)snprintf(batch->error, sizeof(batch->error), "a fault was injected");
        return NG_EBUSY;
    }
    if (strikes(faulty, FAULT_COMMIT)) {
        (void)snprintf(batch->error, sizeof(batch->error), "a fault was injected");
        done(user, batch, NG_EUNAVAILABLE);
        return NG_OK;
    }
    return faulty->inner->commit(faulty->db, batch, done, user);
}

static int faulty_get(void *self, struct ng_call *call, const struct ng_key *key,
                      uint64_t revision, ng_row_fn *row, void *user)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_GET)
               ? fails(call)
               : faulty->inner->get(faulty->db, call, key, revision, row, user);
}

static int faulty_query(void *self, struct ng_call *call, const struct ng_query *query,
                        ng_row_fn *row, void *user, uint64_t *ret_total)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_QUERY)
               ? fails(call)
               : faulty->inner->query(faulty->db, call, query, row, user, ret_total);
}

static int faulty_history(void *self, struct ng_call *call, const struct ng_key *key,
                          const struct ng_range *range, ng_row_fn *row, void *user)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_HISTORY)
               ? fails(call)
               : faulty->inner->history(faulty->db, call, key, range, row, user);
}

static int faulty_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                          ng_event_fn *event, void *user)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_CHANGES)
               ? fails(call)
               : faulty->inner->changes(faulty->db, call, since, limit, event, user);
}

static int faulty_answer(void *self, struct ng_call *call, struct ng_str scope,
                         struct ng_answer *ret)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_ANSWER) ? fails(call)
                                         : faulty->inner->answer(faulty->db, call, scope, ret);
}

static int faulty_search(void *self, struct ng_call *call, const struct ng_search *search,
                         ng_row_fn *row, void *user, uint64_t *ret_total)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_SEARCH)
               ? fails(call)
               : faulty->inner->search(faulty->db, call, search, row, user, ret_total);
}

static int faulty_health(void *self, struct ng_call *call)
{
    struct faulty *faulty = self;
    return faulty->inner->health(faulty->db, call);
}

static void faulty_stats(void *self, void (*stat)(void *user, const char *name, double value),
                         void *user)
{
    struct faulty *faulty = self;
    faulty->inner->stats(faulty->db, stat, user);
}

static int faulty_maintain(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                           bool (*pinned)(void *user, const struct ng_key *key,
                                          uint64_t revision),
                           void *user)
{
    struct faulty *faulty = self;
    return faulty->inner->maintain(faulty->db, call, now_ms, keep_ms, pinned, user);
}

static int faulty_export(void *self, struct ng_call *call, ng_record_fn *record, void *user)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_EXPORT)
               ? fails(call)
               : faulty->inner->export_all(faulty->db, call, record, user);
}

static int faulty_import_begin(void *self, struct ng_call *call)
{
    struct faulty *faulty = self;
    return faulty->inner->import_begin(faulty->db, call);
}

static int faulty_import_record(void *self, struct ng_call *call,
                                const struct ng_record *record)
{
    struct faulty *faulty = self;
    return strikes(faulty, FAULT_IMPORT)
               ? fails(call)
               : faulty->inner->import_record(faulty->db, call, record);
}

static int faulty_import_end(void *self, struct ng_call *call, bool keep)
{
    struct faulty *faulty = self;
    return faulty->inner->import_end(faulty->db, call, keep);
}

static int faulty_verify(void *self, struct ng_call *call, ng_finding_fn *finding, void *user)
{
    struct faulty *faulty = self;
    return faulty->inner->verify(faulty->db, call, finding, user);
}

static uint64_t faulty_last_seq(void *self)
{
    struct faulty *faulty = self;
    return faulty->inner->last_seq(faulty->db);
}

static const char *faulty_engine(void *self, const struct ng_search *search)
{
    struct faulty *faulty = self;
    return faulty->inner->engine != NULL ? faulty->inner->engine(faulty->db, search) : "fts5";
}

static int faulty_settle(void *db, struct ng_call *call, uint32_t flags, int64_t wait_ms)
{
    struct faulty *faulty = db;
    return faulty->inner->settle == NULL
               ? NG_OK
               : faulty->inner->settle(faulty->db, call, flags, wait_ms);
}

const struct ng_documents faulty_documents = {
    .name = "faulty",
    .version = "1.0.0",
    .close = faulty_close,
    .declare = faulty_declare,
    .commit = faulty_commit,
    .get = faulty_get,
    .query = faulty_query,
    .history = faulty_history,
    .changes = faulty_changes,
    .answer = faulty_answer,
    .search = faulty_search,
    .health = faulty_health,
    .stats = faulty_stats,
    .maintain = faulty_maintain,
    .export_all = faulty_export,
    .import_begin = faulty_import_begin,
    .import_record = faulty_import_record,
    .import_end = faulty_import_end,
    .verify = faulty_verify,
    .last_seq = faulty_last_seq,
    .engine = faulty_engine,
    .settle = faulty_settle,
};
