/* SPDX-License-Identifier: MIT */
/* trail_select.c - the origins, documents and numbers that a filter of changes leaves. */
#include "trail_select.h"

#include "core/base/array.h"
#include "core/base/minmax.h"

/* Origins that are listed: of the index of runs or agents, or of all that there are. */
#define ORIGINS_BY_INDEX 4096
#define ORIGINS_BY_SCAN 32768
/* Documents that are walked one beside the other, whose newest change is looked up, and that
 * are marked. */
#define DOCS_FEW 64
#define DOCS_NEWEST 1024
#define DOCS_MARKED ((size_t)16384)
/* More words of a set are no number of a row. */
#define BITS_WORDS_MAX ((size_t)1 << 28)

/* ---- sets ---- */

bool bits_has(const struct bits *bits, int64_t number)
{
    size_t word = (size_t)number / 64;
    return word < bits->cap && (bits->words[word] >> ((size_t)number % 64) & 1) != 0;
}

static int bits_add(struct bits *bits, int64_t number)
{
    size_t word = (size_t)number / 64;
    size_t had = bits->cap;
    if (number < 0 || word >= BITS_WORDS_MAX ||
        array_reserve((void **)&bits->words, &bits->cap, word + 1, sizeof(*bits->words),
                      2 * BITS_WORDS_MAX) != NG_OK) {
        return SQLITE_NOMEM;
    }
    if (bits->cap > had) {
        memset(bits->words + had, 0, (bits->cap - had) * sizeof(*bits->words));
    }
    bits->words[word] |= UINT64_C(1) << ((size_t)number % 64);
    return SQLITE_OK;
}

/* ---- conditions ---- */

void trail_add_names(struct sql *sql, const char *column, const struct ng_names *names)
{
    if (names->count == 0) {
        return;
    }
    sql_add(sql, " AND ");
    sql_add(sql, column);
    for (size_t i = 0; i < names->count; i++) {
        sql_add(sql, i == 0 ? " IN (" : ",");
        sql_bind(sql, &(struct bound){.kind = BOUND_TEXT, .bytes = names->items[i]});
    }
    sql_add(sql, ")");
}

void trail_add_id(struct sql *sql, const struct ng_trail *trail)
{
    const struct ng_term term = {.field = {"id", 2},
                                 .op = trail->id_prefix ? NG_TERM_PREFIX : NG_TERM_EQ,
                                 .value = trail->id};
    const struct subject subject = {.column = "d.id"};
    sql_add(sql, " AND ");
    term_add_column(sql, &subject, &term);
}

/* Adds the shelves of the filter. */
static void add_shelves(struct sql *sql, const struct ng_trail *trail)
{
    sql_add(sql, " IN (SELECT shelf FROM shelves WHERE 1");
    trail_add_names(sql, "collection", &trail->collections);
    trail_add_names(sql, "space", &trail->spaces);
    sql_add(sql, ")");
}

/* Adds " AND ..." over o.*. */
static void add_origin(struct sql *sql, const struct ng_trail *trail)
{
    trail_add_names(sql, "o.run", &trail->runs);
    trail_add_names(sql, "o.agent", &trail->agents);
    if (trail->collections.count + trail->spaces.count > 0) {
        sql_add(sql, " AND o.shelf");
        add_shelves(sql, trail);
    }
}

/* ---- origins ---- */

static int span_add(struct trail_select *select, uint64_t first, uint64_t last)
{
    first = u64_max(first, select->trail->since + 1);
    last = u64_min(last, select->until);
    if (first > last) {
        return SQLITE_OK;
    }
    if (array_reserve((void **)&select->spans, &select->span_cap, select->span_count + 1,
                      sizeof(*select->spans), ORIGINS_BY_SCAN + 1) != NG_OK) {
        return SQLITE_NOMEM;
    }
    select->spans[select->span_count++] = (struct span){first, last};
    return SQLITE_OK;
}

