/* SPDX-License-Identifier: MIT */
/* test_cells_output.c - from a kernel's messages to the outputs of a file. */
#include "harness.h"
#include "kernel/output.h"
#include "notebook/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP 1000

static void take(struct outputs *outputs, const char *type, const char *content)
{
    struct wire_message message = {.type = ng_str_of(type), .content = ng_str_of(content)};
    (void)outputs_take(outputs, &message);
}

static void expect(const struct outputs *outputs, const char *json)
{
    struct nb_text out = {0};
    outputs_json(outputs, true, &out);
    nb_add(&out, "", 1);
    assert_false(out.failed);
    assert_string_equal(out.data, json);
    nb_text_done(&out);
}

static void test_streams(void **state)
{
    struct outputs outputs;
    (void)state;
    outputs_begin(&outputs, CAP);
    take(&outputs, "stream", "{\"name\":\"stdout\",\"text\":\"a\\n\"}");
    take(&outputs, "stream", "{\"name\":\"stdout\",\"text\":\"b\"}");
    take(&outputs, "stream", "{\"name\":\"stderr\",\"text\":[\"c\",\"\\ud800\"]}");
    take(&outputs, "stream", "{\"name\":\"stdout\",\"text\":\"\"}");
    take(&outputs, "stream", "{}");
    expect(&outputs,
           "[{\"name\":\"stdout\",\"output_type\":\"stream\",\"text\":\"a\\nb\"},"
           "{\"name\":\"stderr\",\"output_type\":\"stream\",\"text\":\"c\xef\xbf\xbd\"}]");
    outputs_done(&outputs);
}

static void test_displays(void **state)
{
    struct outputs outputs;
    (void)state;
    outputs_begin(&outputs, CAP);
    take(&outputs, "display_data",
         "{\"data\":{\"text/plain\":\"x\",\"application/json\":[1e400]},\"metadata\":{},"
         "\"transient\":{\"display_id\":\"d\"}}");
    take(&outputs, "update_display_data",
         "{\"data\":{\"text/plain\":\"y\"},\"transient\":{\"display_id\":\"other\"}}");
    take(&outputs, "execute_result", "{\"data\":7,\"execution_count\":null}");
    expect(&outputs,
           "[{\"data\":{\"application/json\":[1e400],\"text/plain\":\"x\"},\"metadata\":{},"
           "\"output_type\":\"display_data\"},"
           "{\"data\":{},\"execution_count\":null,\"metadata\":{},\"output_type\":\"execute_"
           "result\"}]");
    take(&outputs, "update_display_data",
         "{\"data\":{\"text/plain\":\"z\"},\"metadata\":{\"a\":1},"
         "\"transient\":{\"display_id\":\"d\"}}");
    take(&outputs, "clear_output", "{\"wait\":true}");
    assert_int_equal(outputs.count, 2);
    take(&outputs, "never_heard_of", "{}");
    assert_int_equal(outputs.count, 2);
    take(&outputs, "error", "{\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"t\"]}");
    expect(&outputs, "[{\"ename\":\"E\",\"evalue\":\"v\",\"output_type\":\"error\","
                     "\"traceback\":[\"t\"]}]");
    assert_true(outputs.has_error);
    take(&outputs, "clear_output", "{\"wait\":false}");
    expect(&outputs, "[]");
    outputs_done(&outputs);
}

/* Prints a text with a number of that many digits in it. */
static void print(struct outputs *outputs, const char *before, int number, int digits,
                  const char *after)
{
    char content[256];
    (void)snprintf(content, sizeof(content), "{\"name\":\"stdout\",\"text\":\"%s%0*d%s\"}",
                   before, digits, number, after);
    take(outputs, "stream", content);
}

/* All text of streams in the file. */
static void read_text(const struct outputs *outputs, struct nb_text *ret)
{
    struct nb_text json = {0};
    outputs_json(outputs, true, &json);
    struct nb_span output;
    struct nb_walk walk = nb_walk_into(nb_text_str(&json), (struct nb_span){0, json.len});
    assert_true(nb_check(nb_text_str(&json)));
    while (nb_walk_element(&walk, &output)) {
        (void)nb_decode_lines(ret, nb_text_str(&json),
                              nb_member(nb_text_str(&json), output, "text"));
    }
    nb_add(ret, "", 1);
    nb_text_done(&json);
}

