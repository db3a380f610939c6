/* SPDX-License-Identifier: MIT */
/* test_cells_output.c - from a kernel's messages to the outputs of a file. */
#include "harness.h"
#include "kernel/output.h"

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

/* The maximum holds for any output, no character is split, and the number of lost bytes is
 * reported.
 */
static void test_the_cap(void **state)
{
    struct outputs outputs;
    (void)state;
    outputs_begin(&outputs, 10);
    take(&outputs, "stream",
         "{\"name\":\"stdout\",\"text\":\"12345678\xe2\x82\xac\xe2\x82\xac\"}");
    assert_int_equal(outputs.bytes, 8);
    assert_int_equal(outputs.dropped, 6);
    take(&outputs, "display_data", "{\"data\":{\"text/plain\":\"too much\"},\"metadata\":{}}");
    take(&outputs, "stream", "{\"name\":\"stderr\",\"text\":\"ab\"}");
    assert_int_equal(outputs.count, 2);
    assert_true(outputs.dropped > 30);
    struct nb_text out = {0};
    outputs_json(&outputs, false, &out);
    nb_add(&out, "", 1);
    assert_non_null(strstr(out.data, "bytes of further output were not kept"));
    nb_text_done(&out);
    take(&outputs, "clear_output", "{}");
    expect(&outputs, "[]");
    outputs_done(&outputs);
    outputs_begin(&outputs, 1000000);
    for (int i = 0; i < OUTPUTS_MAX; i++) {
        take(&outputs, "stream", "{\"name\":\"stdout\",\"text\":\"o\"}");
        take(&outputs, "stream", "{\"name\":\"stderr\",\"text\":\"e\"}");
    }
    assert_int_equal(outputs.count, OUTPUTS_MAX);
    assert_int_equal(outputs.dropped,
                     OUTPUTS_MAX / 2); /* output that continues after the last part is kept */
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
        cmocka_unit_test(test_the_cap),
        cmocka_unit_test(test_an_update_that_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
