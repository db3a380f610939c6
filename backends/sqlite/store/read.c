/* SPDX-License-Identifier: MIT */
/* read.c - one document, its history, the feed of changes, and stored answers. */
#include "core/base/minmax.h"
#include "db.h"

/* The columns of GET, GET_PLAIN and GET_DOC. */
void row_from_stmt(sqlite3_stmt *stmt, bool with_text, struct ng_doc *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret);
    ret->key.collection = column_str(stmt, 1);
    ret->key.space = column_str(stmt, 2);
    ret->key.id = column_str(stmt, 3);
    ret->revision = column_u64(stmt, 4);
    ret->deleted = sqlite3_column_int(stmt, 5) != 0;
    ret->seq = column_u64(stmt, 6);
    ret->created_seq = column_u64(stmt, 7);
    ret->created_ms = sqlite3_column_int64(stmt, 8);
    ret->updated_ms = sqlite3_column_int64(stmt, 9);
    ret->text_size = column_u64(stmt, 10);
    ret->author = column_str(stmt, 11);
    ret->action = column_str(stmt, 12);
    ret->json = column_str(stmt, 13);
    if (with_text) {
        ret->text = column_str(stmt, 14);
    }
}

/* TRAIL_COLUMNS, from that column on. */
static struct ng_origin origin_from_stmt(sqlite3_stmt *stmt, int column)
{
    struct ng_origin origin = {
        .lines_added = column_u64(stmt, column + 3),
        .lines_removed = column_u64(stmt, column + 4),
        .has_lines = sqlite3_column_type(stmt, column + 3) != SQLITE_NULL,
    };
    struct ng_str *const texts[] = {&origin.run_id, &origin.key_id, &origin.request_id};
    for (int i = 0; i < (int)NG_COUNT(texts); i++) {
        struct ng_str text = column_str(stmt, column + i);
        if (text.len > 0) {
            *texts[i] = text;
        }
    }
    return origin;
}

void row_from_log(sqlite3_stmt *stmt, struct ng_doc *row)
{
    row->revision = column_u64(stmt, 0);
    row->deleted = (sqlite3_column_int(stmt, 2) & LOG_DELETED) != 0;
    row->seq = column_u64(stmt, 3);
    row->updated_ms = sqlite3_column_int64(stmt, 4);
    row->created_seq = column_u64(stmt, 5);
    row->created_ms = sqlite3_column_int64(stmt, 6);
    row->text_size = column_u64(stmt, 7);
    row->author = column_str(stmt, 8);
    row->action = column_str(stmt, 9);
    row->tool = column_str(stmt, 10);
    row->event_data = column_str(stmt, 11);
    row->origin = origin_from_stmt(stmt, 12);
    row->json = row->text = str_of(NULL, 0);
}

static int fail_state(struct conn *conn, struct ng_call *call, uint64_t revision, int rc)
{
    if (rc == NG_EUNAVAILABLE) {
        return ng_fail(call, rc,
                       "revision %llu cannot be rebuilt: %s is damaged; run `notegate verify` "
                       "and restore from a backup",
                       (unsigned long long)revision, conn->db->path);
    }
    if (rc == NG_ENOTFOUND) {
        return ng_fail(call, rc, "revision %llu is not kept", (unsigned long long)revision);
    }
    return conn_fail(conn, call, "reading");
}

/* Finds the present row of the key, by GET or GET_PLAIN; the statement stays on it. */
static int find_present(struct conn *conn, struct ng_call *call, const struct ng_key *key,
                        enum statement which, sqlite3_stmt **ret)
{
    sqlite3_stmt *stmt = conn_stmt(conn, which);
    if (stmt == NULL) {
        return conn_fail(conn, call, "reading");
    }
    (void)bind_text(stmt, 1, key->collection);
    (void)bind_text(stmt, 2, key->space);
    (void)bind_blob(stmt, 3, key->id);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *ret = stmt;
        return NG_OK;
    }
    if (rc != SQLITE_DONE) {
        return conn_fail(conn, call, "reading");
    }
    return ng_fail(call, NG_ENOTFOUND, "there is no such document");
}

