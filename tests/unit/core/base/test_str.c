/* SPDX-License-Identifier: MIT */
/* test_str.c - UTF-8, comparing, words, distance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/utf8.h"

static void test_utf8_valid(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"", true},
        {"plain ascii, more than eight bytes", true},
        {"\x7f", true},
        {"\xc2\x80", true},
        {"\xdf\xbf", true},
        {"\xe0\xa0\x80", true},
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xf0\x90\x80\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"1234567\xc3\xa9", true}, /* across the word that is looked at at once */
        {"\x80", false},
        {"\xc0\x80", false},
        {"\xc1\xbf", false},
        {"\xc2", false},
        {"\xe0\x9f\xbf", false},
        {"\xed\xa0\x80", false},
        {"\xed\xbf\xbf", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xe2\x82", false},
        {"\xe2\x28\xa1", false},
        {"12345678\xff", false},
        {"\xff"
         "12345678",
         false},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        assert_int_equal(cases[i].valid, utf8_valid(ng_str_of(cases[i].text)));
    }
    assert_true(utf8_valid(str_make("a\0b", 3)));
    assert_true(utf8_valid(str_make(NULL, 0)));
}

static void test_utf8_count_and_cut(void **state)
{
    (void)state;
    struct ng_str text = ng_str_of("a\xc3\xa9\xf0\x9f\x98\x80z"); /* 1 + 2 + 4 + 1 bytes */
    static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};
    assert_int_equal(4, utf8_count(text));
    assert_int_equal(0, utf8_count(str_make(NULL, 0)));
    for (size_t bytes = 0; bytes < NG_COUNT(cuts); bytes++) {
        assert_int_equal(cuts[bytes], utf8_cut(text, bytes).len);
    }
}

static void test_compare(void **state)
{
    (void)state;
    assert_int_equal(0, str_compare(ng_str_of("a"), ng_str_of("a")));
    assert_true(str_compare(ng_str_of("a"), ng_str_of("b")) < 0);
    assert_true(str_compare(ng_str_of("ab"), ng_str_of("a")) > 0);
    assert_true(str_compare(ng_str_of(""), ng_str_of("a")) < 0);
    assert_true(str_compare(ng_str_of("\xff"), ng_str_of("a")) > 0);
    assert_int_equal(0, str_compare(str_make(NULL, 0), ng_str_of("")));
    assert_true(str_equal(str_make(NULL, 0), ng_str_of("")));
    assert_false(str_equal(ng_str_of("a"), ng_str_of("b")));
    assert_true(str_is(str_make("abc", 2), "ab"));
    assert_true(ng_str_of(NULL).data == NULL);
}

static void test_hash(void **state)
{
    (void)state;
    char text[64];
    memset(text, 'a', sizeof(text));
    for (size_t len = 0; len < sizeof(text); len++) {
        uint64_t hash = str_hash(str_make(text, len));
        assert_true(hash == str_hash(str_make(text, len)));
        assert_true(hash != str_hash(str_make(text, len + 1)));
        if (len > 0) {
            text[len - 1] = 'b';
            assert_true(hash != str_hash(str_make(text, len)));
            text[len - 1] = 'a';
        }
    }
    /* A NUL at the end is not padding. */
    assert_true(str_hash(str_make("a\0", 2)) != str_hash(str_make("a", 1)));
}

static void test_words(void **state)
{
    (void)state;
    assert_true(str_in_words(ng_str_of("list"), "read list"));
    assert_true(str_in_words(ng_str_of("read"), "read  list"));
    assert_false(str_in_words(ng_str_of("rea"), "read list"));
    assert_false(str_in_words(ng_str_of("read list"), "read list"));
    assert_false(str_in_words(ng_str_of(""), "read list"));
    assert_false(str_in_words(ng_str_of("a"), ""));
    assert_false(str_in_words(ng_str_of("a"), NULL));
}

static void test_distance(void **state)
{
    (void)state;
    char longer[100];
    memset(longer, 'x', sizeof(longer));
    assert_int_equal(0, edit_distance(ng_str_of("Listen"), ng_str_of("listen"), 3));
    assert_int_equal(1, edit_distance(ng_str_of("listn"), ng_str_of("listen"), 3));
    assert_int_equal(1, edit_distance(ng_str_of("listxen"), ng_str_of("listen"), 3));
    assert_int_equal(1, edit_distance(ng_str_of("lsiten"), ng_str_of("listen"), 3));
    assert_int_equal(1, edit_distance(ng_str_of("sevre"), ng_str_of("serve"), 1));
    assert_int_equal(3, edit_distance(ng_str_of(""), ng_str_of("abc"), 3));
    assert_true(edit_distance(ng_str_of("abcd"), ng_str_of("wxyz"), 3) == SIZE_MAX);
    assert_true(edit_distance(str_make(longer, sizeof(longer)), ng_str_of("x"), 1000) ==
                SIZE_MAX);
}

static void test_dup(void **state)
{
    (void)state;
    char *copy = str_dup(str_make("text", 3));
    assert_string_equal(copy, "tex");
    free(copy);
    copy = str_dup(STR_NONE);
    assert_string_equal(copy, "");
    free(copy);
    alloc_fail_after(0);
    copy = str_dup(ng_str_of("text"));
    alloc_fail_after(-1);
    assert_null(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_valid), cmocka_unit_test(test_utf8_count_and_cut),
        cmocka_unit_test(test_compare),    cmocka_unit_test(test_hash),
        cmocka_unit_test(test_words),      cmocka_unit_test(test_distance),
        cmocka_unit_test(test_dup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
