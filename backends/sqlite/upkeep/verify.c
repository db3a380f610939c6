/* SPDX-License-Identifier: MIT */
/* verify.c - checks the file, the hash of every revision, the index of values, the search
 * index, and events. */
#include "../store/db.h"
#include "upkeep.h"

#include <stdarg.h>
#include <stdio.h>

#define FINDING_MAX 1024

struct check {
    struct conn *conn;
    struct ng_call *call;
    ng_finding_fn *finding;
    void *user;
    struct state state;
    const struct stray *stray; /* the present one */
};

/* A query for rows that must not be, and the finding with the first column of each. */
struct stray {
    const char *sql, *before, *after;
};

static void report(struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void report(struct check *check, const char *format, ...)
{
    char text[FINDING_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    check->finding(check->user, text);
}

static int file_line(void *user, sqlite3_stmt *stmt)
{
    struct check *check = user;
    struct ng_str line = column_str(stmt, 0);
    if (!str_equal(line, ng_str_of("ok"))) {
        report(check, "%.300s: %.*s", check->conn->db->path,
               line.len < 500 ? (int)line.len : 500, line.data);
    }
    return NG_OK;
}

static void name_of(sqlite3_stmt *stmt, char *ret, size_t max)
{
    struct ng_str collection = column_str(stmt, 1);
    struct ng_str space = column_str(stmt, 2);
    struct ng_str id = column_str(stmt, 3);
    (void)snprintf(ret, max, "%.*s/%.*s/%.*s", (int)collection.len, collection.data,
                   (int)space.len, space.data, id.len < 120 ? (int)id.len : 120, id.data);
}

/* Does every revision of the document have a row in the log? */
static bool is_logged(const struct check *check, sqlite3_stmt *docs)
{
    const uint32_t unlogged = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY;
    const struct db_collection *collection =
        collection_find(check->conn->db, column_str(docs, 1));
    return collection != NULL && (collection->flags & unlogged) != unlogged;
}

static int check_revisions(struct check *check, sqlite3_stmt *docs, const char *name)
{
    int64_t doc = sqlite3_column_int64(docs, 0);
    uint64_t newest = column_u64(docs, 4);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(check->conn->sql,
                           "SELECT revision,kind,flags,hash,seq FROM log WHERE doc=?1 ORDER BY "
                           "revision",
                           -1, &stmt, NULL) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, doc);
    int rc = NG_OK;
    int step;
    bool has_newest = !is_logged(check, docs);
    while (rc == NG_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        uint64_t revision = column_u64(stmt, 0);
        unsigned char hash[HASH_BYTES];
        has_newest = has_newest || revision == newest;
        if (revision > newest) {
            report(check, "%s: revision %llu is in the log, the newest is %llu", name,
                   (unsigned long long)revision, (unsigned long long)newest);
        } else if (revision == newest && column_u64(stmt, 4) != column_u64(docs, 6)) {
            report(check, "%s: the event of revision %llu has another sequence number", name,
                   (unsigned long long)revision);
        }
        if (sqlite3_column_int(stmt, 1) == LOG_NONE) {
            continue;
        }
        if (revision == newest && !str_equal(column_str(stmt, 3), column_str(docs, 15))) {
            report(check, "%s: its present state is not that of its last revision", name);
        }
        rc = state_load(check->conn, doc, revision, &check->state);
        if (rc == NG_EUNAVAILABLE || rc == NG_ENOTFOUND) {
            report(check, "%s: revision %llu cannot be rebuilt", name,
                   (unsigned long long)revision);
            rc = NG_OK;
            continue;
        }
        content_hash(CONTENT_HASH_MIXED, bytes_str(&check->state.json),
                     bytes_str(&check->state.text),
                     (sqlite3_column_int(stmt, 2) & LOG_DELETED) != 0, hash);
        if (rc == NG_OK &&
            !str_equal(column_str(stmt, 3), str_of((const char *)hash, sizeof(hash)))) {
            report(check, "%s: revision %llu does not match its hash", name,
                   (unsigned long long)revision);
        }
    }
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = NG_EINTERNAL;
    }
    if (rc == NG_OK && !has_newest) {
        report(check, "%s: revision %llu is missing in the log", name,
               (unsigned long long)newest);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* Checks that the index has every value of the blob. Docs columns 16: fields, 17: shelf. */
static int check_values(struct check *check, sqlite3_stmt *docs, const char *name)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(
            check->conn->sql,
            "SELECT 1 FROM field_values WHERE field=?1 AND shelf=?2 AND value=?3 "
            "AND created_seq=?4 AND doc=?5",
            -1, &stmt, NULL) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    struct ng_str blob = column_str(docs, 16);
    struct value value;
    size_t at = 0;
    bool missing = false;
    while (values_next(blob, &at, &value)) {
        if (value.kind == VALUE_TEXT) {
            continue;
        }
        (void)sqlite3_reset(stmt);
        (void)sqlite3_bind_int64(stmt, 1, value.field);
        (void)sqlite3_bind_int64(stmt, 2, sqlite3_column_int64(docs, 17));
        value_bind(stmt, 3, &value);
        (void)sqlite3_bind_int64(stmt, 4, sqlite3_column_int64(docs, 7));
        (void)sqlite3_bind_int64(stmt, 5, sqlite3_column_int64(docs, 0));
        missing = missing || sqlite3_step(stmt) != SQLITE_ROW;
    }
    if (missing || at == SIZE_MAX) {
        report(check, "%s: the index of its fields is wrong", name);
    }
    (void)sqlite3_finalize(stmt);
    return NG_OK;
}

static int check_doc(void *user, sqlite3_stmt *docs)
{
    struct check *check = user;
    char name[512];
    unsigned char hash[HASH_BYTES];
    name_of(docs, name, sizeof(name));
    if (check->call->host->cancelled(check->call)) {
        return NG_ETIMEOUT;
    }
    content_hash(CONTENT_HASH_MIXED, column_str(docs, 13), column_str(docs, 14),
                 sqlite3_column_int(docs, 5) != 0, hash);
    if (!str_equal(column_str(docs, 15), str_of((const char *)hash, sizeof(hash)))) {
        report(check, "%s: its present state does not match its hash", name);
    }
    int rc = check_revisions(check, docs, name);
    if (rc != NG_OK) {
        return rc;
    }
    return check_values(check, docs, name);
}

static int stray_row(void *user, sqlite3_stmt *stmt)
{
    struct check *check = user;
    struct ng_str subject = column_str(stmt, 0);
    report(check, "%s%.*s%s", check->stray->before, (int)subject.len, subject.data,
           check->stray->after);
    return NG_OK;
}

static int check_stray(struct check *check, const struct stray *stray)
{
    check->stray = stray;
    return sql_each(check->conn, stray->sql, stray_row, check);
}

/* Finds documents that are missing in the search table, superfluous in it, or different. */
static int check_search(struct check *check, const struct db_collection *collection)
{
    char text[1024];
    const struct stray unindexed = {text, "the search index and the document ",
                                    " do not agree"};
    long long id = (long long)collection->id;
    (void)snprintf(
        text, sizeof(text),
        "SELECT d.doc FROM docs d JOIN shelves s ON s.shelf=d.shelf JOIN collections c ON "
        "c.name=s.collection WHERE c.collection=%lld AND d.deleted=0 AND NOT EXISTS(SELECT 1 "
        "FROM "
        "dirty WHERE collection=%lld AND doc=d.doc) AND NOT EXISTS(SELECT 1 FROM "
        "search_%lld_content WHERE id=d.doc) UNION ALL SELECT f.id FROM search_%lld_content f "
        "LEFT JOIN docs d ON d.doc=f.id WHERE (d.doc IS NULL OR d.deleted=1) AND NOT "
        "EXISTS(SELECT 1 FROM dirty WHERE collection=%lld AND doc=f.id) LIMIT 100",
        id, id, id, id, id);
    int rc = check_stray(check, &unindexed);
    if (rc == NG_OK && collection->text_column) {
        (void)snprintf(
            text, sizeof(text),
            "SELECT d.doc FROM search_%lld_content f JOIN docs d ON d.doc=f.id WHERE "
            "f.c%d IS NOT CAST(d.text AS TEXT) AND d.deleted=0 AND NOT EXISTS(SELECT "
            "1 FROM dirty WHERE collection=%lld AND doc=d.doc) LIMIT 100",
            id, collection->columns - 1, id);
        rc = check_stray(check, &unindexed);
    }
    return rc;
}

static const struct stray strays[] = {
    {"SELECT l.seq FROM log l LEFT JOIN docs d ON d.doc=l.doc WHERE d.doc IS NULL LIMIT 100",
     "the event ", " belongs to no document"},
    {"SELECT v.doc FROM field_values v LEFT JOIN docs d ON d.doc=v.doc WHERE d.doc IS NULL OR "
     "d.deleted=1 OR v.shelf<>d.shelf OR v.created_seq<>d.created_seq OR NOT CASE WHEN "
     "v.value=-1e999 THEN ng_field(d.fields,v.field) IS NULL ELSE "
     "ng_has(d.fields,v.field,v.value) END LIMIT 100",
     "the index of fields has a value that the document ", " does not have"},
    {"SELECT d.doc FROM docs d LEFT JOIN shelves s ON s.shelf=d.shelf WHERE s.shelf IS NULL "
     "LIMIT 100",
     "the document ", " belongs to no collection and space"},
    {"SELECT s.collection||'/'||s.space FROM shelves s WHERE s.live<>(SELECT count(*) FROM "
     "docs "
     "WHERE shelf=s.shelf AND deleted=0) OR s.dead<>(SELECT count(*) FROM docs WHERE "
     "shelf=s.shelf AND deleted=1) LIMIT 100",
     "", ": the number of documents is wrong"},
    {"SELECT l.seq FROM log l LEFT JOIN trail t ON t.seq=l.seq LEFT JOIN origins o ON "
     "o.origin=t.origin WHERE o.origin IS NULL OR t.doc<>l.doc OR o.agent<>l.agent OR "
     "l.seq NOT BETWEEN o.first_seq AND o.last_seq LIMIT 100",
     "the change ", " has no origin, or a wrong one"},
    {"SELECT seq FROM log WHERE seq>ifnull((SELECT value FROM meta WHERE name='seq'),0) LIMIT "
     "100",
     "the change ", " is later than the last sequence number"},
};

static int check_tables(struct check *check)
{
    int rc = sql_each(check->conn, "PRAGMA integrity_check", file_line, check);
    if (rc == NG_OK) {
        rc = sql_each(check->conn,
                      "SELECT " DOC_COLUMNS ",d.hash,d.fields,d.shelf FROM " DOC_TABLES
                      " ORDER BY d.doc",
                      check_doc, check);
    }
    for (size_t i = 0; rc == NG_OK && i < NG_COUNT(strays); i++) {
        rc = check_stray(check, &strays[i]);
    }
    return rc;
}

int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user)
{
    struct db *db = self;
    struct check check = {.call = call, .finding = finding, .user = user};
    int rc = reader_begin(db, call, &check.conn);
    if (rc != NG_OK) {
        return rc;
    }
    rc = check_tables(&check);
    lock_take(&db->collections_lock);
    const struct db_collection *at = db->collections;
    lock_release(&db->collections_lock);
    for (; at != NULL && rc == NG_OK; at = at->next) {
        if (at->columns > 0 && collection_find(db, str_of(at->name, at->name_len)) == at) {
            rc = check_search(&check, at);
        }
    }
    if (rc == NG_ETIMEOUT) {
        rc = ng_fail(call, rc, "verifying %s took longer than the call allows", db->path);
    } else if (rc != NG_OK && (sqlite3_errcode(check.conn->sql) & 0xff) == SQLITE_CORRUPT) {
        /* An unreadable file is itself the finding. */
        report(&check, "%.300s is damaged: %s; restore from a backup", db->path,
               sqlite3_errmsg(check.conn->sql));
        rc = NG_OK;
    } else if (rc != NG_OK) {
        rc = conn_fail(check.conn, call, "verifying");
    }
    state_done(&check.state);
    reader_end(check.conn);
    return rc;
}
