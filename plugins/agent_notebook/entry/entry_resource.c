/* SPDX-License-Identifier: MIT */
/* entry_resource.c - entries as resources (notegate://SPACE/pages/ID ...): one kind for each
 * collection, with earlier versions. */
#include <string.h>

#include "entry.h"
#include "entry_tools.h"

/* Entries read at a time while a page of a listing is made. */
#define RESOURCE_PAGE 100
/* Ids of one completion: clients show a hundred. */
#define RESOURCE_COMPLETE_MAX 100

struct resource_page {
    struct ng_call *call;
    struct ng_listing *listing;
    uint64_t last_seq;
    uint32_t rows; /* of this query */
    bool full;
    int rc;
};

static const char *resource_mime(unsigned collection)
{
    if (collection == ENTRY_CODE) {
        return "text/plain";
    }
    return "text/markdown";
}

static int resource_row(void *user, const struct ng_doc *row)
{
    struct resource_page *page = user;
    struct ng_call *call = page->call;
    const struct ng_value *body = NULL;
    page->rows++;
    page->last_seq = row->created_seq;
    page->rc = entry_row_body(call, row, &body);
    if (page->rc != NG_OK) {
        return 1;
    }
    page->full =
        call->host->list_add(page->listing, row->key.id,
                             call->host->json_text(call->host->json_get(body, "title")),
                             call->host->json_text(call->host->json_get(body, "summary")),
                             resource_mime(entry_collection(row->key.collection)),
                             row->text_size, row->updated_ms) != NG_OK;
    return page->full;
}

/* In the order of creation, so that new entries come last. */
static int resource_list(struct ng_call *call, unsigned collection, struct ng_str space,
                         struct ng_listing *listing)
{
    struct resource_page page = {.call = call, .listing = listing};
    struct ng_str after = call->host->list_after(listing);
    struct ng_term later = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(entry_collections[collection]),
        .space = space,
        .terms = &later,
        .term_count = 1,
        .sort = later.field,
        .limit = RESOURCE_PAGE,
    };
    if (after.data != NULL) {
        struct ng_key key = {query.collection, space, after};
        const struct ng_doc *doc = NULL;
        int rc = call->host->get(call, &key, 0, &doc);
        if (rc != NG_OK || doc->revision == 0) {
            return rc; /* `after` never ended a page: no entries */
        }
        page.last_seq = doc->created_seq;
    }
    int rc = NG_OK;
    do {
        page.rows = 0;
        later.number = (double)page.last_seq;
        rc = call->host->query(call, &query, resource_row, &page, NULL);
        if (rc == NG_OK) {
            rc = page.rc;
        }
    } while (rc == NG_OK && page.rows == RESOURCE_PAGE && !page.full);
    return rc;
}

static int resource_complete(struct ng_call *call, unsigned collection, struct ng_str space,
                             struct ng_str prefix, struct ng_listing *listing)
{
    struct resource_page page = {.call = call, .listing = listing};
    struct ng_term begins = {.field = ng_str_of("id"), .op = NG_TERM_PREFIX, .value = prefix};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(entry_collections[collection]),
        .space = space,
        .terms = &begins,
        .term_count = prefix.len > 0 ? 1 : 0,
        .sort = begins.field,
        .limit = RESOURCE_COMPLETE_MAX,
    };
    int rc = call->host->query(call, &query, resource_row, &page, NULL);
    if (rc != NG_OK) {
        return rc;
    }
    return page.rc;
}

static int resource_read(struct ng_call *call, unsigned collection, struct ng_str space,
                         struct ng_str id, uint64_t revision)
{
    struct ng_key key = {ng_str_of(entry_collections[collection]), space, id};
    const struct ng_doc *doc = NULL;
    int rc = call->host->get(call, &key, revision, &doc);
    if (rc == NG_ENOTFOUND) {
        return entry_no_version(call, &key, revision);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (!entry_exists(doc)) {
        return entry_not_found(call, &key, doc);
    }
    rc = call->host->revision_number(call, doc->revision);
    struct ng_str none = {"", 0};
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, doc->text.len > 0 ? doc->text : none);
}

/* The callbacks get no argument for the kind, so each kind has its own functions. */
#define RESOURCE_KIND(name, collection)                                                        \
    int entry_##name##_list(void *self, struct ng_call *call, struct ng_str space,             \
                            struct ng_listing *listing)                                        \
    {                                                                                          \
        (void)self;                                                                            \
        return resource_list(call, collection, space, listing);                                \
    }                                                                                          \
    int entry_##name##_read(void *self, struct ng_call *call, struct ng_str space,             \
                            struct ng_str id, uint64_t revision)                               \
    {                                                                                          \
        (void)self;                                                                            \
        return resource_read(call, collection, space, id, revision);                           \
    }                                                                                          \
    int entry_##name##_complete(void *self, struct ng_call *call, struct ng_str space,         \
                                const char *variable, struct ng_str prefix,                    \
                                struct ng_listing *listing)                                    \
    {                                                                                          \
        (void)self;                                                                            \
        return strcmp(variable, "id") != 0                                                     \
                   ? NG_OK                                                                     \
                   : resource_complete(call, collection, space, prefix, listing);              \
    }

RESOURCE_KIND(pages, ENTRY_PAGES)
RESOURCE_KIND(code, ENTRY_CODE)
RESOURCE_KIND(research, ENTRY_RESEARCH)
