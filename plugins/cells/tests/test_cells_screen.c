/* SPDX-License-Identifier: MIT */
/* test_cells_screen.c - what a terminal shows, and text that goes on later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "notebook/screen.h"

#define E "\x1b"

static const struct screen_case {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"plain\n\ttext", "plain\n\ttext"},
    /* \r and \b */
    {"a\r\nb\r\n", "a\nb\n"},
    {"10%\r50%\r100%\ndone", "100%\ndone"},
    {"abcdef\rxy", "xycdef"},
    {"abc\r\n\rx\n", "abc\nx\n"},
    {"abc\r", "abc"},
    {"ab\b\bc", "cb"},
    {"\b\bx", "x"},
    {"one\ntwo\b\b\b\b\b\bx", "one\nxwo"},
    {"\xc3\xa9\xc3\xa9\rab\xf0\x9f\x98\x80", "ab\xf0\x9f\x98\x80"},
    {"abc\r\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"
                              "bc"},
    /* erasing in a row */
    {"downloading 1234\r" E "[Kdone", "done"},
    {"downloading" E "[K", "downloading"},
    {"abcdef" E "[3D" E "[K", "abc"},
    {"abcdef" E "[3D" E "[0K", "abc"},
    {"abcdef" E "[3D" E "[1K", "    ef"},
    {"abcdef" E "[1K", ""},
    {"abcdef\r" E "[1Kx", "xbcdef"},
    {"abc" E "[2K", ""},
    {"abc" E "[2Kd", "   d"},
    {"abc\r" E "[2Kd", "d"},
    {"abc\r" E "[3Kd", "dbc"},
    /* erasing rows */
    {"one\ntwo\nthree" E "[2A" E "[J", "one"},
    {"one\ntwo\nthree" E "[1A\r" E "[0Jx", "one\nx"},
    {"one\ntwo\n" E "[2Jthree", "three"},
    {"one\ntwo" E "[2Jthree", "   three"},
    {"one" E "[J", "one"},
    {"one" E "[3J", "one"},
    /* up and down */
    {"one\ntwo" E "[A!", "one!\ntwo"},
    {"one\ntwo" E "[1A\rO", "One\ntwo"},
    {"one\ntwo\n" E "[2A" E "[2Knew\n", "new\ntwo\n"},
    {"one" E "[5Ax", "onex"},
    {"one" E "[Btwo", "one\n   two"},
    {"one" E "[2B", "one"},
    {"one\ntwo\nthree" E "[2A" E "[0B.", "one\ntwo  .\nthree"},
    {"bar 0\nbar 1" E "[A\rBAR 0" E "[B\rBAR 1", "BAR 0\nBAR 1"},
    /* left and right */
    {"abc\r" E "[Cx", "axc"},
    {"a" E "[3Cb", "a   b"},
    {"abc" E "[2Dx", "axc"},
    {"abc" E "[99Dx", "xbc"},
    {"abc" E "[Gx", "xbc"},
    {"abc" E "[2Gx", "axc"},
    {"abc" E "[0Gx", "xbc"},
    {"a" E "[5Gb", "a   b"},
    {"a" E "[5G", "a"},
    {"a" E "[4;7Gb", "a  b"},
    /* what vanishes */
    {E "[1;31mred" E "[0m!", "red!"},
    {E "[38;5;196mred" E "[m " E "[48;2;1;2;3mblue", "red blue"},
    {E "[?25la" E "[?25h" E "[s" E "[u" E "7" E "8" E "[Hb" E "[5;5Hc", "abc"},
    {E "[?2Ka" E "[>1Kb" E "[1 Kc", "abc"},
    {E "]0;title\atext" E "]8;;http://x" E "\\link" E "]8;;" E "\\", "textlink"},
    {E "Pq#1" E "\\x" E "_G1" E "\\y" E "^z" E "\\", "xy"},
    {E "(Bx" E, "x"},
    {"x" E "[", "x"},
    {"x" E "[12", "x"},
    {"x" E "]never ends", "x"},
    {"x" E "]a line is its end\ny", "x\ny"},
    {"x" E "[1\ny", "x\ny"},
    {"x" E "\ny" E "\xc3\xa9", "x\ny\xc3\xa9"},
    {E "[2K" E "[1A", ""},
    {"a\x01\x02\a\v\fb", "ab"},
};

static void equals(const struct nb_text *text, const char *want)
{
    assert_false(text->failed);
    if (text->len != strlen(want) || memcmp(nb_text_str(text).data, want, text->len) != 0) {
        fail_msg("shown: %.*s\nexpected: %s", (int)text->len, nb_text_str(text).data, want);
    }
}

static void shows(const char *text, const char *want)
{
    struct nb_text out = {0};
    nb_add_word(&out, "> "); /* what stands before is not touched */
    screen_show(&out, ng_str_of(text));
    assert_memory_equal(out.data, "> ", 2);
    memmove(out.data, out.data + 2, out.len - 2);
    out.len -= 2;
    equals(&out, want);
    nb_text_done(&out);
}

