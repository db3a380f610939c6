/* SPDX-License-Identifier: MIT */
/* test_line_ends.c - a text keeps its line ends, line by line. */
#include <string.h>

#include "core/base/str.h"
#include "core/base/text/line_ends.h"
#include "harness.h"

#define ROOM 100

static void test_detection(void **state)
{
    (void)state;
    assert_true(line_ends_has_crlf(ng_str_of("a\n\r\n")));
    assert_false(line_ends_has_crlf(ng_str_of("a\n\rb\n")));
    assert_false(line_ends_has_crlf(ng_str_of("")));
    struct ng_str mixed = ng_str_of("a\r\nb\nc");
    assert_true(line_ends_is_crlf(mixed, 0));
    assert_false(line_ends_is_crlf(mixed, 3));
    assert_false(line_ends_is_crlf(mixed, 5)); /* the last line follows the one before it */
    assert_true(line_ends_is_crlf(ng_str_of("a\r\nb"), 3));
    assert_false(line_ends_is_crlf(ng_str_of("a"), 1));
    assert_true(line_ends_differ(mixed, ng_str_of("a\nb")));
    assert_false(line_ends_differ(mixed, ng_str_of("a\r\nb")));
    assert_false(line_ends_differ(mixed, ng_str_of("a")));
    assert_false(line_ends_differ(mixed, STR_NONE));
    assert_false(line_ends_differ(ng_str_of("a\nb"), ng_str_of("a\nb")));
}

static void test_lf(void **state)
{
    static const char text[] = "a\r\n\rb\n\r\r\nc\r";
    char out[ROOM];
    (void)state;
    size_t len = line_ends_to_lf(ng_str_of(text), out);
    assert_true(str_is(str_make(out, len), "a\n\rb\n\r\nc\r"));
    assert_int_equal(line_ends_from_lf(ng_str_of(text), 0), 0);
    assert_int_equal(line_ends_from_lf(ng_str_of(text), 2), 3);
    assert_int_equal(line_ends_from_lf(ng_str_of(text), len), strlen(text));
}

static void test_follow(void **state)
{
    static const struct {
        const char *text, *like;
        bool crlf;
        const char *wanted;
    } rows[] = {
        {"x\ny\nz", "a\r\nb", false, "x\r\ny\r\nz"},
        {"x\ny\nz", "a\r\nb\n", false, "x\r\ny\nz"},
        {"x\ny", "", true, "x\r\ny"},
        {"x\r\ny", "", true, "x\r\ny"},
        {"x\ny\n", "a\n", true, "x\ny\n"},
        {"x", "a\r\n", true, "x"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        char out[ROOM];
        size_t len = line_ends_follow(ng_str_of(rows[i].text), ng_str_of(rows[i].like),
                                      rows[i].crlf, out);
        assert_true(str_is(str_make(out, len), rows[i].wanted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detection),
        cmocka_unit_test(test_lf),
        cmocka_unit_test(test_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
