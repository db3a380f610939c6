/* SPDX-License-Identifier: MIT */
/* export.c - all data as one consistent snapshot: whole revisions, events, answers. */
#include "../store/db.h"
#include "upkeep.h"

struct export
{
    struct conn *conn;
    struct ng_call *call;
    ng_record_fn *record;
    void *user;
    struct state state;
    bool stop;
};

/* Exports the kept revisions of the document at the current row of `docs` (columns of GET). */
static int export_doc(void *user, sqlite3_stmt *docs)
{
    struct export *out = user;
    struct ng_doc newest;
    struct ng_record record = {.size = sizeof(record), .kind = NG_RECORD_REVISION};
    row_from_stmt(docs, true, &newest);
    int64_t number = sqlite3_column_int64(docs, 0);
    sqlite3_stmt *stmt = conn_stmt(out->conn, STMT_LOG_UP);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, number);
    (void)sqlite3_bind_int64(stmt, 2, 0);
    (void)bind_u64(stmt, 3, newest.revision - 1);
    int step = SQLITE_DONE;
    int rc = NG_OK;
    while (rc == NG_OK && !out->stop && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct ng_doc doc = newest;
        rc = state_load(out->conn, number, column_u64(stmt, 0), &out->state);
        if (rc != NG_OK) {
            break;
        }
        row_from_log(stmt, &doc);
        doc.json = bytes_str(&out->state.json);
        doc.text = bytes_str(&out->state.text);
        record.doc = &doc;
        out->stop = out->record(out->user, &record) != 0;
        step = SQLITE_DONE;
    }
    (void)sqlite3_reset(stmt);
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = NG_EINTERNAL;
    }
    if (rc == NG_OK && !out->stop) {
        rc = row_add_origin(out->conn, number, &newest);
    }
    if (rc == NG_OK && !out->stop) {
        record.doc = &newest;
        record.newest = true;
        out->stop = out->record(out->user, &record) != 0;
    }
    if (rc != NG_OK) {
        return rc;
    }
    return out->stop;
}

static int export_events(struct export *out)
{
    sqlite3_stmt *stmt = conn_stmt(out->conn, STMT_CHANGES);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, 0);
    (void)sqlite3_bind_int64(stmt, 2, -1);
    int step = SQLITE_DONE;
    while (!out->stop && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct ng_event event = event_from_stmt(stmt);
        struct ng_record record = {
            .size = sizeof(record), .kind = NG_RECORD_EVENT, .event = &event};
        out->stop = out->record(out->user, &record) != 0;
    }
    (void)sqlite3_reset(stmt);
    if (out->stop || step == SQLITE_DONE) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

static int export_answer(void *user, sqlite3_stmt *stmt)
{
    struct export *out = user;
    struct ng_answer answer = {
        .size = sizeof(answer),
        .scope = column_str(stmt, 0),
        .body_hash = column_str(stmt, 1),
        .reply = column_str(stmt, 2),
        .time_ms = sqlite3_column_int64(stmt, 3),
        .expires_ms = sqlite3_column_int64(stmt, 4),
    };
    struct ng_record record = {
        .size = sizeof(record), .kind = NG_RECORD_ANSWER, .answer = &answer};
    out->stop = out->record(out->user, &record) != 0;
    return out->stop;
}

static int export_seq(struct export *out)
{
    struct ng_record record = {.size = sizeof(record), .kind = NG_RECORD_SEQ};
    sqlite3_stmt *stmt = conn_stmt(out->conn, STMT_META_GET);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_text(stmt, 1, ng_str_of("seq"));
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        record.seq = column_u64(stmt, 0);
    }
    (void)sqlite3_reset(stmt);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        return NG_EINTERNAL;
    }
    (void)out->record(out->user, &record);
    return NG_OK;
}

/* A reader of a store in memory blocks the writer, so an export reads a copy. */
static int copy_memory(struct conn *from, struct conn *ret)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(":memory:", &ret->sql, flags, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_backup *copy = sqlite3_backup_init(ret->sql, "main", from->sql, "main");
        if (copy == NULL) {
            return SQLITE_NOMEM;
        }
        rc = sqlite3_backup_step(copy, -1);
        int end = sqlite3_backup_finish(copy);
        if (rc == SQLITE_DONE) {
            rc = end;
        }
    }
    return rc;
}

static int run(struct export *out)
{
    int rc = sql_each(out->conn, "SELECT " DOC_COLUMNS " FROM " DOC_TABLES " ORDER BY d.doc",
                      export_doc, out);
    if (rc == NG_OK && !out->stop) {
        rc = export_events(out);
    }
    if (rc == NG_OK && !out->stop) {
        rc = sql_each(out->conn,
                      "SELECT scope,body_hash,reply,time_ms,expires_ms FROM answers ORDER BY "
                      "answer",
                      export_answer, out);
    }
    if (rc == NG_OK && !out->stop) {
        rc = export_seq(out);
    }
    if (rc == NG_EINTERNAL) {
        rc = conn_fail(out->conn, out->call, "the export");
    } else if (rc != NG_OK) {
        rc = ng_fail(out->call, NG_EUNAVAILABLE,
                     "a revision in %s cannot be rebuilt: run `notegate verify` and restore "
                     "from a backup",
                     out->conn->db->path);
    }
    state_done(&out->state);
    return rc;
}

int export_all(void *self, struct ng_call *call, ng_record_fn *record, void *user)
{
    struct db *db = self;
    struct conn *conn = NULL;
    int rc = reader_begin(db, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    struct export out = {.conn = conn, .call = call, .record = record, .user = user};
    if (!db->memory) {
        rc = run(&out);
        reader_end(conn);
        return rc;
    }
    struct conn *copy = calloc(1, sizeof(*copy));
    if (copy == NULL) {
        reader_end(conn);
        return ng_fail(call, NG_EINTERNAL, "no memory for the export");
    }
    copy->db = db;
    /* The backup interface begins a read transaction of its own. */
    (void)conn_exec(conn, STMT_COMMIT);
    rc = copy_memory(conn, copy);
    reader_end(conn);
    out.conn = copy;
    if (rc == SQLITE_OK) {
        rc = run(&out);
    } else {
        rc = conn_fail(copy, call, "the export");
    }
    conn_close(copy);
    return rc;
}