static void test_show(void **state)
{
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        shows(cases[i].text, cases[i].shown);
    }
}

/* Each text in two parts: the first one is settled before the second one comes. */
static void test_settle(void **state)
{
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        const char *text = cases[i].text;
        for (size_t at = 0; at <= strlen(text); at++) {
            struct nb_text settled = {0};
            struct nb_text out = {0};
            if (((unsigned char)text[at] & 0xc0) == 0x80) {
                continue; /* within a character */
            }
            size_t final = screen_settle(&settled, (struct ng_str){text, at});
            assert_true(final <= settled.len);
            nb_add_word(&settled, text + at);
            screen_show(&out, nb_text_str(&settled));
            while (out.len > 0 && out.data[out.len - 1] == ' ') {
                out.len--;
            }
            equals(&out, cases[i].shown);
            nb_text_done(&settled);
            nb_text_done(&out);
        }
    }
}

/* A progress bar takes the room of its last state, colours without one stay. */
static void test_settled_text_is_short(void **state)
{
    (void)state;
    struct nb_text text = {0};
    struct nb_text out = {0};
    for (int i = 0; i <= 10000; i++) {
        nb_addf(&text, "\r" E "[32m%d%%" E "[0m", i / 100);
    }
    assert_int_equal(screen_settle(&out, nb_text_str(&text)), 0);
    equals(&out, "100%");
    out.len = 0;
    assert_int_equal(screen_settle(&out, ng_str_of(E "[32mgreen" E "[0m\r\n")), 0);
    equals(&out, E "[32mgreen" E "[0m\r\n");
    nb_text_done(&text);
    nb_text_done(&out);
}

/* Rows that the cursor cannot reach any more are final. */
static void test_rows(void **state)
{
    (void)state;
    struct nb_text text = {0};
    struct nb_text out = {0};
    for (int i = 0; i < 100; i++) {
        nb_addf(&text, "%d\n", i);
    }
    size_t final = screen_settle(&out, nb_text_str(&text));
    assert_int_equal(final, strlen("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n") + (size_t)(37 - 10) * 3);
    out.len = 0;
    nb_add_word(&text, E "[999A!\r\n" E "[999B!");
    screen_show(&out, nb_text_str(&text));
    nb_add(&out, "", 1);
    assert_non_null(strstr(out.data, "36\n!7\n38\n"));
    assert_string_equal(out.data + out.len - 5, "99\n!");
    nb_text_done(&text);
    nb_text_done(&out);
}

/* Text that makes more of itself than it is: movements to the right are limited. */
static void test_blanks(void **state)
{
    (void)state;
    struct nb_text text = {0};
    struct nb_text out = {0};
    shows("a" E "[999999999999999999999999C" E "[D" E "[253Db", "ab");
    for (size_t i = 0; i < 3 * SCREEN_BLANKS / SCREEN_COLUMNS; i++) {
        nb_add_word(&text, E "[999Gx\n");
    }
    screen_show(&out, nb_text_str(&text));
    assert_false(out.failed);
    assert_true(out.len < SCREEN_BLANKS + text.len);
    nb_text_done(&text);
    nb_text_done(&out);
}

/* A progress bar of a long run: each state in full, and characters of other lengths over it. */
static void test_long_row(void **state)
{
    (void)state;
    struct nb_text raw = {0};
    struct nb_text out = {0};
    enum { WIDTH = 200000 };
    for (int i = 0; i < WIDTH; i++) {
        nb_add_word(&raw, "\xc3\xa9");
    }
    nb_add_word(&raw, "\r");
    for (int i = 0; i < WIDTH; i++) {
        nb_add_word(&raw, "x");
    }
    screen_show(&out, nb_text_str(&raw));
    assert_int_equal(out.len, WIDTH);
    assert_null(memchr(out.data, 0xc3, out.len));
    nb_text_done(&raw);
    nb_text_done(&out);
}

/* A line without end: what is more than the screen holds is not kept to be overwritten. */
static void test_endless_row(void **state)
{
    (void)state;
    struct nb_text raw = {0};
    struct nb_text out = {0};
    const size_t width = SCREEN_CHARACTERS;
    for (size_t i = 0; i < 3 * width + 2; i++) {
        nb_add(&raw, i % width == 0 ? "|" : "x", 1);
    }
    nb_add_word(&raw, "\rend\n" E "[0mnext");
    screen_show(&out, nb_text_str(&raw));
    assert_int_equal(out.len, 3 * width + strlen("end\nnext"));
    assert_memory_equal(out.data, raw.data, 3 * width);
    assert_memory_equal(out.data + 3 * width, "end\nnext", 8);
    nb_text_done(&raw);
    nb_text_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_settled_text_is_short),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_blanks),
        cmocka_unit_test(test_long_row),
        cmocka_unit_test(test_endless_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
