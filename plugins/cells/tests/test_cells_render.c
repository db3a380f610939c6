/* SPDX-License-Identifier: MIT */
/* test_cells_render.c - outputs as an agent sees them: streams, cuts, fences, images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "notebook/render.h"

static void text_is(struct nb_text *text, const char *want)
{
    assert_false(text->failed);
    nb_add(text, "", 1);
    assert_string_equal(text->data, want);
    nb_text_done(text);
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

/* A file may have one output for each write; what the program wrote is one text. */
static void test_streams_in_a_row(void **state)
{
    (void)state;
#define STREAM(name, text)                                                                     \
    "{\"output_type\":\"stream\",\"name\":\"" name "\",\"text\":" text "}"
    shows("[" STREAM("stdout", "\"0 \"") "," STREAM("stdout", "[\"1\\n\"]") "]", false, "0 1",
          0);
    shows("[" STREAM("stdout", "\"50%\"") "," STREAM("stdout", "\"\\r100%\"") "]", false,
          "100%", 0);
    shows("[" STREAM("stderr", "\"a\\n\"") "," STREAM("stderr", "\"b\\n\"") "]", false,
          "[stderr] a\nb", 0);
    shows("[" STREAM("stdout", "\"a\"") "," STREAM("stderr", "\"b\"") "," STREAM("stdout",
                                                                                 "\"c\"") "]",
          false, "a\n\n[stderr] b\n\nc", 0);
    shows("[" STREAM("stdout", "\"a\"") ",{\"output_type\":\"error\",\"ename\":\"E\","
                                        "\"evalue\":\"v\",\"traceback\":[]}," STREAM(
                                            "stdout", "\"b\"") "]",
          false, "a\n\nE: v\n\nb", 0);
}

/* Outputs of a cell: so many lines, an error, so many lines; with a value before the error if
 * there is one. */
static void render_long(struct rendered *rendered, const char *lines, const char *value,
                        size_t traceback)
{
    struct nb_text json = {0};
    nb_addf(&json, "[" STREAM("stdout", "\"%s\""), lines);
    if (value != NULL) {
        nb_addf(&json,
                ",{\"output_type\":\"execute_result\",\"metadata\":{},\"execution_count\":1,"
                "\"data\":{\"text/plain\":\"%s\"}},",
                value);
        nb_addf(&json, STREAM("stdout", "\"%s\""), lines);
    }
    nb_add_word(&json, ",{\"output_type\":\"error\",\"ename\":\"ValueError\",\"evalue\":"
                       "\"boom\",\"traceback\":[\"begin\"");
    for (size_t i = 0; i < traceback; i++) {
        nb_add_word(&json, ",\"frame\"");
    }
    nb_addf(&json, ",\"end\"]}," STREAM("stdout", "\"%s\"") "]", lines);
    struct nb_span whole = {0, json.len};
    render_outputs(rendered, nb_text_str(&json), whole, false);
    nb_text_done(&json);
}

static void assert_has(const struct nb_text *text, const char *part)
{
    if (str_find(nb_text_str(text), ng_str_of(part), 0) == SIZE_MAX) {
        fail_msg("\"%s\" is left out", part);
    }
}

/* A cut leaves out streams. An error or a value between two streams stays; of a long one its
 * beginning and its end. */
static void test_cut_outputs(void **state)
{
    (void)state;
    enum { LINES = 20000, MAX = 8192 };
    static const size_t tracebacks[] = {0, 5000};
    char *lines = calloc(LINES + 1, 3);
    assert_non_null(lines);
    for (size_t i = 0; i < LINES; i++) {
        memcpy(lines + 3 * i, "a\\n", 3);
    }
    for (size_t i = 0; i < NG_COUNT(tracebacks); i++) {
        struct rendered *rendered = calloc(1, sizeof(*rendered));
        struct nb_text out = {0};
        assert_non_null(rendered);
        render_long(rendered, lines, "42", tracebacks[i]);
        render_cut_outputs(&out, rendered, MAX);
        assert_false(out.failed);
        assert_true(out.len <= MAX + 256);
        assert_has(&out, "ValueError: boom");
        assert_has(&out, "\nend");
        assert_has(&out, "\n42\n");
        assert_has(&out, "characters left out");
        assert_memory_equal(out.data, "a\na\n", 4);
        assert_memory_equal(out.data + out.len - 3, "a\na", 3);
        nb_text_done(&out);
        render_done(rendered);
        free(rendered);
    }
    free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),         cmocka_unit_test(test_fence),
        cmocka_unit_test(test_outputs),     cmocka_unit_test(test_streams_in_a_row),
        cmocka_unit_test(test_cut_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