static int newest_first(const void *left, const void *right)
{
    const struct span *a = left;
    const struct span *b = right;
    return (a->last < b->last) - (a->last > b->last);
}

/* Those that overlap become one. */
static void spans_merge(struct trail_select *select)
{
    size_t count = 0;
    if (select->span_count > 1) {
        qsort(select->spans, select->span_count, sizeof(*select->spans), newest_first);
    }
    for (size_t i = 0; i < select->span_count; i++) {
        struct span *before = &select->spans[count - (count > 0)];
        const struct span span = select->spans[i];
        if (count > 0 && span.last + 1 >= before->first) {
            before->first = u64_min(before->first, span.first);
        } else {
            select->spans[count++] = span;
        }
    }
    select->span_count = count;
}

static int origin_take(struct trail_select *select, sqlite3_stmt *stmt)
{
    int64_t origin = sqlite3_column_int64(stmt, 0);
    int rc = bits_add(&select->wanted, origin);
    if (select->wanted_count < ORIGINS_NAMED) {
        select->named[select->wanted_count] = origin;
    }
    select->wanted_count++;
    return rc == SQLITE_OK ? span_add(select, column_u64(stmt, 1), column_u64(stmt, 2)) : rc;
}

static int origins_read(struct trail_select *select)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    sql_add(&sql, "SELECT o.origin,o.first_seq,o.last_seq FROM origins o WHERE o.last_seq>");
    sql_bind_int(&sql, (int64_t)u64_min(select->trail->since, INT64_MAX));
    sql_add(&sql, " AND o.first_seq<=");
    sql_bind_int(&sql, (int64_t)u64_min(select->until, INT64_MAX));
    add_origin(&sql, select->trail);
    int rc = sql_prepare(select->conn, &sql, &stmt);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = origin_take(select, stmt);
    }
    (void)sql_release(select->conn, stmt);
    sql_done(&sql);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Are there too many to be listed? */
static int origins_count(const struct trail_select *select, bool *ret_many)
{
    const struct ng_trail *trail = select->trail;
    struct sql sql = {0};
    int64_t most = ORIGINS_BY_SCAN;
    if (trail->runs.count + trail->agents.count == 0) {
        sql_add(&sql, "SELECT max(origin) FROM origins");
    } else {
        most = ORIGINS_BY_INDEX;
        sql_add(&sql, "SELECT count(*) FROM (SELECT 1 FROM origins WHERE 1");
        trail_add_names(&sql, trail->runs.count > 0 ? "run" : "agent",
                        trail->runs.count > 0 ? &trail->runs : &trail->agents);
        sql_add(&sql, " LIMIT ");
        sql_bind_int(&sql, most + 1);
        sql_add(&sql, ")");
    }
    int64_t count = sql_number(select->conn, &sql);
    *ret_many = count > most;
    return count < 0 ? SQLITE_ERROR : SQLITE_OK;
}

static int spans_all(struct trail_select *select)
{
    select->span_count = 0;
    return span_add(select, 1, INT64_MAX);
}

int trail_find_origins(struct trail_select *select)
{
    bool many = false;
    int rc = origins_count(select, &many);
    if (rc == SQLITE_OK && many) {
        return spans_all(select);
    }
    select->span_count = 0;
    if (rc == SQLITE_OK) {
        rc = origins_read(select);
    }
    select->has_all = rc == SQLITE_OK;
    spans_merge(select);
    return rc;
}

int trail_wants_origin(struct trail_select *select, int64_t origin, bool *ret)
{
    *ret = !select->by_origin || bits_has(&select->wanted, origin);
    if (*ret || select->has_all || bits_has(&select->known, origin)) {
        return SQLITE_OK;
    }
    int rc = SQLITE_OK;
    if (select->origin == NULL) {
        struct sql sql = {0};
        sql_add(&sql, "SELECT 1 FROM origins o WHERE o.origin=");
        sql_bind_int(&sql, origin);
        add_origin(&sql, select->trail);
        rc = sql_prepare(select->conn, &sql, &select->origin);
        sql_done(&sql);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    (void)sqlite3_bind_int64(select->origin, 1, origin);
    rc = sqlite3_step(select->origin);
    *ret = rc == SQLITE_ROW;
    (void)sqlite3_reset(select->origin);
    select->looks += LOOK_ORIGIN;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return rc;
    }
    rc = bits_add(&select->known, origin);
    return rc == SQLITE_OK && *ret ? bits_add(&select->wanted, origin) : rc;
}

