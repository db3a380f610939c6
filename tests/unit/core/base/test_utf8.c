/* SPDX-License-Identifier: MIT */
/* UTF-8: lengths, code points, cuts. */
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "harness.h"

static void test_each_code_point_is_written_and_read(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[UTF8_BYTES_MAX];
        if (code >= 0xd800 && code <= 0xdfff) {
            continue;
        }
        struct ng_str text = str_make(bytes, utf8_encode(code, bytes));
        uint32_t back = 0;
        assert_int_equal(utf8_decode(text, 0, &back), text.len);
        assert_int_equal(back, code);
        assert_true(utf8_valid(text));
        assert_int_equal(utf8_count(text), 1);
    }
}

static void test_what_is_not_utf8_has_no_length(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",             /* a following byte alone */
        "\xc0\xaf",         /* overlong */
        "\xc1\xbf",         /* overlong */
        "\xe0\x9f\xbf",     /* overlong */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xf4\x90\x80\x80", /* above U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xc3(",
        "\xe2\x82(",
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        struct ng_str text = ng_str_of(bad[i]);
        size_t at = 0;
        assert_int_equal(utf8_length(text, 0), 0);
        assert_false(utf8_valid(text));
        assert_int_equal(utf8_next(text, &at), 0xfffd);
        assert_int_equal(at, 1);
    }
}

static void test_bad_bytes_behind_many_good_ones_are_found(void **state)
{
    (void)state;
    char text[64];
    for (size_t at = 0; at < sizeof(text); at++) {
        memset(text, 'a', sizeof(text));
        text[at] = (char)0xff;
        assert_false(utf8_valid(str_make(text, sizeof(text))));
    }
}

static void test_cuts_end_between_characters(void **state)
{
    (void)state;
    struct ng_str text =
        ng_str_of("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"); /* 1 2 3 4 1 bytes */
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t bytes = 0; bytes < NG_COUNT(ends); bytes++) {
        assert_int_equal(utf8_cut(text, bytes).len, ends[bytes]);
    }
    static const size_t lengths[] = {0, 1, 3, 6, 10, 11, 11};
    for (size_t count = 0; count < NG_COUNT(lengths); count++) {
        assert_int_equal(utf8_cut_count(text, count).len, lengths[count]);
    }
    assert_int_equal(utf8_count(text), 5);
}

static void test_fold(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"Road MAP 2", "road map 2"},
        {"\xc3\x84rger", "\xc3\xa4rger"},
        {"A\xcc\x88rger", "\xc3\xa4rger"}, /* decomposed */
        {"STRASSE", "strasse"},
        {"Stra\xc3\x9f"
         "e",
         "strasse"},
        {"\xce\xa3\xcf\x82", "\xcf\x83\xcf\x83"}, /* final sigma */
        {"a\xff"
         "B",
         "a\xff"
         "B"}, /* not valid */
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct buf out;
        buf_init(&out, 100);
        assert_int_equal(buf_add_c(&out, "="), NG_OK);
        assert_int_equal(utf8_fold(&out, ng_str_of(cases[i][0])), NG_OK);
        assert_string_equal(buf_cstr(&out) + 1, cases[i][1]);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_code_point_is_written_and_read),
        cmocka_unit_test(test_what_is_not_utf8_has_no_length),
        cmocka_unit_test(test_bad_bytes_behind_many_good_ones_are_found),
        cmocka_unit_test(test_cuts_end_between_characters),
        cmocka_unit_test(test_fold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
