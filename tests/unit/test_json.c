/* SPDX-License-Identifier: MIT */
/*
 * test_json.c - parsing, values, numbers, writing.
 *
 * The parsing suite leaves these files open; what is chosen here:
 *   accepted, digits kept (numbers of any length and exponent are JSON):
 *     i_number_double_huge_neg_exp      i_number_huge_exp          i_number_neg_int_huge_exp
 *     i_number_pos_double_huge_exp      i_number_real_neg_overflow i_number_real_pos_overflow
 *     i_number_real_underflow           i_number_too_big_neg_int   i_number_too_big_pos_int
 *     i_number_very_big_negative_int
 *   refused, an escape that is half of a surrogate pair:
 *     i_object_key_lone_2nd_surrogate                i_string_1st_surrogate_but_2nd_missing
 *     i_string_1st_valid_surrogate_2nd_invalid i_string_incomplete_surrogate_and_escape_valid
 *     i_string_incomplete_surrogate_pair i_string_incomplete_surrogates_escape_valid
 *     i_string_invalid_lonely_surrogate              i_string_invalid_surrogate
 *     i_string_inverted_surrogates_U+1D11E           i_string_lone_second_surrogate
 *   refused, not UTF-8:
 *     i_string_UTF-16LE_with_BOM        i_string_UTF-8_invalid_sequence
 *     i_string_UTF8_surrogate_U+D800    i_string_invalid_utf-8
 *     i_string_iso_latin_1              i_string_lone_utf8_continuation_byte
 *     i_string_not_in_unicode_range     i_string_overlong_sequence_2_bytes
 *     i_string_overlong_sequence_6_bytes  i_string_overlong_sequence_6_bytes_null
 *     i_string_truncated-utf-8          i_string_utf16BE_no_BOM    i_string_utf16LE_no_BOM
 *   refused, a byte order mark: i_structure_UTF-8_BOM_empty_object
 *   refused, deeper than 128:   i_structure_500_nested_arrays
 * Of the files that must be accepted two are refused, for they double a member:
 *     y_object_duplicated_key           y_object_duplicated_key_and_value
 */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "json_number.h"
#include "str.h"

#define SUITE NOTEGATE_SHARED_DATA "/json-parsing-suite/test_parsing"
#define FILE_BYTES_MAX ((size_t)4 * 1024 * 1024)

static const struct ng_value *parse(struct arena *arena, const char *text)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    if (json_parse(arena, ng_str_of(text), JSON_DEPTH_DEFAULT, &value, &error) != NG_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    return value;
}

static struct ng_str number(const char *digits)
{
    return ng_str_of(digits);
}

/* ---- the suite ---- */

static void read_file(const char *path, struct buf *buf)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    buf_init(buf, FILE_BYTES_MAX);
    for (size_t len = 1; len > 0;) {
        char *to = buf_reserve(buf, 4096);
        assert_non_null(to);
        len = fread(to, 1, 4096, file);
        buf->len += len;
    }
    assert_int_equal(0, fclose(file));
}

static bool must_accept(const char *name)
{
    return name[0] == 'i' ? strncmp(name, "i_number_", 9) == 0
                          : name[0] == 'y' && strstr(name, "duplicated_key") == NULL;
}

static void run_file(const char *name)
{
    char path[1024];
    struct buf text;
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    (void)snprintf(path, sizeof(path), "%s/%s", SUITE, name);
    read_file(path, &text);
    arena_init(&arena, 0);
    int rc = json_parse(&arena, buf_str(&text), JSON_DEPTH_DEFAULT, &value, &error);
    if (rc != (must_accept(name) ? NG_OK : NG_EJSON)) {
        fail_msg("%s: %d", name, rc);
    }
    if (rc == NG_OK) {
        /* What is printed is the same value again. */
        const struct ng_value *again = NULL;
        struct buf printed;
        buf_init(&printed, FILE_BYTES_MAX);
        assert_int_equal(NG_OK, json_print(&printed, value));
        assert_int_equal(
            NG_OK, json_parse(&arena, buf_str(&printed), JSON_DEPTH_DEFAULT, &again, NULL));
        assert_true(json_equal(value, again));
        assert_true(json_hash(value) == json_hash(again));
        buf_done(&printed);
    } else {
        assert_true(error.message[0] != '\0' && error.offset <= text.len);
        assert_true(error.line >= 1 && error.column >= 1);
        assert_true(str_utf8_valid(ng_str_of(error.message)));
    }
    arena_done(&arena);
    buf_done(&text);
}