/* The beginning and the end of the output are kept, and a note says what is not between them.
 */
static void test_the_end_is_kept(void **state)
{
    struct outputs outputs;
    struct nb_text text = {0};
    (void)state;
    outputs_begin(&outputs, CAP);
    for (int i = 0; i < 3000; i++) {
        print(&outputs, "line ", i, 4, "\\n");
        assert_true(outputs.bytes <= CAP);
    }
    print(&outputs, "FINAL ", 1, 1, "\\n");
    assert_int_equal(outputs.count, 2);
    assert_true(outputs.bytes > CAP - CAP / 8);
    assert_int_equal(outputs.bytes + outputs.dropped, 3000 * 10 + 8);
    read_text(&outputs, &text);
    const char *note = strstr(text.data, "[notegate: ");
    assert_non_null(note);
    assert_int_equal(note - text.data, CAP / 4);
    assert_memory_equal(text.data, "line 0000\nline 0001\n", 20);
    const char *line = strchr(note, '\n') + 1;
    assert_memory_equal(line, "line ", 5);
    long first = strtol(line + 5, NULL, 10);
    assert_int_equal(3000 - first, (outputs.bytes - CAP / 4 - 8) / 10);
    assert_string_equal(text.data + text.len - 19, "line 2999\nFINAL 1\n");
    nb_text_done(&text);
    outputs_done(&outputs);
}

/* One message that is much larger than the limit, of characters that are not cut. */
static void test_one_large_message(void **state)
{
    struct outputs outputs;
    struct nb_text content = {0};
    struct nb_text text = {0};
    (void)state;
    outputs_begin(&outputs, CAP);
    nb_add_word(&content, "{\"name\":\"stderr\",\"text\":\"");
    for (int i = 0; i < 10000; i++) {
        nb_add_word(&content, "\xe2\x82\xac");
    }
    nb_add(&content, "END\"}", 6);
    take(&outputs, "stream", content.data);
    assert_true(outputs.bytes <= CAP);
    read_text(&outputs, &text);
    assert_memory_equal(text.data, "\xe2\x82\xac", 3);
    assert_string_equal(text.data + text.len - 7, "\xe2\x82\xac"
                                                  "END");
    assert_null(strstr(text.data, "\xef\xbf\xbd")); /* no part of a character */
    nb_text_done(&content);
    nb_text_done(&text);
    outputs_done(&outputs);
}

static void fill(struct outputs *outputs)
{
    for (int i = 0; i < 1000; i++) {
        print(outputs, "", i, 99, "\\n");
    }
}

/* A value and an error are there, whatever was printed before and after them. */
static void test_values_and_errors_are_kept(void **state)
{
    struct outputs outputs;
    struct nb_text out = {0};
    (void)state;
    outputs_begin(&outputs, 10 * CAP);
    fill(&outputs);
    take(&outputs, "execute_result",
         "{\"data\":{\"text/plain\":\"the value\"},\"execution_count\":1}");
    fill(&outputs);
    take(&outputs, "error", "{\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"trace\"]}");
    fill(&outputs);
    assert_true(outputs.bytes <= 10 * CAP);
    assert_int_equal(outputs.count, 4);
    assert_int_equal(outputs.items[1].kind, OUTPUT_RESULT);
    assert_int_equal(outputs.items[2].kind, OUTPUT_ERROR);
    outputs_json(&outputs, true, &out);
    nb_add(&out, "", 1);
    assert_non_null(strstr(out.data, "the value"));
    assert_non_null(strstr(out.data, "trace"));
    nb_text_done(&out);
    outputs_done(&outputs);
}

