/* SPDX-License-Identifier: MIT */
/*
 * entry_find.c - the entry that a call means: by its id, or by a title that one entry of the
 * space has.
 *
 * An entry keeps its folded title as an indexed member. Entries that earlier versions wrote get
 * it with their next change; until then the full-text index finds them, among the best hits.
 */
#include "core/base/buf.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "entry.h"

/* Entries that are read for one title in one collection. */
#define FIND_ROWS_MAX 32
/* Entries that a refusal lists. */
#define FIND_SHOWN_MAX 10
/* Bytes that a folded title may have. */
#define FIND_FOLDED_MAX ((size_t)1024 * 1024)
/* Length of an id that this gateway makes. */
#define FIND_ID_CHARS 12

struct find_hit {
    struct ng_str id, title;
    unsigned collection;
};

struct find {
    struct ng_call *call;
    struct ng_str folded;
    unsigned collection; /* of the present query */
    struct find_hit hits[FIND_SHOWN_MAX];
    uint64_t count; /* of all collections */
    int rc;
};

struct ng_str entry_title_key(struct ng_call *call, struct ng_str title)
{
    struct buf folded;
    buf_init(&folded, FIND_FOLDED_MAX);
    struct ng_str key = {NULL, 0};
    if (utf8_fold(&folded, title) == NG_OK) {
        struct ng_str whole = buf_str(&folded);
        key = entry_join(call, &whole, 1);
    } else {
        (void)entry_no_memory(call);
    }
    buf_done(&folded);
    return key;
}

/* ---- finding ---- */

static void find_add(struct find *find, struct ng_str id, struct ng_str title)
{
    if (find->count < FIND_SHOWN_MAX) {
        find->hits[find->count] = (struct find_hit){
            .id = entry_join(find->call, &id, 1),
            .title = title,
            .collection = find->collection,
        };
    }
    find->count++;
}

/* The title decides: the member may be older where another program has changed the entry. */
static int find_row(void *user, const struct ng_doc *row)
{
    struct find *find = user;
    const struct ng_value *body = NULL;
    find->rc = entry_row_body(find->call, row, &body);
    if (find->rc != NG_OK) {
        return 1;
    }
    struct ng_str title =
        find->call->host->json_text(find->call->host->json_get(body, "title"));
    struct ng_str key = entry_title_key(find->call, title);
    if (key.data == NULL) {
        find->rc = NG_EINTERNAL;
        return 1;
    }
    if (str_equal(key, find->folded)) {
        find_add(find, row->key.id, title);
    }
    return 0;
}

/* The title as a phrase of a search. */
static struct ng_str find_phrase(struct ng_call *call, struct ng_str title)
{
    char *phrase = ng_alloc(call, title.len + 2);
    size_t len = 0;
    if (phrase == NULL) {
        return str_make(NULL, 0);
    }
    phrase[len++] = '"';
    for (size_t i = 0; i < title.len; i++) {
        phrase[len++] = title.data[i] == '"' ? ' ' : title.data[i];
    }
    phrase[len++] = '"';
    return str_make(phrase, len);
}

static int find_in(struct find *find, unsigned collection)
{
    const struct ng_host *host = find->call->host;
    struct ng_term term = {.field = ng_str_of(ENTRY_TITLE_KEY), .value = find->folded};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(entry_collections[collection]),
        .space = find->call->caller->space,
        .terms = &term,
        .term_count = 1,
        .limit = FIND_ROWS_MAX,
        .want_total = true,
    };
    uint64_t total = 0;
    find->collection = collection;
    term.op = NG_TERM_EQ;
    int rc = host->query(find->call, &query, find_row, find, &total);
    if (rc != NG_OK || find->rc != NG_OK) {
        return rc != NG_OK ? rc : find->rc;
    }
    if (total > FIND_ROWS_MAX) {
        find->count += total - FIND_ROWS_MAX;
        return NG_OK;
    }
    struct ng_search search = {
        .size = sizeof(search),
        .query = &query,
        .text = find_phrase(find->call, find->folded),
    };
    const char *engine = NULL;
    if (search.text.data == NULL) {
        return entry_no_memory(find->call);
    }
    term.op = NG_TERM_NE;
    rc = host->search(find->call, &search, find_row, find, &total, &engine);
    return rc != NG_OK ? rc : find->rc;
}

/* INVALID_INPUT: the title of several entries, or the id of one in each of several collections.
 */
