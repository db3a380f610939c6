/* SPDX-License-Identifier: MIT */
/* walk.c - visits the documents of a collection in the order of their _id, a page at a time, so
 * that no client is held while one is worked on. */
#include "server.h"

#define PAGE_DOCS 100
#define PAGE_BYTES ((size_t)8 * 1024 * 1024)

/* The page after the last document of the former one. */
static int next_page(const struct walk *walk, struct docs *page, struct fault *fault)
{
    bson_t *filter = bson_new();
    bson_t *opts = bson_of("sort:{_id:1}, limit:l", (int64_t)PAGE_DOCS);
    bson_iter_t last;
    if (walk->fields != NULL) {
        BSON_APPEND_DOCUMENT(opts, "projection", walk->fields);
    }
    if (walk->filter != NULL) {
        (void)bson_concat(filter, walk->filter);
    }
    if (page->count > 0 && bson_iter_init_find(&last, page->list[page->count - 1], "_id")) {
        /* The filter may name _id itself. */
        bson_add(filter, walk->filter != NULL ? "$and:[{_id:{$gt:V}}]" : "_id:{$gt:V}",
                 bson_iter_value(&last));
    }
    docs_clear(page);
    (void)op_find(walk->db, walk->session, walk->collection, filter, opts, docs_keep, page,
                  fault);
    return int_min(fault->rc, page->rc);
}

int walk_documents(const struct walk *walk, struct fault *fault)
{
    struct docs page = {.most = PAGE_DOCS, .bytes_most = PAGE_BYTES};
    int rc = NG_OK;
    do {
        rc = next_page(walk, &page, fault);
        for (size_t i = 0; i < page.count && rc == NG_OK; i++) {
            rc = walk->each(walk->user, page.list[i], fault);
        }
        if (rc == NG_OK && walk->call != NULL && walk->call->host->cancelled(walk->call)) {
            rc = NG_ECANCELLED;
        }
    } while (rc == NG_OK && page.is_full);
    docs_done(&page);
    bson_destroy(walk->filter);
    bson_destroy(walk->fields);
    return int_min(rc, NG_OK);
}
