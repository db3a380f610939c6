/* SPDX-License-Identifier: MIT */
/*
 * purge.c - removes a purged document from the store. purge_run() removes its revisions in
 * short transactions, the newest first: a splice is never kept without the revision it is based
 * on. purge_sweep() removes their bytes from the file: it merges the segments of the search
 * indexes, rewrites the file (VACUUM, because free pages and gaps within pages keep old bytes),
 * and empties the log.
 */
#include <time.h>

#include "../store/db.h"
#include "core/base/minmax.h"
#include "upkeep.h"

/* Revisions of one transaction. */
#define PURGE_ROWS 256
/* Pages of a search index that the first transaction merges. Each further one merges twice as
 * many. Their number is limited, because commits between them add segments. */
#define MERGE_PAGES 512
#define MERGE_DOUBLINGS 12
/* A larger file is not rewritten, because commits wait until VACUUM ends. */
#define SWEEP_BYTES_MAX ((uint64_t)2 * 1024 * 1024 * 1024)
/* VACUUM writes two copies: a temporary file and the log. */
#define SWEEP_COPIES 2
/* Attempts to empty the log while readers use it; busy timeout of one; pause between two. */
#define LOG_TRIES 40
#define LOG_BUSY_MS 20
#define LOG_PAUSE_NS 50000000L

/* ---- events ---- */

int purge_events(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                 struct ng_str about, uint64_t since, uint64_t until, ng_event_fn *event,
                 void *user)
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
    sql_add(&sql, "SELECT " EVENT_COLUMNS EVENT_TABLES " WHERE l.seq>");
    sql_bind_int(&sql, (int64_t)u64_min(since, INT64_MAX));
    sql_add(&sql, " AND l.seq<=");
    sql_bind_int(&sql, (int64_t)u64_min(until, INT64_MAX));
    sql_printf(&sql, " AND l.flags&%d=0 AND s.space=", LOG_QUIET);
    sql_bind(&sql, &space);
    sql_add(&sql, " AND (s.collection=");
    sql_bind(&sql, &collection);
    sql_add(&sql, " AND d.id=");
    sql_bind(&sql, &id);
    sql_add(&sql, " AND l.revision<");
    sql_bind_int(&sql, (int64_t)u64_min(revision, INT64_MAX));
    sql_add(&sql, " OR instr(l.data,");
    sql_bind(&sql, &part);
    sql_add(&sql, ")>0) ORDER BY l.seq");
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_ERROR;
    if (sql_prepare(conn, &sql, &stmt) == SQLITE_OK) {
        step = SQLITE_ROW;
    }
    while (step == SQLITE_ROW && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct ng_event one = event_from_stmt(stmt);
        if (event(user, &one) != 0) {
            step = SQLITE_DONE;
        }
    }
    if (step != SQLITE_DONE) {
        rc = conn_fail(conn, call, "reading the events about a document");
    }
    (void)sql_release(conn, stmt);
    sql_done(&sql);
    reader_end(conn);
    return rc;
}

/* ---- one transaction ---- */

struct purge {
    struct db *db;
    struct ng_call *call;
    const struct ng_key *key;
    uint64_t revision;
    int64_t doc;     /* 0: there is no such document */
    uint64_t before; /* revisions from here on are done */
    const uint64_t *seqs;
    size_t count;
    int64_t index; /* whose segments are merged */
    int pages;
    bool more; /* the step is to be done again */
};

/* NG_EINTERNAL: the error of the connection. NG_EUNAVAILABLE: the history is damaged. */
typedef int purge_step_fn(struct purge *purge, struct conn *conn);

