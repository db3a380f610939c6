/* SPDX-License-Identifier: MIT */
/* entry_resource.c - entries as resources (notegate://SPACE/pages/ID ...): one kind for each
 * collection, with earlier versions. */
#include <string.h>

#include "core/base/find/find_words.h"
#include "core/base/str.h"
#include "entry.h"
#include "entry_tools.h"

/* Entries read at a time while a page of a listing is made. */
#define RESOURCE_PAGE 100
/* Ids of one completion: clients show a hundred. */
#define RESOURCE_COMPLETE_MAX 100
/* Searches: characters of an excerpt, entries with an equal title that come first, and hits up
 * to which the texts are read, for the lines. */
#define RESOURCE_EXCERPT_CHARS 160
#define RESOURCE_TITLED_MAX 8
#define RESOURCE_LINES_MAX 64

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
    int rc = NG_OK;
    if (revision > 0) {
        rc = call->host->get(call, &key, 0, &doc);
    }
    if (rc == NG_OK && doc != NULL && entry_is_purged(doc)) {
        return entry_not_found(call, &key, doc);
    }
    if (rc == NG_OK) {
        rc = call->host->get(call, &key, revision, &doc);
    }
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

/* ---- searches ---- */

struct resource_hits {
    struct ng_call *call;
    struct ng_find *find;
    struct find_words words;
    struct ng_str titled[RESOURCE_TITLED_MAX]; /* ids of those with an equal title */
    size_t titled_count;
    bool by_title; /* of the present query */
    bool full;
    int rc;
};

static bool resource_was_titled(const struct resource_hits *hits, struct ng_str id)
{
    for (size_t i = 0; i < hits->titled_count; i++) {
        if (str_equal(hits->titled[i], id)) {
            return true;
        }
    }
    return false;
}

static int resource_hit(void *user, const struct ng_doc *row)
{
    struct resource_hits *hits = user;
    struct ng_call *call = hits->call;
    const struct ng_value *body = NULL;
    struct find_place place = {.line = 0};
    if (!hits->by_title && resource_was_titled(hits, row->key.id)) {
        return 0;
    }
    hits->rc = entry_row_body(call, row, &body);
    if (hits->rc == NG_OK && row->text.len > 0 &&
        find_words_place(&hits->words, row->text, &place) == NG_EINTERNAL) {
        hits->rc = entry_no_memory(call);
    }
    if (hits->rc != NG_OK) {
        return 1;
    }
    struct ng_str excerpt = row->snippet.len > 0 ? row->snippet : place.excerpt;
    if (excerpt.len == 0) {
        excerpt = call->host->json_text(call->host->json_get(body, "summary"));
    }
    const struct ng_hit hit = {
        .size = sizeof(hit),
        .id = row->key.id,
        .title = call->host->json_text(call->host->json_get(body, "title")),
        .agent = row->author,
        .excerpt = excerpt,
        .updated_ms = row->updated_ms,
        .line = place.line,
        .exact = hits->by_title,
    };
    if (hits->by_title && hits->titled_count < RESOURCE_TITLED_MAX) {
        hits->titled[hits->titled_count++] = entry_join(call, &row->key.id, 1);
    }
    hits->full = hits->find->hit(hits->find->user, &hit) != 0;
    return hits->full;
}

static int resource_find_rows(struct resource_hits *hits, struct ng_query *query)
{
    const struct ng_host *host = hits->call->host;
    struct ng_term titled = {.field = ng_str_of(ENTRY_TITLE_KEY), .op = NG_TERM_EQ};
    struct ng_query first = *query;
    bool at_least = false;
    const char *engine = NULL;
    struct ng_search search = {
        .size = sizeof(search),
        .query = query,
        .text = hits->find->text,
        .snippet_chars = RESOURCE_EXCERPT_CHARS,
        .at_least = &at_least,
    };
    titled.value = entry_title_key(hits->call, hits->find->text);
    if (titled.value.data == NULL) {
        return NG_EINTERNAL;
    }
    first.terms = &titled;
    first.term_count = 1;
    first.limit = RESOURCE_TITLED_MAX;
    hits->by_title = true;
    int rc = host->query(hits->call, &first, resource_hit, hits, NULL);
    hits->by_title = false;
    if (rc == NG_OK && hits->rc == NG_OK && !hits->full) {
        query->limit += RESOURCE_TITLED_MAX; /* they may come again */
        rc = host->search(hits->call, &search, resource_hit, hits, &hits->find->total, &engine);
        hits->find->incomplete = at_least;
    }
    return rc;
}

static int resource_find(struct ng_call *call, unsigned collection, struct ng_str space,
                         struct ng_find *find)
{
    struct resource_hits hits = {.call = call, .find = find};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(entry_collections[collection]),
        .space = space,
        .limit = find->limit,
        .with_text = find->limit <= RESOURCE_LINES_MAX,
        .want_total = true,
    };
    int rc = find_words_open(&hits.words, find->text);
    rc = rc == NG_EINTERNAL ? entry_no_memory(call) : resource_find_rows(&hits, &query);
    find_words_done(&hits.words);
    return rc != NG_OK ? rc : hits.rc;
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
    }                                                                                          \
    int entry_##name##_find(void *self, struct ng_call *call, struct ng_str space,             \
                            struct ng_find *find)                                              \
    {                                                                                          \
        (void)self;                                                                            \
        return resource_find(call, collection, space, find);                                   \
    }

RESOURCE_KIND(pages, ENTRY_PAGES)
RESOURCE_KIND(code, ENTRY_CODE)
RESOURCE_KIND(research, ENTRY_RESEARCH)