/* Takes a reader and finds the present row of the key with it. After a failure the reader is
 * returned. */
static int present(struct db *db, struct ng_call *call, const struct ng_key *key,
                   enum statement which, struct conn **ret, sqlite3_stmt **ret_stmt)
{
    int rc = reader_begin(db, call, ret);
    if (rc != NG_OK) {
        return rc;
    }
    rc = find_present(*ret, call, key, which, ret_stmt);
    if (rc != NG_OK) {
        reader_end(*ret);
    }
    return rc;
}

static int get_old(struct conn *conn, struct ng_call *call, sqlite3_stmt *newest,
                   uint64_t revision, ng_row_fn *row, void *user)
{
    struct ng_doc doc;
    row_from_stmt(newest, false, &doc);
    int64_t number = sqlite3_column_int64(newest, 0);
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_ROW);
    if (stmt == NULL) {
        return conn_fail(conn, call, "reading");
    }
    (void)sqlite3_bind_int64(stmt, 1, number);
    (void)bind_u64(stmt, 2, revision);
    int step = sqlite3_step(stmt);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        return conn_fail(conn, call, "reading");
    }
    if (step == SQLITE_DONE || sqlite3_column_int(stmt, 1) == LOG_NONE) {
        return fail_state(conn, call, revision, NG_ENOTFOUND);
    }
    struct state state = {0};
    int rc = state_load(conn, number, revision, &state);
    if (rc == NG_OK) {
        row_from_log(stmt, &doc);
        doc.json = bytes_str(&state.json);
        doc.text = bytes_str(&state.text);
        (void)row(user, &doc);
    } else {
        rc = fail_state(conn, call, revision, rc);
    }
    state_done(&state);
    return rc;
}

int read_get(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
             ng_row_fn *row, void *user)
{
    struct conn *conn = NULL;
    sqlite3_stmt *stmt = NULL;
    int rc = present(self, call, key, STMT_GET, &conn, &stmt);
    if (rc != NG_OK) {
        return rc;
    }
    if (revision == 0 || revision == column_u64(stmt, 4)) {
        struct ng_doc doc;
        row_from_stmt(stmt, true, &doc);
        (void)row(user, &doc);
    } else {
        rc = get_old(conn, call, stmt, revision, row, user);
    }
    reader_end(conn);
    return rc;
}

/* Is the newest revision in the range? It is always in the row of the document; the log has
 * the earlier ones, up to *ret_below. */
static bool range_has_newest(const struct ng_range *range, uint64_t newest, uint64_t *ret_below)
{
    uint64_t to = newest;
    if (range->to != 0) {
        to = u64_min(range->to, newest);
    }
    bool has_newest = to == newest && range->from <= to;
    *ret_below = to - has_newest;
    return has_newest;
}

struct walk {
    struct conn *conn;
    struct ng_call *call;
    const struct ng_range *range;
    ng_row_fn *row;
    void *user;
    int64_t number;
    uint32_t left;
    bool stop;
    bool splices;            /* they are given where the walk has the text before */
    uint64_t last;           /* revision of the row before; 0: none */
    struct ng_splice splice; /* of the present row */
    struct state state;      /* the last content that was built */
};

/* Columns of LOG_SPLICES behind those of LOG_UP. */
enum { SPLICES_AT = 17, SPLICES_REMOVED, SPLICES_JSON, SPLICES_TEXT };

