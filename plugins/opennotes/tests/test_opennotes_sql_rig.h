/* SPDX-License-Identifier: MIT */
/* test_opennotes_sql_rig.h - an index with a few notes, and queries of it.
 */
#ifndef NOTEGATE_TEST_OPENNOTES_SQL_RIG_H
#define NOTEGATE_TEST_OPENNOTES_SQL_RIG_H

#include "harness.h"

#include "core/call/call.h"
#include "sql/sql.h"

#define LONG_MS 60000

struct fixture {
    struct harness harness;
    sqlite3 *index;
};

int setup(void **state);
int teardown(void **state);

/* Result of a statement; done() frees it. */
struct outcome {
    int rc;
    int64_t total;
    struct call *call;
    struct ng_str text;
    const char *message, *hint;
};

/* End of a statement. */
struct page {
    int64_t limit, offset;
    size_t bytes;
    int64_t timeout_ms, bytes_max;
};

extern const struct page whole;
struct outcome run_with(struct fixture *fixture, struct notes_sql sql, struct page page);
struct outcome run(struct fixture *fixture, const char *sql, struct page page);
void done(struct outcome *outcome);
void expect_rows(struct fixture *fixture, const char *sql, const char *rows);
void expect_fail(struct fixture *fixture, const char *sql, int rc, const char *part);
void expect_hint(struct fixture *fixture, const char *sql, const char *part);

#endif
