/* SPDX-License-Identifier: MIT */
/* runs.c - the runs with changes, as `origins` counts them; of those that began before a range
 * or go on behind it, the rows of `trail` in the range. */
#include "../store/db.h"
#include "core/base/minmax.h"
#include "history.h"

#define RUN_NAMES "SELECT o.run,o.agent,s.collection,s.space,"
#define RUN_SHELF " JOIN shelves s ON s.shelf=o.shelf"

struct runs {
    struct conn *conn;
    int64_t since, until;
    ng_run_fn *run;
    void *user;
    bool stop;
};

static int runs_pass(struct runs *runs, struct sql *sql)
{
    sqlite3_stmt *stmt = NULL;
    int step = sql_prepare(runs->conn, sql, &stmt);
    if (step == SQLITE_OK) {
        while (!runs->stop && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
            const struct ng_run row = {
                .size = sizeof(row),
                .run = column_str(stmt, 0),
                .agent = column_str(stmt, 1),
                .collection = column_str(stmt, 2),
                .space = column_str(stmt, 3),
                .first_seq = column_u64(stmt, 4),
                .last_seq = column_u64(stmt, 5),
                .changes = column_u64(stmt, 6),
            };
            runs->stop = runs->run(runs->user, &row) != 0;
        }
    }
    (void)sql_release(runs->conn, stmt);
    return step == SQLITE_DONE || step == SQLITE_ROW ? SQLITE_OK : step;
}

/* All changes of the origin are in the range. */
static int runs_whole(struct runs *runs)
{
    struct sql sql = {0};
    sql_add(&sql, RUN_NAMES "o.first_seq,o.last_seq,o.changes FROM origins o" RUN_SHELF
                            " WHERE o.run>'' AND o.first_seq>");
    sql_bind_int(&sql, runs->since);
    sql_add(&sql, " AND o.last_seq<=");
    sql_bind_int(&sql, runs->until);
    int rc = runs_pass(runs, &sql);
    sql_done(&sql);
    return rc;
}

/* Adds the condition of origins with changes around a limit of the range. */
static void add_cut(struct sql *sql, const struct runs *runs)
{
    sql_add(sql, "o.run>'' AND o.last_seq>");
    sql_bind_int(sql, runs->since);
    sql_add(sql, " AND o.first_seq<=");
    sql_bind_int(sql, runs->until);
    sql_add(sql, " AND (o.first_seq<=");
    sql_bind_int(sql, runs->since);
    sql_add(sql, " OR o.last_seq>");
    sql_bind_int(sql, runs->until);
    sql_add(sql, ")");
}

/* *ret_last 0: there are none. Else their changes in the range lie between these numbers. */
static int runs_bounds(struct runs *runs, int64_t *ret_first, int64_t *ret_last)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    *ret_last = 0;
    sql_add(&sql, "SELECT min(o.first_seq),max(o.last_seq) FROM origins o WHERE ");
    add_cut(&sql, runs);
    int step = sql_prepare(runs->conn, &sql, &stmt);
    if (step == SQLITE_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        *ret_first = (int64_t)u64_max(column_u64(stmt, 0), (uint64_t)runs->since + 1);
        *ret_last = (int64_t)u64_min(column_u64(stmt, 1), (uint64_t)runs->until);
    }
    (void)sql_release(runs->conn, stmt);
    sql_done(&sql);
    return step == SQLITE_ROW ? SQLITE_OK : step;
}

/* The others: their changes in the range are counted. */
static int runs_cut(struct runs *runs)
{
    struct sql sql = {0};
    int64_t first = 0;
    int64_t last = 0;
    int rc = runs_bounds(runs, &first, &last);
    if (rc != SQLITE_OK || last == 0) {
        return rc;
    }
    sql_add(&sql, RUN_NAMES "t.a,t.b,t.n FROM (SELECT origin,min(seq) a,"
                            "max(seq) b,count(*) n FROM trail WHERE seq>=");
    sql_bind_int(&sql, first);
    sql_add(&sql, " AND seq<=");
    sql_bind_int(&sql, last);
    sql_add(&sql, " AND origin IN (SELECT o.origin FROM origins o WHERE ");
    add_cut(&sql, runs);
    sql_add(&sql, ") GROUP BY origin) t JOIN origins o ON o.origin=t.origin" RUN_SHELF);
    rc = runs_pass(runs, &sql);
    sql_done(&sql);
    return rc;
}

int read_runs(void *self, struct ng_call *call, uint64_t since, uint64_t until, ng_run_fn *run,
              void *user)
{
    struct runs runs = {.since = (int64_t)u64_min(since, INT64_MAX - 1),
                        .until = (int64_t)u64_min(until, INT64_MAX),
                        .run = run,
                        .user = user};
    int rc = reader_begin(self, call, &runs.conn);
    if (rc != NG_OK) {
        return rc;
    }
    int step = runs_whole(&runs);
    if (step == SQLITE_OK && !runs.stop && (since > 0 || runs.until < INT64_MAX)) {
        step = runs_cut(&runs);
    }
    if (step != SQLITE_OK) {
        rc = conn_fail(runs.conn, call, "reading runs");
    }
    reader_end(runs.conn);
    return rc;
}