/* So is the end of an error that is larger than the limit. */
static void test_a_large_error(void **state)
{
    struct outputs outputs;
    struct nb_text content = {0};
    struct nb_text out = {0};
    (void)state;
    outputs_begin(&outputs, CAP);
    nb_add_word(&content,
                "{\"ename\":\"ValueError\",\"evalue\":\"long\",\"traceback\":[\"begin\"");
    for (int i = 0; i < 10000; i++) {
        nb_addf(&content, ",\"frame %d\"", i);
    }
    nb_add(&content, ",\"the end\"]}", 13);
    take(&outputs, "error", content.data);
    outputs_json(&outputs, true, &out);
    assert_true(out.len < OUTPUT_ERROR_MAX);
    assert_true(nb_check(nb_text_str(&out)));
    nb_add(&out, "", 1);
    assert_non_null(strstr(out.data, "\"ename\":\"ValueError\",\"evalue\":\"long\""));
    assert_non_null(strstr(out.data, "begin\\nframe 0"));
    assert_non_null(strstr(out.data, "frame 9999\\nthe end"));
    assert_non_null(strstr(out.data, "were not kept here"));
    nb_text_done(&content);
    nb_text_done(&out);
    outputs_done(&outputs);
}

/* A progress bar has the room of its last state, what was printed before and after it is
 * whole. */
static void test_overwritten_text_does_not_count(void **state)
{
    struct outputs outputs;
    (void)state;
    outputs_begin(&outputs, CAP);
    print(&outputs, "before ", 1, 1, "\\n");
    for (int i = 0; i <= 10000; i++) {
        print(&outputs, "\\u001b[32m", i, 5, " of 10000\\r");
        assert_true(outputs.bytes <= CAP);
    }
    print(&outputs, "\\nafter ", 2, 1, "\\n");
    assert_int_equal(outputs.dropped, 0);
    assert_int_equal(outputs.count, 1);
    struct nb_text text = {0};
    struct nb_text shown = {0};
    read_text(&outputs, &text);
    screen_show(&shown, nb_text_str(&text));
    nb_add(&shown, "", 1);
    assert_string_equal(shown.data, "before 1\n10000 of 10000\nafter 2\n");
    nb_text_done(&shown);
    nb_text_done(&text);
    /* Nor does what was cleared. */
    fill(&outputs);
    take(&outputs, "clear_output", "{\"wait\":true}");
    print(&outputs, "new ", 3, 1, "\\n");
    expect(&outputs,
           "[{\"name\":\"stdout\",\"output_type\":\"stream\",\"text\":\"new 3\\n\"}]");
    outputs_done(&outputs);
}

static void show(struct outputs *outputs, int number, size_t bytes)
{
    struct nb_text content = {0};
    nb_addf(&content, "{\"data\":{\"text/plain\":\"%d", number);
    for (size_t i = 0; i < bytes; i++) {
        nb_add_word(&content, "x");
    }
    nb_addf(&content, "\"},\"transient\":{\"display_id\":\"%d\"}}", number);
    nb_add(&content, "", 1);
    take(outputs, "display_data", content.data);
    nb_text_done(&content);
}

/* Displays go whole; their positions in the file are those behind the note. */
static void test_displays_at_the_limit(void **state)
{
    struct outputs outputs;
    (void)state;
    outputs_begin(&outputs, CAP);
    for (int i = 0; i < 50; i++) {
        show(&outputs, i, 80);
    }
    assert_true(outputs.bytes <= CAP && outputs.is_cut);
    assert_int_equal(outputs.head, 2);
    assert_string_equal(outputs.items[1].display_id, "1");
    assert_string_equal(outputs.items[outputs.count - 1].display_id, "49");
    assert_int_equal(outputs_ordinal(&outputs, 1), 1);
    assert_int_equal(outputs_ordinal(&outputs, 2), 3);
    /* One that is too large for itself is named, and nothing goes for it. */
    size_t count = outputs.count;
    show(&outputs, 50, 2 * CAP);
    assert_string_equal(outputs.items[count - 1].display_id, "49");
    struct nb_text text = {0};
    read_text(&outputs, &text);
    assert_non_null(strstr(text.data, "bytes of output were not kept here"));
    nb_text_done(&text);
    outputs_done(&outputs);
}