static void test_suite(void **state)
{
    (void)state;
    unsigned files = 0;
    DIR *folder = opendir(SUITE);
    if (folder == NULL) {
        print_message("skipped: %s is not there\n", SUITE);
        skip();
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strstr(entry->d_name, ".json") != NULL) {
            run_file(entry->d_name);
            files++;
        }
    }
    (void)closedir(folder);
    print_message("%u files\n", files);
    assert_true(files >= 300);
}

/* ---- parsing ---- */

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t line, column;
        const char *message;
    } cases[] = {
        {"", 1, 1, "the text ends too early"},
        {"{\"a\":1,\n \"\\u00e9\":2,\"b\": [1,\n2,]}", 3, 3, "a value is expected, found ]"},
        {"{\"\xc3\xa9\":1,\"a\":2,\"a\":3}", 1, 14, "member \"a\" occurs twice"},
        {"[\"\\ud800\"]", 1, 3, "the escape \\ud800 is half of a surrogate pair"},
        {"[\"\\\\\\ud83d\\ude00\\udc00\"]", 1, 17,
         "the escape \\udc00 is half of a surrogate pair"},
        {"[\"\xed\xa0\x80\"]", 1, 3, "the text is not valid UTF-8"},
        {"\xef\xbb\xbf{}", 1, 1, "the text begins with a byte order mark"},
        {"[\f]", 1, 2, "the control character 0x0c is not allowed here"},
        {"1 2", 1, 3, "something follows the JSON value, found 2"},
        {"nul", 1, 1, "a value is expected, found nul"},
        {"{\"a\" 1}", 1, 6, "object key and value must be separated by a colon (':'), found 1"},
        {"[[[[[]]]]]", 1, 5, "the text is nested deeper than 4 levels (limits.depth)"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct arena arena;
        struct json_error error;
        const struct ng_value *value = NULL;
        arena_init(&arena, 0);
        assert_int_equal(NG_EJSON,
                         json_parse(&arena, ng_str_of(cases[i].text), 4, &value, &error));
        assert_int_equal(NG_EJSON, error.code);
        assert_string_equal(cases[i].message, error.message);
        assert_int_equal(cases[i].line, error.line);
        assert_int_equal(cases[i].column, error.column);
        arena_done(&arena);
    }
}

static void test_values(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 0);
    char text[] =
        " {\"s\":\"a\\u0000\\n\\ud83d\\ude00\",\"n\":-1.50e+2,\"l\":[true,false,null,{}]} ";
    const struct ng_value *value = NULL;
    assert_int_equal(NG_OK, json_parse(&arena, ng_str_of(text), 3, &value, NULL));
    memset(text, 'x', sizeof(text)); /* the tree keeps nothing of the text */
    assert_int_equal(NG_TYPE_OBJECT, value->type);
    assert_int_equal(3, value->count);
    assert_true(str_equal(json_get(value, "s")->text, str_make("a\0\n\xf0\x9f\x98\x80", 7)));
    assert_true(str_is(json_get(value, "n")->text, "-1.50e+2"));
    const struct ng_value *list = json_get(value, "l");
    assert_int_equal(4, list->count);
    assert_int_equal(NG_TYPE_TRUE, list->first->type);
    assert_int_equal(NG_TYPE_FALSE, list->first->next->type);
    assert_int_equal(NG_TYPE_NULL, list->first->next->next->type);
    assert_null(json_get(value, "x"));
    assert_null(json_get(list, "x"));
    assert_null(json_get(NULL, "x"));
    arena_done(&arena);
}

static void test_depth(void **state)
{
    (void)state;
    struct arena arena;
    struct buf text;
    const struct ng_value *value = NULL;
    arena_init(&arena, 0);
    buf_init(&text, FILE_BYTES_MAX);
    for (int i = 0; i < 500; i++) {
        buf_add_char(&text, '[');
    }
    for (int i = 0; i < 500; i++) {
        buf_add_char(&text, ']');
    }
    assert_int_equal(NG_OK, json_parse(&arena, buf_str(&text), 500, &value, NULL));
    assert_int_equal(NG_EJSON, json_parse(&arena, buf_str(&text), 499, &value, NULL));
    buf_done(&text);
    arena_done(&arena);
}

