/* SPDX-License-Identifier: MIT */
/*
 * store_results.h - results of queries and searches, kept until something they might show
 * changes. Only of stores that no other gateway writes to. Included by store*.c only.
 *
 * Each result is kept with the number of changes of its collection and space. A commit raises
 * the number before it is queued, and no result of a place is used while one is under way: so a
 * reader never sees less than another one has seen. A query is kept when it comes a second time
 * at one number: what is asked once, or changes before it is asked again, costs no memory.
 */
#ifndef NOTEGATE_CORE_STORE_RESULTS_H
#define NOTEGATE_CORE_STORE_RESULTS_H

#include <sys/queue.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/hash_table.h"
#include "core/base/lock.h"
#include "notegate/documents.h"

struct call;

/* Queries that are known, kept or asked once; the bytes of one result, and of all. */
#define STORE_RESULTS_MAX 512
#define STORE_RESULT_BYTES_MAX ((size_t)128 * 1024)
#define STORE_RESULTS_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* Bytes of a query; a longer one is not kept. */
#define STORE_QUERY_BYTES_MAX 1024
/* Places (collection and space) are counted by hash: two with one hash are one place. */
#define STORE_PLACES 1024

struct store_result {
    atomic_uint refs;
    struct arena arena; /* of the rows; parsed */
    struct ng_doc *rows;
    size_t count, cap;
    uint64_t total;
    bool at_least; /* see ng_search */
    bool failed;   /* it is too large, or there is no memory */
};

struct store_place {
    atomic_uint under_way; /* commits */
    atomic_uint_fast64_t changes;
};

struct store_results {
    struct lock lock;
    struct hash_table table;         /* of struct known_query */
    TAILQ_HEAD(, known_query) order; /* the one that was asked longest ago first */
    size_t count, bytes;
    struct store_place places[STORE_PLACES];
};

/* One query on its way to the backend, or to its kept result. */
struct store_ask {
    char key[STORE_QUERY_BYTES_MAX];
    size_t key_len; /* 0: its result is not kept */
    uint64_t hash;
    struct store_place *place;
    uint64_t changes;             /* of its place, before it is asked */
    struct store_result *collect; /* the result as it comes; NULL: it is not kept */
    ng_row_fn *row;               /* the rows go on to */
    void *user;
    bool stopped; /* by that function */
};

void results_init(struct store_results *results);
void results_done(struct store_results *results);

/* search NULL: a query. True: *ret is its result, with a reference. False: ask->collect may be
 * set, and results_row() then is the function for the rows. reads: the caller reads what is not
 * found; else it is not noted as asked. */
bool results_find(struct store_results *results, const struct ng_query *query,
                  const struct ng_search *search, bool reads, struct store_ask *ask,
                  struct store_result **ret);
/* With the ask as its user. */
int results_row(void *ask, const struct ng_doc *row);
/* Keeps the result that was collected if it is good, that is complete; else drops it. */
void results_keep(struct store_results *results, struct store_ask *ask, uint64_t total,
                  bool at_least, bool good);
/* Gives the rows until the function stops. They live as long as the result. */
void results_give(const struct store_result *result, ng_row_fn *row, void *user);
void result_unref(void *result);

/* Around each commit of a document of this place. */
void results_change_begins(struct store_results *results, const struct ng_key *key);
void results_change_ended(struct store_results *results, const struct ng_key *key);

#endif
