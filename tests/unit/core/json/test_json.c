/* SPDX-License-Identifier: MIT */
/*
 * test_json.c - parsing and values.
 *
 * The parsing suite leaves these files open; what is chosen here:
 *   accepted, digits kept (numbers of any length and exponent are JSON):
 *     i_number_double_huge_neg_exp      i_number_huge_exp          i_number_neg_int_huge_exp
 *     i_number_pos_double_huge_exp      i_number_real_neg_overflow i_number_real_pos_overflow
 *     i_number_real_underflow           i_number_too_big_neg_int   i_number_too_big_pos_int
 *     i_number_very_big_negative_int
 *   refused, an escape that is half of a surrogate pair in a name:
 *     i_object_key_lone_2nd_surrogate
 *   accepted, the same in a value:                   i_string_1st_surrogate_but_2nd_missing
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
#include "test_json_rig.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/json/json_number.h"

#define SUITE NOTEGATE_SHARED_DATA "/json-parsing-suite/test_parsing"
#define FILE_BYTES_MAX ((size_t)4 * 1024 * 1024)

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
    if (name[0] == 'i') {
        return strncmp(name, "i_number_", 9) == 0 ||
               (strncmp(name, "i_string_", 9) == 0 && strstr(name, "surrogate") != NULL &&
                strstr(name, "UTF8") == NULL);
    }
    return name[0] == 'y' && strstr(name, "duplicated_key") == NULL;
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
        /* The printed text has the same value. */
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
        assert_true(utf8_valid(ng_str_of(error.message)));
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
        return;
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
        {"{\"\\ud800\":1}", 1, 3, "the escape \\ud800 is half of a surrogate pair"},
        {"{\"\\\\\\ud83d\\ude00\\udc00\":1}", 1, 17,
         "the escape \\udc00 is half of a surrogate pair"},
        {"[\"\xed\xa0\x80\"]", 1, 3, "the text is not valid UTF-8"},
        {"\xef\xbb\xbf{}", 1, 1, "the text begins with a byte order mark"},
        {"[\f]", 1, 2, "the control character 0x0c is not allowed here"},
        {"1 2", 1, 3, "there is text after the JSON value, found 2"},
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

static void test_lone_surrogates(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"[\"a\\ud83db\"]", "a\xef\xbf\xbd"
                            "b"},
        {"[\"\\uDC00\"]", "\xef\xbf\xbd"},
        {"[\"\\ud83d\\ud83d\\ude00\"]", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"[\"\\ud83d\\n\"]", "\xef\xbf\xbd\n"},
        {"[\"\\ud83d\\u0041\"]", "\xef\xbf\xbd"
                                 "A"},
        {"[\"\\\\ud83d\"]", "\\ud83d"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct arena arena;
        const struct ng_value *value = NULL;
        struct json_error error;
        struct ng_str text = ng_str_of(cases[i].text);
        arena_init(&arena, 0);
        assert_int_equal(NG_OK, json_parse(&arena, text, 4, &value, &error));
        assert_true(str_is(value->first->text, cases[i].wanted));
        /* The text of the container can be parsed where nothing is replaced. */
        int kept = json_parse_kept(&arena, text, 4, &value, &error);
        assert_int_equal(i + 1 == NG_COUNT(cases) ? NG_OK : NG_EJSON, kept);
        arena_done(&arena);
    }
}

