/* SPDX-License-Identifier: MIT */
/* fts.c - the full-text index: one table for each collection, updated from the list of changed
 * documents in steps that are small enough to fit between two commits. */
#include "core/base/minmax.h"
#include "places.h"

#include <inttypes.h>
#include <stdio.h>

/* Limits of one step, in documents and bytes. A search that finds more to index doubles both
 * with each of its steps: steady writers could otherwise outrun it forever. */
#define STEP_DOCS 64
#define STEP_BYTES ((size_t)256 * 1024)
#define STEP_DOUBLINGS_MAX 6
/* Limit of collections that one step finishes. */
#define STEP_COLLECTIONS 16
/* Raised when texts are tokenised differently: then all is indexed again. No field has this
 * name. */
#define LAYOUT_VERSION "*3"

/* ---- what waits ---- */

/* A collection that was declared again has several records: mark all. */
static void mark(struct db *db, int64_t collection, bool dirty)
{
    lock_take(&db->collections_lock);
    for (struct db_collection *at = db->collections; at != NULL; at = at->next) {
        if (at->id == collection) {
            atomic_store(&at->dirty, dirty);
        }
    }
    lock_release(&db->collections_lock);
}

void fts_mark(struct db *db, const struct db_collection *collection)
{
    if (!atomic_load(&collection->dirty)) {
        mark(db, collection->id, true);
    }
    atomic_store(&db->dirty, true);
}

/* May the index of the collection be out of date? 0: of any. */
static bool waits(struct db *db, int64_t collection)
{
    bool dirty = atomic_load(&db->dirty);
    lock_take(&db->collections_lock);
    const struct db_collection *at = db->collections;
    while (at != NULL && at->id != collection) {
        at = at->next;
    }
    if (at != NULL) {
        dirty = atomic_load(&at->dirty);
    }
    lock_release(&db->collections_lock);
    return dirty;
}

/* ---- the table ---- */

/* The layout of the table, stored with the collection: when it changes, the table is
 * rebuilt. */
static int layout_of(const struct db_collection *collection, struct bytes *ret)
{
    (void)bytes_add_c(ret, LAYOUT_VERSION "\n");
    for (size_t i = 0; i < collection->field_count; i++) {
        if (collection->fields[i].column >= 0) {
            (void)bytes_add(ret, collection->fields[i].name, collection->fields[i].name_len);
            (void)bytes_add(ret, "\n", 1);
        }
    }
    if (collection->text_column) {
        (void)bytes_add(ret, "*", 1);
    }
    return ret->rc;
}

static int get_layout(struct conn *conn, int64_t collection, struct bytes *ret)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn->sql, "SELECT search FROM collections WHERE collection=?1",
                                -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_bind_int64(stmt, 1, collection);
        rc = sqlite3_step(stmt);
    }
    int code = NG_EINTERNAL;
    if (rc == SQLITE_ROW) {
        code = bytes_set(ret, column_str(stmt, 0));
    }
    (void)sqlite3_finalize(stmt);
    return code;
}

static int set_layout(struct conn *conn, int64_t collection, struct ng_str layout)
{
    struct sql sql = {0};
    struct bound text = {.kind = BOUND_TEXT, .bytes = layout};
    sql_add(&sql, "UPDATE collections SET search=");
    sql_bind(&sql, &text);
    sql_printf(&sql, " WHERE collection=%" PRId64, collection);
    return sql_run(conn, &sql);
}

/* Runs the statement with the number of the collection behind it. */
static int run_of(struct conn *conn, const char *text, int64_t collection)
{
    struct sql sql = {0};
    sql_printf(&sql, "%s%" PRId64, text, collection);
    return sql_run(conn, &sql);
}

