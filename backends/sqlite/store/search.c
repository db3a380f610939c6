/* SPDX-License-Identifier: MIT */
/*
 * search.c - full-text search: any of the words, phrases and prefixes of a text.
 *
 * By rank a search looks at the newest SEARCH_HITS_MAX matches only, in one pass over the
 * index: its cost does not grow with the store. If there are more, further passes look at the
 * newest documents with all of the words and with each of them, so that a rare word is found
 * beside a common one.
 */
#include <inttypes.h>

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "places.h"

/* Matches that one search by rank looks at. */
#define SEARCH_HITS_MAX 5000
/* Hits of one search that sorts by a field: those of all documents. */
#define SEARCH_SORTED_MAX ((size_t)1 << 32)
/* A search of more words makes no pass of its own for each. */
#define SEARCH_PASSES_MAX 8

struct hit {
    int64_t doc;
    struct ranked ranked;
};

struct find {
    const struct db_collection *collection;
    const struct ng_search *search;
    const struct wanted *wanted;
    struct shelves shelves;
    struct match match; /* of any word */
    struct subject sort;
    bool by_rank;
    bool needs_docs; /* a hit counts only if its row in docs has the conditions */
    struct hit *hits;
    size_t count, cap;
    bool at_least;
};

/* ---- the parts of a statement ---- */

static void add_rank(struct sql *sql, const struct find *find, struct ng_str of)
{
    const struct db_collection *collection = find->collection;
    struct bound pattern = {.kind = BOUND_TEXT, .bytes = of};
    sql_printf(sql, "ng_rank(search_%" PRId64 ",", collection->id);
    sql_bind(sql, &pattern);
    sql_printf(sql, ",(SELECT max(id) FROM search_%" PRId64 "_docsize)", collection->id);
    for (size_t i = 0; i < collection->field_count; i++) {
        if (collection->fields[i].column >= 0) {
            struct bound weight = {.kind = BOUND_NUMBER,
                                   .number = collection->fields[i].weight};
            sql_add(sql, ",");
            sql_bind(sql, &weight);
        }
    }
    sql_add(sql, collection->text_column ? ",1.0)" : ")");
}

/* Adds " FROM ... WHERE ..." of the hits. */
static void add_hits(struct sql *sql, const struct find *find, struct ng_str of)
{
    struct bound match = {.kind = BOUND_TEXT, .bytes = of};
    int64_t id = find->collection->id;
    sql_printf(sql, " FROM search_%" PRId64, id);
    if (find->needs_docs) {
        sql_printf(sql, " CROSS JOIN docs d ON d.doc=search_%" PRId64 ".rowid", id);
    }
    sql_printf(sql, " WHERE search_%" PRId64 " MATCH ", id);
    sql_bind(sql, &match);
    if (find->needs_docs) {
        sql_add(sql, " AND d.deleted=0 AND +d.shelf");
        shelves_add(sql, &find->shelves);
        terms_add(sql, find->collection, find->search->query, SIZE_MAX);
    }
}

/* ---- hits by rank ---- */

static int add_hit(struct find *find, sqlite3_stmt *stmt)
{
    if (array_reserve((void **)&find->hits, &find->cap, find->count + 1, sizeof(*find->hits),
                      SEARCH_SORTED_MAX) != NG_OK) {
        return SQLITE_NOMEM;
    }
    struct hit *hit = &find->hits[find->count];
    const void *ranked = sqlite3_column_blob(stmt, 1);
    if (ranked == NULL || sqlite3_column_bytes(stmt, 1) != sizeof(hit->ranked)) {
        return SQLITE_NOMEM;
    }
    hit->doc = sqlite3_column_int64(stmt, 0);
    memcpy(&hit->ranked, ranked, sizeof(hit->ranked));
    find->count++;
    return SQLITE_ROW;
}

static void add_order(struct sql *sql, const struct find *find, size_t limit)
{
    bool down = find->search->query->descending;
    sql_add(sql, " ORDER BY ");
    if (find->by_rank) {
        sql_printf(sql, "search_%" PRId64 ".rowid DESC LIMIT ", find->collection->id);
        sql_bind_int(sql, (int64_t)limit);
    } else {
        subject_add(sql, &find->sort);
        sql_add(sql, down ? " DESC,d.created_seq DESC" : ",d.created_seq");
    }
}