/* error.partial has the members that come before a syntax error; with other errors, all. */
static void test_partial(void **state)
{
    static const struct {
        const char *text, *wanted; /* NULL: nothing */
    } cases[] = {
        {"{\"a\":1,\"b\":[2,{\"c\":nul", "{\"a\":1,\"b\":[2,{}]}"},
        {"{\"a\":1,\"b\":\"\\x\"}", "{\"a\":1}"},
        {"{\"a\":1,\"b\":\"\xff\"}", "{\"a\":1}"},
        {"{\"a\":1\xff}", "{}"},
        {"{\"a\":1,\"b\":\f2}", "{\"a\":1}"},
        {"{\"a\":1,\"a\":2,\"b\":3}", "{\"a\":1,\"a\":2,\"b\":3}"},
        {"{\"a\":{\"\\ud800\":1},\"b\":3}", "{\"a\":{\"\xef\xbf\xbd\":1},\"b\":3}"},
        {"\xef\xbb\xbf{}", NULL},
        {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct arena arena;
        struct buf printed;
        const struct ng_value *value = NULL;
        struct json_error error;
        arena_init(&arena, 0);
        buf_init(&printed, 1024);
        assert_int_equal(NG_EJSON,
                         json_parse(&arena, ng_str_of(cases[i].text), 8, &value, &error));
        assert_null(value);
        if (cases[i].wanted == NULL) {
            assert_null(error.partial);
        } else {
            assert_int_equal(NG_OK, json_print(&printed, error.partial));
            assert_string_equal(buf_cstr(&printed), cases[i].wanted);
        }
        buf_done(&printed);
        arena_done(&arena);
    }
}

static void test_drop_nulls(void **state)
{
    struct arena arena;
    struct buf printed;
    struct json_error error;
    const struct ng_value *value = NULL;
    (void)state;
    arena_init(&arena, 0);
    buf_init(&printed, 1024);
    assert_int_equal(NG_OK, json_parse(&arena,
                                       ng_str_of("{\"a\":null,\"b\":[null,{\"c\":null}],"
                                                 "\"d\":{\"e\":1}}"),
                                       8, &value, &error));
    struct ng_value *tree = (struct ng_value *)(uintptr_t)value;
    assert_true(json_drop_nulls(tree));
    assert_false(json_drop_nulls(tree));
    assert_null(value->text.data);
    assert_int_equal(NG_OK, json_print(&printed, value));
    assert_string_equal(buf_cstr(&printed), "{\"b\":[null,{}],\"d\":{\"e\":1}}");
    buf_done(&printed);
    arena_done(&arena);
}

static void test_values(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 0);
    char text[] = " {\"s\":\"a\\u0000\\n\\ud83d\\ude00\",\"n\":-1.50e+2,\"l\":[true,false,null,"
                  "{},\"s\"]} ";
    const struct ng_value *value = NULL;
    assert_int_equal(NG_OK, json_parse(&arena, ng_str_of(text), 3, &value, NULL));
    memset(text, 'x', sizeof(text)); /* the tree keeps nothing of the text */
    assert_int_equal(NG_TYPE_OBJECT, value->type);
    assert_int_equal(3, value->count);
    assert_true(str_equal(json_get(value, "s")->text, str_make("a\0\n\xf0\x9f\x98\x80", 7)));
    assert_true(str_is(json_get(value, "n")->text, "-1.50e+2"));
    const struct ng_value *list = json_get(value, "l");
    assert_int_equal(5, list->count);
    assert_int_equal(NG_TYPE_TRUE, list->first->type);
    assert_int_equal(NG_TYPE_FALSE, list->first->next->type);
    assert_int_equal(NG_TYPE_NULL, list->first->next->next->type);
    assert_null(json_get(value, "x"));
    assert_null(json_get(list, "x"));
    assert_null(json_get(NULL, "x"));
    assert_true(json_has_text(list, ng_str_of("s")));
    assert_false(json_has_text(list, ng_str_of("x")));
    assert_false(json_has_text(value, json_get(value, "s")->text)); /* no array */
    assert_false(json_has_text(NULL, ng_str_of("s")));
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

static size_t count_in_pieces(struct ng_str text, size_t size)
{
    struct json_counter counter = {0};
    for (size_t at = 0; at < text.len; at += size) {
        size_t len = text.len - at < size ? text.len - at : size;
        json_count_piece(&counter, (struct ng_str){text.data + at, len});
    }
    return json_counted_values(&counter);
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
        for (size_t size = 1; size <= 64; size++) {
            assert_int_equal(count_in_pieces(ng_str_of(cases[i].text), size), cases[i].count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_values),     cmocka_unit_test(test_suite),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_lone_surrogates),
        cmocka_unit_test(test_partial),      cmocka_unit_test(test_drop_nulls),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_depth),
        cmocka_unit_test(test_many_members), cmocka_unit_test(test_equal),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