static int make_table(struct conn *conn, const struct db_collection *collection)
{
    struct sql make = {0};
    sql_printf(&make, "CREATE VIRTUAL TABLE search_%" PRId64 " USING fts5(", collection->id);
    for (int i = 0; i < collection->columns; i++) {
        sql_printf(&make, "c%d,", i);
    }
    sql_add(&make, "tokenize='notegate')");
    int rc = sql_run(conn, &make);
    if (rc != NG_OK) {
        return rc;
    }
    sql_printf(&make,
               "CREATE TABLE places_%" PRId64 "(doc INTEGER,col INTEGER,token INTEGER,"
               "at INTEGER,PRIMARY KEY(doc,col,token)) WITHOUT ROWID",
               collection->id);
    return sql_run(conn, &make);
}

static int remake(struct conn *conn, const struct db_collection *collection)
{
    int rc = run_of(conn, "DROP TABLE IF EXISTS search_", collection->id);
    if (rc == NG_OK) {
        rc = run_of(conn, "DROP TABLE IF EXISTS places_", collection->id);
    }
    if (rc == NG_OK) {
        rc = run_of(conn, "DELETE FROM dirty WHERE collection=", collection->id);
    }
    if (collection->columns > 0) {
        if (rc == NG_OK) {
            rc = make_table(conn, collection);
        }
        if (rc == NG_OK) {
            rc = run_of(conn,
                        "INSERT INTO dirty SELECT c.collection,d.doc FROM collections c JOIN "
                        "shelves s ON s.collection=c.name JOIN docs d ON d.shelf=s.shelf WHERE "
                        "d.deleted=0 AND c.collection=",
                        collection->id);
        }
        fts_mark(conn->db, collection);
    }
    return rc;
}

int fts_table(struct conn *conn, const struct db_collection *collection)
{
    struct bytes wanted = {0};
    struct bytes stored = {0};
    int rc = layout_of(collection, &wanted);
    if (rc == NG_OK) {
        rc = get_layout(conn, collection->id, &stored);
    }
    if (rc == NG_OK && !str_equal(bytes_str(&wanted), bytes_str(&stored))) {
        rc = remake(conn, collection);
        if (rc == NG_OK) {
            rc = set_layout(conn, collection->id, bytes_str(&wanted));
        }
    }
    bytes_done(&wanted);
    bytes_done(&stored);
    return rc;
}

/* ---- one step ---- */

struct step {
    struct conn *conn;
    const struct db_collection *collection;
    sqlite3_stmt *next, *forget, *clean, *add;
};

static void step_done(struct step *step)
{
    (void)sql_release(step->conn, step->next);
    (void)sql_release(step->conn, step->forget);
    (void)sql_release(step->conn, step->clean);
    (void)sql_release(step->conn, step->add);
}

static int step_prepare(struct step *step, struct sql *sql, sqlite3_stmt **ret)
{
    int rc = sql_prepare(step->conn, sql, ret);
    sql_done(sql);
    return rc;
}

