/* SPDX-License-Identifier: MIT */
/* test_opennotes_sql.c - statements of agents: what they give, what they cannot see or do, and
 * that they end. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "call.h"
#include "json.h"
#include "opennotes.h"
#include "sql.h"
#include "sql_parts.h"

#define SHORT_MS 300
#define LONG_MS 60000
/* What is one step between looks at the clock takes seconds under a sanitizer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define BIG_NOTE ((size_t)128 * 1024)
#else
#define BIG_NOTE ((size_t)3 * 1024 * 1024)
#endif

static const char *const plain_sets[] = {"plugins=", "documents=memory", NULL};

struct fixture {
    struct harness harness;
    sqlite3 *index;
};

static const char index_sql[] =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, path TEXT UNIQUE, title TEXT, created INTEGER,"
    " modified INTEGER, size INTEGER, words INTEGER, front TEXT, secret TEXT);"
    "CREATE TABLE bodies(note INTEGER PRIMARY KEY, content TEXT);"
    "CREATE TABLE tags(note INTEGER, tag TEXT, fold TEXT);"
    "INSERT INTO notes VALUES"
    "(1,'a.md','Alpha',1000,1769610600000,10,2,'{\"title\":\"Alpha\",\"rank\":3}','s'),"
    "(2,'dir/b.md',NULL,2000,3000,20,4,'{}','s'),"
    "(3,'dir/sub/c.md','\xc3\x9c"
    "ber',5000,6000,30,6,'{\"k\":[1,2]}','s');"
    "INSERT INTO bodies VALUES(1,'# Head\n\nSee [b](dir/b.md).\n\n- [x] done\n- [ ] open\n'),"
    "(2,'[[a]] and \xc3\x89T\xc3\x89 TODO\n'),(3,'plain');"
    "INSERT INTO tags VALUES(1,'x','x'),(1,'y','y'),(3,'x','x');";

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    harness_open(&fixture->harness, plain_sets);
    assert_int_equal(sqlite3_open(":memory:", &fixture->index), SQLITE_OK);
    assert_int_equal(sqlite3_exec(fixture->index, index_sql, NULL, NULL, NULL), SQLITE_OK);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(sqlite3_close(fixture->index), SQLITE_OK); /* no statement is left */
    harness_close(&fixture->harness);
    free(fixture);
    return 0;
}

/* ---- running one ---- */

struct outcome {
    int rc;
    int64_t total;
    struct call *call;
    struct ng_str text;
    const char *message, *hint;
};

struct page {
    int64_t limit, offset;
    size_t bytes;
    int64_t timeout_ms, bytes_max;
};

static const struct page whole = {1000, 0, (size_t)16 * 1024 * 1024, LONG_MS, 0};
static const struct page little = {1000, 0, 100000, LONG_MS, (int64_t)16 * 1024 * 1024};

static struct outcome run_with(struct fixture *fixture, struct on_sql sql, struct page page)
{
    struct outcome outcome = {.call = harness_new_call(&fixture->harness)};
    struct ng_call *call = &outcome.call->pub;
    const struct on_budget budget = {page.bytes, 1000000};
    struct on_answer answer;
    sql.timeout_ms = page.timeout_ms;
    sql.bytes_max = page.bytes_max;
    on_answer_begin(&answer, call, &budget, page.limit, page.offset);
    on_answer_list(&answer, "results");
    outcome.rc = on_sql_run(call, fixture->index, &sql, &answer, &outcome.total);
    if (outcome.rc == NG_OK) {
        on_answer_list_end(&answer);
        assert_int_equal(on_answer_end(&answer, outcome.total), NG_OK);
        call_complete_result(outcome.call);
        outcome.text = outcome.call->work.text;
        outcome.message = outcome.hint = "";
    } else {
        on_answer_drop(&answer);
        outcome.message = call->host
                              ->format(call, "%.*s", (int)outcome.call->work.message.len,
                                       outcome.call->work.message.data)
                              .data;
        outcome.hint =
            call->host
                ->format(call, "%.*s", (int)outcome.call->work.hint.len,
                         outcome.call->work.hint.len > 0 ? outcome.call->work.hint.data : "")
                .data;
    }
    return outcome;
}