/* The content of the row, or its splice. */
static int walk_content(struct walk *walk, sqlite3_stmt *stmt, struct ng_doc *doc)
{
    if (walk->splices && sqlite3_column_int(stmt, 1) == LOG_WHOLE) {
        doc->json = column_str(stmt, SPLICES_JSON);
        doc->text = column_str(stmt, SPLICES_TEXT);
        return NG_OK;
    }
    if (walk->splices && walk->last > 0 && walk->last + 1 == doc->revision) {
        walk->splice =
            (struct ng_splice){column_u64(stmt, SPLICES_AT), column_u64(stmt, SPLICES_REMOVED),
                               column_str(stmt, SPLICES_TEXT)};
        doc->text_splice = &walk->splice;
        return NG_OK;
    }
    int rc = state_load(walk->conn, walk->number, doc->revision, &walk->state);
    doc->json = bytes_str(&walk->state.json);
    doc->text = bytes_str(&walk->state.text);
    return rc;
}

static enum statement walk_statement(const struct walk *walk)
{
    if (walk->splices) {
        return STMT_LOG_SPLICES;
    }
    return walk->range->ascending ? STMT_LOG_UP : STMT_LOG_DOWN;
}

static int history_kept(struct walk *walk, const struct ng_doc *newest, uint64_t to)
{
    struct conn *conn = walk->conn;
    sqlite3_stmt *stmt = conn_stmt(conn, walk_statement(walk));
    if (stmt == NULL) {
        return conn_fail(conn, walk->call, "reading history");
    }
    (void)sqlite3_bind_int64(stmt, 1, walk->number);
    (void)bind_u64(stmt, 2, walk->range->from);
    (void)bind_u64(stmt, 3, to);
    int rc = NG_OK;
    int step = SQLITE_DONE;
    while (rc == NG_OK && walk->left > 0 && !walk->stop &&
           (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct ng_doc doc = *newest;
        row_from_log(stmt, &doc);
        if (walk->range->with_body) {
            rc = walk_content(walk, stmt, &doc);
        }
        if (rc != NG_OK) {
            rc = fail_state(conn, walk->call, doc.revision, rc);
        } else {
            walk->stop = walk->row(walk->user, &doc) != 0;
        }
        walk->last = doc.revision;
        walk->left--;
        step = SQLITE_DONE;
    }
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = conn_fail(conn, walk->call, "reading history");
    }
    (void)sqlite3_reset(stmt);
    state_done(&walk->state);
    return rc;
}

int row_add_origin(struct conn *conn, int64_t doc, struct ng_doc *newest)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_ROW);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, doc);
    (void)bind_u64(stmt, 2, newest->revision);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW && sqlite3_column_int(stmt, 1) != LOG_NONE) {
        struct ng_str json = newest->json;
        struct ng_str text = newest->text;
        row_from_log(stmt, newest);
        newest->json = json;
        newest->text = text;
    }
    return step == SQLITE_ROW || step == SQLITE_DONE ? NG_OK : NG_EINTERNAL;
}

int read_history(void *self, struct ng_call *call, const struct ng_key *key,
                 const struct ng_range *range, ng_row_fn *row, void *user)
{
    struct walk walk = {.call = call, .range = range, .row = row, .user = user};
    walk.left = range->limit;
    walk.splices = NG_HAS(range, flags) && (range->flags & NG_RANGE_SPLICES) != 0 &&
                   range->with_body && range->ascending;
    sqlite3_stmt *stmt = NULL;
    int rc = present(self, call, key, range->with_body ? STMT_GET : STMT_GET_PLAIN, &walk.conn,
                     &stmt);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_doc newest;
    uint64_t below = 0;
    bool has_newest = range_has_newest(range, column_u64(stmt, 4), &below);
    row_from_stmt(stmt, range->with_body && has_newest, &newest);
    walk.number = sqlite3_column_int64(stmt, 0);
    if (has_newest && row_add_origin(walk.conn, walk.number, &newest) != NG_OK) {
        rc = conn_fail(walk.conn, call, "reading history");
        reader_end(walk.conn);
        return rc;
    }
    if (has_newest && !range->ascending && walk.left > 0) {
        walk.stop = row(user, &newest) != 0;
        walk.left--;
    }
    rc = history_kept(&walk, &newest, below);
    if (rc == NG_OK && has_newest && range->ascending && walk.left > 0 && !walk.stop) {
        (void)row(user, &newest);
    }
    reader_end(walk.conn);
    return rc;
}

