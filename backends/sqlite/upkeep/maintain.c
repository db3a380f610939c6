/* SPDX-License-Identifier: MIT */
/* maintain.c - upkeep: thins old history to one revision a day, drops expired answers, updates
 * the search index. Always in short transactions, so that commits go on between them. */
#include "../store/db.h"
#include "core/base/array.h"
#include "upkeep.h"

/* Limits of one step: documents read, revisions changed, answers dropped. */
#define LOOK_DOCS 256
#define THIN_ROWS 256
#define ANSWERS_STEP 500
/* Revisions of one document that are old enough to be dropped. */
#define REVISIONS_MAX ((size_t)1 << 30)
#define DAY_MS INT64_C(86400000)

typedef bool pinned_fn(void *user, const struct ng_key *key, uint64_t revision);

struct old_revision {
    uint64_t revision;
    int64_t seq, time_ms;
    bool drop, quiet;
};

struct thin {
    struct db *db;
    struct ng_call *call;
    int64_t cutoff_ms;
    pinned_fn *pinned;
    void *user;
    int64_t doc;
    struct old_revision *list;
    size_t count, cap;
};

static int64_t day_of(int64_t time_ms)
{
    if (time_ms >= 0) {
        return time_ms / DAY_MS;
    }
    return -((-time_ms + DAY_MS - 1) / DAY_MS);
}

/* Marks the revisions to drop: not the first, not the last of a day, not pinned ones. The
 * newest is not in the list. */
static size_t mark(struct thin *thin, const struct ng_key *key)
{
    size_t dropped = 0;
    for (size_t i = 1; i < thin->count; i++) {
        struct old_revision *row = &thin->list[i];
        bool last_of_day =
            i + 1 == thin->count || day_of(thin->list[i + 1].time_ms) != day_of(row->time_ms);
        row->drop = !last_of_day && row->time_ms < thin->cutoff_ms &&
                    (thin->pinned == NULL || !thin->pinned(thin->user, key, row->revision));
        dropped += row->drop;
    }
    return dropped;
}

/* The kept revisions, except the newest, of the document at the current row of `docs`: up to
 * the first that is too young to be dropped, which decides whether the one before it is the
 * last of its day. */
static int look_at(struct thin *thin, struct conn *conn, sqlite3_stmt *docs)
{
    thin->doc = sqlite3_column_int64(docs, 0);
    thin->count = 0;
    uint64_t newest = column_u64(docs, 4);
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_UP);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, thin->doc);
    (void)sqlite3_bind_int64(stmt, 2, 0);
    (void)bind_u64(stmt, 3, newest - 1);
    int step = SQLITE_DONE;
    int rc = NG_OK;
    bool young = false;
    while (rc == NG_OK && !young && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = array_reserve((void **)&thin->list, &thin->cap, thin->count + 1,
                           sizeof(*thin->list), REVISIONS_MAX);
        if (rc != NG_OK) {
            break;
        }
        struct old_revision *row = &thin->list[thin->count++];
        *row = (struct old_revision){
            .revision = column_u64(stmt, 0),
            .seq = sqlite3_column_int64(stmt, 3),
            .time_ms = sqlite3_column_int64(stmt, 4),
            .quiet = (sqlite3_column_int(stmt, 2) & LOG_QUIET) != 0,
        };
        young = row->time_ms >= thin->cutoff_ms;
    }
    (void)sqlite3_reset(stmt);
    if (rc == NG_OK && !young && step != SQLITE_DONE) {
        return NG_EINTERNAL;
    }
    return rc;
}

/* The next document with a revision to drop. thin->doc 0: none. */
static int find_next(struct thin *thin)
{
    int64_t after = thin->doc;
    bool more = true;
    int rc = NG_OK;
    thin->doc = 0;
    while (rc == NG_OK && more) {
        struct conn *conn = NULL;
        sqlite3_stmt *docs = NULL;
        rc = reader_begin(thin->db, thin->call, &conn);
        if (rc != NG_OK) {
            return rc;
        }
        struct sql sql = {0};
        sql_add(&sql, "SELECT d.doc,s.collection,s.space,d.id,d.revision FROM docs d JOIN "
                      "shelves s ON s.shelf=d.shelf WHERE d.doc>");
        sql_bind_int(&sql, after);
        sql_add(&sql, " AND d.revision>2 ORDER BY d.doc LIMIT ");
        sql_bind_int(&sql, LOOK_DOCS);
        int step = SQLITE_ERROR;
        if (sql_prepare(conn, &sql, &docs) == SQLITE_OK) {
            step = SQLITE_ROW;
        }
        more = false;
        bool found = false;
        while (step == SQLITE_ROW && !found && (step = sqlite3_step(docs)) == SQLITE_ROW) {
            struct ng_key key = {column_str(docs, 1), column_str(docs, 2), column_str(docs, 3)};
            more = true;
            after = sqlite3_column_int64(docs, 0);
            if (look_at(thin, conn, docs) != NG_OK) {
                step = SQLITE_ERROR;
            }
            found = step == SQLITE_ROW && mark(thin, &key) > 0;
        }
        if (step != SQLITE_ROW && step != SQLITE_DONE) {
            rc = conn_fail(conn, thin->call, "thinning history");
        }
        (void)sql_release(conn, docs);
        sql_done(&sql);
        reader_end(conn);
        if (found) {
            return rc;
        }
        thin->doc = 0;
    }
    return rc;
}

