/* SPDX-License-Identifier: MIT */
/* test_json_writer.c - writing, and what a writer refuses.
 */
#include "test_json_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"

static void test_writer(void **state)
{
    (void)state;
    struct buf buf;
    struct arena arena;
    struct ng_writer writer;
    arena_init(&arena, 0);
    buf_init(&buf, 4096);
    json_writer_init(&writer, &buf);
    json_object(&writer);
    json_name(&writer, "a\"b");
    json_array(&writer);
    json_int(&writer, INT64_MIN);
    json_number(&writer, 0.1);
    json_number(&writer, 1e100);
    json_number(&writer, (double)NAN);
    json_bool(&writer, true);
    json_null(&writer);
    json_cstring(&writer, "x\n\xff");
    json_end(&writer);
    json_name_str(&writer, ng_str_of("copy"));
    json_copy(&writer, parse(&arena, "{\"n\":1.50,\"e\":[]}"));
    json_name(&writer, "raw");
    json_raw(&writer, ng_str_of("[1]"));
    assert_false(writer.complete);
    json_end(&writer);
    assert_true(writer.complete);
    assert_int_equal(NG_OK, buf.rc);
    assert_string_equal("{\"a\\\"b\":[-9223372036854775808,0.1,1e+100,null,true,null,"
                        "\"x\\n\xef\xbf\xbd\"],\"copy\":{\"n\":1.50,\"e\":[]},\"raw\":[1]}",
                        buf_cstr(&buf));
    json_null(&writer); /* a second value */
    assert_int_equal(NG_EINTERNAL, buf.rc);
    buf_done(&buf);
    arena_done(&arena);
}

static void misuse_value_for_name(struct ng_writer *writer)
{
    json_object(writer);
    json_null(writer);
}

static void misuse_name_in_array(struct ng_writer *writer)
{
    json_array(writer);
    json_name(writer, "a");
}

static void misuse_two_names(struct ng_writer *writer)
{
    json_object(writer);
    json_name(writer, "a");
    json_name(writer, "b");
}

static void misuse_end_after_name(struct ng_writer *writer)
{
    json_object(writer);
    json_name(writer, "a");
    json_end(writer);
}

static void misuse_end(struct ng_writer *writer)
{
    json_end(writer);
}

static void misuse_depth(struct ng_writer *writer)
{
    for (int i = 0; i <= JSON_WRITER_DEPTH; i++) {
        json_array(writer);
    }
}

/* Every number is written in the shortest form that printf finds, whichever way is taken. */
static void expect_number(double number)
{
    char wanted[64] = "";
    struct buf buf;
    struct ng_writer writer;
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(wanted, sizeof(wanted), "%.*g", digits, number);
        double back = strtod(wanted, NULL);
        if (!(back < number) && !(back > number)) {
            break;
        }
    }
    buf_init(&buf, 1024);
    json_writer_init(&writer, &buf);
    json_number(&writer, number);
    assert_int_equal(buf.rc, NG_OK);
    struct ng_str text = buf_str(&buf);
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
    buf_done(&buf);
}

static void test_writer_numbers(void **state)
{
    static const double odd[] = {0.0,       -0.0,   0.8,    -0.25, 0.001,           0.0005,
                                 0.0014999, 1.0005, 0.9995, 999.9, 99999999999.999, 1e11,
                                 1e14,      1e15,   1e16,   0.3,   2.675,           1.0 / 3.0,
                                 5e-324,    1e308,  -7.0};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(odd); i++) {
        expect_number(odd[i]);
    }
    for (int i = -20000; i <= 20000; i++) {
        expect_number(i / 1000.0);
        expect_number(i / 100.0);
        expect_number(i * 12345678.125);
    }
    expect_number(0.1 + 0.2);
}

static void test_writer_misuse(void **state)
{
    (void)state;
    static void (*const misuses[])(struct ng_writer *) = {
        misuse_value_for_name, misuse_name_in_array, misuse_two_names,
        misuse_end_after_name, misuse_end,           misuse_depth,
    };
    for (size_t i = 0; i < NG_COUNT(misuses); i++) {
        struct buf buf;
        struct ng_writer writer;
        buf_init(&buf, 4096);
        json_writer_init(&writer, &buf);
        misuses[i](&writer);
        assert_int_equal(NG_EINTERNAL, buf.rc);
        buf_done(&buf);
    }
}

static void test_writer_full(void **state)
{
    (void)state;
    struct buf buf;
    struct ng_writer writer;
    buf_init(&buf, 8);
    json_writer_init(&writer, &buf);
    json_array(&writer);
    json_cstring(&writer, "too long for it");
    json_end(&writer);
    assert_int_equal(NG_ETOOLARGE, buf.rc);
    buf_done(&buf);
}

/* The beginning of a text whose JSON string fits; it is what the writer writes. */
static void test_cut(void **state)
{
    static const char text[] = "a\"\\\n\x01\xc3\xb6\xf0\x9d\x84\x9e.";
    (void)state;
    for (size_t bytes = 0; bytes < 40; bytes++) {
        struct buf buf;
        struct ng_str cut = json_cut(ng_str_of(text), bytes);
        buf_init(&buf, 4096);
        assert_true(utf8_valid(cut));
        assert_int_equal(NG_OK, buf_add_json(&buf, cut));
        assert_true(buf.len - 2 <= bytes);
        if (cut.len < strlen(text)) {
            struct ng_str more = {text, cut.len + utf8_length(ng_str_of(text), cut.len)};
            buf_clear(&buf);
            assert_int_equal(NG_OK, buf_add_json(&buf, more));
            assert_true(buf.len - 2 > bytes);
        }
        buf_done(&buf);
    }
    assert_int_equal(0, json_cut(str_make(NULL, 0), 10).len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer),        cmocka_unit_test(test_writer_numbers),
        cmocka_unit_test(test_writer_misuse), cmocka_unit_test(test_writer_full),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