/* Adds hits of the match: the newest ones, up to `limit`, or all in the order of a field. */
static int collect(struct conn *conn, struct ng_call *call, struct find *find,
                   const struct match *match, size_t limit)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    sql_printf(&sql, "SELECT search_%" PRId64 ".rowid,", find->collection->id);
    add_rank(&sql, find, bytes_str(&match->pattern));
    add_hits(&sql, find, bytes_str(&match->text));
    add_order(&sql, find, limit);
    int step = sql_prepare(conn, &sql, &stmt);
    if (step == SQLITE_OK) {
        while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
            step = add_hit(find, stmt);
            if (step != SQLITE_ROW) {
                break;
            }
        }
    }
    int rc = NG_OK;
    if (step == SQLITE_NOMEM) {
        rc = ng_fail(call, NG_EINTERNAL, "no memory for the search");
    } else if (step != SQLITE_DONE) {
        rc = conn_fail(conn, call, "the search");
    }
    (void)sql_release(conn, stmt);
    sql_done(&sql);
    return rc;
}

static int pass(struct conn *conn, struct ng_call *call, struct find *find, size_t phrase,
                size_t limit)
{
    struct match match = {0};
    int rc = match_make(find->wanted, phrase, &match);
    if (rc == NG_OK) {
        rc = collect(conn, call, find, &match, limit);
    } else {
        rc = ng_fail(call, rc, "no memory for the search");
    }
    match_done(&match);
    return rc;
}

static int by_doc(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    return (a->doc > b->doc) - (a->doc < b->doc);
}

/* One hit for each document. */
static void drop_doubles(struct find *find)
{
    size_t kept = 0;
    qsort(find->hits, find->count, sizeof(*find->hits), by_doc);
    for (size_t i = 0; i < find->count; i++) {
        if (kept == 0 || find->hits[kept - 1].doc != find->hits[i].doc) {
            find->hits[kept++] = find->hits[i];
        }
    }
    find->count = kept;
}

static int oldest_of_best(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    int order = (b->ranked.score > a->ranked.score) - (b->ranked.score < a->ranked.score);
    if (order != 0) {
        return order;
    }
    return by_doc(left, right);
}

static int newest_of_best(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    int order = (b->ranked.score > a->ranked.score) - (b->ranked.score < a->ranked.score);
    if (order != 0) {
        return order;
    }
    return by_doc(right, left);
}

/* The passes of a search that found more than it looks at. */
static int look_further(struct conn *conn, struct ng_call *call, struct find *find)
{
    size_t words = find->wanted->count;
    bool each = words <= SEARCH_PASSES_MAX;
    size_t limit = SEARCH_HITS_MAX;
    if (each) {
        limit /= words + 1;
    }
    int rc = pass(conn, call, find, MATCH_ALL, limit);
    for (size_t i = 0; i < words && each && rc == NG_OK; i++) {
        rc = pass(conn, call, find, i, limit);
    }
    drop_doubles(find);
    return rc;
}

/* Finds the hits, best first. */
static int find_hits(struct conn *conn, struct ng_call *call, struct find *find,
                     uint64_t *ret_total)
{
    int rc = collect(conn, call, find, &find->match, SEARCH_HITS_MAX + 1);
    if (rc != NG_OK || !find->by_rank) {
        *ret_total = find->count;
        return rc;
    }
    find->at_least = find->count > SEARCH_HITS_MAX;
    find->count = size_min(find->count, SEARCH_HITS_MAX);
    *ret_total = find->count;
    if (find->at_least && find->wanted->count > 1) {
        rc = look_further(conn, call, find);
    }
    if (find->count > 1) {
        qsort(find->hits, find->count, sizeof(*find->hits),
              find->search->query->descending ? newest_of_best : oldest_of_best);
    }
    return rc;
}

/* ---- the page ---- */

static int add_excerpt(struct ng_call *call, struct excerpts *excerpts, const struct hit *hit,
                       struct ng_doc *doc)
{
    int rc = excerpt_at(excerpts, hit->doc, &hit->ranked.place);
    if (rc == SQLITE_NOMEM) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the search");
    }
    if (rc != SQLITE_OK) {
        return conn_fail(excerpts->conn, call, "the search");
    }
    doc->snippet = bytes_str(&excerpts->excerpt);
    return NG_OK;
}

/* One row of the page; nothing if it is deleted by now. */
static int give_hit(struct conn *conn, struct ng_call *call, const struct find *find,
                    const struct hit *hit, struct excerpts *excerpts, ng_row_fn *row,
                    void *user, bool *ret_stop)
{
    struct ng_doc doc;
    sqlite3_stmt *get = conn_stmt(conn, STMT_GET_DOC);
    if (get == NULL) {
        return conn_fail(conn, call, "the search");
    }
    (void)sqlite3_bind_int64(get, 1, hit->doc);
    (void)sqlite3_bind_int(get, 2, find->search->query->with_text);
    int got = sqlite3_step(get);
    if (got != SQLITE_ROW && got != SQLITE_DONE) {
        return conn_fail(conn, call, "the search");
    }
    int rc = NG_OK;
    if (call->host->cancelled(call)) { /* sqlite asks only while it runs */
        rc = NG_ECANCELLED;
        if (call->host->remaining_ms(call) <= 0) {
            rc = NG_ETIMEOUT;
        }
        rc = ng_fail(call, rc, "the search ended before its excerpts were made");
    } else if (got == SQLITE_ROW) {
        row_from_stmt(get, find->search->query->with_text, &doc);
        doc.score = hit->ranked.score;
        doc.exact = hit->ranked.exact;
        if (!doc.deleted && find->search->snippet_chars > 0) {
            rc = add_excerpt(call, excerpts, hit, &doc);
        }
        *ret_stop = rc == NG_OK && !doc.deleted && row(user, &doc) != 0;
    }
    (void)sqlite3_reset(get);
    return rc;
}

