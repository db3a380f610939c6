/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_list.c - lists and searches.
 */
#include "test_agent_notebook_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void make_three(void *state)
{
    (void)make(state, "pages",
               "\"title\":\"A\",\"content\":\"drone swarm\",\"tags\":[\"x\",\"y\"]");
    (void)make(state, "code_snippets",
               "\"title\":\"B\",\"content\":\"def drone(): pass\",\"tags\":[\"y\"],\"status\":"
               "\"complete\"");
    (void)make(state, "research_notes",
               "\"title\":\"C\",\"content\":\"bees\",\"key_findings\":[\"a drone flies\"]");
    struct answer answer =
        harness_call_as(state, "percy", NULL, "notebook_create",
                        "{\"collection\":\"pages\",\"title\":\"drone\",\"content\":\"other\"}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
}

static void test_list(void **state)
{
    make_three(*state);
    expect_list(*state, "notebook_list", "{}", "drone C B A", "4");
    expect_list(*state, "notebook_list", "{\"limit\":2}", "drone C", "4");
    expect_list(*state, "notebook_list", "{\"limit\":2,\"offset\":2}", "B A", "4");
    expect_list(*state, "notebook_list", "{\"offset\":4}", "", "4");
    expect_list(*state, "notebook_list", "{\"collection\":\"pages\",\"limit\":1}", "drone",
                "2");
    expect_list(*state, "notebook_list", "{\"collection\":\"pages\",\"limit\":1,\"offset\":1}",
                "A", "2");
    expect_list(*state, "notebook_list", "{\"status\":\"complete\"}", "B", "1");
    expect_list(*state, "notebook_list", "{\"created_by\":\"percy\"}", "drone", "1");
    expect_list(*state, "notebook_list", "{\"created_by\":\"agent:percy\"}", "drone", "1");
    expect_list(*state, "notebook_list", "{\"tags\":[\"x\",\"y\"]}", "B A", "2");
    expect_list(*state, "notebook_list", "{\"updated_since\":\"2001-02-03\"}", "drone C B A",
                "4");
    expect_list(*state, "notebook_list", "{\"updated_since\":\"2999-02-03T04:05:06.789Z\"}", "",
                "0");
    fails_only(*state, "notebook_list", "{\"updated_since\":\"yesterday\"}", "INVALID_INPUT",
               400);
    fails_only(*state, "notebook_list", "{\"limit\":0}", "INVALID_INPUT", 400);
    fails_only(*state, "notebook_list", "{\"limit\":101}", "INVALID_INPUT", 400);
    fails_only(*state, "notebook_list", "{\"offset\":10001}", "INVALID_INPUT", 400);
    expect_list(*state, "notebook_list", "{\"offset\":10001,\"collection\":\"pages\"}", "",
                "2");
    struct answer answer = go(*state, "notebook_list", "{\"limit\":3}");
    assert_string_equal(at(answer.text, "has_more"), "true");
    assert_string_equal(at(answer.text, "engine"), "filter");
    assert_string_equal(at(answer.text, "results.2._collection"), "code_snippets");
    assert_string_equal(at(answer.text, "results.2.collection"), "code_snippets");
    assert_string_equal(at(answer.text, "results.2._id"),
                        at(answer.text, "results.2.notebook_id"));
    assert_string_equal(at(answer.text, "results.2.metadata.status"), "complete");
    assert_string_equal(at(answer.text, "results.2.metadata.tags"), "[\"y\"]");
    assert_string_equal(at(answer.text, "results.2.metadata.word_count"), "3");
    assert_string_equal(at(answer.text, "results.2.summary"), "def drone(): pass");
    answer_free(&answer);
}

/* ---- one zone ---- */

#define ZONE_HOURS 14 /* of Pacific/Kiritimati */

static int setup_east(void **state)
{
    static const char *const sets[] = {"plugins=agent_notebook", "documents=memory",
                                       "timezone=Pacific/Kiritimati", NULL};
    return open_with(state, sets);
}

static int teardown_east(void **state)
{
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return teardown(state);
}

/* `args` with the time of the zone in so many hours, without an offset: as a time in UTC it is
 * much later. */
static void expect_since(void *state, const char *tool, const char *args, int hours,
                         const char *member, const char *want)
{
    char whole[256];
    char text[32];
    struct tm parts;
    time_t seconds = time(NULL) + (time_t)3600 * (hours + ZONE_HOURS);
    assert_non_null(gmtime_r(&seconds, &parts));
    assert_true(strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts) > 0);
    (void)snprintf(whole, sizeof(whole), "{%s:\"%s\"}", args, text);
    struct answer answer = go(state, tool, whole);
    assert_string_equal(at(answer.text, member), want);
    answer_free(&answer);
}

