/* SPDX-License-Identifier: MIT */
/* test_opennotes_sql_limits.c - limits of a query, and the end of a query that runs too long.
 */
#include "test_clock.h"
#include "test_opennotes_sql_rig.h"
#include "text/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_MS 300
#define INSIDE_READING 40 /* a short statement reads the clock less than 15 times */
/* One step between two checks of the clock takes seconds under a sanitizer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define BIG_NOTE ((size_t)128 * 1024)
#else
#define BIG_NOTE ((size_t)3 * 1024 * 1024)
#endif

static const struct page little = {1000, 0, 100000, LONG_MS, (int64_t)16 * 1024 * 1024};

/* ---- limits ---- */

static const char *const forbidden[] = {
    "",
    " ; ",
    "-- nothing",
    "SELECT",
    "SELEC 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE x",
    "SELECT 1;;SELECT 2",
    "DROP TABLE notes",
    "DELETE FROM read_markdown",
    "INSERT INTO read_markdown VALUES(1)",
    "UPDATE read_markdown SET title = 'x'",
    "UPDATE md_links SET line = 1",
    "REPLACE INTO json_each VALUES(1)",
    "CREATE TABLE t(x)",
    "CREATE TEMP TABLE t(x)",
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE INDEX i ON read_markdown(title)",
    ("CREATE TRIGGER t AFTER INSERT ON x BEGIN "
     "SELECT 1; END"),
    "CREATE VIRTUAL TABLE t USING fts5(x)",
    "CREATE VIRTUAL TABLE temp.t USING rtree(a,b,c)",
    "CREATE VIRTUAL TABLE t USING read_markdown",
    "CREATE VIRTUAL TABLE t USING dbstat",
    "ATTACH '/etc/passwd' AS x",
    "ATTACH ':memory:' AS x",
    "ATTACH 'file:x?mode=ro' AS x",
    "DETACH main",
    "PRAGMA database_list",
    "PRAGMA writable_schema = 1",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA hard_heap_limit = 1",
    "PRAGMA user_version",
    "PRAGMA wal_checkpoint",
    "VACUUM",
    "VACUUM INTO '/tmp/x'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT x",
    "RELEASE x",
    "EXPLAIN SELECT 1",
    "EXPLAIN QUERY PLAN SELECT 1",
    "ALTER TABLE notes ADD x",
    "SELECT * FROM notes",
    "SELECT * FROM bodies",
    "SELECT * FROM tags",
    "SELECT * FROM main.notes",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM temp.sqlite_master",
    "SELECT sql FROM sqlite_temp_schema",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('notes')",
    "SELECT * FROM pragma_function_list",
    "SELECT * FROM pragma_compile_options",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_stmt",
    "SELECT * FROM fts5vocab",
    "SELECT * FROM fts3tokenize('simple', 'a b')",
    "SELECT load_extension('x')",
    "SELECT load_extension('/tmp/x.so', 'y')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT fts3_tokenizer('x', x'00')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'y')",
    "SELECT edit('x')",
    "SELECT sqlite_log(1, 'x')",
    "SELECT json_patch('{}', '{}')",
    "SELECT last_insert_rowid()",
    "SELECT changes()",
    "SELECT total_changes()",
    "SELECT sqlite_compileoption_get(1)",
    "SELECT rtreecheck('x')",
    "SELECT sqlite_source_id()",
    "SELECT fts5('x')",
    "SELECT fts5_source_id()",
    "SELECT match('a', 'b')",
    "SELECT 'a' MATCH 'b'",
    "SELECT 'a' REGEXP 'b'",
    "SELECT soundex('x')",
    "SELECT secret FROM read_markdown",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('*')",
    "COPY x TO 'y'",
    "INSTALL x",
    "LOAD x",
    "SET x = 1",
    "CALL x()",
    "EXPORT DATABASE 'x'",
    ".read x",
    ".shell ls",
    "SELECT * FROM read_markdown('a', 'b')",
    "SELECT * FROM md_links('a', 'b', 'c')",
    "WITH x AS (DELETE FROM read_markdown RETURNING *) SELECT * FROM x",
    "WITH x AS (SELECT 1) DELETE FROM x",
    "WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM x",
    "SELECT * FROM (INSERT INTO x VALUES(1))",
    "SELECT (SELECT * FROM notes)",
    "SELECT * FROM read_markdown n WHERE EXISTS (SELECT 1 FROM bodies)",
    "SELECT * FROM read_markdown('**') ORDER BY (SELECT count(*) FROM sqlite_master)",
    "SELECT 1 UNION SELECT name FROM sqlite_schema",
    "SELECT count(*) FROM sqlite_schema",
    "SELECT count(*) FROM pragma_database_list",
    "SELECT count(*) FROM dbstat",
    "SELECT count(*) FROM sqlite_stmt",
    "SELECT count(*) FROM notes",
    "SELECT 1 FROM fts3tokenize",
};

