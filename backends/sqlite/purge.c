/* SPDX-License-Identifier: MIT */
/*
 * purge.c - removes what a purged document was, from the tables and from the file: the rows of
 * its revisions, the segments of the search index that have its words, pages that are free, and
 * the log. Within pages that stay, sqlite overwrites what is removed (secure_delete). In short
 * transactions, so that commits go on between them; all of it can be repeated.
 */
#include "db.h"

/* Events that one transaction looks at. */
#define ABOUT_EVENTS 50000
/* Bytes of free pages that one transaction writes over. */
#define FILL_BYTES ((int64_t)16 * 1024 * 1024)
/* Pages of the search index that one transaction merges. */
#define MERGE_PAGES 512
/* A page of a blob that fills free pages holds this much less. */
#define FILL_PAGE_HEAD 64

/* ---- events ---- */

#define EVENT_COLUMNS                                                                          \
    "l.seq,l.time_ms,s.collection,s.space,d.id,l.revision,l.agent,l.tool,l.action,l.data"

/* Gives the events of the query; *ret_stopped: the caller wants no more. */
static int purge_give(struct conn *conn, struct ng_call *call, struct sql *sql,
                      ng_event_fn *event, void *user, bool *ret_stopped)
{
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_ERROR;
    if (sql_prepare(conn, sql, &stmt) == SQLITE_OK) {
        step = SQLITE_ROW;
    }
    while (step == SQLITE_ROW && !*ret_stopped && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct ng_event one = event_from_stmt(stmt);
        *ret_stopped = event(user, &one) != 0;
    }
    int rc = NG_OK;
    if (step != SQLITE_DONE && !*ret_stopped) {
        rc = conn_fail(conn, call, "reading the events of a document");
    }
    (void)sql_release(conn, stmt);
    sql_done(sql);
    return rc;
}

int purge_events(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                 struct ng_str about, ng_event_fn *event, void *user)
{
    struct conn *conn = NULL;
    int rc = reader_begin(self, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    struct sql sql = {0};
    struct bound collection = {.kind = BOUND_TEXT, .bytes = key->collection};
    struct bound space = {.kind = BOUND_TEXT, .bytes = key->space};
    struct bound id = {.kind = BOUND_BLOB, .bytes = key->id};
    struct bound part = {.kind = BOUND_BLOB, .bytes = about};
    bool stopped = false;
    sql_add(&sql, "SELECT " EVENT_COLUMNS " FROM shelves s JOIN docs d ON d.shelf=s.shelf JOIN "
                  "log l ON l.doc=d.doc WHERE s.collection=");
    sql_bind(&sql, &collection);
    sql_add(&sql, " AND s.space=");
    sql_bind(&sql, &space);
    sql_add(&sql, " AND d.id=");
    sql_bind(&sql, &id);
    sql_add(&sql, " AND l.revision<");
    sql_bind_int(&sql, (int64_t)revision);
    sql_printf(&sql, " AND l.flags&%d=0 ORDER BY l.revision", LOG_QUIET);
    rc = purge_give(conn, call, &sql, event, user, &stopped);
    if (rc == NG_OK && !stopped) {
        sql_add(&sql, "SELECT " EVENT_COLUMNS " FROM log l JOIN docs d ON d.doc=l.doc JOIN "
                      "shelves s ON s.shelf=d.shelf WHERE s.space=");
        sql_bind(&sql, &space);
        sql_printf(&sql, " AND l.flags&%d=0 AND instr(l.data,", LOG_QUIET);
        sql_bind(&sql, &part);
        sql_add(&sql, ")>0 ORDER BY l.seq");
        rc = purge_give(conn, call, &sql, event, user, &stopped);
    }
    reader_end(conn);
    return rc;
}

/* ---- one transaction ---- */

struct purge {
    struct db *db;
    struct ng_call *call;
    const struct ng_key *key;
    uint64_t revision;
    struct ng_str about;
    int64_t doc;                       /* 0: there is no such document */
    int64_t after;                     /* events up to this one have been looked at */
    const struct db_collection *index; /* whose search index is merged */
    bool more;                         /* a step is to be done again */
};

/* 0 and negative: NG_OK or an error, with the message in the connection unless it is another
 * one than NG_EINTERNAL. */
typedef int purge_step_fn(struct purge *purge, struct conn *conn);

static int purge_exec(struct conn *conn, const char *text)
{
    return sqlite3_exec(conn->sql, text, NULL, NULL, NULL) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
}

static int purge_step(struct purge *purge, purge_step_fn *step)
{
    struct db *db = purge->db;
    int rc = NG_EINTERNAL;
    purge->more = false;
    work_enter(db);
    counts_thin(db);
    if (work_open(db, true) == SQLITE_OK) {
        rc = step(purge, db->writer);
    }
    if (rc == NG_EINTERNAL) {
        rc = conn_fail(db->writer, purge->call, "a purge");
    } else if (rc != NG_OK) {
        rc = ng_fail(purge->call, NG_EUNAVAILABLE,
                     "the history in %s is damaged: run `notegate verify` and restore from a "
                     "backup",
                     db->path);
    }
    if (work_close(db, rc == NG_OK) != SQLITE_OK && rc == NG_OK) {
        rc = ng_fail(purge->call, NG_EUNAVAILABLE,
                     "a purge failed: %s could not be written; check the disk", db->path);
    }
    counts_thin(db);
    work_leave(db);
    return rc;
}

static int purge_steps(struct purge *purge, purge_step_fn *step)
{
    int rc = NG_OK;
    do {
        if (purge->call->host->cancelled(purge->call)) {
            return ng_fail(purge->call, NG_ETIMEOUT,
                           "a purge reached its time limit; upkeep continues it");
        }
        rc = purge_step(purge, step);
    } while (rc == NG_OK && purge->more);
    return rc;
}

/* ---- the steps ---- */

static int purge_find(struct purge *purge, struct conn *conn)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_GET);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_text(stmt, 1, purge->key->collection);
    (void)bind_text(stmt, 2, purge->key->space);
    (void)bind_blob(stmt, 3, purge->key->id);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        purge->doc = sqlite3_column_int64(stmt, 0);
    }
    (void)sqlite3_reset(stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? NG_OK : NG_EINTERNAL;
}

