/* SPDX-License-Identifier: MIT */
/* store_results.c - kept results: found by the bytes of their query, the least lately asked
 * ones dropped first. */
#include "store_results.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/str.h"
#include "core/json/json.h"

/* Rows of one result. */
#define RESULT_ROWS_MAX 1000

struct known_query {
    struct hash_link link;
    TAILQ_ENTRY(known_query) order;
    uint64_t changes;            /* of its place, when it was asked */
    bool too_large;              /* its result was, at that number */
    struct store_result *result; /* NULL: it was asked once */
    size_t bytes;
    size_t key_len;
    char key[];
};

/* ---- results ---- */

static void result_free(struct store_result *result)
{
    arena_done(&result->arena);
    free(result->rows);
    free(result);
}

void result_unref(void *object)
{
    struct store_result *result = object;
    if (result != NULL &&
        atomic_fetch_sub_explicit(&result->refs, 1, memory_order_acq_rel) == 1) {
        result_free(result);
    }
}

static struct store_result *result_new(void)
{
    struct store_result *result = alloc_zeroed(1, sizeof(*result));
    if (result != NULL) {
        atomic_init(&result->refs, 1);
        arena_init(&result->arena, STORE_RESULT_BYTES_MAX);
    }
    return result;
}

/* Copies what the text points to. Absent stays absent. */
static void keep_text(struct store_result *result, struct ng_str *inout_text)
{
    if (inout_text->data != NULL) {
        *inout_text = arena_copy(&result->arena, *inout_text);
    }
}

static void keep_row(struct store_result *result, const struct ng_doc *row)
{
    result->failed =
        result->failed || array_reserve((void **)&result->rows, &result->cap, result->count + 1,
                                        sizeof(*result->rows), RESULT_ROWS_MAX) != NG_OK;
    if (result->failed) {
        return;
    }
    struct ng_doc *doc = &result->rows[result->count];
    *doc = *row;
    keep_text(result, &doc->key.collection);
    keep_text(result, &doc->key.space);
    keep_text(result, &doc->key.id);
    keep_text(result, &doc->json);
    keep_text(result, &doc->text);
    keep_text(result, &doc->author);
    keep_text(result, &doc->action);
    keep_text(result, &doc->snippet);
    struct json_error error;
    if (result->arena.failed || json_parse_kept(&result->arena, doc->json, JSON_DEPTH_DEFAULT,
                                                &doc->body, &error) != NG_OK) {
        result->failed = true;
        return;
    }
    result->count++;
}

int results_row(void *user, const struct ng_doc *row)
{
    struct store_ask *ask = user;
    keep_row(ask->collect, row);
    int rc = ask->row(ask->user, row);
    ask->stopped = rc != 0;
    return rc;
}

void results_give(const struct store_result *result, ng_row_fn *row, void *user)
{
    for (size_t i = 0; i < result->count; i++) {
        if (row(user, &result->rows[i]) != 0) {
            return;
        }
    }
}

/* ---- the bytes of a query ---- */

/* key_len grows beyond the room, too: make_key() checks it. */
static void add_bytes(struct store_ask *ask, const void *data, size_t len)
{
    if (ask->key_len + len <= sizeof(ask->key)) {
        memcpy(ask->key + ask->key_len, data, len);
    }
    ask->key_len += len;
}

static void add_number(struct store_ask *ask, uint64_t number)
{
    add_bytes(ask, &number, sizeof(number));
}

static void add_text(struct store_ask *ask, struct ng_str text)
{
    add_number(ask, text.data == NULL ? UINT64_MAX : text.len);
    if (text.len > 0) {
        add_bytes(ask, text.data, text.len);
    }
}

static void add_texts(struct store_ask *ask, const struct ng_str *texts, size_t count)
{
    add_number(ask, count);
    for (size_t i = 0; i < count; i++) {
        add_text(ask, texts[i]);
    }
}