static struct outcome run(struct fixture *fixture, const char *sql, struct page page)
{
    return run_with(fixture, (struct on_sql){.text = ng_str_of(sql)}, page);
}

static void done(struct outcome *outcome)
{
    call_unref(outcome->call);
}

static void expect_rows(struct fixture *fixture, const char *sql, const char *rows)
{
    struct outcome outcome = run(fixture, sql, whole);
    if (outcome.rc != NG_OK) {
        print_error("%s: %s\n", sql, outcome.message);
    }
    assert_int_equal(outcome.rc, NG_OK);
    struct ng_str begin = ng_str_of("{\"results\":");
    size_t end = on_find(outcome.text, ng_str_of(",\"pagination\":"), 0);
    assert_true(end != SIZE_MAX);
    struct ng_str got = on_str(outcome.text.data + begin.len, end - begin.len);
    if (!on_is(got, rows)) {
        print_error("%s\n  gave   %.*s\n  wanted %s\n", sql, (int)got.len, got.data, rows);
        fail();
    }
    done(&outcome);
}

static void expect_fail(struct fixture *fixture, const char *sql, int rc, const char *part)
{
    struct outcome outcome = run(fixture, sql, whole);
    bool told = outcome.rc == rc && strstr(outcome.message, part) != NULL;
    if (!told) {
        print_error("%.200s\n  %d %s\n  wanted %d %s\n", sql, outcome.rc, outcome.message, rc,
                    part);
    }
    assert_true(told);
    done(&outcome);
}

static void expect_hint(struct fixture *fixture, const char *sql, const char *part)
{
    struct outcome outcome = run(fixture, sql, whole);
    bool told = outcome.rc == ON_ESQL && strstr(outcome.hint, part) != NULL;
    if (!told) {
        print_error("%s\n  %d %s\n  hint %s\n  wanted %s\n", sql, outcome.rc, outcome.message,
                    outcome.hint, part);
    }
    assert_true(told);
    done(&outcome);
}

/* ---- what it gives ---- */

static void test_notes(void **state)
{
    struct fixture *f = *state;
    expect_rows(
        f, "SELECT * FROM read_markdown('**/*.md') WHERE file_path = 'a.md'",
        "[{\"file_path\":\"a.md\",\"title\":\"Alpha\",\"content\":\"# Head\\n\\nSee "
        "[b](dir/b.md).\\n\\n- [x] done\\n- [ ] open\\n\",\"metadata\":\"{\\\"title\\\":"
        "\\\"Alpha\\\",\\\"rank\\\":3}\",\"tags\":\"[\\\"x\\\",\\\"y\\\"]\","
        "\"created\":\"1970-01-01T00:00:01Z\",\"modified\":\"2026-01-28T14:30:00Z\","
        "\"size\":10,\"word_count\":2}]");
    expect_rows(f, "SELECT file_path p, title, tags FROM read_markdown('**/*.md')",
                "[{\"p\":\"a.md\",\"title\":\"Alpha\",\"tags\":\"[\\\"x\\\",\\\"y\\\"]\"},"
                "{\"p\":\"dir/b.md\",\"title\":null,\"tags\":\"[]\"},"
                "{\"p\":\"dir/sub/c.md\",\"title\":\"\xc3\x9c"
                "ber\",\"tags\":\"[\\\"x\\\"]\"}]");
    expect_rows(f, "SELECT count(*) n FROM read_markdown('*.md')", "[{\"n\":1}]");
    expect_rows(f, "SELECT count(*) n FROM read_markdown('dir/*.md')", "[{\"n\":1}]");
    expect_rows(f, "SELECT count(*) n FROM read_markdown('./dir/**')", "[{\"n\":2}]");
    expect_rows(f, "SELECT count(*) n FROM read_markdown", "[{\"n\":3}]");
    expect_rows(f, "SELECT file_path FROM read_markdown('**') ORDER BY file_path DESC LIMIT 1",
                "[{\"file_path\":\"dir/sub/c.md\"}]");
    expect_rows(f,
                "SELECT metadata ->> 'rank' r, metadata->>'$.title' t, json_extract(metadata, "
                "'$.rank') + 1 s FROM read_markdown('a.md')",
                "[{\"r\":3,\"t\":\"Alpha\",\"s\":4}]");
    expect_rows(f,
                "SELECT t.value, count(*) n FROM read_markdown('**') n, json_each(n.tags) t "
                "GROUP BY 1 ORDER BY 2 DESC, 1",
                "[{\"value\":\"x\",\"n\":2},{\"value\":\"y\",\"n\":1}]");
    expect_rows(f,
                "WITH big AS (SELECT * FROM read_markdown('**') WHERE size > 10) SELECT "
                "sum(size) s, avg(word_count) a FROM big",
                "[{\"s\":50,\"a\":5.0}]");
    expect_rows(f,
                "SELECT a.file_path x, b.file_path y FROM read_markdown('**') a JOIN "
                "read_markdown('**') b ON a.size + 10 = b.size ORDER BY 1",
                "[{\"x\":\"a.md\",\"y\":\"dir/b.md\"},{\"x\":\"dir/b.md\",\"y\":\"dir/sub/"
                "c.md\"}]");
    expect_fail(f, "SELECT file_path FROM read_markdown(NULL || 'x')", ON_ESQL, "one glob");
}