static void test_many_members(void **state)
{
    (void)state;
    enum { MEMBERS = 100000 };
    struct arena arena;
    struct buf forth;
    struct buf back;
    arena_init(&arena, 0);
    buf_init(&forth, FILE_BYTES_MAX);
    buf_init(&back, FILE_BYTES_MAX);
    for (int i = 0; i < MEMBERS; i++) {
        buf_printf(&forth, "%s\"m%d\":%d", i == 0 ? "{" : ",", i, i);
        buf_printf(&back, "%s\"m%d\":%d.0", i == 0 ? "{" : ",", MEMBERS - 1 - i,
                   MEMBERS - 1 - i);
    }
    buf_add_char(&forth, '}');
    buf_add_char(&back, '}');
    const struct ng_value *a = parse(&arena, buf_cstr(&forth));
    const struct ng_value *b = parse(&arena, buf_cstr(&back));
    assert_true(json_equal(a, b));
    assert_true(json_hash(a) == json_hash(b));
    forth.len--;
    buf_add_c(&forth, ",\"m77\":0}");
    const struct ng_value *value = NULL;
    struct json_error error;
    assert_int_equal(NG_EJSON, json_parse(&arena, buf_str(&forth), 4, &value, &error));
    assert_string_equal("member \"m77\" occurs twice", error.message);
    buf_done(&forth);
    buf_done(&back);
    arena_done(&arena);
}

static void test_equal(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"1", "1.0", true},
        {"100", "1e2", true},
        {"0", "-0.0e5", true},
        {"1", "\"1\"", false},
        {"{\"a\":1,\"b\":[2,3]}", "{\"b\":[2.0,3],\"a\":1}", true},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,2]", false},
        {"\"\\u0061\"", "\"a\"", true},
        {"false", "0", false},
        {"null", "false", false},
        {"12345678901234567890123456789", "12345678901234567890123456788", false},
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        const struct ng_value *a = parse(&arena, cases[i].a);
        const struct ng_value *b = parse(&arena, cases[i].b);
        assert_int_equal(cases[i].equal, json_equal(a, b));
        assert_int_equal(cases[i].equal, json_hash(a) == json_hash(b));
    }
    assert_true(json_equal(NULL, NULL));
    assert_false(json_equal(NULL, parse(&arena, "null")));
    arena_done(&arena);
}

/* ---- numbers ---- */

static void test_compare(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "-1e1000000000",
        "-123456789012345678901234567890.5",
        "-10",
        "-9.99",
        "-1e-1000000000",
        "0",
        "1e-1000000000",
        "0.00001",
        "9.99e-1",
        "1",
        "1.00000000000000000000000000001",
        "9",
        "10",
        "99e0",
        "100",
        "1e999999999",
        "1.1e999999999",
        "0.1e1000000001",
    };
    for (size_t i = 0; i < NG_COUNT(ascending); i++) {
        for (size_t j = 0; j < NG_COUNT(ascending); j++) {
            int order = json_compare_numbers(number(ascending[i]), number(ascending[j]));
            assert_int_equal((i > j) - (i < j), (order > 0) - (order < 0));
        }
    }
    assert_int_equal(0, json_compare_numbers(number("1e2"), number("100.000")));
    assert_int_equal(0, json_compare_numbers(number("-0"), number("0e99")));
    assert_int_equal(0, json_compare_numbers(number("0.0012e5"), number("120")));
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        int64_t value;
    } cases[] = {
        {"0", NG_OK, 0},
        {"-0.0", NG_OK, 0},
        {"1.0", NG_OK, 1},
        {"1e2", NG_OK, 100},
        {"-120e-1", NG_OK, -12},
        {"9223372036854775807", NG_OK, INT64_MAX},
        {"-9223372036854775808", NG_OK, INT64_MIN},
        {"922337203685477580.7e1", NG_OK, INT64_MAX},
        {"9223372036854775808", NG_EINVAL, 0},
        {"-9223372036854775809", NG_EINVAL, 0},
        {"1e19", NG_EINVAL, 0},
        {"1e999999999999999999999", NG_EINVAL, 0},
        {"1.5", NG_EINVAL, 0},
        {"1e-1", NG_EINVAL, 0},
        {"\"1\"", NG_EINVAL, 0},
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        int64_t value = 0;
        assert_int_equal(cases[i].rc, json_integer(parse(&arena, cases[i].text), &value));
        assert_true(value == cases[i].value);
    }
    assert_int_equal(NG_EINVAL, json_integer(NULL, NULL));
    assert_true(json_is_integer(parse(&arena, "1e300")));
    assert_false(json_is_integer(parse(&arena, "1e-300")));
    assert_false(json_is_integer(parse(&arena, "true")));
    arena_done(&arena);
}

