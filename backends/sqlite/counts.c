/* SPDX-License-Identifier: MIT */
/* counts.c - how many revisions of a document are kept: what was counted once is counted on
 * from there, as only upkeep takes revisions out. */
#include "core/base/lock.h"
#include "db.h"

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

/* What is known of the revisions up to `to`; else nothing is counted yet. */
static struct counted counts_get(struct db *db, int64_t doc, uint64_t to, uint64_t thinned)
{
    struct counted none = {.doc = doc};
    lock_take(&db->counts.lock);
    struct counted known = *slot_of(db, doc);
    lock_release(&db->counts.lock);
    bool holds = known.doc == doc && known.thinned == thinned && known.upto <= to;
    return holds ? known : none;
}

static void counts_set(struct db *db, const struct counted *known)
{
    lock_take(&db->counts.lock);
    *slot_of(db, known->doc) = *known;
    lock_release(&db->counts.lock);
}

/* By the index of the log alone: no row of it is touched. */
static int count_rows(struct conn *conn, int64_t doc, uint64_t from, uint64_t to, uint64_t *ret)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_COUNT);
    if (stmt == NULL) {
        return SQLITE_ERROR;
    }
    (void)sqlite3_bind_int64(stmt, 1, doc);
    (void)bind_u64(stmt, 2, from);
    (void)bind_u64(stmt, 3, to);
    int rc = sqlite3_step(stmt);
    *ret = rc == SQLITE_ROW ? column_u64(stmt, 0) : 0;
    return rc == SQLITE_ROW ? SQLITE_OK : SQLITE_ERROR;
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
    int rc = known.upto < to ? count_rows(conn, doc, known.upto + 1, to, &more) : SQLITE_OK;
    if (rc == SQLITE_OK) {
        known.upto = to;
        known.count += more;
        known.thinned = thinned;
        counts_set(db, &known);
        *ret = known.count;
    }
    return rc;
}