static void test_markdown_tables(void **state)
{
    struct fixture *f = *state;
    expect_rows(f,
                "SELECT n.file_path, l.* FROM read_markdown('**') n, md_links(n.content) l "
                "ORDER BY 1",
                "[{\"file_path\":\"a.md\",\"line\":3,\"text\":\"b\",\"target\":\"dir/b.md\","
                "\"kind\":\"inline\"},{\"file_path\":\"dir/b.md\",\"line\":1,\"text\":\"a\","
                "\"target\":\"a\",\"kind\":\"wiki\"}]");
    expect_rows(f, "SELECT * FROM md_headings('# A b\n\n## A b')",
                "[{\"line\":1,\"level\":1,\"text\":\"A b\",\"slug\":\"a-b\"},"
                "{\"line\":3,\"level\":2,\"text\":\"A b\",\"slug\":\"a-b-1\"}]");
    expect_rows(f,
                "SELECT t.* FROM read_markdown('a.md') n JOIN md_tasks(n.content) t WHERE NOT "
                "t.done",
                "[{\"line\":6,\"done\":0,\"text\":\"open\"}]");
    expect_rows(f, "SELECT md_stats('# A b') ->> 'heading_count' h, md_stats(NULL) n",
                "[{\"h\":1,\"n\":null}]");
    expect_rows(f, "SELECT * FROM md_links(NULL)", "[]");
    expect_rows(f, "SELECT * FROM md_links", "[]");
}

static void test_functions(void **state)
{
    struct fixture *f = *state;
    expect_rows(f,
                "SELECT 'ABC' LIKE 'a%' a, '\xc3\x89t\xc3\xa9' LIKE '\xc3\xa9T\xc3\x89' b, "
                "'a_c' LIKE 'a\\_c' ESCAPE '\\' c, 'abc' LIKE 'a\\_c' ESCAPE '\\' d, "
                "'abc' LIKE '_b_' e, 'x' LIKE NULL f, '' LIKE '' g, 'ab' LIKE '%' h, "
                "'abab' LIKE '%ab' i, 'aXbXc' LIKE 'a%x%c' j, 'a' LIKE 'a%%' k",
                "[{\"a\":1,\"b\":1,\"c\":1,\"d\":0,\"e\":1,\"f\":null,\"g\":1,\"h\":1,\"i\":1,"
                "\"j\":1,\"k\":1}]");
    expect_rows(f,
                "SELECT 'abc' GLOB 'a*' a, 'ABC' GLOB 'a*' b, 'abc' GLOB '[a-c][^a]?' c, "
                "'a]' GLOB 'a[]]' d, 'a-b' GLOB '*[-]b' e, 'abc' GLOB '[' f",
                "[{\"a\":1,\"b\":0,\"c\":1,\"d\":1,\"e\":1,\"f\":0}]");
    expect_rows(
        f,
        "SELECT instr('\xc3\xa9"
        "abc', 'b') a, instr('x', '') b, instr('x', 'y') c, instr(NULL, 'x') d, "
        "instr(x'00ff10', x'10') e, replace('aXbX', 'X', '--') g, replace('a', '', 'b') "
        "h, upper('\xc3\xa9x') i, lower('\xc3\x89X') j",
        "[{\"a\":3,\"b\":1,\"c\":0,\"d\":null,\"e\":3,\"g\":\"a--b--\",\"h\":\"a\","
        "\"i\":\"\xc3\x89X\",\"j\":\"\xc3\xa9x\"}]");
    expect_rows(f,
                "SELECT trim('  a ') a, trim('xyax', 'yx') b, ltrim('\xc3\xa9\xc3\xa9"
                "a', '\xc3\xa9') c, rtrim('a..', '.') d",
                "[{\"a\":\"a\",\"b\":\"a\",\"c\":\"a\",\"d\":\"a\"}]");
    expect_rows(f,
                "SELECT date('2026-01-31', '+1 day') d, strftime('%Y', '2026-01-31') y, "
                "printf('%05.1f', 2.5) p, coalesce(NULL, 1) c, round(2.5) r, sqrt(4) q",
                "[{\"d\":\"2026-02-01\",\"y\":\"2026\",\"p\":\"002.5\",\"c\":1,\"r\":3.0,"
                "\"q\":2.0}]");
}

