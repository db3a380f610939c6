/* SPDX-License-Identifier: MIT */
/* test_text_near.c - the nearest place of a text that does not occur. */
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/text/text_near.h"
#include "harness.h"

struct row {
    const char *text, *wanted, *note; /* "": none */
};

static void test_notes(void **state)
{
    static const struct row rows[] = {
        {"\tx", "        x",
         "Line 1 has a tab (U+0009) where old_str has a space (U+0020). The line is: \tx"},
        {"a\n  x\n", "\tx",
         "Line 2 has a space (U+0020) where old_str has a tab (U+0009). The line is:   x"},
        {"a  b\n", "a b",
         "Line 1 has a space (U+0020) where old_str has b (U+0062). The line is: a  b"},
        {"a b\n", "a\nb",
         "Line 1 has a space (U+0020) where old_str has a line feed (U+000A). The line is: a "
         "b"},
        {"a\nb\n", "a\r\nb",
         "Line 1 has a line feed (U+000A) where old_str has a carriage return (U+000D). The "
         "line is: a"},
        {"1\n2\nsay \xe2\x80\x9chi\xe2\x80\x9d\n", "say \"hi\"",
         "Line 3 has \xe2\x80\x9c (U+201C) where old_str has \" (U+0022). The line is: say "
         "\xe2\x80\x9chi\xe2\x80\x9d"},
        {"it's", "it\xe2\x80\x99s",
         "Line 1 has ' (U+0027) where old_str has \xe2\x80\x99 (U+2019). The line is: it's"},
        {"a\xe2\x80\x93z", "a-z",
         "Line 1 has \xe2\x80\x93 (U+2013) where old_str has - (U+002D). The line is: "
         "a\xe2\x80\x93z"},
        {"10\xc2\xa0kg", "10 kg",
         "Line 1 has a no-break space (U+00A0) where old_str has a space (U+0020). The line "
         "is: 10\xc2\xa0kg"},
        {"caf\xc3\xa9", "cafe\xcc\x81",
         "Line 1 has \xc3\xa9 (U+00E9) where old_str has e (U+0065). The line is: caf\xc3\xa9"},
        {"cafe\xcc\x81", "caf\xc3\xa9",
         "Line 1 has e (U+0065) where old_str has \xc3\xa9 (U+00E9). The line is: "
         "cafe\xcc\x81"},
        {"\xc3\x89tude", "\xc3\xa9tude",
         "Line 1 has \xc3\x89 (U+00C9) where old_str has \xc3\xa9 (U+00E9). The line is: "
         "\xc3\x89tude"},
        {"Stra\xc3\x9f"
         "e",
         "STRASSE",
         "Line 1 has t (U+0074) where old_str has T (U+0054). The line is: Stra\xc3\x9f"
         "e"},
        {"a\xe2\x80\x8b"
         "b",
         "ab",
         "Line 1 has a zero-width space (U+200B) where old_str has b (U+0062). The line is: "
         "a\xe2\x80\x8b"
         "b"},
        {"end", "end\n",
         "Line 1 has nothing more where old_str has a line feed (U+000A). The line is: end"},
        {"end \nmore", "end\n",
         "Line 1 has a space (U+0020) where old_str has a line feed (U+000A). The line is: "
         "end "},
        {"x", "\nx",
         "Line 1 has nothing more where old_str has a line feed (U+000A). The line is: x"},
        {"Foo\nfOo\n", "foo",
         "2 places nearly fit, in lines 1, 2. Line 1 has F (U+0046) where old_str has f "
         "(U+0066). The line is: Foo"},
        {"A\nA\nA\nA\n", "a",
         "4 places nearly fit, in lines 1, 2, 3 and more. Line 1 has A (U+0041) where old_str "
         "has a (U+0061). The line is: A"},
        {"aab aaB", "AAB",
         "2 places nearly fit, in lines 1, 1. Line 1 has a (U+0061) where old_str has A "
         "(U+0041). The line is: aab aaB"},
        {"other", "text", ""},
        {"axb", " x", ""},
        {"axb", "x ", ""},
        {"", "x", ""},
        {"x", "", ""},
        {"x", " \n", ""},
        {"x", "\xe2\x80\x8b", ""},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        char note[TEXT_NEAR_NOTE_SIZE];
        bool found =
            text_near(ng_str_of(rows[i].text), ng_str_of(rows[i].wanted), "old_str", note);
        assert_string_equal(note, rows[i].note);
        assert_int_equal(found, rows[i].note[0] != '\0');
    }
}

/* A long line is not shown, a text that is too long not looked for, and no memory is no note.
 */
static void test_limits(void **state)
{
    size_t len = 5 * TEXT_NEAR_WANTED_MAX;
    char *text = malloc(len);
    char note[TEXT_NEAR_NOTE_SIZE];
    (void)state;
    assert_non_null(text);
    memset(text, 'a', len);
    struct ng_str line = {text, TEXT_NEAR_LINE_MAX + 1};
    assert_true(text_near(line, ng_str_of("Aa"), "old_str", note));
    assert_non_null(strstr(note, "Line 1 has a (U+0061) where old_str has A (U+0041)."));
    assert_null(strstr(note, "The line is"));
    char *upper = malloc(len);
    assert_non_null(upper);
    memset(upper, 'A', len);
    struct ng_str whole = {text, len};
    struct ng_str most = {upper, TEXT_NEAR_WANTED_MAX};
    struct ng_str more = {upper, TEXT_NEAR_WANTED_MAX + 1};
    assert_true(text_near(whole, most, "old_str", note));
    assert_false(text_near(whole, more, "old_str", note));
    for (long i = 0; i < 3; i++) {
        alloc_fail_after(i);
        assert_false(text_near(whole, most, "old_str", note));
        alloc_fail_after(-1);
        assert_string_equal(note, "");
    }
    free(text);
    free(upper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