/* Arguments without an offset are of the zone that `timezone` names. */
static void test_times_are_of_the_zone(void **state)
{
    static const char since[] = "\"updated_since\"";
    static const char searched[] = "\"query\":\"drone\",\"updated_since\"";
    static const char recalled[] = "\"query\":\"zebra\",\"since\"";
    (void)make(*state, "pages", "\"title\":\"A\",\"content\":\"drone\"");
    struct answer answer =
        go(*state, "memory_log", "{\"content\":\"a zebra\",\"tags\":[\"t\"]}");
    answer_free(&answer);
    expect_since(*state, "notebook_list", since, -1, "total", "1");
    expect_since(*state, "notebook_list", since, 1, "total", "0");
    expect_since(*state, "notebook_search", searched, -1, "total", "1");
    expect_since(*state, "notebook_search", searched, 1, "total", "0");
    expect_since(*state, "memory_recall", recalled, -1, "count", "1");
    expect_since(*state, "memory_recall", recalled, 1, "count", "0");
    /* In UTC that day begins in 1969. */
    answer = go(*state, "memory_recall", "{\"query\":\"zebra\",\"since\":\"1970-01-01\"}");
    assert_string_equal(at(answer.text, "count"), "1");
    answer_free(&answer);
}

static void test_list_follows_updates(void **state)
{
    struct entry first = make(*state, "pages", "\"title\":\"A\",\"content\":\"a\"");
    (void)make(*state, "code_snippets", "\"title\":\"B\",\"content\":\"b\"");
    expect_list(*state, "notebook_list", "{}", "B A", "2");
    update(*state, &first, ",\"status\":\"archived\"");
    expect_list(*state, "notebook_list", "{}", "A B", "2");
}

static void test_search(void **state)
{
    make_three(*state);
    /* A hit in the title counts most. */
    struct answer answer = go(*state, "notebook_search", "{\"query\":\"drone\"}");
    assert_string_equal(at(answer.text, "results.0.title"), "drone");
    assert_string_equal(at(answer.text, "total"), "4");
    bool shared = getenv("NOTEGATE_TEST_SHARED") != NULL; /* MongoDB without its text index */
    assert_string_equal(at(answer.text, "engine"), shared ? "filter" : "fts5");
    answer_free(&answer);
    answer = go(*state, "notebook_search", "{\"query\":\"what about a swarm of drones\"}");
    assert_string_equal(at(answer.text, "results.0.title"), "A");
    assert_string_equal(at(answer.text, "total"), "4");
    answer_free(&answer);
    expect_list(*state, "notebook_search", "{\"query\":\"dro*\",\"collection\":\"pages\"}",
                "drone A", "2");
    expect_list(*state, "notebook_search", "{\"query\":\"drone\",\"tags\":[\"x\"]}", "A", "1");
    expect_list(*state, "notebook_search", "{\"query\":\"drone\",\"status\":\"complete\"}", "B",
                "1");
    expect_list(*state, "notebook_search", "{\"query\":\"drone\",\"created_by\":\"percy\"}",
                "drone", "1");
    expect_list(*state, "notebook_search", "{\"query\":\"\",\"tags\":[\"y\"]}", "B A", "2");
    expect_list(*state, "notebook_search", "{\"query\":\" \"}", "drone C B A", "4");
    expect_list(*state, "notebook_search", "{\"query\":\"nothing\"}", "", "0");
    expect_list(*state, "notebook_search", "{\"query\":\"\\\" AND ( NEAR\"}", "", "0");
    answer = go(*state, "notebook_search", "{\"query\":\"drone\",\"limit\":3}");
    assert_string_equal(at(answer.text, "has_more"), "true");
    assert_string_equal(at(answer.text, "results.3"), "none");
    answer_free(&answer);
    answer = go(*state, "notebook_search", "{\"query\":\"drone\",\"limit\":3,\"offset\":3}");
    assert_string_equal(at(answer.text, "has_more"), "false");
    assert_string_equal(at(answer.text, "results.1"), "none");
    answer_free(&answer);
}

/* An excerpt is around the hit, wherever that is, and no longer than 200 bytes. */
static void test_search_excerpt(void **state)
{
    enum { WORDS = 400 };
    struct buf members;
    buf_init(&members, SIZE_MAX);
    buf_add_str(&members, ng_str_of("\"title\":\"Long\",\"content\":\""));
    for (int i = 0; i < WORDS; i++) {
        buf_add_str(&members, ng_str_of(i == WORDS - 9 ? "haystack needles " : "intro "));
    }
    buf_add_str(&members, ng_str_of("\""));
    buf_add(&members, "", 1);
    (void)make(*state, "pages", members.data);
    buf_done(&members);
    struct answer answer = go(*state, "notebook_search", "{\"query\":\"needle\"}");
    const char *excerpt = at(answer.text, "results.0.excerpt");
    assert_non_null(strstr(excerpt, "haystack needles intro"));
    assert_true(strlen(excerpt) <= 200);
    assert_null(strstr(at(answer.text, "results.0.summary"), "needles"));
    answer_free(&answer);
    answer = go(*state, "notebook_list", "{}");
    assert_string_equal(at(answer.text, "results.0.excerpt"), "none");
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_list),
        cmocka_unit_test_setup_teardown(test_times_are_of_the_zone, setup_east, teardown_east),
        WITH_SQLITE(test_list_follows_updates),
        WITH_SQLITE(test_search),
        WITH_SQLITE(test_search_excerpt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