static void test_values(void **state)
{
    struct fixture *f = *state;
    expect_rows(f,
                "SELECT 1 a, 1 a, 2 a, NULL b, 1.5 c, x'00ff' d, 9007199254740993 e, -1 g, "
                "9e999 h, -9e999 i, 1e300*1e300-1e300*1e300 j, 0.1+0.2 k, 3.0 l",
                "[{\"a\":1,\"a_2\":1,\"a_3\":2,\"b\":null,\"c\":1.5,\"d\":\"X'00FF'\","
                "\"e\":\"9007199254740993\",\"g\":-1,\"h\":\"Infinity\",\"i\":\"-Infinity\","
                "\"j\":null,\"k\":0.30000000000000004,\"l\":3.0}]");
    expect_rows(f, "SELECT 1 AS \"a\", 2 AS \"a_2\", 3 AS \"a\", 'q\"\n' AS \"x y\"",
                "[{\"a\":1,\"a_2\":2,\"a_3\":3,\"x y\":\"q\\\"\\n\"}]");
    expect_rows(f, "SELECT CAST(x'61ff62' AS TEXT) t, 'a' || char(0) || 'b' z",
                "[{\"t\":\"a\xef\xbf\xbd"
                "b\",\"z\":\"a\\u0000b\"}]");
    expect_rows(f, "VALUES (1), (2)", "[{\"column1\":1},{\"column1\":2}]");
    expect_rows(f, " -- comment\n /* more */ SELECT 1 AS x ; -- end\n ;", "[{\"x\":1}]");
}

static void test_params(void **state)
{
    struct fixture *f = *state;
    const struct on_sql_param params[] = {
        {ng_str_of("who"), ng_str_of("x'; DROP"), false},
        {ng_str_of("n"), ng_str_of("7"), true},
        {ng_str_of("r"), ng_str_of("1.5"), true},
        {ng_str_of("none"), {NULL, 0}, false},
    };
    struct outcome outcome = run_with(
        f,
        (struct on_sql){.text = ng_str_of("SELECT :who a, @n + 1 b, $r c, :none d, :who e"),
                        .params = params,
                        .param_count = NG_COUNT(params)},
        whole);
    assert_int_equal(outcome.rc, NG_OK);
    assert_true(on_begins(outcome.text, "{\"results\":[{\"a\":\"x'; DROP\",\"b\":8,\"c\":1.5,"
                                        "\"d\":null,\"e\":\"x'; DROP\"}]"));
    done(&outcome);
    expect_fail(f, "SELECT :other", ON_ESQL, ":other has no value");
    expect_fail(f, "SELECT ?", ON_ESQL, "? has no value");
}

/* ---- paging ---- */

