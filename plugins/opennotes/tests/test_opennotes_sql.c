/* SPDX-License-Identifier: MIT */
/* test_opennotes_sql.c - results of a query: rows, tables of Markdown, functions, pages,
 * tokens. */
#include "test_opennotes_sql_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/json/json.h"
#include "sql/sql_parts.h"
#include "text/codes.h"

/* ---- results ---- */

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
    expect_fail(f, "SELECT file_path FROM read_markdown(NULL || 'x')", NOTES_ESQL, "one glob");
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
                "a', '\xc3\xa9') c, rtrim('a..', '.') d, rtrim('x', '\xe2\x82\xac') e",
                "[{\"a\":\"a\",\"b\":\"a\",\"c\":\"a\",\"d\":\"a\",\"e\":\"x\"}]");
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
    const struct notes_sql_param params[] = {
        {ng_str_of("who"), ng_str_of("x'; DROP"), false},
        {ng_str_of("n"), ng_str_of("7"), true},
        {ng_str_of("r"), ng_str_of("1.5"), true},
        {ng_str_of("none"), {NULL, 0}, false},
    };
    struct outcome outcome = run_with(
        f,
        (struct notes_sql){.text = ng_str_of("SELECT :who a, @n + 1 b, $r c, :none d, :who e"),
                           .params = params,
                           .param_count = NG_COUNT(params)},
        whole);
    assert_int_equal(outcome.rc, NG_OK);
    assert_true(str_begins(outcome.text, "{\"results\":[{\"a\":\"x'; DROP\",\"b\":8,\"c\":1.5,"
                                         "\"d\":null,\"e\":\"x'; DROP\"}]"));
    done(&outcome);
    expect_fail(f, "SELECT :other", NOTES_ESQL, ":other has no value");
    expect_fail(f, "SELECT ?", NOTES_ESQL, "? has no value");
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

/* ---- tokens ---- */

static void test_weight(void **state)
{
    (void)state;
    assert_true(notes_sql_weight(ng_str_of("SELECT * FROM read_markdown('**/*.md')")) < 1000);
    uint64_t once =
        notes_sql_weight(ng_str_of("WITH a AS (SELECT 1, 2, 3, 4) SELECT * FROM a"));
    uint64_t thrice =
        notes_sql_weight(ng_str_of("WITH a AS (SELECT 1, 2, 3, 4) SELECT * FROM a, a, a"));
    uint64_t named =
        notes_sql_weight(ng_str_of("WITH a AS (SELECT 1, 2, 3, 4) SELECT a.x, a.y FROM a"));
    assert_true(thrice > once + 20);
    assert_true(named < thrice);
}

static void test_tokens(void **state)
{
    (void)state;
    struct ng_str sql = ng_str_of("a'b''c'\"d\"\"\"[e]`f`1x::/*g*/--h\n.");
    static const enum notes_token_kind kinds[] = {
        NOTES_TOKEN_WORD,   NOTES_TOKEN_STRING, NOTES_TOKEN_QUOTED, NOTES_TOKEN_BRACKET,
        NOTES_TOKEN_QUOTED, NOTES_TOKEN_NUMBER, NOTES_TOKEN_MARK,   NOTES_TOKEN_MARK,
        NOTES_TOKEN_END,    NOTES_TOKEN_END,
    };
    size_t at = 0;
    for (size_t i = 0; i < NG_COUNT(kinds); i++) {
        assert_int_equal(notes_token_next(sql, &at).kind, kinds[i]);
    }
    static const char *const open[] = {"'a", "\"", "[x", "`", "/*", "--", "'a''"};
    for (size_t i = 0; i < NG_COUNT(open); i++) {
        at = 0;
        while (notes_token_next(ng_str_of(open[i]), &at).kind != NOTES_TOKEN_END) {
        }
        assert_int_equal(at, strlen(open[i]));
    }
}

/* What own printf() gives is what SQLite's gives. */
static void test_printf(void **state)
{
    struct fixture *f = *state;
    static const char *const calls[] = {
        "printf('%d|%5d|%-5d|%05d|%+d|% d|%,d', 42, 42, 42, 42, 42, 42, 1234567)",
        "printf('%x|%X|%#x|%o|%lld|%u|%i|%r', 255, 255, 255, 8, 5, -1, 7, 22)",
        "printf('%.3f|%10.2f|%e|%g|%G|%!.15g|%+.1f', 1.5, 2.25, 3e10, 0.1, 1e20, 0.1, 2)",
        "printf('%s|%10s|%-10s|%.2s|%!5.2s|%s', 'abc', 'abc', 'abc', 'abc', "
        "'\xc3\xa9\xc3\xa9\xc3\xa9', NULL)",
        "printf('%q|%Q|%Q|%w|%q', 'it''s', 'it''s', NULL, 'a\"b', NULL)",
        "printf('%c|%5c|%.3c|%-4c|%.2c', 'xyz', 'x', 'x', 'x', '\xc3\xa9')",
        "printf('%*d|%-*d|%*d|%.*f|%.*c', 5, 1, 5, 1, -5, 1, 2, 1.0, 3, 'x')",
        "printf('%d|%s|%f|%c|%Q')",
        "printf('100%%|%z|%p', 'z', 255)",
        "printf('a%')",
        "printf('%y|after', 1)",
        "printf('%d|%s', '12abc', 1.5)",
        "printf('')",
        "printf(NULL)",
        "printf('%n%d', 3)",
        "format('%s', x'6162')",
        "printf('%d', 9223372036854775807)",
    };
    sqlite3 *plain = NULL;
    assert_int_equal(sqlite3_open(":memory:", &plain), SQLITE_OK);
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        char sql[512];
        char rows[512];
        sqlite3_stmt *statement = NULL;
        (void)snprintf(sql, sizeof(sql), "SELECT json_group_array(json_object('v', %s))",
                       calls[i]);
        assert_int_equal(sqlite3_prepare_v2(plain, sql, -1, &statement, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        (void)snprintf(rows, sizeof(rows), "%s",
                       (const char *)sqlite3_column_text(statement, 0));
        (void)sqlite3_finalize(statement);
        (void)snprintf(sql, sizeof(sql), "SELECT %s AS v", calls[i]);
        expect_rows(f, sql, rows);
    }
    (void)sqlite3_close(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_markdown_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_printf, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_params, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paging, setup, teardown),
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
