/* SPDX-License-Identifier: MIT */
/* test_opennotes_sql_rig.c - shared code of test_opennotes_sql*.c; see the header.
 */
#include "test_opennotes_sql_rig.h"
#include "text/codes.h"

#include <stdlib.h>
#include <string.h>

static const char *const plain_sets[] = {"plugins=", "documents=memory", NULL};

static const char index_sql[] =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, path TEXT UNIQUE, title TEXT, created INTEGER,"
    " modified INTEGER, size INTEGER, words INTEGER, front TEXT, secret TEXT,"
    " front_error TEXT);"
    "CREATE TABLE bodies(note INTEGER PRIMARY KEY, content TEXT);"
    "CREATE TABLE tags(note INTEGER, tag TEXT, fold TEXT);"
    "INSERT INTO notes VALUES"
    "(1,'a.md','Alpha',1000,1769610600000,10,2,'{\"title\":\"Alpha\",\"rank\":3}','s',NULL),"
    "(2,'dir/b.md',NULL,2000,3000,20,4,'{}','s',NULL),"
    "(3,'dir/sub/c.md','\xc3\x9c"
    "ber',5000,6000,30,6,'{\"k\":[1,2]}','s',NULL);"
    "INSERT INTO bodies VALUES(1,'# Head\n\nSee [b](dir/b.md).\n\n- [x] done\n- [ ] open\n'),"
    "(2,'[[a]] and \xc3\x89T\xc3\x89 TODO\n'),(3,'plain');"
    "INSERT INTO tags VALUES(1,'x','x'),(1,'y','y'),(3,'x','x');";

int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    harness_open(&fixture->harness, plain_sets);
    assert_int_equal(sqlite3_open(":memory:", &fixture->index), SQLITE_OK);
    assert_int_equal(sqlite3_exec(fixture->index, index_sql, NULL, NULL, NULL), SQLITE_OK);
    *state = fixture;
    return 0;
}

int teardown(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(sqlite3_close(fixture->index), SQLITE_OK); /* no statement is left */
    harness_close(&fixture->harness);
    free(fixture);
    return 0;
}

const struct page whole = {1000, 0, (size_t)16 * 1024 * 1024, LONG_MS, 0};

struct outcome run_with(struct fixture *fixture, struct notes_sql sql, struct page page)
{
    struct outcome outcome = {.call = harness_new_call(&fixture->harness)};
    struct ng_call *call = &outcome.call->pub;
    const struct notes_budget budget = {page.bytes, 1000000};
    struct notes_answer answer;
    sql.timeout_ms = page.timeout_ms;
    sql.bytes_max = page.bytes_max;
    notes_answer_begin(&answer, call, &budget, page.limit, page.offset);
    notes_answer_list(&answer, "results");
    outcome.rc = notes_sql_run(call, fixture->index, &sql, &answer, &outcome.total);
    if (outcome.rc == NG_OK) {
        notes_answer_list_end(&answer);
        assert_int_equal(notes_answer_end(&answer, outcome.total), NG_OK);
        call_complete_result(outcome.call);
        outcome.text = outcome.call->staged.text;
        outcome.message = outcome.hint = "";
    } else {
        notes_answer_drop(&answer);
        outcome.message = call->host
                              ->format(call, "%.*s", (int)outcome.call->staged.message.len,
                                       outcome.call->staged.message.data)
                              .data;
        outcome.hint =
            call->host
                ->format(call, "%.*s", (int)outcome.call->staged.hint.len,
                         outcome.call->staged.hint.len > 0 ? outcome.call->staged.hint.data
                                                           : "")
                .data;
    }
    return outcome;
}

struct outcome run(struct fixture *fixture, const char *sql, struct page page)
{
    return run_with(fixture, (struct notes_sql){.text = ng_str_of(sql)}, page);
}

void done(struct outcome *outcome)
{
    call_unref(outcome->call);
}

void expect_rows(struct fixture *fixture, const char *sql, const char *rows)
{
    struct outcome outcome = run(fixture, sql, whole);
    if (outcome.rc != NG_OK) {
        print_error("%s: %s\n", sql, outcome.message);
    }
    assert_int_equal(outcome.rc, NG_OK);
    struct ng_str begin = ng_str_of("{\"results\":");
    size_t end = str_find(outcome.text, ng_str_of(",\"pagination\":"), 0);
    assert_true(end != SIZE_MAX);
    struct ng_str got = str_make(outcome.text.data + begin.len, end - begin.len);
    if (!str_is(got, rows)) {
        print_error("%s\n  gave   %.*s\n  wanted %s\n", sql, (int)got.len, got.data, rows);
        fail();
    }
    done(&outcome);
}

void expect_fail(struct fixture *fixture, const char *sql, int rc, const char *part)
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

void expect_hint(struct fixture *fixture, const char *sql, const char *part)
{
    struct outcome outcome = run(fixture, sql, whole);
    bool told = outcome.rc == NOTES_ESQL && strstr(outcome.hint, part) != NULL;
    if (!told) {
        print_error("%s\n  %d %s\n  hint %s\n  wanted %s\n", sql, outcome.rc, outcome.message,
                    outcome.hint, part);
    }
    assert_true(told);
    done(&outcome);
}
