/* SPDX-License-Identifier: MIT */
/* runs.c - the runs with changes, as `origins` counts them. */
#include "../store/db.h"
#include "core/base/minmax.h"
#include "history.h"

static int take_run(struct conn *conn, struct sql *sql, ng_run_fn *run, void *user)
{
    sqlite3_stmt *stmt = NULL;
    int step = sql_prepare(conn, sql, &stmt);
    if (step == SQLITE_OK) {
        while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
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
            if (run(user, &row) != 0) {
                step = SQLITE_DONE;
                break;
            }
        }
    }
    (void)sql_release(conn, stmt);
    return step;
}

int read_runs(void *self, struct ng_call *call, uint64_t since, uint64_t until, ng_run_fn *run,
              void *user)
{
    struct conn *conn = NULL;
    struct sql sql = {0};
    int rc = reader_begin(self, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    sql_add(&sql, "SELECT o.run,o.agent,s.collection,s.space,o.first_seq,o.last_seq,o.changes "
                  "FROM origins o JOIN shelves s ON s.shelf=o.shelf WHERE o.run>'' AND "
                  "o.last_seq>");
    sql_bind_int(&sql, (int64_t)u64_min(since, INT64_MAX));
    sql_add(&sql, " AND o.first_seq<=");
    sql_bind_int(&sql, (int64_t)u64_min(until, INT64_MAX));
    if (take_run(conn, &sql, run, user) != SQLITE_DONE) {
        rc = conn_fail(conn, call, "reading runs");
    }
    sql_done(&sql);
    reader_end(conn);
    return rc;
}