static int purge_rows(struct purge *purge, struct conn *conn)
{
    struct state state = {0};
    struct sql sql = {0};
    int rc = purge_find(purge, conn);
    if (rc != NG_OK || purge->doc == 0) {
        return rc;
    }
    /* The deletion no longer follows from the revision before it. */
    rc = state_load(conn, purge->doc, purge->revision, &state);
    if (rc == NG_OK) {
        rc = revision_make_whole(conn, purge->doc, purge->revision, &state);
    }
    state_done(&state);
    if (rc != NG_OK) {
        return rc;
    }
    sql_printf(&sql, "DELETE FROM log WHERE flags&%d<>0 AND doc=", LOG_QUIET);
    sql_bind_int(&sql, purge->doc);
    sql_add(&sql, " AND revision<");
    sql_bind_int(&sql, (int64_t)purge->revision);
    rc = sql_run(conn, &sql);
    if (rc != NG_OK) {
        return rc;
    }
    sql_add(&sql, "UPDATE log SET kind=0,data=NULL,json_at=NULL,json_removed=NULL,text_at=NULL,"
                  "text_removed=NULL,json=NULL,text=NULL WHERE doc=");
    sql_bind_int(&sql, purge->doc);
    sql_add(&sql, " AND revision<");
    sql_bind_int(&sql, (int64_t)purge->revision);
    return sql_run(conn, &sql);
}

/* Events of other documents about this one. */
static int purge_others(struct purge *purge, struct conn *conn)
{
    struct bound part = {.kind = BOUND_BLOB, .bytes = purge->about};
    struct bound space = {.kind = BOUND_TEXT, .bytes = purge->key->space};
    struct sql sql = {0};
    int64_t until = purge->after + ABOUT_EVENTS;
    sql_add(&sql, "UPDATE log SET data=NULL WHERE seq>");
    sql_bind_int(&sql, purge->after);
    sql_add(&sql, " AND seq<=");
    sql_bind_int(&sql, until);
    sql_add(&sql, " AND instr(data,");
    sql_bind(&sql, &part);
    sql_add(&sql, ")>0 AND doc IN (SELECT d.doc FROM docs d JOIN shelves s ON s.shelf=d.shelf "
                  "WHERE d.doc=log.doc AND s.space=");
    sql_bind(&sql, &space);
    sql_add(&sql, ")");
    int rc = sql_run(conn, &sql);
    purge->after = until;
    purge->more = rc == NG_OK && (uint64_t)until < atomic_load(&purge->db->last_seq);
    return rc;
}

