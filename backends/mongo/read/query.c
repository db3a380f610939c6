/* SPDX-License-Identifier: MIT */
/* query.c - rows by conditions, in order. Rows are held in pages, because callbacks may read
 * again and must not find our client in use. */
#include "read.h"

#define PAGE_ROWS 512
#define PAGE_BYTES ((size_t)16 * 1024 * 1024)

static int report_rows(const struct db_collection *collection, const struct docs *page,
                       bool with_text, ng_row_fn *row, void *user, bool *ret_stop)
{
    struct bytes json = {0};
    int rc = NG_OK;
    for (size_t i = 0; i < page->count && rc == NG_OK && !*ret_stop; i++) {
        struct ng_doc doc;
        rc = body_row(collection, page->list[i], with_text, &json, &doc);
        if (rc == NG_OK) {
            *ret_stop = row(user, &doc) != 0;
        }
    }
    bytes_done(&json);
    return rc;
}

void add_sort(bson_t *opts, const struct db_collection *collection,
              const struct ng_query *query)
{
    const char *path = sort_path(collection, query->sort);
    int way = 1 - 2 * query->descending;
    if (strcmp(path, CREATED_SEQ) == 0) {
        bson_add(opts, "sort:{%:i}", path, way);
    } else {
        bson_add(opts, "sort:{%:i, %:i}", path, way, CREATED_SEQ, way);
    }
}

void add_row_fields(bson_t *opts, const struct db_collection *collection, bool with_text)
{
    bson_t *fields = bson_of("outbox:0, %:0, %:0", WORDS, TERMS);
    if (!with_text) {
        bson_add(fields, "%:0", collection->text_member);
    }
    BSON_APPEND_DOCUMENT(opts, "projection", fields);
    bson_destroy(fields);
}

void add_time_limit(bson_t *opts, const struct mongo *db, struct ng_call *call)
{
    int64_t left = call->host->remaining_ms(call);
    if (left <= 0 || left > db->timeout_ms) {
        left = db->timeout_ms;
    }
    BSON_APPEND_INT64(opts, "maxTimeMS", left);
}

struct lookup {
    struct mongo *db;
    struct ng_call *call;
    const struct db_collection *collection;
    const struct ng_query *query;
    bson_t filter;
    uint64_t total;
    uint64_t moment; /* of all pages, and of other queries of the call that name it */
};

/* One page, and with the first one the total. */
static bool fetch_in_session(struct session *session, struct lookup *lookup, uint64_t given,
                             struct docs *page, struct fault *fault)
{
    const struct ng_query *query = lookup->query;
    const char *name = lookup->collection->name;
    bool good = true;
    if (query->want_total && given == 0) {
        good = op_count(lookup->db, session, name, &lookup->filter, &lookup->total, fault);
    }
    if (!good || query->limit == 0 || query->offset > INT32_MAX) {
        return good;
    }
    bson_t *opts = bson_of("skip:l, limit:l, allowDiskUse:T", (int64_t)(query->offset + given),
                           (int64_t)(query->limit - given));
    add_sort(opts, lookup->collection, query);
    add_row_fields(opts, lookup->collection, query->with_text);
    add_time_limit(opts, lookup->db, lookup->call);
    return op_find(lookup->db, session, name, bson_copy(&lookup->filter), opts, docs_keep, page,
                   fault);
}

static bool query_has_moment(const struct ng_query *query)
{
    return NG_HAS(query, moment) && query->moment != NULL;
}

static int fetch(struct lookup *lookup, uint64_t given, struct docs *page)
{
    struct fault fault;
    struct session session;
    uint64_t moment = lookup->moment;
    uint64_t doubts = atomic_load(&lookup->db->doubts);
    do {
        docs_clear(page);
        if (session_begin(lookup->db, SESSION_SNAPSHOT, &session, &fault)) {
            session.moment = moment;
            (void)fetch_in_session(&session, lookup, given, page, &fault);
            lookup->moment = session.moment;
            session_end(&session);
        }
    } while (fault.rc == NG_OK && moment == 0 && doubts_grew(lookup->db, &doubts));
    if (lookup->call->host->cancelled(lookup->call)) {
        return ng_fail(lookup->call, NG_ECANCELLED, "the query was cancelled");
    }
    return fault_end(lookup->call, int_min(fault.rc, page->rc), &fault, "the query");
}

static int query_pages(struct lookup *lookup, ng_row_fn *row, void *user)
{
    const struct ng_query *query = lookup->query;
    struct docs page = {.most = PAGE_ROWS, .bytes_most = PAGE_BYTES};
    uint64_t given = 0;
    bool stop = false;
    int rc = NG_OK;
    do {
        rc = fetch(lookup, given, &page);
        if (rc == NG_OK) {
            rc = report_rows(lookup->collection, &page, query->with_text, row, user, &stop);
        }
        given += page.count;
    } while (rc == NG_OK && !stop && page.is_full && given < query->limit);
    docs_done(&page);
    return rc;
}

int query_run(void *self, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total)
{
    struct lookup lookup = {.db = self, .call = call, .query = query};
    lookup.collection = collection_find(lookup.db, query->collection);
    if (lookup.collection == NULL) {
        return ng_fail(call, NG_EINVAL, "the collection was not declared");
    }
    int rc = terms_check(call, lookup.collection, query);
    if (rc == NG_OK && call->host->cancelled(call)) {
        rc = ng_fail(call, NG_ECANCELLED, "the query was cancelled");
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (query_has_moment(query)) {
        lookup.moment = *query->moment;
    }
    if (terms_filter(lookup.collection, query, &lookup.filter)) {
        rc = query_pages(&lookup, row, user);
    }
    if (rc == NG_OK && query->want_total && ret_total != NULL) {
        *ret_total = lookup.total;
    }
    if (query_has_moment(query)) {
        *query->moment = lookup.moment;
    }
    bson_destroy(&lookup.filter);
    return rc;
}
