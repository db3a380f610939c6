/* SPDX-License-Identifier: MIT */
/* sql.c - runs an agent's statement. */
#include "sql.h"
#include "opennotes.h"
int on_sql_run(struct ng_call *call, sqlite3 *index, const struct on_sql *sql,
               struct on_answer *answer, int64_t *ret_total)
{
    (void)index;
    (void)sql;
    (void)answer;
    (void)ret_total;
    return ng_fail(call, ON_ESQL, "SQL is not there yet.");
}
