/* SPDX-License-Identifier: MIT */
/* test_cells_render.c - outputs as an agent sees them: what a terminal would leave, cuts,
 * fences, images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebook/render.h"

static void text_is(struct nb_text *text, const char *want)
{
    assert_false(text->failed);
    nb_add(text, "", 1);
    assert_string_equal(text->data, want);
    nb_text_done(text);
}

static void cleans(const char *raw, const char *want)
{
    struct nb_text out = {0};
    nb_add_word(&out, "> "); /* the text before it is not overwritten */
    render_clean(&out, ng_str_of(raw));
    assert_memory_equal(out.data, "> ", 2);
    memmove(out.data, out.data + 2, out.len - 2);
    out.len -= 2;
    text_is(&out, want);
}

static void test_clean(void **state)
{
    (void)state;
    cleans("", "");
    cleans("plain\n\ttext", "plain\n\ttext");
    cleans("a\r\nb\r\n", "a\nb\n");
    cleans("10%\r50%\r100%\ndone", "100%\ndone");
    cleans("abcdef\rxy", "xycdef");
    cleans("abc\r\n\rx\n", "abc\nx\n");
    cleans("ab\b\bc", "cb");
    cleans("\b\bx", "x");
    cleans("one\ntwo\b\b\b\b\b\bx", "one\nxwo");
    cleans("\xc3\xa9\xc3\xa9\rab\xf0\x9f\x98\x80", "ab\xf0\x9f\x98\x80");
    cleans("abc\r\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"
                                    "bc");
    cleans("\x1b[1;31mred\x1b[0m!", "red!");
    cleans("\x1b[2Kgone\x1b[1A", "gone");
    cleans("\x1b]0;title\atext\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink");
    cleans("\x1b(Bx\x1b", "x");
    cleans("\x1b[", "");
    cleans("\x1b]never ends", "");
    cleans("a\x01\x02\ab", "ab");
}

/* A progress bar of a long run: each state in full, and characters of other lengths over it. */
static void test_clean_long(void **state)
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
    render_clean(&out, nb_text_str(&raw));
    assert_int_equal(out.len, WIDTH);
    assert_null(memchr(out.data, 0xc3, out.len));
    nb_text_done(&raw);
    nb_text_done(&out);
}

/* A line without end: what is behind the width of the row is not kept to be written over. */
static void test_clean_wide(void **state)
{
    (void)state;
    struct nb_text raw = {0};
    struct nb_text out = {0};
    const size_t width = (size_t)1 << 20;
    for (size_t i = 0; i < 3 * width + 2; i++) {
        nb_add(&raw, i % width == 0 ? "|" : "x", 1);
    }
    nb_add_word(&raw, "\rend\n\x1b[0mnext");
    render_clean(&out, nb_text_str(&raw));
    assert_int_equal(out.len, 3 * width + strlen("end\nnext"));
    assert_memory_equal(out.data, raw.data, 3 * width);
    assert_memory_equal(out.data + 3 * width, "end\nnext", 8);
    nb_text_done(&raw);
    nb_text_done(&out);
}

static void test_cut(void **state)
{
    (void)state;
    struct nb_text out = {0};
    render_cut(&out, ng_str_of("short"), 5);
    text_is(&out, "short");
    render_cut(&out, ng_str_of("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"), 6);
    text_is(&out,
            "\xc3\xa9\n[... 3 of 6 characters left out; getCellOutputs with offset 1 reads "
            "on ...]\n\xc3\xa9\xc3\xa9");
}

static void test_fence(void **state)
{
    (void)state;
    struct nb_text out = {0};
    render_fence(&out, ng_str_of("no `code` here"));
    text_is(&out, "```");
    render_fence(&out, ng_str_of("``` ````\n```"));
    text_is(&out, "`````");
    render_fence(&out, ng_str_of("``````````````````````````````````````````````````"));
    assert_int_equal(out.len, 51);
    nb_text_done(&out);
}

static void shows(const char *outputs, bool html, const char *want, size_t images)
{
    struct rendered *rendered = calloc(1, sizeof(*rendered));
    assert_non_null(rendered);
    struct nb_span whole = {0, strlen(outputs)};
    render_outputs(rendered, ng_str_of(outputs), whole, html);
    assert_false(rendered->failed);
    assert_int_equal(rendered->image_count, images);
    nb_add(&rendered->text, "", 1);
    assert_string_equal(rendered->text.data, want);
    render_done(rendered);
    free(rendered);
}

#define DISPLAY(data) "[{\"output_type\":\"display_data\",\"metadata\":{},\"data\":" data "}]"

static void test_outputs(void **state)
{
    (void)state;
    shows("[]", false, "", 0);
    shows("[{\"output_type\":\"stream\",\"name\":\"stderr\",\"text\":[\"a\\n\",\"b\"]}]", false,
          "[stderr] a\nb", 0);
    shows("[{\"output_type\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[]},"
          "{\"output_type\":\"stream\",\"name\":\"stdout\",\"text\":\"x\"}]",
          false, "E: v\n\nx", 0);
    shows(DISPLAY("{\"text/plain\":\"p\",\"text/html\":\"h\"}"), false, "p", 0);
    shows(DISPLAY("{\"text/plain\":\"p\",\"text/html\":\"h\"}"), true, "h", 0);
    shows(DISPLAY("{\"text/plain\":\"p\",\"image/svg+xml\":[\"<svg>\",\"</svg>\"]}"), false,
          "<svg></svg>", 0);
    shows(DISPLAY("{\"image/png\":\"aGFs\\nbG8=\\n\",\"text/plain\":\"p\"}"), false, "", 1);
    shows(DISPLAY("{\"image/png\":\"*\",\"text/plain\":\"p\"}"), false,
          "[Image data unavailable]", 0);
    shows(DISPLAY("{\"application/json\":{\"a\":[1e400]}}"), false,
          "[application/json] {\"a\":[1e400]}", 0);
    shows(DISPLAY("{}"), false, "", 0);
    shows("[{}]", false, "[output of the unknown type null]", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),      cmocka_unit_test(test_clean_long),
        cmocka_unit_test(test_clean_wide), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_fence),      cmocka_unit_test(test_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
