/* SPDX-License-Identifier: MIT */
/*
 * revision_at.c - the kept revisions of a document around a point. Numbers and times of its
 * changes grow with the revisions: a search over the revisions finds the newest change before
 * the point, kept or not; the nearest kept ones are beside it. By number here, by time in
 * log_times.c.
 */
#include "revision_at.h"

#include "core/base/minmax.h"
#include "history.h"

bool log_is_after(const struct log_point *point, uint64_t seq, int64_t time_ms)
{
    return seq > point->seq || time_ms > point->time_ms;
}

struct log_row log_row_of(sqlite3_stmt *stmt)
{
    return (struct log_row){
        .revision = column_u64(stmt, 0),
        .seq = column_u64(stmt, 1),
        .kept = sqlite3_column_int(stmt, 2) != LOG_NONE,
        .time_ms = sqlite3_column_int64(stmt, 3),
    };
}

int log_prepare(struct conn *conn, const char *text, int64_t doc, sqlite3_stmt **ret)
{
    struct sql sql = {0};
    sql_add(&sql, text);
    int rc = sql_prepare(conn, &sql, ret);
    sql_done(&sql);
    if (rc == SQLITE_OK) {
        rc = sqlite3_bind_int64(*ret, 1, doc);
    }
    return rc;
}