static int take_number(void *user, sqlite3_stmt *stmt)
{
    *(int64_t *)user = sqlite3_column_int64(stmt, 0);
    return 1;
}

/* A negative number of pages merges all segments into one, and so drops the words of documents
 * that are gone, as `optimize` does at once. */
static int purge_merge(struct purge *purge, struct conn *conn)
{
    struct sql sql = {0};
    int before = sqlite3_total_changes(conn->sql);
    long long id = (long long)purge->index->id;
    sql_printf(&sql, "INSERT INTO search_%lld(search_%lld,rank) VALUES('merge',%d)", id, id,
               -MERGE_PAGES);
    int rc = sql_run(conn, &sql);
    /* Documented: at least 2 changes if there was something to merge. */
    purge->more = rc == NG_OK && sqlite3_total_changes(conn->sql) - before >= 2;
    return rc;
}

/* Of all collections: that of the journal's references has titles, too. */
static int purge_merge_all(struct purge *purge)
{
    int rc = NG_OK;
    lock_take(&purge->db->collections_lock);
    purge->index = purge->db->collections;
    lock_release(&purge->db->collections_lock);
    while (rc == NG_OK && purge->index != NULL) {
        struct ng_str name = str_of(purge->index->name, purge->index->name_len);
        bool is_newest = collection_find(purge->db, name) == purge->index;
        if (is_newest && purge->index->columns > 0) {
            rc = purge_steps(purge, purge_merge);
        }
        purge->index = purge->index->next;
    }
    return rc;
}

static int purge_unfill(struct purge *purge, struct conn *conn)
{
    (void)purge;
    return purge_exec(conn, "DROP TABLE IF EXISTS purge_fill");
}

/* Takes free pages into a table of zeros, which the last step drops. */
static int purge_fill(struct purge *purge, struct conn *conn)
{
    int64_t pages = 0;
    int64_t size = 0;
    struct sql sql = {0};
    int rc = purge_exec(conn, "CREATE TABLE IF NOT EXISTS purge_fill(zeros BLOB)");
    if (rc == NG_OK) {
        rc = sql_each(conn, "PRAGMA freelist_count", take_number, &pages);
    }
    if (rc == NG_OK) {
        rc = sql_each(conn, "PRAGMA page_size", take_number, &size);
    }
    if (rc != NG_OK || pages == 0) {
        return rc;
    }
    int64_t bytes = (size - FILL_PAGE_HEAD) * (pages > 1 ? pages - 1 : 1);
    purge->more = true;
    sql_add(&sql, "INSERT INTO purge_fill VALUES(zeroblob(");
    sql_bind_int(&sql, bytes < FILL_BYTES ? bytes : FILL_BYTES);
    sql_add(&sql, "))");
    return sql_run(conn, &sql);
}

/* Copies the log into the database and empties it. A reader that is at it for long prevents
 * that; then upkeep tries again. */
static int purge_log(struct purge *purge)
{
    struct db *db = purge->db;
    work_enter(db);
    int rc = sqlite3_wal_checkpoint_v2(db->writer->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                       NULL);
    work_leave(db);
    if (rc == SQLITE_OK) {
        return NG_OK;
    }
    return ng_fail(purge->call, NG_EBUSY,
                   "the log of %s could not be emptied (%s); upkeep tries again", db->path,
                   sqlite3_errstr(rc));
}

int purge_run(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
              struct ng_str about)
{
    struct db *db = self;
    struct purge purge = {
        .db = db, .call = call, .key = key, .revision = revision, .about = about};
    int rc = purge_steps(&purge, purge_rows);
    if (rc == NG_OK) {
        rc = purge_steps(&purge, purge_others);
    }
    if (rc == NG_OK) {
        rc = fts_catch_up(db, call, 0);
    }
    if (rc == NG_OK) {
        rc = purge_merge_all(&purge);
    }
    if (rc != NG_OK || db->memory) {
        return rc;
    }
    rc = purge_steps(&purge, purge_unfill); /* of one that was cut off */
    if (rc == NG_OK) {
        rc = purge_steps(&purge, purge_fill);
    }
    if (rc == NG_OK) {
        rc = purge_steps(&purge, purge_unfill);
    }
    return rc == NG_OK ? purge_log(&purge) : rc;
}