static void test_doubles(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0.5",
        "0.1",
        "123456789.125e-3",
        "1.7976931348623157e308",
        "5e-324",
        "1e22",
        "2.2250738585072011e-308",
        "9007199254740993",
        "9007199254740993.00000000000000000000000000000000000000000000000000000000001",
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        double expected = strtod(texts[i], NULL);
        double value = json_double(parse(&arena, texts[i]));
        assert_memory_equal(&expected, &value, sizeof(value));
    }
    assert_true(isinf(json_double(parse(&arena, "1e999999999999"))));
    struct buf longer;
    buf_init(&longer, 4096);
    buf_add_c(&longer, "9007199254740993.");
    for (int i = 0; i < 2000; i++) {
        buf_add_char(&longer, '0');
    }
    buf_add_char(&longer, '1');
    assert_true(json_double(parse(&arena, buf_cstr(&longer))) > 9007199254740993.0);
    buf_done(&longer);
    arena_done(&arena);
}

static void test_multiples(void **state)
{
    (void)state;
    static const struct {
        const char *number, *divisor;
        bool multiple;
    } cases[] = {
        {"0", "3", true},
        {"9", "3", true},
        {"10", "3", false},
        {"0.0075", "0.0001", true},
        {"0.00751", "0.0001", false},
        {"4.5", "1.5", true},
        {"35", "1.5", false},
        {"-9", "3", true},
        {"1e308", "0.5", true},
        {"1e308", "0.123456789", false},
        {"12391239123", "1e-8", true},
        {"1e1000000", "7", false},
        {"7e1000000", "7", true},
        {"1e-5", "1e-4", false},
        {"99999999999999999999999999999999999999", "9999999999999999999", true},
        {"99999999999999999999999999999999999998", "9999999999999999999", false},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        assert_int_equal(cases[i].multiple,
                         json_is_multiple(number(cases[i].number), number(cases[i].divisor)));
    }
}

/* ---- writing ---- */

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

/* ---- without memory ---- */

static void test_no_memory(void **state)
{
    (void)state;
    static const char start[] = "{\"esc\":\"\\u00e9\\n\",\"deep\":[[[[[1,2.5e3,null]]]]]";
    struct buf text;
    buf_init(&text, FILE_BYTES_MAX);
    buf_add_c(&text, start);
    for (int i = 0; i < 300; i++) {
        buf_printf(&text, ",\"m%d\":\"\\t%d\"", i, i);
    }
    buf_add_char(&text, '}');
    int rc = NG_EINTERNAL;
    for (long n = 0; rc != NG_OK; n++) {
        struct arena arena;
        struct json_error error;
        const struct ng_value *value = NULL;
        assert_true(n < 10000);
        arena_init(&arena, 0);
        alloc_fail_after(n);
        rc = json_parse(&arena, buf_str(&text), 200, &value, &error);
        alloc_fail_after(-1);
        assert_true(rc == NG_OK || (rc == NG_EINTERNAL && error.code == NG_EINTERNAL));
        arena_done(&arena);
    }
    /* An arena that is full says so the same way, wherever it happens. */
    for (size_t max = 16; max < 60000; max += 640) {
        struct arena arena;
        const struct ng_value *value = NULL;
        arena_init(&arena, max);
        rc = json_parse(&arena, buf_str(&text), 200, &value, NULL);
        assert_true(rc == NG_OK || rc == NG_EINTERNAL);
        arena_done(&arena);
    }
    assert_int_equal(NG_OK, rc);
    buf_done(&text);
}

static void counts_values(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {"", 1},
        {"1", 1},
        {"[1,2,3]", 4},
        {"{\"a\":[{}]}", 4},
        {"\"a,[{\"", 1},
        {"[\"\\\",[\"]", 2},
        {"\"unended [[[", 1},
        {"\"\\", 1},
        {"[\"a long string, [which] {has} all of it\",\"and \\\\\",1]", 4},
        {"[\"an escaped \\\" quote, in a longer one\",2,{}]", 5},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        assert_int_equal(json_count_values(ng_str_of(cases[i].text)), cases[i].count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_values),       cmocka_unit_test(test_suite),
        cmocka_unit_test(test_errors),         cmocka_unit_test(test_values),
        cmocka_unit_test(test_depth),          cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_equal),          cmocka_unit_test(test_compare),
        cmocka_unit_test(test_integers),       cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_multiples),      cmocka_unit_test(test_writer),
        cmocka_unit_test(test_writer_numbers), cmocka_unit_test(test_writer_misuse),
        cmocka_unit_test(test_writer_full),    cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