static int search_in(struct conn *conn, struct ng_call *call, struct find *find, ng_row_fn *row,
                     void *user, uint64_t *ret_total)
{
    const struct ng_query *query = find->search->query;
    struct excerpts excerpts = {
        .conn = conn, .collection = find->collection->id, .chars = find->search->snippet_chars};
    bool stop = false;
    int rc = find_hits(conn, call, find, ret_total);
    for (uint64_t i = query->offset;
         i < find->count && i - query->offset < query->limit && rc == NG_OK && !stop; i++) {
        rc = give_hit(conn, call, find, &find->hits[i], &excerpts, row, user, &stop);
    }
    excerpts_done(&excerpts);
    return rc;
}

/* Has the collection documents in other spaces? 0 or 1; -1: failed. */
static int64_t has_others(struct conn *conn, const struct find *find)
{
    struct bound name = {.kind = BOUND_TEXT,
                         .bytes = str_of(find->collection->name, find->collection->name_len)};
    struct sql sql = {0};
    sql_add(&sql, "SELECT count(*) FROM (SELECT 1 FROM shelves WHERE collection=");
    sql_bind(&sql, &name);
    sql_add(&sql, " LIMIT ");
    sql_bind_int(&sql, (int64_t)find->shelves.count + 1);
    sql_add(&sql, ")");
    int64_t count = sql_number(conn, &sql);
    if (count < 0) {
        return count;
    }
    return count > (int64_t)find->shelves.count;
}

static int search_spaces(struct conn *conn, struct ng_call *call, struct find *find,
                         ng_row_fn *row, void *user, uint64_t *ret_total)
{
    const struct ng_query *query = find->search->query;
    if (query_shelves(conn, query, &find->shelves) != NG_OK) {
        return conn_fail(conn, call, "the search");
    }
    int64_t others = has_others(conn, find);
    if (others < 0) {
        return conn_fail(conn, call, "the search");
    }
    find->needs_docs = !find->by_rank || query->term_count > 0 || others > 0;
    if (find->shelves.live == 0 || find->match.text.len == 0) {
        return NG_OK;
    }
    return search_in(conn, call, find, row, user, ret_total);
}

static int search_parsed(struct db *db, struct ng_call *call, struct find *find, ng_row_fn *row,
                         void *user, uint64_t *ret_total)
{
    struct conn *conn = NULL;
    if (match_make(find->wanted, MATCH_ANY, &find->match) != NG_OK) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the search");
    }
    int rc = fts_catch_up(db, call, find->collection->id);
    if (rc == NG_OK) {
        rc = reader_begin(db, call, &conn);
    }
    if (rc == NG_OK) {
        rc = search_spaces(conn, call, find, row, user, ret_total);
        reader_end(conn);
    }
    return rc;
}

int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total)
{
    struct db *db = self;
    struct wanted wanted = {0};
    struct find find = {.search = search, .wanted = &wanted};
    const struct ng_query *query = search->query;
    uint64_t total = 0;
    find.collection = collection_find(db, query->collection);
    if (find.collection == NULL || find.collection->columns == 0) {
        return ng_fail(call, NG_EINVAL, "this collection has no searchable fields");
    }
    int rc = terms_check(call, find.collection, query);
    find.by_rank = query->sort.data == NULL || query->sort.len == 0;
    if (rc == NG_OK && !find.by_rank) {
        (void)term_subject(find.collection, query->sort, true, &find.sort);
    }
    if (rc == NG_OK) {
        rc = wanted_parse(call, search->text, &wanted);
    }
    if (rc == NG_OK) {
        rc = search_parsed(db, call, &find, row, user, &total);
    }
    if (rc == NG_OK && query->want_total && ret_total != NULL) {
        *ret_total = total;
    }
    if (rc == NG_OK && NG_HAS(search, at_least) && search->at_least != NULL) {
        *search->at_least = find.at_least;
    }
    wanted_done(&wanted);
    free(find.shelves.ids);
    free(find.hits);
    match_done(&find.match);
    return rc;
}