static int find_several(const struct find *find, struct ng_str name)
{
    struct ng_call *call = find->call;
    const struct ng_host *host = call->host;
    struct ng_str pieces[6 * FIND_SHOWN_MAX + 4];
    size_t count = 0;
    uint64_t shown = find->count < FIND_SHOWN_MAX ? find->count : FIND_SHOWN_MAX;
    struct ng_writer *writer = host->details(call);
    host->json_object(writer);
    host->json_name(writer, "matches");
    host->json_array(writer);
    pieces[count++] = ng_str_of("`notebook_id`: ");
    pieces[count++] =
        host->format(call, "%llu entries are named '", (unsigned long long)find->count);
    pieces[count++] = entry_quoted(name);
    for (uint64_t i = 0; i < shown; i++) {
        const struct find_hit *hit = &find->hits[i];
        struct ng_str collection = ng_str_of(entry_collections[hit->collection]);
        pieces[count++] = ng_str_of(i == 0 ? "': " : "', ");
        pieces[count++] = hit->id;
        pieces[count++] = ng_str_of(" in ");
        pieces[count++] = collection;
        pieces[count++] = ng_str_of(" '");
        pieces[count++] = entry_quoted(hit->title);
        host->json_object(writer);
        entry_put(call, writer, "notebook_id", hit->id);
        entry_put(call, writer, "collection", collection);
        entry_put(call, writer, "title", entry_quoted(hit->title));
        host->json_end(writer);
    }
    pieces[count++] =
        find->count == shown
            ? ng_str_of("'")
            : host->format(call, "' and %llu more", (unsigned long long)find->count - shown);
    host->json_end(writer);
    entry_put_int(call, writer, "total", find->count);
    host->json_end(writer);
    entry_fail_pieces(call, NG_EINVAL, pieces, count);
    host->hint(call,
               "Give the ID of one of them; with a title, `collection` tells those of two "
               "collections apart.");
    return NG_EINVAL;
}

/* By title, in one collection (ENTRY_COLLECTIONS: in all). Leaves *ret as it is if no entry has
 * it. */
static int find_title(struct ng_call *call, struct ng_str title, unsigned collection,
                      struct ng_key *ret, const struct ng_doc **ret_newest)
{
    struct find *find = ng_alloc(call, sizeof(*find));
    if (find == NULL) {
        return entry_no_memory(call);
    }
    *find = (struct find){.call = call, .folded = entry_title_key(call, title)};
    if (find->folded.data == NULL) {
        return NG_EINTERNAL;
    }
    for (unsigned i = 0; i < ENTRY_COLLECTIONS; i++) {
        if (i != collection && collection != ENTRY_COLLECTIONS) {
            continue;
        }
        int rc = find_in(find, i);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (find->count > 1) {
        return find_several(find, title);
    }
    if (find->count == 0) {
        return NG_OK;
    }
    ret->collection = ng_str_of(entry_collections[find->hits[0].collection]);
    ret->id = find->hits[0].id;
    return call->host->get(call, ret, 0, ret_newest);
}

/* By id in every collection: an entry that lives before one that was deleted. */
static int find_id(struct ng_call *call, struct ng_key *ret, const struct ng_doc **ret_newest)
{
    struct find *find = ng_alloc(call, sizeof(*find));
    struct ng_key key = *ret;
    if (find == NULL) {
        return entry_no_memory(call);
    }
    *find = (struct find){.call = call};
    for (unsigned i = 0; i < ENTRY_COLLECTIONS; i++) {
        const struct ng_doc *doc = NULL;
        const struct ng_value *body = NULL;
        key.collection = ng_str_of(entry_collections[i]);
        int rc = call->host->get(call, &key, 0, &doc);
        if (rc != NG_OK) {
            return rc;
        }
        if (doc->revision > 0 && find->count == 0 && (*ret_newest == NULL || !doc->deleted)) {
            *ret = key;
            *ret_newest = doc;
        }
        if (!entry_exists(doc)) {
            continue;
        }
        rc = entry_body(call, doc, &body);
        if (rc != NG_OK) {
            return rc;
        }
        find->collection = i;
        find_add(find, key.id, call->host->json_text(call->host->json_get(body, "title")));
    }
    return find->count > 1 ? find_several(find, ret->id) : NG_OK;
}

int entry_find(struct ng_call *call, struct ng_key *ret, const struct ng_doc **ret_newest)
{
    bool named = ng_has_arg(call, "collection");
    int rc = entry_key(call, ret);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str name = ret->id;
    *ret_newest = NULL;
    rc = named ? call->host->get(call, ret, 0, ret_newest) : find_id(call, ret, ret_newest);
    if (rc != NG_OK || (*ret_newest != NULL && (*ret_newest)->revision > 0)) {
        return rc;
    }
    rc = find_title(call, name, named ? entry_collection(ret->collection) : ENTRY_COLLECTIONS,
                    ret, ret_newest);
    if (rc == NG_OK && *ret_newest == NULL) {
        return entry_not_found(call, ret, NULL);
    }
    return rc;
}

int entry_find_to_change(struct ng_call *call, struct ng_key *ret)
{
    const struct ng_doc *newest = NULL;
    struct ng_str id = ng_arg_text(call, "notebook_id");
    bool is_id = id.len == FIND_ID_CHARS;
    bool digit = false;
    for (size_t i = 0; i < id.len && is_id; i++) {
        bool is_digit = id.data[i] >= '0' && id.data[i] <= '9';
        digit = digit || is_digit;
        is_id = is_digit || (id.data[i] >= 'a' && id.data[i] <= 'z');
    }
    bool shared = call->host->gateway_name(call->host).len > 0;
    if (shared && is_id && digit && ng_has_arg(call, "collection")) {
        return entry_key(call, ret);
    }
    return entry_find(call, ret, &newest);
}
