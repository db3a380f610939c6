/* SPDX-License-Identifier: MIT */
/* test_find_words.c - the words of a query in a text: which texts have all, and the line shown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/find/find_words.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

static void expect(const char *query, const char *text, uint64_t line, const char *excerpt)
{
    struct find_words words;
    struct find_place place = {.line = 0};
    bool found = false;
    assert_int_equal(find_words_open(&words, ng_str_of(query)), NG_OK);
    assert_int_equal(find_words_all(&words, ng_str_of(text), &found, &place), NG_OK);
    assert_int_equal(found, line > 0);
    if (found) {
        assert_int_equal(place.line, line);
        assert_true(str_is(place.excerpt, excerpt));
    }
    find_words_done(&words);
}

static void test_all_words(void **state)
{
    (void)state;
    expect("harbour", "no\nthe Harbour lights\n", 2, "the Harbour lights");
    expect("lights harbour", "lights\nharbour\nharbour lights\n", 3, "harbour lights");
    expect("lights harbour", "one harbour\r\nlights\r\n", 1, "one harbour");
    expect("lights harbour", "only lights", 0, NULL);
    expect("\"harbour lights\"*", "the harbour lights", 1, "the harbour lights");
    expect("GRÖSSE", "x\n  größe der stadt", 2, "größe der stadt");
    expect("arb", "harbour", 1, "harbour"); /* a part of a word */
    expect("  ", "text", 0, NULL);
    expect("\"*", "text", 0, NULL);
    expect("x", "", 0, NULL);
}

static void test_some_words(void **state)
{
    struct find_words words;
    struct find_place place;
    (void)state;
    assert_int_equal(find_words_open(&words, ng_str_of("red green blue")), NG_OK);
    assert_int_equal(
        find_words_place(&words, ng_str_of("red\nblue and green\nred blue\n"), &place), NG_OK);
    assert_int_equal(place.line, 2);
    assert_true(str_is(place.excerpt, "blue and green"));
    assert_int_equal(find_words_place(&words, ng_str_of("none of them"), &place), NG_OK);
    assert_int_equal(place.line, 0);
    find_words_done(&words);
}

static void test_long_line(void **state)
{
    struct find_words words;
    struct find_place place;
    struct buf text;
    (void)state;
    buf_init(&text, 65536);
    for (int i = 0; i < 2000; i++) {
        buf_add_c(&text, "\xc3\xa9");
    }
    buf_add_c(&text, " needle ");
    for (int i = 0; i < 2000; i++) {
        buf_add_c(&text, "\xc3\xa9");
    }
    assert_int_equal(find_words_open(&words, ng_str_of("Needle")), NG_OK);
    assert_int_equal(find_words_place(&words, buf_str(&text), &place), NG_OK);
    assert_int_equal(place.line, 1);
    assert_true(place.excerpt.len <= FIND_EXCERPT_MAX && utf8_valid(place.excerpt));
    assert_true(str_find(place.excerpt, ng_str_of("needle"), 0) != SIZE_MAX);
    find_words_done(&words);
    buf_done(&text);
}

static void test_limits(void **state)
{
    struct find_words words;
    struct buf query;
    (void)state;
    buf_init(&query, 65536 * 2);
    for (int i = 0; i < 2 * FIND_WORDS_MAX; i++) {
        buf_printf(&query, "w%d ", i);
    }
    assert_int_equal(find_words_open(&words, buf_str(&query)), NG_OK);
    assert_int_equal(words.count, FIND_WORDS_MAX);
    find_words_done(&words);
    for (size_t i = 0; i < FIND_QUERY_MAX; i++) {
        buf_add_char(&query, 'x');
    }
    assert_int_equal(find_words_open(&words, buf_str(&query)), NG_ETOOLARGE);
    find_words_done(&words);
    buf_done(&query);
}

static void test_no_memory(void **state)
{
    struct find_words words;
    struct find_place place;
    bool found = false;
    (void)state;
    assert_int_equal(find_words_open(&words, ng_str_of("word")), NG_OK);
    alloc_fail_after(0);
    assert_int_equal(find_words_all(&words, ng_str_of("a word"), &found, &place), NG_EINTERNAL);
    alloc_fail_after(-1);
    assert_false(found);
    find_words_done(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_words), cmocka_unit_test(test_some_words),
        cmocka_unit_test(test_long_line), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