static void test_paging(void **state)
{
    struct fixture *f = *state;
    const char *sql =
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < "
        "499) SELECT i, printf('%.*c', i % 97, 'x') pad FROM n";
    int64_t offset = 0;
    int64_t seen = 0;
    while (offset >= 0) {
        struct outcome outcome = run(f, sql, (struct page){60, offset, 4096, LONG_MS, 0});
        const struct ng_value *answer = NULL;
        struct ng_call *call = &outcome.call->pub;
        assert_int_equal(outcome.rc, NG_OK);
        assert_true(outcome.text.len <= 4096);
        assert_int_equal(call->host->json_parse(call, outcome.text, &answer), NG_OK);
        const struct ng_value *row =
            call->host->json_first(call->host->json_get(answer, "results"));
        for (; row != NULL; row = call->host->json_next(row)) {
            int64_t i = -1;
            assert_int_equal(call->host->json_integer(call->host->json_get(row, "i"), &i), 0);
            assert_int_equal(i, seen++);
        }
        const struct ng_value *pagination = call->host->json_get(answer, "pagination");
        int64_t total = 0;
        int64_t next = -1;
        (void)call->host->json_integer(call->host->json_get(pagination, "total"), &total);
        (void)call->host->json_integer(call->host->json_get(pagination, "nextOffset"), &next);
        assert_int_equal(total, 500);
        assert_true(next == -1 || next > offset);
        offset = next;
        done(&outcome);
    }
    assert_int_equal(seen, 500);
}

/* ---- what it cannot ---- */