static void add_term(struct store_ask *ask, const struct ng_term *term)
{
    add_text(ask, term->field);
    add_number(ask, (uint64_t)term->op);
    add_text(ask, term->value);
    add_bytes(ask, &term->number, sizeof(term->number));
    if (term->op == NG_TERM_IN) {
        add_texts(ask, term->values, term->value_count);
    }
}

static void add_query(struct store_ask *ask, const struct ng_query *query)
{
    add_text(ask, query->collection);
    add_text(ask, query->space);
    if (query->space.data == NULL) {
        add_texts(ask, query->spaces, query->space_count);
    }
    add_number(ask, query->term_count);
    for (size_t i = 0; i < query->term_count; i++) {
        add_term(ask, &query->terms[i]);
    }
    add_text(ask, query->sort);
    add_number(ask, query->descending);
    add_number(ask, query->with_text);
    add_number(ask, query->want_total);
    add_number(ask, query->offset);
    add_number(ask, query->limit);
}

/* False: the result of such a query is never kept. */
static bool make_key(struct store_ask *ask, const struct ng_query *query,
                     const struct ng_search *search)
{
    ask->key_len = 0;
    bool of_a_moment = query->moment != NULL && *query->moment != 0;
    if (query->with_deleted || of_a_moment) {
        return false;
    }
    add_query(ask, query);
    if (search != NULL) {
        add_text(ask, search->text);
        add_number(ask, search->snippet_chars);
    }
    if (ask->key_len > sizeof(ask->key)) {
        ask->key_len = 0;
        return false;
    }
    ask->hash = str_hash(str_make(ask->key, ask->key_len));
    return true;
}

/* ---- places ---- */

static struct store_place *place_of(struct store_results *results, struct ng_str collection,
                                    struct ng_str space)
{
    uint64_t mark = str_hash(collection);
    if (space.data != NULL) {
        mark ^= str_hash(space) * 3;
    }
    size_t at = (size_t)(mark % STORE_PLACES);
    return &results->places[at];
}

static struct store_place *place_of_all(struct store_results *results, struct ng_str collection)
{
    return place_of(results, collection, str_make(NULL, 0));
}

static void place_begins(struct store_place *place)
{
    /* In this order: see is_quiet(). */
    (void)atomic_fetch_add(&place->under_way, 1);
    (void)atomic_fetch_add(&place->changes, 1);
}

void results_change_begins(struct store_results *results, const struct ng_key *key)
{
    place_begins(place_of(results, key->collection, key->space));
    place_begins(place_of_all(results, key->collection));
}

void results_change_ended(struct store_results *results, const struct ng_key *key)
{
    (void)atomic_fetch_sub(&place_of(results, key->collection, key->space)->under_way, 1);
    (void)atomic_fetch_sub(&place_of_all(results, key->collection)->under_way, 1);
}

/* No commit was under way when its changes were counted. */
static bool is_quiet(struct store_ask *ask)
{
    ask->changes = atomic_load(&ask->place->changes);
    return atomic_load(&ask->place->under_way) == 0;
}

/* ---- the table ---- */

static bool is_known(const struct hash_link *link, const void *key)
{
    const struct known_query *known = HASH_ITEM(link, const struct known_query, link);
    const struct store_ask *ask = key;
    return known->key_len == ask->key_len && memcmp(known->key, ask->key, ask->key_len) == 0;
}

/* With the lock, as the others below. */
static struct known_query *look_up(struct store_results *results, const struct store_ask *ask)
{
    struct hash_link *link = hash_table_find(&results->table, ask->hash, is_known, ask);
    if (link == NULL) {
        return NULL;
    }
    return HASH_ITEM(link, struct known_query, link);
}

static void set_result(struct store_results *results, struct known_query *known,
                       struct store_result *result, size_t bytes)
{
    result_unref(known->result);
    known->result = result;
    results->bytes += bytes - known->bytes;
    known->bytes = bytes;
}

