/* SPDX-License-Identifier: MIT */
/*
 * trail.c - the changes that a filter selects, newest first: rows of `trail` of the wanted
 * origins, between the numbers of their first and their last change. Only for what they leave
 * the event is read. The newest rows are looked at before the origins are listed: they are
 * enough for a page of most filters.
 */
#include "trail.h"

#include "core/base/minmax.h"
#include "history.h"

/* Numbers of one scan: what longer gaps between the numbers of rows cost is as much. */
#define SCAN_NUMBERS 512
/* Work before the origins are listed. */
#define LOOKS_FIRST (1000 * LOOK_ROW)

/* The event of a change, if it is wanted by what its row of `log` says. */
static int walk_prepare(struct trail_walk *walk)
{
    struct sql *sql = &walk->event_sql;
    const struct ng_trail *trail = walk->select.trail;
    sql_add(sql, "SELECT " EVENT_COLUMNS EVENT_TABLES " WHERE (l.flags&2)=0");
    trail_add_names(sql, "l.tool", &trail->tools);
    trail_add_names(sql, "l.action", &trail->actions);
    if (walk->select.kind == TRAIL_DOCS_MANY) {
        trail_add_id(sql, trail);
    }
    sql_add(sql, " AND l.seq=");
    sql_bind_int(sql, 0);
    walk->event_index = (int)sql->count;
    return sql_prepare(walk->select.conn, sql, &walk->event_stmt);
}