static void test_many_outputs(void **state)
{
    struct outputs outputs;
    (void)state;
    outputs_begin(&outputs, 1000000);
    for (int i = 0; i < OUTPUTS_MAX; i++) {
        take(&outputs, "stream", "{\"name\":\"stdout\",\"text\":\"o\"}");
        take(&outputs, "stream", "{\"name\":\"stderr\",\"text\":\"e\"}");
    }
    take(&outputs, "stream", "{\"name\":\"stdout\",\"text\":\"last\"}");
    assert_true(outputs.count <= OUTPUTS_MAX && outputs.count > OUTPUTS_MAX / 2);
    assert_int_equal(outputs.bytes + outputs.dropped, 2 * OUTPUTS_MAX + 4);
    assert_int_equal(outputs.items[outputs.count - 1].text.len, 4);
    for (int i = 0; i < 2 * OUTPUTS_MAX; i++) { /* values, more than are kept */
        take(&outputs, "execute_result", "{\"data\":{\"text/plain\":\"1\"}}");
    }
    assert_true(outputs.count <= OUTPUTS_MAX && outputs.bytes <= 1000000);
    assert_false(outputs.failed);
    outputs_done(&outputs);
}

/* A limit of a few bytes: nothing is out of bounds. */
static void test_small_limits(void **state)
{
    (void)state;
    for (size_t cap = 0; cap < 40; cap++) {
        struct outputs outputs;
        struct nb_text text = {0};
        outputs_begin(&outputs, cap);
        for (int i = 0; i < 50; i++) {
            print(&outputs, "\xe2\x82\xac\\r", i, 1, "\\n");
            show(&outputs, i, (size_t)i);
            assert_true(outputs.bytes <= cap);
        }
        read_text(&outputs, &text);
        nb_text_done(&text);
        outputs_done(&outputs);
    }
}

static void update(struct outputs *outputs, int number, size_t bytes)
{
    struct nb_text content = {0};
    nb_addf(&content,
            "{\"data\":{\"text/plain\":\"%0*d\"},\"transient\":{\"display_id\":", (int)bytes,
            number);
    nb_addf(&content, "\"%d\"}}", number);
    nb_add(&content, "", 1);
    take(outputs, "update_display_data", content.data);
    nb_text_done(&content);
}

/* The display of that number is there once, with a text of so many bytes. */
static void expect_display(const struct outputs *outputs, const char *id, size_t bytes)
{
    size_t found = 0;
    for (size_t i = 0; i < outputs->count; i++) {
        const struct output *output = &outputs->items[i];
        if (strcmp(output->display_id, id) == 0) {
            assert_int_equal(output->text.len, bytes + strlen("{\"text/plain\":\"\"}"));
            found++;
        }
    }
    assert_int_equal(found, 1);
}

/* The last state of a bar is there, however it grows; older lines go for it. */
static void test_updates_at_the_limit(void **state)
{
    (void)state;
    for (int before = 0; before <= 1000; before += 100) {
        struct outputs outputs;
        struct nb_text text = {0};
        outputs_begin(&outputs, 10 * CAP);
        for (int i = 0; i < before; i++) {
            print(&outputs, "", i, 99, "\\n");
        }
        show(&outputs, 7, 10);
        show(&outputs, 8, 10);
        for (size_t bytes = 100; bytes <= 3000; bytes += 100) {
            for (int i = 0; i < 10; i++) {
                print(&outputs, "", i, 99, "\\n");
            }
            update(&outputs, 7, bytes);
            update(&outputs, 8, bytes);
            assert_true(outputs.bytes <= 10 * CAP);
            expect_display(&outputs, "7", bytes);
            expect_display(&outputs, "8", bytes);
        }
        print(&outputs, "FINAL ", 1, 1, "\\n");
        read_text(&outputs, &text);
        assert_string_equal(text.data + text.len - 9, "FINAL 1\n");
        nb_text_done(&text);
        outputs_done(&outputs);
    }
}

/* A value of so many units between two words, behind other members. */
static void give(struct outputs *outputs, const char *type, const char *members,
                 const char *unit, int units)
{
    struct nb_text content = {0};
    nb_addf(&content, "{\"data\": {%s\"text/plain\": \"begin ", members);
    for (int i = 0; i < units; i++) {
        nb_add_word(&content, unit);
    }
    nb_add_word(&content, " end\"},\"metadata\":{},\"execution_count\":3}");
    nb_add(&content, "", 1);
    take(outputs, type, content.data);
    nb_text_done(&content);
}

