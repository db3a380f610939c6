/* SPDX-License-Identifier: MIT */
/* revision.c - the contents of a revision, read along its chain of splices, and the number of
 * revisions of a document. */
#include "db.h"

/* Applies the current row of LOG_CHAIN. */
static int state_apply(struct state *state, sqlite3_stmt *stmt)
{
    struct ng_str json = column_str(stmt, 4);
    struct ng_str text = column_str(stmt, 7);
    int rc;
    if (sqlite3_column_int(stmt, 1) == LOG_WHOLE) {
        rc = bytes_set(&state->json, json);
        if (rc == NG_OK) {
            rc = bytes_set(&state->text, text);
        }
    } else {
        rc = bytes_splice(&state->json, column_u64(stmt, 2), column_u64(stmt, 3), json);
        if (rc == NG_OK) {
            rc = bytes_splice(&state->text, column_u64(stmt, 5), column_u64(stmt, 6), text);
        }
    }
    state->revision = column_u64(stmt, 0);
    return rc;
}

/* Finds the whole copy at or before `revision`. */
static int find_start(struct conn *conn, int64_t doc, uint64_t revision, uint64_t *ret)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_START);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    sqlite3_bind_int64(stmt, 1, doc);
    bind_u64(stmt, 2, revision);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *ret = column_u64(stmt, 0);
        rc = SQLITE_DONE;
    }
    sqlite3_reset(stmt);
    if (rc == SQLITE_DONE) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

int state_load(struct conn *conn, int64_t doc, uint64_t revision, struct state *state)
{
    uint64_t start = 0;
    bool onward = state->doc == doc && state->revision <= revision;
    int rc = find_start(conn, doc, revision, &start);
    if (rc != NG_OK) {
        return rc;
    }
    if (start == 0) {
        return NG_EUNAVAILABLE; /* a splice without a base */
    }
    if (onward && state->revision == revision) {
        return NG_OK;
    }
    if (onward && state->revision >= start) {
        start = state->revision + 1;
    } else {
        state->revision = 0;
    }
    state->doc = doc;
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_CHAIN);
    if (stmt == NULL) {
        state->doc = 0;
        return NG_EINTERNAL;
    }
    sqlite3_bind_int64(stmt, 1, doc);
    bind_u64(stmt, 2, start);
    bind_u64(stmt, 3, revision);
    int step = SQLITE_DONE;
    while (rc == NG_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = state_apply(state, stmt);
    }
    sqlite3_reset(stmt);
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = NG_EINTERNAL;
    }
    if (rc == NG_OK && state->revision != revision) {
        rc = NG_ENOTFOUND;
    }
    if (rc != NG_OK) {
        state->doc = 0;
    }
    return rc;
}

void state_done(struct state *state)
{
    bytes_done(&state->json);
    bytes_done(&state->text);
    state->doc = 0;
}

int revision_make_whole(struct conn *conn, int64_t doc, uint64_t revision,
                        const struct state *state)
{
    struct sql sql = {0};
    struct bound json = {.kind = BOUND_BLOB, .bytes = bytes_str(&state->json)};
    struct bound text = {.kind = BOUND_BLOB, .bytes = bytes_str(&state->text)};
    sql_add(&sql, "UPDATE log SET kind=1,json_at=NULL,json_removed=NULL,text_at=NULL,"
                  "text_removed=NULL,json=");
    sql_bind(&sql, &json);
    sql_add(&sql, ",text=");
    sql_bind(&sql, &text);
    sql_add(&sql, " WHERE kind=2 AND doc=");
    sql_bind_int(&sql, doc);
    sql_add(&sql, " AND revision=");
    sql_bind_int(&sql, (int64_t)revision);
    return sql_run(conn, &sql);
}

/* ---- counts: only maintenance removes revisions, so a count continues from the last known one
 * ----
 */

uint64_t counts_now(struct db *db)
{
    return atomic_load(&db->counts.thinned);
}

void counts_thin(struct db *db)
{
    atomic_fetch_add(&db->counts.thinned, 1);
}

/* With the lock held. */
static struct counted *slot_of(struct db *db, int64_t doc)
{
    return &db->counts.slots[(uint64_t)doc % COUNTS_KEPT];
}

/* The cached count of the revisions up to `to`, or an empty one. */
static struct counted counts_get(struct db *db, int64_t doc, uint64_t to, uint64_t thinned)
{
    struct counted none = {.doc = doc};
    lock_take(&db->counts.lock);
    struct counted known = *slot_of(db, doc);
    lock_release(&db->counts.lock);
    bool holds = known.doc == doc && known.thinned == thinned && known.upto <= to;
    if (holds) {
        return known;
    }
    return none;
}

static void counts_set(struct db *db, const struct counted *known)
{
    lock_take(&db->counts.lock);
    *slot_of(db, known->doc) = *known;
    lock_release(&db->counts.lock);
}

/* Counts by the index of the log alone, without reading its rows. */
static int count_rows(struct conn *conn, int64_t doc, uint64_t from, uint64_t to, uint64_t *ret)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_COUNT);
    if (stmt == NULL) {
        return SQLITE_ERROR;
    }
    (void)sqlite3_bind_int64(stmt, 1, doc);
    (void)bind_u64(stmt, 2, from);
    (void)bind_u64(stmt, 3, to);
    if (sqlite3_step(stmt) != SQLITE_ROW) {
        return SQLITE_ERROR;
    }
    *ret = column_u64(stmt, 0);
    return SQLITE_OK;
}

int counts_between(struct conn *conn, int64_t doc, uint64_t from, uint64_t to, uint64_t thinned,
                   uint64_t *ret)
{
    struct db *db = conn->db;
    if (from > 1 || thinned % 2 != 0 || counts_now(db) != thinned) {
        return count_rows(conn, doc, from, to, ret);
    }
    struct counted known = counts_get(db, doc, to, thinned);
    uint64_t more = 0;
    int rc = SQLITE_OK;
    if (known.upto < to) {
        rc = count_rows(conn, doc, known.upto + 1, to, &more);
    }
    if (rc == SQLITE_OK) {
        known.upto = to;
        known.count += more;
        known.thinned = thinned;
        counts_set(db, &known);
        *ret = known.count;
    }
    return rc;
}