int trail_pass(struct trail_walk *walk, uint64_t seq)
{
    (void)bind_u64(walk->event_stmt, walk->event_index, seq);
    int step = sqlite3_step(walk->event_stmt);
    if (step == SQLITE_ROW) {
        struct ng_event event = event_from_stmt(walk->event_stmt);
        walk->stop = walk->event(walk->user, &event) != 0;
        walk->select.looks++;
    } else {
        walk->select.looks += LOOK_MISS;
    }
    int rc = sqlite3_reset(walk->event_stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : rc;
}

bool trail_is_tired(struct trail_walk *walk, uint64_t seq)
{
    bool tired = walk->select.looks >= walk->looks_end;
    if (tired) {
        walk->next = seq;
        walk->stop = true;
    }
    return tired;
}

/* A scan over numbers. */
struct scan {
    struct trail_walk *walk;
    sqlite3_stmt *stmt; /* ?1: the first number, ?2: the last one */
    sqlite3_stmt *seek; /* the last row up to ?1 */
    uint64_t cost;      /* of a number */
    uint64_t above;     /* numbers from here on have been looked at */
};

/* With conditions on rows of `log` these are scanned, else those of `trail`; where there are
 * few origins, SQLite leaves the others out. */
static int scan_prepare(struct scan *scan)
{
    const struct trail_select *select = &scan->walk->select;
    const struct ng_trail *trail = select->trail;
    struct sql sql = {0};
    scan->cost = LOOK_ROW;
    if (trail->tools.count + trail->actions.count > 0) {
        scan->cost = LOOK_LOG;
        sql_add(&sql, "SELECT l.seq,l.doc,t.origin FROM log l LEFT JOIN trail t ON t.seq=l.seq "
                      "WHERE l.seq>=");
        sql_bind_int(&sql, 0);
        sql_add(&sql, " AND l.seq<=");
        sql_bind_int(&sql, 0);
        trail_add_names(&sql, "l.tool", &trail->tools);
        trail_add_names(&sql, "l.action", &trail->actions);
        sql_add(&sql, " AND (l.flags&2)=0 ORDER BY l.seq DESC");
    } else {
        sql_add(&sql, "SELECT seq,doc,origin FROM trail WHERE seq>=");
        sql_bind_int(&sql, 0);
        sql_add(&sql, " AND seq<=");
        sql_bind_int(&sql, 0);
        if (select->has_all && select->wanted_count <= ORIGINS_NAMED) {
            scan->cost = 1;
            sql_add(&sql, " AND (origin=");
            sql_bind_int(&sql, select->named[0]);
            sql_add(&sql, " OR origin=");
            sql_bind_int(&sql, select->named[select->wanted_count > 1]);
            sql_add(&sql, ")");
        }
        sql_add(&sql, " ORDER BY seq DESC");
    }
    int rc = sql_prepare(select->conn, &sql, &scan->stmt);
    sql_done(&sql);
    if (rc == SQLITE_OK) {
        sql_add(&sql, "SELECT seq FROM trail WHERE seq<=?1 ORDER BY seq DESC LIMIT 1");
        rc = sql_prepare(select->conn, &sql, &scan->seek);
        sql_done(&sql);
    }
    return rc;
}

/* All numbers above this one have been looked at. */
static void scan_count(struct scan *scan, uint64_t seq)
{
    scan->walk->select.looks += (scan->above - seq) * scan->cost;
    scan->above = seq;
}

static int scan_take(struct scan *scan)
{
    struct trail_walk *walk = scan->walk;
    uint64_t seq = column_u64(scan->stmt, 0);
    bool wants = true;
    if (trail_is_tired(walk, seq)) {
        return SQLITE_OK;
    }
    scan_count(scan, seq);
    if (walk->select.kind == TRAIL_DOCS_MARKED &&
        !bits_has(&walk->select.docs, sqlite3_column_int64(scan->stmt, 1))) {
        return SQLITE_OK;
    }
    int rc = trail_wants_origin(&walk->select, sqlite3_column_int64(scan->stmt, 2), &wants);
    return rc == SQLITE_OK && wants ? trail_pass(walk, seq) : rc;
}

/* Moves *seq down to the next number of a row; 0: there is none. */
static int scan_seek(struct scan *scan, uint64_t *seq)
{
    (void)bind_u64(scan->seek, 1, *seq);
    int step = sqlite3_step(scan->seek);
    *seq = step == SQLITE_ROW ? column_u64(scan->seek, 0) : 0;
    return sqlite3_reset(scan->seek);
}

/* The rows of `first` to `last`. */
static int scan_numbers(struct scan *scan, uint64_t first, uint64_t last)
{
    int rc = SQLITE_OK;
    scan->above = last + 1;
    (void)bind_u64(scan->stmt, 1, first);
    (void)bind_u64(scan->stmt, 2, last);
    while (rc == SQLITE_OK && !scan->walk->stop &&
           (rc = sqlite3_step(scan->stmt)) == SQLITE_ROW) {
        rc = scan_take(scan);
    }
    (void)sqlite3_reset(scan->stmt);
    if (rc == SQLITE_DONE) {
        scan_count(scan, first);
        rc = SQLITE_OK;
    }
    return rc;
}

static int scan_span(struct scan *scan, const struct span *span)
{
    uint64_t last = span->last;
    int rc = scan_seek(scan, &last);
    while (rc == SQLITE_OK && last >= span->first && !trail_is_tired(scan->walk, last)) {
        uint64_t first = u64_max(span->first, last - u64_min(last, SCAN_NUMBERS) + 1);
        rc = scan_numbers(scan, first, last);
        if (scan->walk->stop) {
            return rc;
        }
        last = first - 1;
        if (rc == SQLITE_OK) {
            rc = scan_seek(scan, &last);
        }
    }
    return rc;
}

static int scan_run(struct trail_walk *walk)
{
    struct scan scan = {.walk = walk};
    int rc = scan_prepare(&scan);
    for (size_t i = 0; i < walk->select.span_count && rc == SQLITE_OK && !walk->stop; i++) {
        rc = scan_span(&scan, &walk->select.spans[i]);
    }
    (void)sql_release(walk->select.conn, scan.stmt);
    (void)sql_release(walk->select.conn, scan.seek);
    return rc;
}

/* Runs are few origins, which an index finds. */
static int walk_scan(struct trail_walk *walk)
{
    struct trail_select *select = &walk->select;
    if (select->trail->runs.count == 0) {
        walk->looks_end = select->by_origin ? u64_min(walk->looks, LOOKS_FIRST) : walk->looks;
        int rc = scan_run(walk);
        if (rc != SQLITE_OK || walk->next == 0 || !select->by_origin) {
            return rc;
        }
        walk->stop = false;
        select->until = walk->next;
    }
    int rc = trail_find_origins(select);
    walk->next = 0;
    walk->looks_end = walk->looks;
    return rc == SQLITE_OK ? scan_run(walk) : rc;
}

static int walk_docs(struct trail_walk *walk)
{
    int rc = SQLITE_OK;
    walk->looks_end = walk->looks;
    if (walk->select.trail->runs.count > 0) {
        rc = trail_find_origins(&walk->select);
    }
    return rc == SQLITE_OK ? trail_walk_docs(walk) : rc;
}

static int walk_run(struct trail_walk *walk, struct conn *conn, const struct ng_trail *trail)
{
    int rc = trail_select(conn, trail, &walk->select);
    if (rc == SQLITE_OK) {
        rc = walk_prepare(walk);
    }
    if (rc == SQLITE_OK && walk->select.kind == TRAIL_DOCS_FEW) {
        rc = walk_docs(walk);
    } else if (rc == SQLITE_OK) {
        rc = walk_scan(walk);
    }
    (void)sql_release(conn, walk->event_stmt);
    sql_done(&walk->event_sql);
    trail_select_done(&walk->select);
    return rc;
}

int read_trail(void *self, struct ng_call *call, const struct ng_trail *trail, uint64_t looks,
               ng_event_fn *event, void *user, uint64_t *ret_next)
{
    struct conn *conn = NULL;
    struct trail_walk walk = {.looks = looks, .event = event, .user = user};
    int rc = reader_begin(self, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    if (walk_run(&walk, conn, trail) != SQLITE_OK) {
        rc = conn_fail(conn, call, "reading changes");
    }
    reader_end(conn);
    *ret_next = walk.next;
    return rc;
}