/* Both ends of a value that is larger than the limit. */
static void test_a_large_value(void **state)
{
    static const char *const types[] = {"execute_result", "display_data"};
    static const char *const units[] = {"x", "\\n", "\\u0001", "\xe2\x82\xac", "\\u20ac"};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(types) * NG_COUNT(units); i++) {
        struct outputs outputs;
        struct nb_text out = {0};
        outputs_begin(&outputs, CAP);
        give(&outputs, types[i % 2], "", units[i / 2], 3 * CAP);
        assert_int_equal(outputs.count, 1);
        assert_int_equal(outputs.dropped, 0);
        assert_true(outputs.items[0].text.len + outputs.items[0].metadata.len <= CAP);
        outputs_json(&outputs, true, &out);
        assert_true(nb_check(nb_text_str(&out)));
        nb_add(&out, "", 1);
        assert_non_null(strstr(out.data, "\"text/plain\":\"begin "));
        assert_non_null(strstr(out.data, " end\""));
        assert_non_null(strstr(out.data, "[notegate: "));
        nb_text_done(&out);
        outputs_done(&outputs);
    }
}

/* A note gives the size of the other MIME types, which are not kept. */
static void test_a_large_value_with_other_data(void **state)
{
    struct outputs outputs;
    struct nb_text members = {0};
    struct nb_text out = {0};
    (void)state;
    nb_addf(&members, "\"image/png\":\"%0*d\",", 2 * CAP, 0);
    nb_add(&members, "", 1);
    outputs_begin(&outputs, CAP);
    give(&outputs, "execute_result", members.data, "x", 1);
    assert_int_equal(outputs.count, 2);
    outputs_json(&outputs, true, &out);
    nb_add(&out, "", 1);
    assert_non_null(strstr(out.data, "{\"text/plain\":\"begin x end\"}"));
    assert_non_null(strstr(out.data, "[notegate: 2013 bytes of output were not kept here"));
    assert_null(strstr(out.data, "image/png"));
    /* One without a text is only named. */
    outputs_done(&outputs);
    nb_text_done(&out);
    outputs_begin(&outputs, CAP);
    members.len -= 2;
    nb_add_word(&members, "}}");
    nb_add(&members, "", 1);
    struct nb_text content = {0};
    nb_addf(&content, "{\"data\":{%s", members.data);
    nb_add(&content, "", 1);
    take(&outputs, "display_data", content.data);
    assert_int_equal(outputs.count, 1);
    assert_int_equal(outputs.items[0].kind, OUTPUT_STDERR);
    nb_text_done(&content);
    nb_text_done(&members);
    outputs_done(&outputs);
}

static void test_an_update_that_is_too_large(void **state)
{
    struct outputs outputs;
    (void)state;
    outputs_begin(&outputs, 40);
    take(&outputs, "display_data",
         "{\"data\":{\"text/"
         "plain\":\"x\"},\"metadata\":{},\"transient\":{\"display_id\":\"d\"}}");
    take(&outputs, "update_display_data",
         "{\"data\":{\"text/plain\":\"0123456789012345678901234567890123456789\"},"
         "\"metadata\":{},\"transient\":{\"display_id\":\"d\"}}");
    assert_int_equal(outputs.count, 1);
    assert_true(outputs.dropped > 0);
    assert_non_null(memchr(outputs.items[0].text.data, 'x', outputs.items[0].text.len));
    outputs_done(&outputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_displays),
        cmocka_unit_test(test_the_end_is_kept),
        cmocka_unit_test(test_one_large_message),
        cmocka_unit_test(test_values_and_errors_are_kept),
        cmocka_unit_test(test_a_large_error),
        cmocka_unit_test(test_overwritten_text_does_not_count),
        cmocka_unit_test(test_displays_at_the_limit),
        cmocka_unit_test(test_many_outputs),
        cmocka_unit_test(test_small_limits),
        cmocka_unit_test(test_updates_at_the_limit),
        cmocka_unit_test(test_a_large_value),
        cmocka_unit_test(test_a_large_value_with_other_data),
        cmocka_unit_test(test_an_update_that_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
