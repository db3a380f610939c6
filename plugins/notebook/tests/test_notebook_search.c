/* SPDX-License-Identifier: MIT */
/* test_notebook_search.c - mode search: lines of all notebooks that have all words.
 */
#include "test_notebook_rig.h"

#include <stdio.h>
#include <string.h>

/* More than one query reads. */
#define MANY 30

static void put(struct harness *h, const char *name, const char *text)
{
    struct answer answer = call_bytes(h, "create", ng_str_of(name), "newStr", ng_str_of(text));
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
}

#define SEARCH(query) "{\"mode\":\"search\",\"query\":\"" query "\"}"

static void test_words(void **state)
{
    struct harness *h = *state;
    expect(h, SEARCH("x"), "No matches");
    put(h, "default", "Where the Plan is\n");
    put(h, "a", "one\nthe plan: decided\nTHE END\n");
    put(h, "b", "replanned, they said\n\nthe");
    expect(h, SEARCH("the plan"),
           "default:1: Where the Plan is\na:2: the plan: decided\nb:1: replanned, they said");
    expect(h, SEARCH(" PLAN \\n decided\\t"), "a:2: the plan: decided");
    expect(h, SEARCH("the"),
           "default:1: Where the Plan is\na:2: the plan: decided\n"
           "a:3: THE END\nb:1: replanned, they said\nb:3: the");
    expect(h, SEARCH("plan missing"), "No matches");
    /* A deleted one is not found. */
    expect(h, "{\"mode\":\"delete\",\"name\":\"a\"}", "Deleted notebook 'a'");
    expect(h, SEARCH("decided"), "No matches");
}

static void test_any_case(void **state)
{
    struct harness *h = *state;
    put(h, "n",
        "klein\nDie Gr\xc3\xb6\xc3\x9f"
        "e\nx");
    expect(h, SEARCH("GR\xc3\x96SSE"),
           "n:2: Die Gr\xc3\xb6\xc3\x9f"
           "e");
    /* In another normal form. */
    expect(h, SEARCH("gro\xcc\x88ss"),
           "n:2: Die Gr\xc3\xb6\xc3\x9f"
           "e");
}

static void test_refused(void **state)
{
    struct harness *h = *state;
    const char *message = "Search operation requires query with at least one word";
    char args[8192];
    size_t len = 0;
    expect_fail(h, "{\"mode\":\"search\"}", "INVALID_INPUT", message);
    expect_fail(h, SEARCH(" \\n"), "INVALID_INPUT", message);
    len = (size_t)snprintf(args, sizeof(args), "{\"mode\":\"search\",\"query\":\"");
    for (int i = 0; i < 33; i++) {
        len += (size_t)snprintf(args + len, sizeof(args) - len, "w%d ", i);
    }
    (void)snprintf(args + len, sizeof(args) - len, "\"}");
    expect_fail(h, args, "INVALID_INPUT", "`query` may have at most 32 words");
    (void)snprintf(args, sizeof(args), "{\"mode\":\"search\",\"query\":\"%05000d\"}", 1);
    expect_fail(h, args, "INVALID_INPUT",
                "`query` is 5000 bytes long, it may have at most 4096");
}

static void test_many(void **state)
{
    struct harness *h = *state;
    char text[64];
    struct buf want;
    buf_init(&want, 65536);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)snprintf(text, sizeof(text), "needle %d", i);
        put(h, name, text);
        (void)buf_printf(&want, "%s%s:1: %s", i > 0 ? "\n" : "", name, text);
    }
    expect(h, SEARCH("needle"), buf_cstr(&want));
    buf_done(&want);
    struct answer other = harness_call_as(h, "bob", "elsewhere", "notebook", SEARCH("needle"));
    assert_string_equal(other.text, "No matches");
    answer_free(&other);
}

/* A long line is shown around the hit, and what does not fit is counted. */
static void test_bounds(void **state)
{
    struct harness *h = *state;
    char line[3001];
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    memcpy(line + 1500, "needle", 6);
    put(h, "long", line);
    struct answer answer = harness_call(h, "notebook", SEARCH("needle"));
    assert_int_equal(answer.text_len, strlen("long:1: ") + 400 + 6);
    assert_non_null(strstr(answer.text, "needle"));
    assert_non_null(strstr(answer.text, "long:1: \xe2\x80\xa6xxx"));
    answer_free(&answer);

    struct buf text;
    buf_init(&text, (size_t)1024 * 1024);
    for (int i = 0; i < 10000; i++) {
        (void)buf_printf(&text, "haystack %05d\n", i);
    }
    put(h, "much", buf_cstr(&text));
    put(h, "more", "haystack\n");
    buf_done(&text);
    answer = harness_call(h, "notebook", SEARCH("haystack"));
    assert_in_range(answer.text_len, 60000, 62000);
    const char *end = strstr(answer.text, "\n[");
    assert_non_null(end);
    long lines = 0;
    char *after = NULL;
    for (const char *at = answer.text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    assert_int_equal(lines + strtol(end + 2, &after, 10), 10001);
    assert_ptr_equal(strstr(after, " more lines in 2 notebooks; "), after);
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_words), TEST(test_any_case), TEST(test_refused),
        TEST(test_many),  TEST(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