int log_step(sqlite3_stmt *stmt, uint64_t floor, uint64_t top, struct log_row *ret)
{
    (void)bind_u64(stmt, 2, floor);
    (void)bind_u64(stmt, 3, top);
    int step = sqlite3_step(stmt);
    *ret = step == SQLITE_ROW ? log_row_of(stmt) : (struct log_row){0};
    int rc = sqlite3_reset(stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- by number ---- */

/* Of so many steps of a search one goes to the middle. */
#define SEARCH_MIDDLE 4

enum search_side { SEARCH_NONE, SEARCH_LOW, SEARCH_HIGH };

/* A search: `low` is up to the number (revision 0: all rows are above it), `high` is not, and
 * no row between `low` and `floor` is there. */
struct search {
    uint64_t seq;
    struct log_row low, high;
    uint64_t floor;
    double under, over; /* distances of low and high from the number */
    enum search_side side;
};

static double search_gap(const struct search *search, const struct log_row *row)
{
    return (double)row->seq - (double)search->seq - 0.5;
}

/* The next revision to look at: by the distances (regula falsi, Illinois method), at times the
 * middle, so that the number of steps has a bound. */
static uint64_t search_next(const struct search *search, unsigned steps)
{
    uint64_t left = search->high.revision - search->floor;
    double sum = search->over + search->under;
    if (search->low.revision == 0 || steps % SEARCH_MIDDLE == 0 || !(sum > 0)) {
        return search->floor + left / 2;
    }
    uint64_t guess = search->floor + (uint64_t)(search->under / sum * (double)left);
    return u64_max(search->floor + 1, u64_min(guess, search->high.revision - 1));
}

/* Looks at the newest row up to this revision. The end that stays twice weighs half. */
static int search_step(struct search *search, sqlite3_stmt *stmt, uint64_t revision)
{
    struct log_row row;
    int rc = log_step(stmt, search->floor, revision, &row);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (row.revision != 0 && row.seq > search->seq) {
        search->high = row;
        search->over = search_gap(search, &row);
        search->under /= search->side == SEARCH_HIGH ? 2 : 1;
        search->side = SEARCH_HIGH;
        return SQLITE_OK;
    }
    search->floor = revision;
    if (row.revision != 0) {
        search->low = row;
        search->under = -search_gap(search, &row);
        search->over /= search->side == SEARCH_LOW ? 2 : 1;
        search->side = SEARCH_LOW;
    }
    return SQLITE_OK;
}

int log_find_number(struct conn *conn, int64_t doc, const struct log_row *top, uint64_t seq,
                    struct log_rows *ret)
{
    struct search search = {.seq = seq, .high = *top};
    sqlite3_stmt *stmt = NULL;
    uint64_t next = 1; /* at first the first one */
    /* The index has all of it. */
    int rc = log_prepare(conn, LOG_ROWS("0,0", LOG_NEWEST), doc, &stmt);
    search.over = search_gap(&search, top);
    for (unsigned steps = 1; rc == SQLITE_OK && search.high.revision - search.floor > 1;
         steps++) {
        rc = search_step(&search, stmt, next);
        next = search_next(&search, steps);
    }
    (void)sql_release(conn, stmt);
    *ret = (struct log_rows){search.low, search.high};
    return rc;
}

/* ---- the kept revisions around a point ---- */

/* The present row of a document. */
struct present {
    int64_t doc;
    struct log_row row;
};

static int present_find(struct conn *conn, struct ng_call *call, const struct ng_key *key,
                        struct present *ret)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    int rc = NG_OK;
    sql_add(&sql, "SELECT d.doc,d.revision,d.seq,d.updated_ms FROM shelves s JOIN docs d ON "
                  "d.shelf=s.shelf WHERE s.collection=");
    sql_bind(&sql, &(struct bound){.kind = BOUND_TEXT, .bytes = key->collection});
    sql_add(&sql, " AND s.space=");
    sql_bind(&sql, &(struct bound){.kind = BOUND_TEXT, .bytes = key->space});
    sql_add(&sql, " AND d.id=");
    sql_bind(&sql, &(struct bound){.kind = BOUND_BLOB, .bytes = key->id});
    int step = sql_prepare(conn, &sql, &stmt);
    if (step == SQLITE_OK) {
        step = sqlite3_step(stmt);
    }
    if (step == SQLITE_ROW) {
        ret->doc = sqlite3_column_int64(stmt, 0);
        ret->row = (struct log_row){column_u64(stmt, 1), column_u64(stmt, 2),
                                    sqlite3_column_int64(stmt, 3), true};
    } else if (step == SQLITE_DONE) {
        rc = ng_fail(call, NG_ENOTFOUND, "there is no such document");
    } else {
        rc = conn_fail(conn, call, "reading history");
    }
    (void)sql_release(conn, stmt);
    sql_done(&sql);
    return rc;
}

#define LOG_KEPT(order)                                                                        \
    LOG_ROWS("kind,time_ms", "AND kind>0 ORDER BY revision " order " LIMIT 1")

static int kept_step(struct conn *conn, const char *text, int64_t doc, uint64_t floor,
                     uint64_t top, struct log_row *ret)
{
    sqlite3_stmt *stmt = NULL;
    int rc = log_prepare(conn, text, doc, &stmt);
    if (rc == SQLITE_OK) {
        rc = log_step(stmt, floor, top, ret);
    }
    (void)sql_release(conn, stmt);
    return rc;
}

/* Of the rows between these two, and they themselves, the two next to the point; what is kept
 * of them. */
static int rows_read(struct conn *conn, int64_t doc, const struct log_row *top,
                     const struct log_point *point, struct log_rows *inout)
{
    sqlite3_stmt *stmt = NULL;
    uint64_t floor = inout->before.revision - (inout->before.revision != 0);
    uint64_t last = u64_min(inout->after.revision, top->revision - 1);
    int step = log_prepare(conn, LOG_ROWS("kind,time_ms", "ORDER BY revision"), doc, &stmt);
    *inout = (struct log_rows){.after = *top};
    if (step == SQLITE_OK) {
        (void)bind_u64(stmt, 2, floor);
        (void)bind_u64(stmt, 3, last);
        step = sqlite3_step(stmt);
    }
    for (; step == SQLITE_ROW; step = sqlite3_step(stmt)) {
        struct log_row row = log_row_of(stmt);
        if (log_is_after(point, row.seq, row.time_ms)) {
            inout->after = row;
            break;
        }
        inout->before = row;
    }
    (void)sql_release(conn, stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : step;
}

/* The newest revision is always kept, also if the log lacks it. */
static int kept_around(struct conn *conn, const struct present *present,
                       const struct log_point *point, struct ng_kept *ret)
{
    const struct log_row *newest = &present->row;
    if (!log_is_after(point, newest->seq, newest->time_ms)) {
        ret->before = newest->revision;
        ret->before_seq = newest->seq;
        ret->before_ms = newest->time_ms;
        return SQLITE_OK;
    }
    struct log_rows rows = {0};
    int rc = point->time_ms == INT64_MAX
                 ? log_find_number(conn, present->doc, newest, point->seq, &rows)
                 : log_find_time(conn, present->doc, newest, point, &rows);
    if (rc == SQLITE_OK) {
        rc = rows_read(conn, present->doc, newest, point, &rows);
    }
    struct log_row before = rows.before;
    struct log_row after = rows.after;
    uint64_t last = after.revision - 1; /* before the point */
    if (rc == SQLITE_OK && !before.kept) {
        rc = kept_step(conn, LOG_KEPT("DESC"), present->doc, 0, last, &before);
    }
    if (rc == SQLITE_OK && !after.kept) {
        rc = kept_step(conn, LOG_KEPT("ASC"), present->doc, last, newest->revision - 1, &after);
    }
    if (after.revision == 0) {
        after = *newest;
    }
    *ret = (struct ng_kept){sizeof(*ret),   before.revision, before.seq,   before.time_ms,
                            after.revision, after.seq,       after.time_ms};
    return rc;
}

int read_revision_at(void *self, struct ng_call *call, const struct ng_key *key, uint64_t seq,
                     int64_t time_ms, struct ng_kept *ret)
{
    const struct log_point point = {seq, time_ms};
    struct conn *conn = NULL;
    struct present present = {0};
    struct ng_kept kept = {.size = sizeof(kept)};
    int rc = reader_begin(self, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    rc = present_find(conn, call, key, &present);
    if (rc == NG_OK && kept_around(conn, &present, &point, &kept) != SQLITE_OK) {
        rc = conn_fail(conn, call, "reading history");
    }
    if (rc == NG_OK) {
        ng_fill(ret, &kept);
    }
    reader_end(conn);
    return rc;
}