static int purge_step(struct purge *purge, purge_step_fn *step)
{
    struct db *db = purge->db;
    int rc = NG_EINTERNAL;
    purge->more = false;
    if (purge->call->host->cancelled(purge->call)) {
        return ng_fail(purge->call, NG_ETIMEOUT,
                       "a purge reached its time limit; upkeep continues it");
    }
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

/* ---- revisions ---- */

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

/* Stores the deletion whole, because the revision before it is removed. */
static int purge_free(struct purge *purge, struct conn *conn)
{
    struct state state = {0};
    int rc = purge_find(purge, conn);
    purge->before = purge->revision;
    if (rc != NG_OK || purge->doc == 0) {
        return rc;
    }
    rc = state_load(conn, purge->doc, purge->revision, &state);
    if (rc == NG_OK) {
        rc = revision_make_whole(conn, purge->doc, purge->revision, &state);
    } else if (rc == NG_ENOTFOUND) {
        rc = NG_OK; /* not kept: no revision depends on another */
    }
    state_done(&state);
    return rc;
}

static void purge_range(struct sql *sql, const struct purge *purge, uint64_t from)
{
    sql_add(sql, " doc=");
    sql_bind_int(sql, purge->doc);
    sql_add(sql, " AND revision>=");
    sql_bind_int(sql, (int64_t)from);
    sql_add(sql, " AND revision<");
    sql_bind_int(sql, (int64_t)purge->before);
}

static int purge_rows(struct purge *purge, struct conn *conn)
{
    struct sql sql = {0};
    uint64_t from = purge->before - u64_min(purge->before, PURGE_ROWS);
    sql_printf(&sql,
               "DELETE FROM trail WHERE seq IN (SELECT seq FROM log WHERE flags&%d<>0 AND",
               LOG_QUIET);
    purge_range(&sql, purge, from);
    sql_add(&sql, ")");
    int rc = sql_run(conn, &sql);
    if (rc == NG_OK) {
        sql_printf(&sql, "DELETE FROM log WHERE flags&%d<>0 AND", LOG_QUIET);
        purge_range(&sql, purge, from);
        rc = sql_run(conn, &sql);
    }
    if (rc == NG_OK) {
        sql_add(&sql, "UPDATE log SET kind=0,hash=x'',data=NULL,json_at=NULL,json_removed=NULL,"
                      "text_at=NULL,text_removed=NULL,text_size=0,json=NULL,text=NULL WHERE");
        purge_range(&sql, purge, from);
        rc = sql_run(conn, &sql);
    }
    purge->before = from;
    purge->more = from > 0;
    return rc;
}

int purge_run(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision)
{
    struct purge purge = {.db = self, .call = call, .key = key, .revision = revision};
    int rc = purge_step(&purge, purge_free);
    purge.more = purge.doc != 0;
    while (rc == NG_OK && purge.more) {
        rc = purge_step(&purge, purge_rows);
    }
    return rc;
}

/* ---- data of events ---- */

static int purge_seqs(struct purge *purge, struct conn *conn)
{
    int rc = NG_OK;
    for (size_t i = 0; i < purge->count && rc == NG_OK; i++) {
        struct sql sql = {0};
        sql_add(&sql, "UPDATE log SET data=NULL WHERE data IS NOT NULL AND seq=");
        sql_bind_int(&sql, (int64_t)purge->seqs[i]);
        rc = sql_run(conn, &sql);
    }
    return rc;
}

int purge_data(void *self, struct ng_call *call, const uint64_t *seqs, size_t count)
{
    struct purge purge = {.db = self, .call = call, .seqs = seqs, .count = count};
    return purge_step(&purge, purge_seqs);
}

/* ---- the sweep ---- */

/* A negative number of pages merges all segments into one, and so drops the words of documents
 * that are gone, as `optimize` does at once. */
static int sweep_merge(struct purge *purge, struct conn *conn)
{
    struct sql sql = {0};
    int before = sqlite3_total_changes(conn->sql);
    long long id = (long long)purge->index;
    sql_printf(&sql, "INSERT INTO search_%lld(search_%lld,rank) VALUES('merge',%d)", id, id,
               -purge->pages);
    int rc = sql_run(conn, &sql);
    /* FTS5 documents at least 2 changes if there was something to merge. */
    purge->more = rc == NG_OK && sqlite3_total_changes(conn->sql) - before >= 2;
    return rc;
}

/* Of all collections: that of the journal's references has titles, too. */
static int sweep_indexes(struct purge *purge)
{
    struct db *db = purge->db;
    lock_take(&db->collections_lock);
    const struct db_collection *one = db->collections;
    lock_release(&db->collections_lock);
    int rc = NG_OK;
    for (; one != NULL && rc == NG_OK; one = one->next) {
        bool is_newest = collection_find(db, str_of(one->name, one->name_len)) == one;
        purge->index = one->id;
        purge->more = is_newest && one->columns > 0;
        for (int i = 0; i < MERGE_DOUBLINGS && purge->more && rc == NG_OK; i++) {
            purge->pages = MERGE_PAGES << i;
            rc = purge_step(purge, sweep_merge);
        }
    }
    return rc;
}

static int sweep_file(struct purge *purge)
{
    struct db *db = purge->db;
    int rc = NG_OK;
    work_enter(db);
    uint64_t bytes = disk_bytes(db->writer);
    bool full = disk_free(db) / SWEEP_COPIES < bytes;
    bool runs = bytes <= SWEEP_BYTES_MAX && !full;
    if (runs && (work_sync(db) != SQLITE_OK ||
                 sqlite3_exec(db->writer->sql,
                              "PRAGMA temp_store=FILE; VACUUM; PRAGMA temp_store=MEMORY;", NULL,
                              NULL, NULL) != SQLITE_OK)) {
        rc = conn_fail(db->writer, purge->call, "a purge");
        (void)sqlite3_exec(db->writer->sql, "PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
    }
    work_leave(db);
    if (!runs && bytes > SWEEP_BYTES_MAX) {
        purge->call->host->log(purge->call, NG_LOG_WARNING,
                               "%s has over %llu bytes and is not written anew: free space in "
                               "it keeps bytes of what was purged until it is used again",
                               db->path, (unsigned long long)SWEEP_BYTES_MAX);
    } else if (!runs) {
        rc =
            ng_fail(purge->call, NG_EFULL,
                    "%s cannot be written anew after a purge: it needs %llu bytes of free disk "
                    "space",
                    db->path, (unsigned long long)bytes * SWEEP_COPIES);
    }
    return rc;
}

/* Copies the log into the database and empties it. */
static int sweep_log(struct purge *purge)
{
    const struct timespec pause = {0, LOG_PAUSE_NS};
    struct db *db = purge->db;
    int rc = SQLITE_BUSY;
    for (int i = 0; i < LOG_TRIES && rc != SQLITE_OK; i++) {
        if (i > 0) {
            (void)nanosleep(&pause, NULL);
        }
        work_enter(db);
        (void)sqlite3_busy_timeout(db->writer->sql, LOG_BUSY_MS);
        rc = sqlite3_wal_checkpoint_v2(db->writer->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                       NULL);
        (void)sqlite3_busy_timeout(db->writer->sql, BUSY_MS);
        work_leave(db);
    }
    if (rc == SQLITE_OK) {
        return NG_OK;
    }
    return ng_fail(purge->call, NG_EBUSY,
                   "the log of %s could not be emptied (%s); upkeep tries again", db->path,
                   sqlite3_errstr(rc));
}

int purge_sweep(void *self, struct ng_call *call)
{
    struct purge purge = {.db = self, .call = call};
    int rc = fts_catch_up(purge.db, call, 0);
    if (rc == NG_OK) {
        rc = sweep_indexes(&purge);
    }
    if (rc == NG_OK && !purge.db->memory) {
        rc = sweep_file(&purge);
    }
    if (rc == NG_OK && !purge.db->memory) {
        rc = sweep_log(&purge);
    }
    return rc;
}