int read_history_count(void *self, struct ng_call *call, const struct ng_key *key,
                       const struct ng_range *range, uint64_t *ret_count)
{
    uint64_t thinned = counts_now(self);
    struct conn *conn = NULL;
    sqlite3_stmt *doc = NULL;
    int rc = present(self, call, key, STMT_GET_PLAIN, &conn, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    /* The newest revision counts as kept, even if the log lacks it. */
    uint64_t below = 0;
    bool has_newest = range_has_newest(range, column_u64(doc, 4), &below);
    uint64_t count = 0;
    if (counts_between(conn, sqlite3_column_int64(doc, 0), range->from, below, thinned,
                       &count) == SQLITE_OK) {
        *ret_count = count + has_newest;
    } else {
        rc = conn_fail(conn, call, "counting a history");
    }
    reader_end(conn);
    return rc;
}

struct ng_event event_from_stmt(sqlite3_stmt *stmt)
{
    return (struct ng_event){
        .size = sizeof(struct ng_event),
        .seq = column_u64(stmt, 0),
        .time_ms = sqlite3_column_int64(stmt, 1),
        .key = {column_str(stmt, 2), column_str(stmt, 3), column_str(stmt, 4)},
        .revision = column_u64(stmt, 5),
        .agent = column_str(stmt, 6),
        .tool = column_str(stmt, 7),
        .action = column_str(stmt, 8),
        .data = column_str(stmt, 9),
        .origin = origin_from_stmt(stmt, 10),
    };
}

int read_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                 ng_event_fn *event, void *user)
{
    struct conn *conn = NULL;
    int rc = reader_begin(self, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_CHANGES);
    int step = SQLITE_ERROR;
    if (stmt != NULL) {
        (void)bind_u64(stmt, 1, since);
        (void)sqlite3_bind_int64(stmt, 2, limit);
        while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
            struct ng_event one = event_from_stmt(stmt);
            if (event(user, &one) != 0) {
                step = SQLITE_DONE;
                break;
            }
        }
    }
    if (step != SQLITE_DONE) {
        rc = conn_fail(conn, call, "reading changes");
    }
    reader_end(conn);
    return rc;
}

static int copy_str(struct ng_call *call, struct ng_str from, struct ng_str *ret)
{
    char *copy = ng_alloc(call, from.len + 1);
    if (copy == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for a stored answer (%zu bytes)",
                       from.len);
    }
    if (from.len > 0) {
        memcpy(copy, from.data, from.len);
    }
    copy[from.len] = '\0';
    *ret = str_of(copy, from.len);
    return NG_OK;
}

int read_answer(void *self, struct ng_call *call, struct ng_str scope, struct ng_answer *ret)
{
    struct conn *conn = NULL;
    int rc = reader_begin(self, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    int step = SQLITE_ERROR;
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_ANSWER_GET);
    if (stmt != NULL) {
        (void)bind_blob(stmt, 1, scope);
        step = sqlite3_step(stmt);
    }
    if (step == SQLITE_ROW && sqlite3_column_int64(stmt, 3) > call->host->now_ms()) {
        struct ng_answer found = {.size = sizeof(found)};
        found.time_ms = sqlite3_column_int64(stmt, 2);
        found.expires_ms = sqlite3_column_int64(stmt, 3);
        if (copy_str(call, scope, &found.scope) == NG_OK &&
            copy_str(call, column_str(stmt, 0), &found.body_hash) == NG_OK &&
            copy_str(call, column_str(stmt, 1), &found.reply) == NG_OK) {
            ng_fill(ret, &found);
        } else {
            rc = NG_EINTERNAL;
        }
    } else if (step == SQLITE_ROW || step == SQLITE_DONE) {
        rc = ng_fail(call, NG_ENOTFOUND, "no answer is stored for this key");
    } else {
        rc = conn_fail(conn, call, "reading a stored answer");
    }
    reader_end(conn);
    return rc;
}