static void test_forbidden(void **state)
{
    struct fixture *f = *state;
    static const char *const statements[] = {
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
    for (size_t i = 0; i < NG_COUNT(statements); i++) {
        expect_fail(f, statements[i], ON_ESQL, "Invalid SQL query: ");
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
                                  "(9,'big.md',NULL,1,1,1,1,'{}','s')",
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
    assert_int_equal(outcome.rc, ON_ESQL);
    assert_non_null(strstr(outcome.message, message));
    done(&outcome);
}

static void test_rows_and_bytes(void **state)
{
    struct fixture *f = *state;
    struct outcome outcome = run(f, COUNT_UP("100000") "SELECT i FROM n", whole);
    assert_int_equal(outcome.rc, NG_OK);
    assert_int_equal(outcome.total, 100000);
    done(&outcome);
    expect_fail(f, COUNT_UP("100001") "SELECT i FROM n", ON_ESQL, "more than 100,000 rows");
    expect_stop(f, COUNT_UP("100") "SELECT printf('%.400000c', 'x') FROM n",
                "larger than 16 MiB");
    expect_fail(f, "SELECT zeroblob(20000000)", ON_ESQL, "too big");
    expect_fail(f, "SELECT hex(zeroblob(16000000))", ON_ESQL, "too big");
    expect_fail(f, "SELECT replace(hex(zeroblob(8000)), '0', printf('%.9999c', 'x'))", ON_ESQL,
                "too big");
    /* Sorting 3 * 10^3 values of 10 kB takes 30 MB of temporary storage. */
    expect_stop(f,
                COUNT_UP("3000") "SELECT count(*) FROM (SELECT i, randomblob(10000) b FROM n "
                                 "ORDER BY b LIMIT -1 OFFSET 1)",
                "more than 16 MiB");
    /* As many large values at once as a row holds. */
    struct on_buf sql;
    on_buf_init(&sql, 100000);
    on_buf_add_c(&sql, "SELECT length(a1) FROM (SELECT ");
    for (int i = 1; i <= 40; i++) {
        on_buf_printf(&sql, "%srandomblob(1600000 - %d) a%d", i > 1 ? "," : "", i, i);
    }
    on_buf_add_c(&sql, ") WHERE length(a1) > 0");
    for (int i = 2; i <= 40; i++) {
        on_buf_printf(&sql, " AND a1 <> a%d", i);
    }
    on_buf_add_char(&sql, '\0');
    expect_stop(f, sql.data, "more than 16 MiB");
    on_buf_done(&sql);
}

/* Statements that would run for minutes or for ever: they end, each with QUERY_TIMEOUT. (How
 * late is not asserted; the test's own time limit is.) */
static void test_endless(void **state)
{
    struct fixture *f = *state;
    static const char *const statements[] = {
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
        COUNT_UP("100000") "SELECT count(*) FROM n a, n b, n c",
        COUNT_UP("3000") "SELECT count(*) FROM n a JOIN n b JOIN n c WHERE a.i + b.i = -c.i",
        COUNT_UP("2000") "SELECT sum(instr(content, printf('%.*c', 1500000, 'a') || 'b')) FROM "
                         "read_markdown('big.md'), n a, n b",
        COUNT_UP("1000") "SELECT sum(length(replace(content, 'aaaaaaaaab', 'x'))) FROM "
                         "read_markdown('big.md'), n a, n b",
        COUNT_UP("1000") "SELECT sum(content LIKE '%a%a%a%a%a%a%a%a%a%a%ab') FROM "
                         "read_markdown('big.md'), n",
        COUNT_UP("1000") "SELECT sum(content GLOB '*[a]?????????????????????????????b') FROM "
                         "read_markdown('big.md'), n",
        COUNT_UP(
            "1000") "SELECT sum(length(hex(content))) FROM read_markdown('big.md'), n, n b",
        COUNT_UP(
            "1000") "SELECT sum(length(quote(content))) FROM read_markdown('big.md'), n a, n b",
        COUNT_UP("9000") "SELECT sum(length(randomblob(15000000))) FROM n, n b",
        COUNT_UP("9000") "SELECT sum(length(printf('%.15000000c', 'x'))) FROM n, n b",
        COUNT_UP("9000") "SELECT sum(length(upper(content))) FROM read_markdown('big.md'), n",
        COUNT_UP("9000") "SELECT count(*) FROM read_markdown('big.md') r, n, "
                         "md_links(r.content || n.i)",
        COUNT_UP(
            "9000") "SELECT sum(length(md_stats(content))) FROM read_markdown('big.md'), n",
        COUNT_UP("99999") "SELECT length(group_concat(content)) FROM (SELECT i, "
                          "printf('%.90c', 'x') content FROM n, (SELECT i j FROM n))",
        COUNT_UP(
            "9000") "SELECT sum(length(strftime(replace(hex(zeroblob(200000)), '0', '%J'), "
                    "'now', n.i || ' seconds'))) FROM n",
        COUNT_UP("90000") "SELECT count(*) FROM read_markdown('**') a, read_markdown('**') b, "
                          "n, n m",
        COUNT_UP("9000") "SELECT json_array_length(json_group_array(content)) FROM "
                         "(SELECT n.i, 'x' content FROM n, n b, n c)",
        COUNT_UP("9000") "SELECT sum(trim(content, 'bcdefghijklmnopqrstuvwxyza') = '') FROM "
                         "read_markdown('big.md'), n",
    };
    add_big_note(f);
    for (size_t i = 0; i < NG_COUNT(statements); i++) {
        struct outcome outcome =
            run(f, statements[i], (struct page){10, 0, 100000, SHORT_MS, 0});
        if (outcome.rc != NG_EQUERYTIMEOUT) {
            print_error("%s: %d %s\n", statements[i], outcome.rc, outcome.message);
        }
        assert_int_equal(outcome.rc, NG_EQUERYTIMEOUT);
        assert_non_null(strstr(outcome.message, "timed out after 0.3s"));
        done(&outcome);
    }
}

/* Statements that SQLite would copy into each other before it runs them. */
static void test_bombs(void **state)
{
    struct fixture *f = *state;
    struct on_buf sql;
    on_buf_init(&sql, 200000);
    on_buf_add_c(&sql, "WITH a0(x) AS (SELECT 1)");
    for (int i = 1; i <= 40; i++) {
        on_buf_printf(&sql, ", a%d AS (SELECT p.x FROM a%d p, a%d q)", i, i - 1, i - 1);
    }
    on_buf_add_c(&sql, " SELECT count(*) FROM a40");
    on_buf_add_char(&sql, '\0');
    expect_fail(f, sql.data, ON_ESQL, "too complex");

    on_buf_clear(&sql);
    on_buf_add_c(&sql, "WITH z AS (WITH a0(x) AS (SELECT 1)");
    for (int i = 1; i <= 40; i++) {
        on_buf_printf(&sql, ", \"a%d\"(y) AS NOT MATERIALIZED (SELECT 1 FROM [a%d], `a%d`)", i,
                      i - 1, i - 1);
    }
    on_buf_add_c(&sql, " SELECT * FROM a40) SELECT * FROM z");
    on_buf_add_char(&sql, '\0');
    expect_fail(f, sql.data, ON_ESQL, "too complex");

    on_buf_clear(&sql);
    on_buf_add_c(&sql, "WITH a0 AS (SELECT 1 AS x)");
    for (int i = 1; i <= 50; i++) {
        on_buf_printf(&sql, ", a%d AS (SELECT x + x + x + x AS x FROM a%d WHERE x + x > 0)", i,
                      i - 1);
    }
    on_buf_add_c(&sql, " SELECT x FROM a50");
    on_buf_add_char(&sql, '\0');
    struct outcome outcome = run(f, sql.data, whole);
    assert_true(outcome.rc == NG_OK || outcome.rc == ON_ESQL);
    done(&outcome);

    on_buf_clear(&sql);
    on_buf_add_c(&sql, "SELECT 1");
    for (int i = 0; i < 12000; i++) {
        on_buf_add_c(&sql, i % 100 == 99 ? "+(1)" : "+1");
    }
    on_buf_add_c(&sql, " AS x ORDER BY max(x");
    for (int i = 0; i < 12000; i++) {
        on_buf_add_c(&sql, ",x");
    }
    on_buf_add_c(&sql, ")");
    on_buf_add_char(&sql, '\0');
    expect_fail(f, sql.data, ON_ESQL, "too complex");

    on_buf_clear(&sql);
    on_buf_add_c(&sql, "SELECT 1 WHERE 'x' IN ('0'");
    for (int i = 0; i < 9000; i++) {
        on_buf_printf(&sql, ",'%d'", i);
    }
    on_buf_add_c(&sql, ")");
    on_buf_add_char(&sql, '\0');
    expect_rows(f, sql.data, "[]");
    on_buf_done(&sql);

    char *deep = malloc(90000);
    assert_non_null(deep);
    memset(deep, '(', 89999);
    memcpy(deep, "SELECT ", 7);
    deep[89999] = '\0';
    expect_fail(f, deep, ON_ESQL, "Invalid SQL query: ");
    memset(deep, '-', 89999);
    memcpy(deep, "SELECT 1", 8);
    for (size_t i = 9; i < 89999; i += 2) {
        deep[i] = ' ';
    }
    expect_fail(f, deep, ON_ESQL, "Invalid SQL query: ");
    free(deep);
}

/* ---- tokens ---- */

static void test_weight(void **state)
{
    (void)state;
    assert_true(on_sql_weight(ng_str_of("SELECT * FROM read_markdown('**/*.md')")) < 1000);
    uint64_t once = on_sql_weight(ng_str_of("WITH a AS (SELECT 1, 2, 3, 4) SELECT * FROM a"));
    uint64_t thrice =
        on_sql_weight(ng_str_of("WITH a AS (SELECT 1, 2, 3, 4) SELECT * FROM a, a, a"));
    uint64_t named =
        on_sql_weight(ng_str_of("WITH a AS (SELECT 1, 2, 3, 4) SELECT a.x, a.y FROM a"));
    assert_true(thrice > once + 20);
    assert_true(named < thrice);
}

static void test_tokens(void **state)
{
    (void)state;
    struct ng_str sql = ng_str_of("a'b''c'\"d\"\"\"[e]`f`1x::/*g*/--h\n.");
    static const enum on_token_kind kinds[] = {
        ON_TOKEN_WORD,   ON_TOKEN_STRING, ON_TOKEN_QUOTED, ON_TOKEN_BRACKET, ON_TOKEN_QUOTED,
        ON_TOKEN_NUMBER, ON_TOKEN_MARK,   ON_TOKEN_MARK,   ON_TOKEN_END,     ON_TOKEN_END,
    };
    size_t at = 0;
    for (size_t i = 0; i < NG_COUNT(kinds); i++) {
        assert_int_equal(on_token_next(sql, &at).kind, kinds[i]);
    }
    static const char *const open[] = {"'a", "\"", "[x", "`", "/*", "--", "'a''"};
    for (size_t i = 0; i < NG_COUNT(open); i++) {
        at = 0;
        while (on_token_next(ng_str_of(open[i]), &at).kind != ON_TOKEN_END) {
        }
        assert_int_equal(at, strlen(open[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_markdown_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_params, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paging, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forbidden, setup, teardown),
        cmocka_unit_test_setup_teardown(test_traversal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hints, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_and_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bombs, setup, teardown),
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
