/* SPDX-License-Identifier: MIT */
/* trail_docs.c - the changes of a few documents, newest first: along the revisions of each, the
 * newest of them next. */
#include "revision_at.h"
#include "trail.h"

struct docs {
    struct trail_walk *walk;
    sqlite3_stmt *before; /* the revision before another one */
    sqlite3_stmt *origin; /* of a change */
    size_t span;          /* the newest that is not behind the walk */
};

static int docs_prepare(struct docs *docs, const char *text, sqlite3_stmt **ret)
{
    struct sql sql = {0};
    sql_add(&sql, text);
    int rc = sql_prepare(docs->walk->select.conn, &sql, ret);
    sql_done(&sql);
    return rc;
}

/* SQLITE_ROW, SQLITE_DONE or the error. */
static int docs_step(sqlite3_stmt *stmt, int64_t first, uint64_t second)
{
    (void)sqlite3_bind_int64(stmt, 1, first);
    (void)bind_u64(stmt, 2, second);
    return sqlite3_step(stmt);
}

static int docs_end(sqlite3_stmt *stmt, int step)
{
    int rc = sqlite3_reset(stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : rc;
}

/* To the change before; number 0: there is none. */
static int doc_next(struct docs *docs, struct trail_doc *doc)
{
    int step = docs_step(docs->before, doc->doc, doc->revision);
    doc->revision = doc->seq = 0;
    if (step == SQLITE_ROW) {
        doc->revision = column_u64(docs->before, 0);
        doc->seq = column_u64(docs->before, 1);
    }
    return docs_end(docs->before, step);
}

/* To its newest change with a number up to this one. */
static int doc_seek(struct docs *docs, struct trail_doc *doc, uint64_t seq)
{
    const struct log_row top = {.revision = doc->revision, .seq = doc->seq};
    struct log_rows rows = {0};
    if (doc->seq <= seq) {
        return SQLITE_OK;
    }
    int rc = log_find_number(docs->walk->select.conn, doc->doc, &top, seq, &rows);
    doc->revision = rows.before.revision;
    doc->seq = rows.before.seq;
    docs->walk->select.looks += LOOK_SEARCH;
    return rc;
}

/* The newest revision has the number of the document's row, also where the log has no row. */
static int docs_begin(struct docs *docs)
{
    struct trail_select *select = &docs->walk->select;
    sqlite3_stmt *stmt = NULL;
    int rc = docs_prepare(docs, "SELECT revision,seq FROM docs WHERE doc=?1 AND ?2=0", &stmt);
    for (size_t i = 0; i < select->few_count && rc == SQLITE_OK; i++) {
        struct trail_doc *doc = &select->few[i];
        int step = docs_step(stmt, doc->doc, 0);
        if (step == SQLITE_ROW) {
            doc->revision = column_u64(stmt, 0);
            doc->seq = column_u64(stmt, 1);
        }
        rc = docs_end(stmt, step);
        if (rc == SQLITE_OK && select->span_count > 0) {
            rc = doc_seek(docs, doc, select->spans[0].last);
        }
    }
    (void)sql_release(select->conn, stmt);
    select->looks = 0; /* a walk passes at least one change */
    return rc;
}

/* NULL: there are no more. */
static struct trail_doc *docs_newest(const struct docs *docs)
{
    const struct trail_select *select = &docs->walk->select;
    struct trail_doc *newest = NULL;
    for (size_t i = 0; i < select->few_count; i++) {
        struct trail_doc *doc = &select->few[i];
        if (doc->seq != 0 && (newest == NULL || doc->seq > newest->seq)) {
            newest = doc;
        }
    }
    return newest;
}

static int docs_wants(struct docs *docs, uint64_t seq, bool *ret)
{
    *ret = true;
    if (!docs->walk->select.by_origin) {
        return SQLITE_OK;
    }
    int step = docs_step(docs->origin, (int64_t)seq, 0);
    int64_t origin = step == SQLITE_ROW ? sqlite3_column_int64(docs->origin, 0) : 0;
    int rc = docs_end(docs->origin, step);
    docs->walk->select.looks += LOOK_ORIGIN;
    return rc == SQLITE_OK ? trail_wants_origin(&docs->walk->select, origin, ret) : rc;
}

/* The newest change of all of them, and on to the one before. */
static int docs_take(struct docs *docs, struct trail_doc *doc)
{
    struct trail_walk *walk = docs->walk;
    const struct trail_select *select = &walk->select;
    bool wants = false;
    while (docs->span < select->span_count && select->spans[docs->span].first > doc->seq) {
        docs->span++;
    }
    if (docs->span == select->span_count) {
        walk->stop = true;
        return SQLITE_OK;
    }
    if (trail_is_tired(walk, doc->seq)) {
        return SQLITE_OK;
    }
    if (doc->seq > select->spans[docs->span].last) {
        return doc_seek(docs, doc, select->spans[docs->span].last);
    }
    int rc = docs_wants(docs, doc->seq, &wants);
    if (rc == SQLITE_OK && wants) {
        rc = trail_pass(walk, doc->seq);
    }
    return rc == SQLITE_OK ? doc_next(docs, doc) : rc;
}

int trail_walk_docs(struct trail_walk *walk)
{
    struct docs docs = {.walk = walk};
    struct trail_doc *doc = NULL;
    int rc = docs_prepare(&docs,
                          "SELECT revision,seq FROM log WHERE doc=?1 AND revision<?2 "
                          "ORDER BY revision DESC LIMIT 1",
                          &docs.before);
    if (rc == SQLITE_OK) {
        rc =
            docs_prepare(&docs, "SELECT origin FROM trail WHERE seq=?1 AND ?2=0", &docs.origin);
    }
    if (rc == SQLITE_OK) {
        rc = docs_begin(&docs);
    }
    while (rc == SQLITE_OK && !walk->stop && (doc = docs_newest(&docs)) != NULL) {
        rc = docs_take(&docs, doc);
    }
    (void)sql_release(walk->select.conn, docs.before);
    (void)sql_release(walk->select.conn, docs.origin);
    return rc;
}
