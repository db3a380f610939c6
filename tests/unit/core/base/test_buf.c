/* SPDX-License-Identifier: MIT */
/* test_buf.c - the growing buffer: limits, errors that stick, JSON strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/str.h"

static void test_adding(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 10000);
    assert_string_equal("", buf_cstr(&buf));
    assert_int_equal(NG_OK, buf_add(&buf, "ab", 2));
    assert_int_equal(NG_OK, buf_add(&buf, NULL, 0));
    assert_int_equal(NG_OK, buf_add_str(&buf, ng_str_of("cd")));
    assert_int_equal(NG_OK, buf_add_c(&buf, "ef"));
    assert_int_equal(NG_OK, buf_add_char(&buf, 'g'));
    assert_int_equal(NG_OK, buf_printf(&buf, "-%05d-", 42));
    assert_string_equal("abcdefg-00042-", buf_cstr(&buf));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(NG_OK, buf_add_char(&buf, 'x'));
    }
    assert_int_equal(1014, buf_str(&buf).len);
    size_t len = 0;
    char *taken = buf_take(&buf, &len);
    assert_int_equal(1014, len);
    assert_int_equal('\0', taken[len]);
    assert_int_equal(0, buf.len);
    free(taken);
    buf_add_c(&buf, "again");
    assert_string_equal("again", buf_cstr(&buf));
    buf_done(&buf);
    assert_null(buf_take(&buf, &len));
    buf_done(&buf);
}

static void test_limit_sticks(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 5);
    assert_int_equal(NG_OK, buf_add_c(&buf, "12345"));
    assert_int_equal(NG_ETOOLARGE, buf_add_char(&buf, '6'));
    assert_int_equal(NG_ETOOLARGE, buf_add(&buf, "", 0));
    assert_null(buf_reserve(&buf, 0));
    assert_int_equal(NG_ETOOLARGE, buf_printf(&buf, "%d", 1));
    assert_string_equal("12345", buf_cstr(&buf)); /* the old content is kept */
    buf_clear(&buf);
    assert_int_equal(NG_OK, buf.rc);
    assert_int_equal(NG_ETOOLARGE, buf_printf(&buf, "%d", 123456));
    assert_string_equal("12345", buf_cstr(&buf)); /* a text is cut */
    assert_int_equal(NG_ETOOLARGE, buf_printf(&buf, "%d", 1));
    buf_clear(&buf);
    assert_int_equal(NG_ETOOLARGE, buf_printf(&buf, "%s", "abc\xf0\x9f\x98\x80"));
    assert_string_equal("abc", buf_cstr(&buf));
    buf_clear(&buf);
    assert_int_equal(NG_ETOOLARGE, buf_printf(&buf, "%s", "abc\xc3\xa9!"));
    assert_string_equal("abc\xc3\xa9", buf_cstr(&buf));
    buf_clear(&buf);
    assert_null(buf_reserve(&buf, SIZE_MAX));
    assert_int_equal(NG_ETOOLARGE, buf.rc);
    buf_done(&buf);
}

static void test_shortened(void **state)
{
    static const struct {
        const char *text, *end;
        size_t max;
    } cases[] = {
        {"short", "short", 100},
        /* 100 bytes: whole. 101 and more: 50 in front, 2 behind; characters stay whole. */
        {"AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDDEEEEEEEEEEFFFFFFFFFFGGGGGGGGGGHHHHHHHHHHIIIII"
         "I"
         "IIIIJJJJJJJJJJ",
         "JJJJJJJJJJ", 100},
        {"AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDDEEEEEEEEEEFFFFFFFFFFGGGGGGGGGGHHHHHHHHHHIIIII"
         "I"
         "IIIIJJJJJJJJJJK",
         "EEEEEEEEEE [... 49 bytes ...] JK", 100},
        {"AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDDEEEEEEEEE\xc3\xa9"
         "FFFFFFFFFGGGGGGGGGGHHHHHHHHHHIIIIIIIIIIJJJJJJJJJJ\xc3\xa9",
         "DEEEEEEEEE [... 51 bytes ...] \xc3\xa9", 100},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct buf buf;
        buf_init(&buf, cases[i].max);
        assert_int_equal(NG_OK,
                         buf_add_shortened(&buf, ng_str_of(cases[i].text), cases[i].max));
        const char *text = buf_cstr(&buf);
        assert_true(buf.len >= strlen(cases[i].end));
        assert_string_equal(cases[i].end, text + buf.len - strlen(cases[i].end));
        buf_done(&buf);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 10000);
    alloc_fail_after(0);
    assert_int_equal(NG_EINTERNAL, buf_add_c(&buf, "a"));
    alloc_fail_after(-1);
    assert_int_equal(NG_EINTERNAL, buf_add_c(&buf, "a"));
    assert_string_equal("", buf_cstr(&buf));
    buf_clear(&buf);
    assert_int_equal(NG_OK, buf_add_c(&buf, "a"));
    buf_done(&buf);
}

static void test_reserve(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    char *to = buf_reserve(&buf, 100);
    assert_non_null(to);
    memset(to, 'x', 100);
    buf.len += 100;
    assert_int_equal(100, strlen(buf_cstr(&buf))); /* the NUL has its room */
    assert_null(buf_reserve(&buf, 1));
    buf_done(&buf);
}

static void test_json_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *json;
    } cases[] = {
        {"", 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"\"\\/", 3, "\"\\\"\\\\/\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x1f\x7f", 3, "\"\\u0000\\u001f\x7f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"a\xff"
         "b",
         3,
         "\"a\xef\xbf\xbd"
         "b\""},
        {"\xc3", 1, "\"\xef\xbf\xbd\""},
        {"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe2\x82x", 3, "\"\xef\xbf\xbd\xef\xbf\xbdx\""},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct buf buf;
        buf_init(&buf, 1000);
        assert_int_equal(NG_OK, buf_add_json(&buf, str_make(cases[i].text, cases[i].len)));
        assert_string_equal(cases[i].json, buf_cstr(&buf));
        buf_done(&buf);
    }
}

/* Plain characters are copied eight bytes at a time: a character to escape must be found at
 * each place among them. */
static void test_json_string_places(void **state)
{
    static const struct {
        const char *text, *json;
    } parts[] = {
        {"\n", "\\n"},
        {"\"", "\\\""},
        {"\\", "\\\\"},
        {"\x01", "\\u0001"},
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xff", "\xef\xbf\xbd"},
        {"\x7f", "\x7f"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        for (size_t before = 0; before <= 17; before++) {
            for (size_t after = 0; after <= 17; after++) {
                static const char filler[] = "!#[]^ ~abcdefghijklm";
                char text[64];
                char want[64];
                int len = snprintf(text, sizeof(text), "%.*s%s%s%.*s", (int)before, filler,
                                   parts[i].text, parts[i].text, (int)after, filler);
                (void)snprintf(want, sizeof(want), "\"%.*s%s%s%.*s\"", (int)before, filler,
                               parts[i].json, parts[i].json, (int)after, filler);
                struct buf buf;
                buf_init(&buf, 1000);
                assert_int_equal(NG_OK, buf_add_json(&buf, str_make(text, (size_t)len)));
                assert_string_equal(want, buf_cstr(&buf));
                buf_done(&buf);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adding),
        cmocka_unit_test(test_limit_sticks),
        cmocka_unit_test(test_shortened),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_json_strings),
        cmocka_unit_test(test_json_string_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