static int step_init(struct step *step)
{
    int64_t id = step->collection->id;
    struct sql sql = {0};
    sql_printf(&sql,
               "SELECT y.doc,d.deleted,d.fields,d.text FROM dirty y JOIN docs d ON "
               "d.doc=y.doc WHERE y.collection=%" PRId64 " ORDER BY y.doc LIMIT 1",
               id);
    if (step_prepare(step, &sql, &step->next) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    sql_printf(&sql, "DELETE FROM search_%" PRId64 " WHERE rowid=?1", id);
    if (step_prepare(step, &sql, &step->forget) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    sql_printf(&sql, "DELETE FROM dirty WHERE doc=?1 AND collection=%" PRId64, id);
    if (step_prepare(step, &sql, &step->clean) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    sql_printf(&sql, "INSERT INTO search_%" PRId64 "(rowid", id);
    for (int i = 0; i < step->collection->columns; i++) {
        sql_printf(&sql, ",c%d", i);
    }
    sql_add(&sql, ") VALUES(?1");
    for (int i = 0; i < step->collection->columns; i++) {
        sql_printf(&sql, ",?%d", i + 2);
    }
    sql_add(&sql, ")");
    if (step_prepare(step, &sql, &step->add) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}

/* The texts of one field, joined by line ends. */
static int field_text(struct ng_str blob, int64_t field, struct bytes *ret)
{
    struct value value;
    size_t at = 0;
    ret->len = 0;
    while (values_next(blob, &at, &value)) {
        if (value.field == field && value.kind == VALUE_TEXT) {
            (void)bytes_add_c(ret, ret->len > 0 ? "\n" : "");
            (void)bytes_add(ret, value.bytes.data, value.bytes.len);
        }
    }
    return ret->rc;
}

static int insert_doc(struct step *step)
{
    struct marks marks = {.column = -1};
    int rc = NG_EINTERNAL;
    step->conn->marks = &marks;
    if (conn_run(step->conn, step->add) == SQLITE_OK) {
        rc = marks_store(step->conn, step->collection->id, sqlite3_column_int64(step->next, 0),
                         &marks);
    }
    step->conn->marks = NULL;
    free(marks.list);
    return rc;
}

/* Indexes the document at the current row of `next`. */
static int add_doc(struct step *step)
{
    const struct db_collection *collection = step->collection;
    struct ng_str fields = column_str(step->next, 2);
    struct ng_str text = column_str(step->next, 3);
    struct bytes part = {0};
    int rc = NG_OK;
    (void)sqlite3_reset(step->add);
    (void)sqlite3_bind_int64(step->add, 1, sqlite3_column_int64(step->next, 0));
    for (size_t i = 0; i < collection->field_count && rc == NG_OK; i++) {
        const struct db_field *field = &collection->fields[i];
        if (field->column >= 0) {
            rc = field_text(fields, field->id, &part);
            if (rc == NG_OK &&
                sqlite3_bind_text64(step->add, field->column + 2,
                                    part.data != NULL ? part.data : "", part.len,
                                    SQLITE_TRANSIENT, SQLITE_UTF8) != SQLITE_OK) {
                rc = NG_EINTERNAL;
            }
        }
    }
    bytes_done(&part);
    if (rc == NG_OK && collection->text_column) {
        (void)bind_text(step->add, collection->columns + 1, text);
    }
    if (rc == NG_OK) {
        rc = insert_doc(step);
    }
    return rc;
}

/* The next document to index. *ret_bytes: its size; *ret_found false: none. */
static int step_one(struct step *step, bool *ret_found, size_t *ret_bytes)
{
    int rc = sqlite3_step(step->next);
    *ret_found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW) {
        (void)sqlite3_reset(step->next);
        if (rc == SQLITE_DONE) {
            return NG_OK;
        }
        return NG_EINTERNAL;
    }
    int64_t doc = sqlite3_column_int64(step->next, 0);
    bool deleted = sqlite3_column_int(step->next, 1) != 0;
    *ret_bytes = 64 + column_str(step->next, 2).len + column_str(step->next, 3).len;
    (void)sqlite3_bind_int64(step->forget, 1, doc);
    int code = NG_EINTERNAL;
    if (conn_run(step->conn, step->forget) == SQLITE_OK) {
        code = marks_remove(step->conn, step->collection->id, doc);
    }
    if (code == NG_OK && !deleted) {
        code = add_doc(step);
    }
    (void)sqlite3_reset(step->next);
    (void)sqlite3_bind_int64(step->clean, 1, doc);
    if (code == NG_OK && conn_run(step->conn, step->clean) != SQLITE_OK) {
        code = NG_EINTERNAL;
    }
    return code;
}

/* The budget of one step, counted down. */
struct budget {
    size_t docs, bytes;
};

/* Indexes one collection within the remaining budget. */
static int step_collection(struct db *db, const struct db_collection *collection,
                           struct budget *left, bool *ret_more)
{
    struct step step = {.conn = db->writer, .collection = collection};
    int rc = step_init(&step);
    bool found = true;
    while (rc == NG_OK && found && left->docs > 0 && left->bytes > 0) {
        size_t weight = 0;
        rc = step_one(&step, &found, &weight);
        if (found) {
            left->docs--;
            left->bytes -= size_min(weight, left->bytes);
        }
    }
    *ret_more = found;
    step_done(&step);
    return rc;
}

static bool is_newest(struct db *db, const struct db_collection *collection)
{
    return collection_find(db, str_of(collection->name, collection->name_len)) == collection;
}

/* The collections that a step has completed: clean once the step is committed. */
struct stepped {
    int64_t ids[STEP_COLLECTIONS];
    size_t count;
    bool more;
};

static int step_all(struct db *db, int64_t collection, unsigned doublings, struct stepped *ret)
{
    struct budget left = {(size_t)STEP_DOCS << doublings, STEP_BYTES << doublings};
    int rc = NG_OK;
    lock_take(&db->collections_lock);
    const struct db_collection *at = db->collections;
    lock_release(&db->collections_lock);
    for (; at != NULL && rc == NG_OK; at = at->next) {
        bool wanted = collection == 0 || collection == at->id;
        if (!wanted || at->columns == 0 || !atomic_load(&at->dirty) || !is_newest(db, at)) {
            continue;
        }
        bool more = false;
        rc = step_collection(db, at, &left, &more);
        if (!more && ret->count < STEP_COLLECTIONS) {
            ret->ids[ret->count++] = at->id;
        } else {
            ret->more = true;
        }
    }
    return rc;
}

/* The marks are cleared under the writer lock. A writer sets one under the same lock, and a
 * reader that sees none finds all documents in the index. */
static int step_keep(struct db *db, int64_t collection, const struct stepped *stepped)
{
    int rc = work_close(db, true);
    for (size_t i = 0; i < stepped->count && rc == SQLITE_OK; i++) {
        mark(db, stepped->ids[i], false);
    }
    if (rc == SQLITE_OK && collection == 0 && !stepped->more) {
        atomic_store(&db->dirty, false);
    }
    return rc;
}

static int step_grown(struct db *db, int64_t collection, unsigned doublings, bool *ret_more,
                      char *error, size_t error_max)
{
    struct stepped stepped = {.count = 0};
    *ret_more = false;
    work_enter(db);
    if (!waits(db, collection)) {
        work_leave(db); /* another search has done it */
        return NG_OK;
    }
    int rc = NG_EINTERNAL;
    if (work_open(db, false) == SQLITE_OK) {
        rc = step_all(db, collection, doublings, &stepped);
    }
    if (rc != NG_OK) {
        rc = conn_error(db->writer, "indexing for search", error, error_max);
        (void)work_close(db, false);
    } else if (step_keep(db, collection, &stepped) != SQLITE_OK) {
        (void)snprintf(
            error, error_max,
            "indexing for search failed: %.300s could not be written; check the disk",
            db->path);
        rc = NG_EUNAVAILABLE;
    }
    work_leave(db);
    *ret_more = stepped.more;
    return rc;
}

int fts_step(struct db *db, int64_t collection, bool *ret_more, char *error, size_t error_max)
{
    return step_grown(db, collection, 0, ret_more, error, error_max);
}

int fts_catch_up(struct db *db, struct ng_call *call, int64_t collection)
{
    char error[DB_ERROR_MAX] = "";
    bool more = waits(db, collection);
    for (unsigned step = 0; more; step++) {
        if (call->host->cancelled(call)) {
            if (call->host->remaining_ms(call) <= 0) {
                return ng_fail(call, NG_ETIMEOUT,
                               "the search index could not be updated within the time of the "
                               "call; updating continues, try again");
            }
            return ng_fail(call, NG_ECANCELLED, "the search was cancelled");
        }
        int rc = step_grown(db, collection, uint_min(step, STEP_DOUBLINGS_MAX), &more, error,
                            sizeof(error));
        if (rc != NG_OK) {
            return ng_fail(call, rc, "%s", error);
        }
    }
    return NG_OK;
}