static int drop_row(struct conn *conn, const struct old_revision *row)
{
    struct sql sql = {0};
    /* Keeps the row of an event; only the body is dropped. */
    sql_add(&sql, row->quiet ? "DELETE FROM log WHERE seq="
                             : "UPDATE log SET kind=0,json_at=NULL,json_removed=NULL,"
                               "text_at=NULL,text_removed=NULL,json=NULL,text=NULL WHERE seq=");
    sql_bind_int(&sql, row->seq);
    int rc = sql_run(conn, &sql);
    if (rc == NG_OK && row->quiet) {
        sql_add(&sql, "DELETE FROM trail WHERE seq=");
        sql_bind_int(&sql, row->seq);
        rc = sql_run(conn, &sql);
    }
    return rc;
}

/* Drops a run of marked revisions, after making the one behind them independent. */
static int drop_rows(struct thin *thin, size_t first, size_t last, struct state *state)
{
    struct conn *conn = thin->db->writer;
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_UP);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    /* Without a revision behind them, no splice depends on the dropped ones. */
    (void)sqlite3_bind_int64(stmt, 1, thin->doc);
    (void)bind_u64(stmt, 2, thin->list[last].revision + 1);
    (void)sqlite3_bind_int64(stmt, 3, INT64_MAX);
    uint64_t behind = 0;
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        behind = column_u64(stmt, 0);
    }
    (void)sqlite3_reset(stmt);
    int rc = NG_OK;
    if (behind > 0) {
        rc = state_load(conn, thin->doc, behind, state);
        if (rc == NG_OK) {
            rc = revision_make_whole(conn, thin->doc, behind, state);
        }
    }
    for (size_t i = first; i <= last && rc == NG_OK; i++) {
        rc = drop_row(conn, &thin->list[i]);
    }
    return rc;
}

/* Drops a run of at most THIN_ROWS in one transaction. */
static int drop_run(struct thin *thin, size_t first, size_t last, struct state *state)
{
    struct db *db = thin->db;
    work_enter(db);
    counts_thin(db);
    int rc = NG_EINTERNAL;
    if (work_open(db, true) == SQLITE_OK) {
        rc = drop_rows(thin, first, last, state);
    }
    if (rc == NG_EINTERNAL) {
        rc = conn_fail(db->writer, thin->call, "thinning history");
    } else if (rc != NG_OK) {
        rc = ng_fail(thin->call, NG_EUNAVAILABLE,
                     "the history in %s is damaged: run `notegate verify` and restore from "
                     "a backup",
                     db->path);
    }
    if (work_close(db, rc == NG_OK) != SQLITE_OK && rc == NG_OK) {
        rc = ng_fail(thin->call, NG_EUNAVAILABLE,
                     "thinning history failed: %s could not be written; check the disk",
                     db->path);
    }
    counts_thin(db);
    work_leave(db);
    return rc;
}

static int thin_doc(struct thin *thin)
{
    struct state state = {0};
    int rc = NG_OK;
    size_t i = 0;
    while (i < thin->count && rc == NG_OK) {
        if (!thin->list[i].drop) {
            i++;
            continue;
        }
        size_t last = i;
        while (last + 1 < thin->count && thin->list[last + 1].drop &&
               last + 1 - i < THIN_ROWS) {
            last++;
        }
        rc = drop_run(thin, i, last, &state);
        i = last + 1;
        if (rc == NG_OK && thin->call->host->cancelled(thin->call)) {
            rc = ng_fail(thin->call, NG_ETIMEOUT,
                         "maintenance reached its time limit; the next run continues it");
        }
    }
    state_done(&state);
    return rc;
}

static int drop_answers(struct db *db, struct ng_call *call, int64_t now_ms)
{
    int changed = ANSWERS_STEP;
    int rc = NG_OK;
    while (rc == NG_OK && changed == ANSWERS_STEP) {
        struct sql sql = {0};
        sql_add(&sql, "DELETE FROM answers WHERE answer IN (SELECT answer FROM answers WHERE "
                      "expires_ms<=");
        sql_bind_int(&sql, now_ms);
        sql_add(&sql, " LIMIT ");
        sql_bind_int(&sql, ANSWERS_STEP);
        sql_add(&sql, ")");
        bool ok = work_begin(db, true) == SQLITE_OK && sql_run(db->writer, &sql) == NG_OK;
        changed = sqlite3_changes(db->writer->sql);
        if (!ok) {
            rc = conn_fail(db->writer, call, "dropping old answers");
        }
        sql_done(&sql);
        if (work_end(db, ok) != SQLITE_OK) {
            rc = ng_fail(call, NG_EUNAVAILABLE,
                         "dropping old answers failed: %s could not be written; check the disk",
                         db->path);
        } else if (rc == NG_OK && changed == ANSWERS_STEP && call->host->cancelled(call)) {
            rc = ng_fail(call, NG_ETIMEOUT,
                         "maintenance reached its time limit; the next run continues it");
        }
    }
    return rc;
}

int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                 pinned_fn *pinned, void *user)
{
    struct db *db = self;
    int rc = drop_answers(db, call, now_ms);
    if (rc == NG_OK && keep_ms > 0) {
        struct thin thin = {.db = db, .call = call, .pinned = pinned, .user = user};
        thin.cutoff_ms = now_ms - keep_ms;
        do {
            rc = find_next(&thin);
            if (rc == NG_OK && thin.doc != 0) {
                rc = thin_doc(&thin);
            }
        } while (rc == NG_OK && thin.doc != 0);
        free(thin.list);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return fts_catch_up(db, call, 0);
}