static void drop(struct store_results *results, struct known_query *known)
{
    set_result(results, known, NULL, 0);
    hash_table_remove(&results->table, &known->link);
    TAILQ_REMOVE(&results->order, known, order);
    results->count--;
    free(known);
}

static void drop_oldest(struct store_results *results)
{
    while (results->count > STORE_RESULTS_MAX || results->bytes > STORE_RESULTS_BYTES_MAX) {
        drop(results, TAILQ_FIRST(&results->order));
    }
}

static struct known_query *add_known(struct store_results *results, const struct store_ask *ask)
{
    struct known_query *known = alloc_bytes(sizeof(*known) + ask->key_len);
    if (known == NULL) {
        return NULL;
    }
    *known = (struct known_query){.key_len = ask->key_len};
    memcpy(known->key, ask->key, ask->key_len);
    if (hash_table_add(&results->table, &known->link, ask->hash) != NG_OK) {
        free(known);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&results->order, known, order);
    results->count++;
    return known;
}

/* Notes that the query was asked. True: a second time at this number of changes. */
static bool note(struct store_results *results, struct known_query *known,
                 const struct store_ask *ask)
{
    if (known == NULL) {
        known = add_known(results, ask);
    } else if (known->changes == ask->changes) {
        return !known->too_large;
    }
    if (known != NULL) {
        set_result(results, known, NULL, 0);
        known->changes = ask->changes;
        known->too_large = false;
        drop_oldest(results);
    }
    return false;
}

bool results_find(struct store_results *results, const struct ng_query *query,
                  const struct ng_search *search, bool reads, struct store_ask *ask,
                  struct store_result **ret)
{
    bool again = false;
    *ret = NULL;
    ask->collect = NULL;
    ask->stopped = false;
    if (!make_key(ask, query, search)) {
        return false;
    }
    /* A rank depends on all spaces: words that are rare in all of them count more. */
    bool one_space = query->space.data != NULL && search == NULL;
    ask->place = one_space ? place_of(results, query->collection, query->space)
                           : place_of_all(results, query->collection);
    if (!is_quiet(ask)) {
        return false;
    }
    lock_take(&results->lock);
    struct known_query *known = look_up(results, ask);
    if (known != NULL) {
        TAILQ_REMOVE(&results->order, known, order);
        TAILQ_INSERT_TAIL(&results->order, known, order);
    }
    if (known != NULL && known->result != NULL && known->changes == ask->changes) {
        *ret = known->result;
        (void)atomic_fetch_add_explicit(&known->result->refs, 1, memory_order_relaxed);
    } else if (reads) {
        again = note(results, known, ask);
    }
    lock_release(&results->lock);
    if (again) {
        ask->collect = result_new();
    }
    return *ret != NULL;
}

void results_keep(struct store_results *results, struct store_ask *ask, uint64_t total,
                  bool at_least, bool good)
{
    struct store_result *result = ask->collect;
    ask->collect = NULL;
    if (result == NULL) {
        return;
    }
    result->total = total;
    result->at_least = at_least;
    if (good && !ask->stopped) {
        size_t bytes =
            sizeof(*result) + result->arena.used + result->cap * sizeof(*result->rows);
        lock_take(&results->lock);
        struct known_query *known = look_up(results, ask);
        bool same = known != NULL && known->changes == ask->changes;
        if (same && result->failed) {
            known->too_large = true;
        } else if (same) {
            set_result(results, known, result, bytes);
            drop_oldest(results);
            result = NULL;
        }
        lock_release(&results->lock);
    }
    result_unref(result);
}

void results_init(struct store_results *results)
{
    lock_init(&results->lock, LOCK_STORE_RESULTS);
    TAILQ_INIT(&results->order);
}

void results_done(struct store_results *results)
{
    while (!TAILQ_EMPTY(&results->order)) {
        drop(results, TAILQ_FIRST(&results->order));
    }
    hash_table_done(&results->table);
    lock_done(&results->lock);
}
