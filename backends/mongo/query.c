/* SPDX-License-Identifier: MIT */
/* query.c - rows by conditions, in order. Rows are held in pages, because callbacks may read
 * again and must not find our client in use. */
#include "db.h"

#define PAGE_ROWS 512
#define PAGE_BYTES ((size_t)16 * 1024 * 1024)

struct page {
    struct ng_call *call;
    bson_t *docs[PAGE_ROWS];
    size_t count, bytes;
    bool full, cancelled;
};

static int keep_row(void *user, const bson_t *doc)
{
    struct page *page = user;
    page->docs[page->count++] = bson_copy(doc);
    page->bytes += doc->len;
    page->full = page->count == PAGE_ROWS || page->bytes >= PAGE_BYTES;
    page->cancelled = page->call->host->cancelled(page->call);
    return page->full || page->cancelled;
}

static void page_clear(struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        bson_destroy(page->docs[i]);
    }
    page->count = 0;
    page->bytes = 0;
    page->full = false;
}

int report_rows(const struct db_collection *collection, bson_t *const *docs, size_t count,
                bool with_text, ng_row_fn *row, void *user, bool *ret_stop)
{
    struct bytes json = {0};
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK && !*ret_stop; i++) {
        struct ng_doc doc;
        rc = body_row(collection, docs[i], with_text, &json, &doc);
        if (rc == NG_OK) {
            *ret_stop = row(user, &doc) != 0;
        }
    }
    bytes_done(&json);
    return rc;
}

static void query_opts(const struct db_collection *collection, const struct ng_query *query,
                       bson_t *ret)
{
    bson_t part;
    const char *path = sort_path(collection, query->sort);
    int32_t way = 1;
    if (query->descending) {
        way = -1;
    }
    bson_init(ret);
    BSON_APPEND_DOCUMENT_BEGIN(ret, "sort", &part);
    BSON_APPEND_INT32(&part, path, way);
    if (strcmp(path, "notegate.created_seq") != 0) {
        BSON_APPEND_INT32(&part, "notegate.created_seq", way);
    }
    (void)bson_append_document_end(ret, &part);
    BSON_APPEND_DOCUMENT_BEGIN(ret, "projection", &part);
    BSON_APPEND_INT32(&part, "outbox", 0);
    if (!query->with_text) {
        BSON_APPEND_INT32(&part, collection->text_member, 0);
    }
    (void)bson_append_document_end(ret, &part);
}

void add_time_limit(bson_t *opts, const struct mongo *db, struct ng_call *call)
{
    int64_t left = call->host->remaining_ms(call);
    if (left <= 0 || left > db->timeout_ms) {
        left = db->timeout_ms;
    }
    BSON_APPEND_INT64(opts, "maxTimeMS", left);
}

/* Applies a committed change of several documents before showing it: locked rows are read
 * again. */
static int resolve_rows(struct mongo *db, const struct db_collection *collection,
                        struct page *page, struct fault *fault)
{
    for (size_t i = 0; i < page->count; i++) {
        if (member_str(page->docs[i], "notegate.intent").data == NULL) {
            continue;
        }
        if (intent_finish(db, page->docs[i], fault)) {
            bson_t *again = NULL;
            int rc = doc_load(db, collection, member_str(page->docs[i], "_id"), &again, fault);
            if (rc == NG_OK && !member_bool(again, "notegate.deleted")) {
                bson_destroy(page->docs[i]);
                page->docs[i] = again;
            } else if (again != NULL) {
                bson_destroy(again);
            }
        }
    }
    return NG_OK;
}

static int fetch(struct mongo *db, const struct db_collection *collection,
                 const struct ng_query *query, const bson_t *filter, uint64_t offset,
                 uint64_t limit, struct page *page)
{
    struct fault fault;
    bson_t opts;
    query_opts(collection, query, &opts);
    BSON_APPEND_INT64(&opts, "skip", (int64_t)offset);
    BSON_APPEND_INT64(&opts, "limit", (int64_t)limit);
    BSON_APPEND_BOOL(&opts, "allowDiskUse", true);
    add_time_limit(&opts, db, page->call);
    bool good = op_find(db, collection->name, filter, &opts, keep_row, page, &fault);
    bson_destroy(&opts);
    if (page->cancelled) {
        return ng_fail(page->call, NG_ECANCELLED, "the query was cancelled");
    }
    if (good) {
        return resolve_rows(db, collection, page, &fault);
    }
    return fault_fail(page->call, &fault, "the query");
}

static int query_pages(struct mongo *db, struct ng_call *call,
                       const struct db_collection *collection, const struct ng_query *query,
                       const bson_t *filter, ng_row_fn *row, void *user)
{
    uint64_t given = 0;
    bool stop = false;
    int rc = NG_OK;
    struct page *page = calloc(1, sizeof(*page));
    if (page == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the query");
    }
    page->call = call;
    while (rc == NG_OK && !stop && given < query->limit) {
        rc = fetch(db, collection, query, filter, query->offset + given, query->limit - given,
                   page);
        if (rc == NG_OK) {
            rc = report_rows(collection, page->docs, page->count, query->with_text, row, user,
                             &stop);
            given += page->count;
            stop = stop || !page->full;
        }
        page_clear(page);
    }
    page_clear(page);
    free(page);
    return rc;
}

int query_run(void *self, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total)
{
    struct mongo *db = self;
    struct fault fault;
    bson_t filter;
    uint64_t total = 0;
    const struct db_collection *collection = collection_find(db, query->collection);
    if (collection == NULL) {
        return ng_fail(call, NG_EINVAL, "the collection was not declared");
    }
    int rc = terms_check(call, collection, query);
    if (rc == NG_OK && call->host->cancelled(call)) {
        rc = ng_fail(call, NG_ECANCELLED, "the query was cancelled");
    }
    if (rc != NG_OK) {
        return rc;
    }
    bool any = terms_filter(collection, query, &filter);
    if (any && query->limit > 0 && query->offset <= INT32_MAX) {
        rc = query_pages(db, call, collection, query, &filter, row, user);
    }
    if (rc == NG_OK && query->want_total && ret_total != NULL) {
        if (any && !op_count(db, collection->name, &filter, &total, &fault)) {
            rc = fault_fail(call, &fault, "counting");
        }
        *ret_total = total;
    }
    bson_destroy(&filter);
    return rc;
}
