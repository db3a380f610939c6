/* SPDX-License-Identifier: MIT */
/* notebook_find.c - notebooks as hits of a search: those whose names begin with its text, then
 * those whose texts have its words. */
#include "core/base/find/find_words.h"
#include "notebook.h"

/* Notebooks that are found by their names. */
#define FIND_NAMED_MAX 8
/* Hits up to which the texts are read, for the lines. */
#define FIND_LINES_MAX 64
#define FIND_EXCERPT_CHARS 160

struct notebook_hits {
    struct ng_call *call;
    struct ng_find *find;
    struct find_words words;
    struct ng_str named[FIND_NAMED_MAX];
    size_t named_count;
    bool by_name; /* of the present query */
    bool full;
    int rc;
};

static bool notebook_was_named(const struct notebook_hits *hits, struct ng_str name)
{
    for (size_t i = 0; i < hits->named_count; i++) {
        if (str_equal(hits->named[i], name)) {
            return true;
        }
    }
    return false;
}

static void notebook_add_named(struct notebook_hits *hits, struct ng_str name)
{
    char *copy = ng_alloc(hits->call, name.len + 1);
    if (copy == NULL || hits->named_count == FIND_NAMED_MAX) {
        return; /* without memory the call fails in any case */
    }
    char *at = copy;
    hits->named[hits->named_count++] = str_move_in(&at, name);
}

static int notebook_hit(void *user, const struct ng_doc *row)
{
    struct notebook_hits *hits = user;
    struct find_place place = {.line = 0};
    if (notebook_was_named(hits, row->key.id)) {
        return 0;
    }
    if (row->text.len > 0 &&
        find_words_place(&hits->words, row->text, &place) == NG_EINTERNAL) {
        hits->rc = ng_fail(hits->call, NG_EINTERNAL, "out of memory for a search");
        return 1;
    }
    if (hits->by_name) {
        notebook_add_named(hits, row->key.id);
    }
    const struct ng_hit hit = {
        .size = sizeof(hit),
        .id = row->key.id,
        .title = row->key.id,
        .agent = row->author,
        .excerpt = row->snippet.len > 0 ? row->snippet : place.excerpt,
        .updated_ms = row->updated_ms,
        .line = place.line,
    };
    hits->full = hits->find->hit(hits->find->user, &hit) != 0;
    return hits->full;
}

/* The notebook with this very name before those whose names begin so. */
static int notebook_find_named(struct notebook_hits *hits, struct ng_query *query)
{
    const struct ng_host *host = hits->call->host;
    struct ng_term name = {
        .field = ng_str_of("id"), .op = NG_TERM_EQ, .value = hits->find->text};
    query->terms = &name;
    query->term_count = 1;
    query->sort = name.field;
    query->limit = FIND_NAMED_MAX;
    hits->by_name = true;
    int rc = host->query(hits->call, query, notebook_hit, hits, NULL);
    if (rc == NG_OK && hits->rc == NG_OK && !hits->full) {
        name.op = NG_TERM_PREFIX;
        rc = host->query(hits->call, query, notebook_hit, hits, NULL);
    }
    hits->by_name = false;
    return rc;
}

static int notebook_find_words(struct notebook_hits *hits, struct ng_query *query)
{
    const char *engine = NULL;
    uint64_t total = 0;
    bool at_least = false;
    const struct ng_search search = {
        .size = sizeof(search),
        .query = query,
        .text = hits->find->text,
        .snippet_chars = FIND_EXCERPT_CHARS,
        .at_least = &at_least,
    };
    int rc = hits->call->host->search(hits->call, &search, notebook_hit, hits, &total, &engine);
    hits->find->total = total;
    hits->find->incomplete = at_least;
    return rc;
}

int notebook_resource_find(void *self, struct ng_call *call, struct ng_str space,
                           struct ng_find *find)
{
    struct notebook_hits hits = {.call = call, .find = find};
    const struct ng_query words = {
        .size = sizeof(words),
        .collection = ng_str_of(NOTEBOOK_COLLECTION),
        .space = space,
        .limit = find->limit + FIND_NAMED_MAX, /* they may come again */
        .with_text = find->limit <= FIND_LINES_MAX,
        .want_total = true,
    };
    struct ng_query query = words;
    (void)self;
    int rc = find_words_open(&hits.words, find->text);
    if (rc == NG_EINTERNAL) {
        rc = ng_fail(call, rc, "out of memory for a search");
    } else {
        rc = notebook_find_named(&hits, &query);
        query = words;
        if (rc == NG_OK && hits.rc == NG_OK && !hits.full) {
            rc = notebook_find_words(&hits, &query);
        }
    }
    find_words_done(&hits.words);
    return rc != NG_OK ? rc : hits.rc;
}