static void test_forbidden(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < NG_COUNT(forbidden); i++) {
        expect_fail(f, forbidden[i], NOTES_ESQL, "Invalid SQL query: ");
    }
    /* The index is as it was. */
    sqlite3_stmt *statement = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(f->index, "SELECT count(*) FROM notes", -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), 3);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
}

static void test_traversal(void **state)
{
    struct fixture *f = *state;
    expect_fail(f, "SELECT * FROM read_markdown('/etc/*')", NG_ETRAVERSAL, "/etc/*");
    expect_fail(f, "SELECT * FROM read_markdown('../*.md')", NG_ETRAVERSAL, "../*.md");
    expect_fail(f, "SELECT * FROM read_markdown('a/../../b')", NG_ETRAVERSAL, "a/../../b");
    expect_fail(f, "SELECT * FROM read_markdown('./' || '..')", NG_ETRAVERSAL, "..");
    expect_rows(f, "SELECT count(*) n FROM read_markdown('a..b/..c')", "[{\"n\":0}]");
}

static void test_hints(void **state)
{
    struct fixture *f = *state;
    static const char *const cases[][2] = {
        {"SELECT metadata['title'] FROM read_markdown('**')", "metadata ->> 'title'"},
        {"SELECT metadata [\"title\"] FROM read_markdown('**')", "metadata ->> 'title'"},
        {"SELECT tags[1] FROM read_markdown('**')", "tags ->> N"},
        {"SELECT * FROM read_markdown('**') WHERE content ILIKE '%x%'", "LIKE ignores case"},
        {"SELECT '1'::INTEGER", "CAST(x AS"},
        {"SELECT unnest(tags) FROM read_markdown('**')", "json_each(n.tags)"},
        {"SELECT list_contains(tags, 'x') FROM read_markdown('**')", "json_each(tags)"},
        {"SELECT string_agg(title, ',') FROM read_markdown('**')", "group_concat"},
        {"SELECT len(title) FROM read_markdown('**')", "length(x)"},
        {"SELECT regexp_matches(title, 'x') FROM read_markdown('**')", "LIKE"},
        {"SELECT CURRENT_DATE - INTERVAL 7 DAY", "date('now'"},
        {"SELECT * EXCLUDE (content) FROM read_markdown('**')", "name the columns"},
        {"SELECT TRY_CAST('x' AS INTEGER)", "CAST"},
        {"SELECT * FROM notes", "read_markdown('**/*.md')"},
        {"SELECT * FROM read_text('x')", "Only notes"},
        {"SELECT body FROM read_markdown('**')", "word_count"},
        {"SELECT t.state FROM read_markdown('**') n, md_tasks(n.content) t",
         "md_tasks() " NOTES_SQL_TASK_COLUMNS},
        {"SELECT l.href FROM read_markdown('**') n, md_links(n.content) l",
         "md_links() " NOTES_SQL_LINK_COLUMNS},
        {"SELECT h.depth FROM read_markdown('**') n, md_headings(n.content) h",
         "md_headings() " NOTES_SQL_HEADING_COLUMNS},
        {"SELECT * FROM tasks", "md_tasks(content) (" NOTES_SQL_TASK_COLUMNS},
        {"SELECT (md_stats(content)).word_count FROM read_markdown('**')", "Example"},
        {"SELECT * FROM read_markdown('**'), md_extract_links(content)", "md_links("},
        {"DELETE FROM read_markdown", "SELECT or WITH"},
        {"ATTACH 'x' AS y", "SELECT or WITH"},
        {"SELECT starts_with(title, 'x') FROM read_markdown('**')", "LIKE 'start%'"},
        {"SELECT now()", "datetime('now')"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        expect_hint(f, cases[i][0], cases[i][1]);
    }
    /* Brackets around a name are SQLite's. */
    expect_rows(f, "SELECT title AS [the title] FROM read_markdown('a.md')",
                "[{\"the title\":\"Alpha\"}]");
    expect_rows(f, "SELECT 'metadata[''title'']' AS x", "[{\"x\":\"metadata['title']\"}]");
}

/* ---- bounds ---- */

static void add_big_note(struct fixture *fixture)
{
    char *text = malloc(BIG_NOTE + 1);
    assert_non_null(text);
    memset(text, 'a', BIG_NOTE);
    text[BIG_NOTE] = '\0';
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_exec(fixture->index,
                                  "INSERT OR REPLACE INTO notes VALUES"
                                  "(9,'big.md',NULL,1,1,1,1,'{}','s',NULL)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(fixture->index,
                                        "INSERT OR REPLACE INTO bodies VALUES(9,?1)", -1,
                                        &statement, NULL),
                     SQLITE_OK);
    (void)sqlite3_bind_text(statement, 1, text, (int)BIG_NOTE, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    free(text);
}

#define COUNT_UP(limit)                                                                        \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT " limit ") "

/* By a bound on bytes that is lower than the usual one: a full one takes long to reach. */
static void expect_stop(struct fixture *fixture, const char *sql, const char *message)
{
    struct outcome outcome = run(fixture, sql, little);
    assert_int_equal(outcome.rc, NOTES_ESQL);
    assert_non_null(strstr(outcome.message, message));
    done(&outcome);
}

static void test_long_text(void **state)
{
    struct fixture *f = *state;
    static char sql[100002];
    memset(sql, ' ', sizeof(sql) - 1);
    memcpy(sql, "SELECT 1", sizeof("SELECT 1") - 1);
    expect_hint(f, sql, "Shorten it");
}

static void test_rows_and_bytes(void **state)
{
    struct fixture *f = *state;
    struct outcome outcome = run(f, COUNT_UP("100000") "SELECT i FROM n", whole);
    assert_int_equal(outcome.rc, NG_OK);
    assert_int_equal(outcome.total, 100000);
    done(&outcome);
    expect_fail(f, COUNT_UP("100001") "SELECT i FROM n", NOTES_ESQL, "more than 100,000 rows");
    expect_stop(f, COUNT_UP("100") "SELECT printf('%.400000c', 'x') FROM n",
                "larger than 16 MiB");
    expect_fail(f, "SELECT zeroblob(20000000)", NOTES_ESQL, "too big");
    expect_fail(f, "SELECT hex(zeroblob(16000000))", NOTES_ESQL, "too big");
    expect_fail(f, "SELECT replace(hex(zeroblob(8000)), '0', printf('%.9999c', 'x'))",
                NOTES_ESQL, "too big");
    /* One call would append gigabytes, character by character, and nothing would stop it. */
    expect_fail(f,
                "SELECT printf('%.*c%.*c%.*c%.*c', 2000000000, 'x', 2000000000, 'x', "
                "2000000000, 'x', 2000000000, 'x')",
                NOTES_ESQL, "too big");
    expect_fail(f, "SELECT format('%2000000000d', 1)", NOTES_ESQL, "too big");
    expect_fail(f, "SELECT printf('%.99999999999999999999f', 1)", NOTES_ESQL, "too big");
    expect_fail(f, "SELECT printf('%-*s', -9223372036854775807 - 1, 'x')", NOTES_ESQL,
                "too big");
    expect_fail(f, "SELECT printf('%.9000000c%.9000000c', 'x', 'y')", NOTES_ESQL, "too big");
    /* Sorting 3 * 10^3 values of 10 kB takes 30 MB of temporary storage. */
    expect_stop(f,
                COUNT_UP("3000") "SELECT count(*) FROM (SELECT i, randomblob(10000) b FROM n "
                                 "ORDER BY b LIMIT -1 OFFSET 1)",
                "more than 16 MiB");
    /* As many large values at once as a row holds. */
    struct buf sql;
    buf_init(&sql, 100000);
    buf_add_c(&sql, "SELECT length(a1) FROM (SELECT ");
    for (int i = 1; i <= 40; i++) {
        buf_printf(&sql, "%srandomblob(1600000 - %d) a%d", i > 1 ? "," : "", i, i);
    }
    buf_add_c(&sql, ") WHERE length(a1) > 0");
    for (int i = 2; i <= 40; i++) {
        buf_printf(&sql, " AND a1 <> a%d", i);
    }
    buf_add_char(&sql, '\0');
    expect_stop(f, sql.data, "more than 16 MiB");
    buf_done(&sql);
}

/* It times out when the clock is read for the nth time, and that was the last time. */
static void expect_timeout(struct fixture *fixture, const char *sql, unsigned reading)
{
    test_clock_jump_at(CLOCK_MONOTONIC_COARSE, reading, SHORT_MS);
    struct outcome outcome = run(fixture, sql, (struct page){10, 0, 100000, SHORT_MS, 0});
    unsigned readings = test_clock_readings(CLOCK_MONOTONIC_COARSE);
    test_clock_jump_at(CLOCK_MONOTONIC_COARSE, 0, 0);
    if (outcome.rc != NG_EQUERYTIMEOUT || readings != reading) {
        print_error("%s: %d %s, after %u readings\n", sql, outcome.rc, outcome.message,
                    readings);
    }
    assert_int_equal(outcome.rc, NG_EQUERYTIMEOUT);
    assert_non_null(strstr(outcome.message, "timed out after 0.3s"));
    assert_int_equal(readings, reading);
    done(&outcome);
}

struct endless {
    const char *sql;
    unsigned reading; /* then the rows are counted up, and long values are worked on */
};

/* Statements that would run for minutes or for ever: they end, each with QUERY_TIMEOUT. (How
 * late is not asserted; the test's own time limit is.) */
static void test_endless(void **state)
{
    struct fixture *f = *state;
    static const struct endless statements[] = {
        {"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n",
         100000},
        {"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
         100000},
        {COUNT_UP("100000") "SELECT count(*) FROM n a, n b, n c", 100000},
        {COUNT_UP("3000") "SELECT count(*) FROM n a JOIN n b JOIN n c WHERE a.i + b.i = -c.i",
         100000},
        {COUNT_UP(
             "2000") "SELECT sum(instr(content, printf('%.*c', 1500000, 'a') || 'b')) FROM "
                     "read_markdown('big.md'), n a, n b",
         7540},
        {COUNT_UP("1000") "SELECT sum(length(replace(content, 'aaaaaaaaab', 'x'))) FROM "
                          "read_markdown('big.md'), n a, n b",
         3780},
        {COUNT_UP("1000") "SELECT sum(content LIKE '%a%a%a%a%a%a%a%a%a%a%ab') FROM "
                          "read_markdown('big.md'), n",
         3820},
        {COUNT_UP("1000") "SELECT sum(content GLOB '*[a]?????????????????????????????b') FROM "
                          "read_markdown('big.md'), n",
         3900},
        {COUNT_UP(
             "1000") "SELECT sum(length(hex(content))) FROM read_markdown('big.md'), n, n b",
         3785},
        {COUNT_UP("1000") "SELECT sum(length(quote(content))) FROM read_markdown('big.md'), n "
                          "a, n b",
         3785},
        {COUNT_UP("9000") "SELECT sum(length(randomblob(15000000))) FROM n, n b", 33770},
        {COUNT_UP("9000") "SELECT sum(length(printf('%.15000000c', 'x'))) FROM n, n b", 100000},
        {COUNT_UP("9000") "SELECT sum(length(upper(content))) FROM read_markdown('big.md'), n",
         33770},
        {COUNT_UP("9000") "SELECT count(*) FROM read_markdown('big.md') r, n, "
                          "md_links(r.content || n.i)",
         33780},
        {COUNT_UP(
             "9000") "SELECT sum(length(md_stats(content))) FROM read_markdown('big.md'), n",
         33772},
        {COUNT_UP("99999") "SELECT length(group_concat(content)) FROM (SELECT i, "
                           "printf('%.90c', 'x') content FROM n, (SELECT i j FROM n))",
         100000},
        {COUNT_UP(
             "9000") "SELECT sum(length(strftime(replace(hex(zeroblob(200000)), '0', '%J'), "
                     "'now', n.i || ' seconds'))) FROM n",
         20},
        {COUNT_UP("90000") "SELECT count(*) FROM read_markdown('**') a, read_markdown('**') b, "
                           "n, n m",
         100000},
        {COUNT_UP("9000") "SELECT json_array_length(json_group_array(content)) FROM "
                          "(SELECT n.i, 'x' content FROM n, n b, n c)",
         100000},
        {COUNT_UP("9000") "SELECT sum(trim(content, 'bcdefghijklmnopqrstuvwxyza') = '') FROM "
                          "read_markdown('big.md'), n",
         33771},
    };
    add_big_note(f);
    for (size_t i = 0; i < NG_COUNT(statements); i++) {
        expect_timeout(f, statements[i].sql, statements[i].reading);
    }
}

#define LONG_A "printf('%.3000000c', 'a')"
#define MANY(text) "replace(printf('%.1000c', 'a'), 'a', " text ")"

/* One call of a function, or one table, in which the time ends: outside of it the clock is read
 * less often. */
static void test_endless_inside(void **state)
{
    struct fixture *f = *state;
    static const char *const statements[] = {
        "SELECT " LONG_A " LIKE '%a%a%a%a%a%a%a%a%a%a%ab'",
        "SELECT " LONG_A " GLOB '*[a]?????????????????????????????b'",
        "SELECT length(replace(" LONG_A ", 'a', 'b'))",
        "SELECT trim(" LONG_A ", 'bcdefghijklmnopqrstuvwxyza')",
        "SELECT length(printf(" MANY("'%d'") "))",
    };
    for (size_t i = 0; i < NG_COUNT(statements); i++) {
        expect_timeout(f, statements[i], INSIDE_READING);
    }
}

/* For a note that is larger than the indexed part, SQL reports that it reads a part. */
static void test_cut_content(void **state)
{
    struct fixture *f = *state;
    add_big_note(f);
    expect_rows(f, "SELECT content LIKE '%a' w FROM read_markdown('big.md')", "[{\"w\":1}]");
    assert_int_equal(sqlite3_exec(f->index, "UPDATE notes SET size = 64000000 WHERE id = 9",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    expect_rows(f, "SELECT substr(content, -43) w FROM read_markdown('big.md')",
                "[{\"w\":\"a\\n[cut: the note is longer than SQL reads]\\n\"}]");
}

/* Statements that SQLite would copy into each other before it runs them. */
/* Each table joins the one before it with itself. */
static void add_joins(struct buf *sql)
{
    buf_add_c(sql, "WITH a0(x) AS (SELECT 1)");
    for (int i = 1; i <= 40; i++) {
        buf_printf(sql, ", a%d AS (SELECT p.x FROM a%d p, a%d q)", i, i - 1, i - 1);
    }
    buf_add_c(sql, " SELECT count(*) FROM a40");
}

/* The same, below another table, and with every way to write a name. */
static void add_quoted_joins(struct buf *sql)
{
    buf_add_c(sql, "WITH z AS (WITH a0(x) AS (SELECT 1)");
    for (int i = 1; i <= 40; i++) {
        buf_printf(sql, ", \"a%d\"(y) AS NOT MATERIALIZED (SELECT 1 FROM [a%d], `a%d`)", i,
                   i - 1, i - 1);
    }
    buf_add_c(sql, " SELECT * FROM a40) SELECT * FROM z");
}

/* A long term that the arguments of a function repeat. */
static void add_long_terms(struct buf *sql)
{
    buf_add_c(sql, "SELECT 1");
    for (int i = 0; i < 12000; i++) {
        buf_add_c(sql, i % 100 == 99 ? "+(1)" : "+1");
    }
    buf_add_c(sql, " AS x ORDER BY max(x");
    for (int i = 0; i < 12000; i++) {
        buf_add_c(sql, ",x");
    }
    buf_add_c(sql, ")");
}

static void test_bombs(void **state)
{
    struct fixture *f = *state;
    static void (*const bombs[])(struct buf *) = {add_joins, add_quoted_joins, add_long_terms};
    struct buf sql;
    buf_init(&sql, 200000);
    for (size_t i = 0; i < NG_COUNT(bombs); i++) {
        buf_clear(&sql);
        bombs[i](&sql);
        buf_add_char(&sql, '\0');
        expect_fail(f, sql.data, NOTES_ESQL, "too complex");
    }
    buf_done(&sql);
}

/* A query that is only long runs or is refused, in a short time. */
static void test_long(void **state)
{
    struct fixture *f = *state;
    struct buf sql;
    buf_init(&sql, 200000);
    buf_add_c(&sql, "WITH a0 AS (SELECT 1 AS x)");
    for (int i = 1; i <= 50; i++) {
        buf_printf(&sql, ", a%d AS (SELECT x + x + x + x AS x FROM a%d WHERE x + x > 0)", i,
                   i - 1);
    }
    buf_add_c(&sql, " SELECT x FROM a50");
    buf_add_char(&sql, '\0');
    struct outcome outcome = run(f, sql.data, whole);
    assert_true(outcome.rc == NG_OK || outcome.rc == NOTES_ESQL);
    done(&outcome);

    buf_clear(&sql);
    buf_add_c(&sql, "SELECT 1 WHERE 'x' IN ('0'");
    for (int i = 0; i < 9000; i++) {
        buf_printf(&sql, ",'%d'", i);
    }
    buf_add_c(&sql, ")");
    buf_add_char(&sql, '\0');
    expect_rows(f, sql.data, "[]");
    buf_done(&sql);
}

static void test_deep(void **state)
{
    struct fixture *f = *state;
    char *deep = malloc(90000);
    assert_non_null(deep);
    memset(deep, '(', 89999);
    memcpy(deep, "SELECT ", 7);
    deep[89999] = '\0';
    expect_fail(f, deep, NOTES_ESQL, "Invalid SQL query: ");
    memset(deep, '-', 89999);
    memcpy(deep, "SELECT 1", 8);
    for (size_t i = 9; i < 89999; i += 2) {
        deep[i] = ' ';
    }
    expect_fail(f, deep, NOTES_ESQL, "Invalid SQL query: ");
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forbidden, setup, teardown),
        cmocka_unit_test_setup_teardown(test_traversal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hints, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_and_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless_inside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bombs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_content, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