/* ---- documents ---- */

static int doc_take(struct trail_select *select, int64_t doc)
{
    if (array_reserve((void **)&select->few, &select->few_cap, select->few_count + 1,
                      sizeof(*select->few), DOCS_MARKED + 1) != NG_OK) {
        return SQLITE_NOMEM;
    }
    select->few[select->few_count++] = (struct trail_doc){.doc = doc};
    return SQLITE_OK;
}

/* The index of ids has no more than the number of a document. */
static int docs_read(struct trail_select *select)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    sql_add(&sql, "SELECT d.doc FROM docs d INDEXED BY docs_key WHERE d.shelf");
    add_shelves(&sql, select->trail);
    trail_add_id(&sql, select->trail);
    sql_add(&sql, " LIMIT ");
    sql_bind_int(&sql, DOCS_MARKED + 1);
    int rc = sql_prepare(select->conn, &sql, &stmt);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = doc_take(select, sqlite3_column_int64(stmt, 0));
    }
    (void)sql_release(select->conn, stmt);
    sql_done(&sql);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* No change of the documents is newer than the newest of these. */
static int docs_newest(struct trail_select *select)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    uint64_t newest = 0;
    sql_add(&sql, "SELECT seq FROM docs WHERE doc=?1");
    int rc = sql_prepare(select->conn, &sql, &stmt);
    sql_done(&sql);
    for (size_t i = 0; i < select->few_count && rc == SQLITE_OK; i++) {
        (void)sqlite3_bind_int64(stmt, 1, select->few[i].doc);
        int step = sqlite3_step(stmt);
        newest = u64_max(newest, step == SQLITE_ROW ? column_u64(stmt, 0) : 0);
        rc = sqlite3_reset(stmt);
    }
    (void)sql_release(select->conn, stmt);
    select->until = u64_min(select->until, newest);
    return rc == SQLITE_OK ? spans_all(select) : rc;
}

static int docs_find(struct trail_select *select)
{
    int rc = docs_read(select);
    if (rc != SQLITE_OK || select->few_count > DOCS_MARKED) {
        select->kind = TRAIL_DOCS_MANY;
        return rc;
    }
    if (select->few_count <= DOCS_FEW) {
        select->kind = TRAIL_DOCS_FEW;
        return SQLITE_OK;
    }
    select->kind = TRAIL_DOCS_MARKED;
    for (size_t i = 0; i < select->few_count && rc == SQLITE_OK; i++) {
        rc = bits_add(&select->docs, select->few[i].doc);
    }
    bool look_up = rc == SQLITE_OK && select->few_count <= DOCS_NEWEST;
    return look_up ? docs_newest(select) : rc;
}

int trail_select(struct conn *conn, const struct ng_trail *trail, struct trail_select *ret)
{
    *ret = (struct trail_select){.conn = conn, .trail = trail, .until = trail->until};
    size_t shelves = trail->collections.count + trail->spaces.count;
    ret->by_origin = shelves + trail->runs.count + trail->agents.count > 0;
    int rc = spans_all(ret);
    if (rc == SQLITE_OK && trail->id.data != NULL) {
        rc = docs_find(ret);
    }
    return rc;
}

void trail_select_done(struct trail_select *select)
{
    (void)sql_release(select->conn, select->origin);
    free(select->wanted.words);
    free(select->known.words);
    free(select->docs.words);
    free(select->spans);
    free(select->few);
}
