/* SPDX-License-Identifier: MIT */
/* search.c - full-text search: any of the words, phrases and prefixes of a text, by rank. */
#include <inttypes.h>

#include "core/base/minmax.h"
#include "db.h"

/* The limit of sqlite for a snippet, in words; a word counts as this many characters. */
#define SNIPPET_WORDS_MAX 64
#define SNIPPET_WORD_CHARS 6

struct find {
    const struct db_collection *collection;
    const struct ng_search *search;
    struct shelves shelves;
    struct ng_str match, pattern;
    struct subject sort;
    bool by_rank;
};

static void add_score(struct sql *sql, const struct find *find)
{
    const struct db_collection *collection = find->collection;
    struct bound pattern = {.kind = BOUND_TEXT, .bytes = find->pattern};
    sql_printf(sql, "ng_rank(search_%" PRId64 ",", collection->id);
    sql_bind(sql, &pattern);
    sql_printf(sql, ",-bm25(search_%" PRId64, collection->id);
    for (size_t i = 0; i < collection->field_count; i++) {
        if (collection->fields[i].column >= 0) {
            struct bound weight = {.kind = BOUND_NUMBER,
                                   .number = collection->fields[i].weight};
            sql_add(sql, ",");
            sql_bind(sql, &weight);
        }
    }
    sql_add(sql, collection->text_column ? ",1.0))" : "))");
}

/* Adds " FROM ... WHERE ..." of the hits. */
static void add_hits(struct sql *sql, const struct find *find)
{
    struct bound match = {.kind = BOUND_TEXT, .bytes = find->match};
    int64_t id = find->collection->id;
    sql_printf(sql,
               " FROM search_%" PRId64 " CROSS JOIN docs d ON d.doc=search_%" PRId64
               ".rowid WHERE search_%" PRId64 " MATCH ",
               id, id, id);
    sql_bind(sql, &match);
    sql_add(sql, " AND d.deleted=0 AND +d.shelf");
    shelves_add(sql, &find->shelves);
    terms_add(sql, find->collection, find->search->query, SIZE_MAX);
}

static void add_order(struct sql *sql, const struct find *find)
{
    bool down = find->search->query->descending;
    sql_add(sql, " ORDER BY ");
    if (find->by_rank) {
        sql_add(sql, down ? "4 DESC,2 DESC" : "4 DESC,2");
        return;
    }
    subject_add(sql, &find->sort);
    sql_add(sql, down ? " DESC,2 DESC" : ",2");
}

/* Reports the page of hits; makes snippets only for those. */
static void make_page(struct sql *sql, const struct find *find)
{
    uint32_t words = find->search->snippet_chars / SNIPPET_WORD_CHARS + 1;
    int64_t id = find->collection->id;
    struct bound match = {.kind = BOUND_TEXT, .bytes = find->match};
    sql_add(sql, "SELECT h.doc,h.c,0,h.score,");
    if (find->search->snippet_chars > 0) {
        sql_printf(sql,
                   "(SELECT snippet(search_%" PRId64 ",-1,'','','\xE2\x80\xA6',%u) FROM "
                   "search_%" PRId64 " WHERE search_%" PRId64 " MATCH ",
                   id, u32_min(words, SNIPPET_WORDS_MAX), id, id);
        sql_bind(sql, &match);
        sql_add(sql, " AND rowid=h.doc)");
    } else {
        sql_add(sql, "NULL");
    }
    sql_add(sql, " FROM (SELECT d.doc AS doc,d.created_seq AS c,0,");
    add_score(sql, find);
    sql_add(sql, " AS score");
    add_hits(sql, find);
    add_order(sql, find);
    page_add(sql, find->search->query);
    sql_add(sql, ") h");
}

static int search_page(struct conn *conn, struct ng_call *call, const struct find *find,
                       ng_row_fn *row, void *user)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    make_page(&sql, find);
    int rc;
    if (sql_prepare(conn, &sql, &stmt) == SQLITE_OK) {
        rc = query_rows(conn, call, stmt, find->search->query, find->search->snippet_chars, row,
                        user);
    } else {
        rc = conn_fail(conn, call, "the search");
    }
    (void)sql_release(conn, stmt);
    sql_done(&sql);
    return rc;
}

static int search_total(struct conn *conn, struct ng_call *call, const struct find *find,
                        uint64_t *ret)
{
    struct sql sql = {0};
    sql_add(&sql, "SELECT count(*)");
    add_hits(&sql, find);
    int64_t number = sql_number(conn, &sql);
    if (number < 0) {
        return conn_fail(conn, call, "counting hits");
    }
    *ret = (uint64_t)number;
    return NG_OK;
}

static int search_in(struct conn *conn, struct ng_call *call, struct find *find, ng_row_fn *row,
                     void *user, uint64_t *ret_total)
{
    const struct ng_query *query = find->search->query;
    uint64_t total = 0;
    int rc = NG_OK;
    if (query_shelves(conn, query, &find->shelves) != NG_OK) {
        return conn_fail(conn, call, "the search");
    }
    bool any = find->shelves.count > 0 && find->match.len > 0;
    if (any && query->limit > 0) {
        rc = search_page(conn, call, find, row, user);
    }
    if (any && rc == NG_OK && query->want_total) {
        rc = search_total(conn, call, find, &total);
    }
    if (rc == NG_OK && query->want_total && ret_total != NULL) {
        *ret_total = total;
    }
    return rc;
}

int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total)
{
    struct db *db = self;
    struct find find = {.search = search};
    const struct ng_query *query = search->query;
    find.collection = collection_find(db, query->collection);
    if (find.collection == NULL || find.collection->columns == 0) {
        return ng_fail(call, NG_EINVAL, "this collection has no searchable fields");
    }
    int rc = terms_check(call, find.collection, query);
    find.by_rank = query->sort.data == NULL || query->sort.len == 0;
    if (rc == NG_OK && !find.by_rank) {
        (void)term_subject(find.collection, query->sort, true, &find.sort);
    }
    struct bytes match = {0};
    struct bytes pattern = {0};
    struct wanted wanted = {0};
    if (rc == NG_OK) {
        rc = wanted_parse(call, search->text, &wanted);
    }
    if (rc == NG_OK && match_make(&wanted, &match, &pattern) != NG_OK) {
        rc = ng_fail(call, NG_EINTERNAL, "no memory for the search");
    }
    wanted_done(&wanted);
    if (rc == NG_OK) {
        rc = fts_catch_up(db, call, find.collection->id);
    }
    find.match = bytes_str(&match);
    find.pattern = bytes_str(&pattern);
    struct conn *conn = NULL;
    if (rc == NG_OK) {
        rc = reader_begin(db, call, &conn);
    }
    if (rc == NG_OK) {
        rc = search_in(conn, call, &find, row, user, ret_total);
        reader_end(conn);
    }
    free(find.shelves.ids);
    bytes_done(&match);
    bytes_done(&pattern);
    return rc;
}
