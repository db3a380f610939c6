/* SPDX-License-Identifier: MIT */
/* test_schema_fit.c - values that are refused only for how they are written: what becomes of
 * them, and what stays as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/schema/schema.h"

#define DEPTH 6

static const struct ng_str ignored[] = {{"sessionId", 9}, {"action", 6}};
static const struct schema_leniency leniency = {
    .depth = DEPTH, .ignored = ignored, .ignored_count = NG_COUNT(ignored)};

/* Fits an input that the schema refuses; returns the JSON text of the result, to be freed. */
static char *fitted(const char *schema_text, const char *input)
{
    struct arena arena;
    struct schema *schema = NULL;
    struct json_error error;
    struct violations found;
    struct buf out;
    char why[256];
    const struct ng_value *value = NULL;
    arena_init(&arena, 0);
    buf_init(&out, 4096);
    assert_int_equal(schema_compile(ng_str_of(schema_text), &schema, why, sizeof(why)), NG_OK);
    assert_int_equal(json_parse_kept(&arena, ng_str_of(input), 64, &value, &error), NG_OK);
    assert_int_equal(schema_check(schema, value, &arena, &found), NG_EINVAL);
    bool changed = schema_fit(schema, (struct ng_value *)(uintptr_t)value, &arena, &leniency);
    assert_int_equal(json_print(&out, value), NG_OK);
    assert_int_equal(changed, strcmp(input, buf_cstr(&out)) != 0);
    (void)buf_cstr(&out);
    size_t len = 0;
    char *text = buf_take(&out, &len);
    schema_free(schema);
    arena_done(&arena);
    return text;
}

static void becomes(const char *schema, const char *input, const char *expected)
{
    char *text = fitted(schema, input);
    if (strcmp(text, expected) != 0) {
        print_error("%s by %s\n", input, schema);
    }
    assert_string_equal(text, expected);
    free(text);
}

static void stays(const char *schema, const char *input)
{
    becomes(schema, input, input);
}

/* A member "a" of this schema. */
#define OF(schema) "{\"properties\":{\"a\":" schema "}}"
#define LIST "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define NUMBERS "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"

#define CLOSED "{\"properties\":{\"a\":{\"type\":\"string\"}},\"additionalProperties\":false}"
#define IF                                                                                     \
    "{\"properties\":{\"n\":{\"type\":\"integer\"}},\"if\":{\"properties\":{\"n\":{\"const\":" \
    "1}}},"                                                                                    \
    "\"then\":{\"properties\":{\"v\":{\"type\":\"boolean\"},\"w\":{\"type\":\"string\"}}},"    \
    "\"else\":{\"properties\":{\"m\":{\"type\":\"integer\"}}}}"

static void test_null_counts_as_not_given(void **state)
{
    static const char object[] =
        "{\"type\":\"object\",\"required\":[\"must\"],\"properties\":{\"must\":{\"type\":"
        "\"string\"},\"a\":{\"type\":\"string\"},\"any\":{},\"n\":{\"anyOf\":[{\"type\":"
        "\"null\"},{\"type\":\"integer\"}]},\"in\":{\"$ref\":\"#/$defs/"
        "in\"},\"list\":{\"items\":{\"$ref\":\"#/$defs/in\"}}},"
        "\"$defs\":{\"in\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}}"
        "}";
    (void)state;
    becomes(object, "{\"must\":\"m\",\"a\":null}", "{\"must\":\"m\"}");
    becomes(object, "{\"a\":null,\"must\":null,\"any\":null,\"n\":null,\"other\":null}",
            "{\"must\":null,\"any\":null,\"n\":null,\"other\":null}");
    becomes(object,
            "{\"must\":\"\",\"in\":{\"x\":null,\"y\":1},\"list\":[{\"x\":1},{\"x\":null}]}",
            "{\"must\":\"\",\"in\":{\"y\":1},\"list\":[{\"x\":1},{}]}");
    becomes("{\"allOf\":[{\"properties\":{\"a\":{\"enum\":[1]}}}]}", "{\"a\":null,\"b\":[]}",
            "{\"b\":[]}");
    /* In a map, but where every name is refused. */
    becomes(OF("{\"additionalProperties\":{\"type\":\"string\"}}"), "{\"a\":{\"x\":null}}",
            "{\"a\":{}}");
    stays(OF("{\"additionalProperties\":false}"), "{\"a\":{\"x\":null}}");
    stays(OF("{\"additionalProperties\":{\"type\":\"string\"},\"required\":[\"x\"]}"),
          "{\"a\":{\"x\":null}}");
    becomes(
        "{\"anyOf\":[{\"required\":[\"c\"]},{\"properties\":{\"a\":{\"type\":\"string\"}}}]}",
        "{\"a\":null}", "{}");
}

static void test_texts_of_values(void **state)
{
    static const char *const cases[][3] = {
        {OF(LIST), "{\"a\":\"[\\\"c1\\\"]\"}", "{\"a\":[\"c1\"]}"},
        {OF(LIST), "{\"a\":\" [ ]\\n\"}", "{\"a\":[]}"},
        {OF(NUMBERS), "{\"a\":\"[\\\"1\\\",2]\"}", "{\"a\":[1,2]}"},
        {OF(NUMBERS), "{\"a\":[\"1\",2]}", "{\"a\":[1,2]}"},
        {OF("{\"type\":\"object\"}"), "{\"a\":\"{\\\"b\\\":null}\"}", "{\"a\":{\"b\":null}}"},
        {OF("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}"),
         "{\"a\":\"{\\\"n\\\":\\\"5\\\"}\"}", "{\"a\":{\"n\":5}}"},
        {OF("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}"),
         "{\"a\":{\"x\":\"true\",\"y\":\"false\"}}", "{\"a\":{\"x\":true,\"y\":false}}"},
        {OF("{\"type\":\"object\",\"patternProperties\":{\"^n\":{\"type\":\"number\"}}}"),
         "{\"a\":{\"n1\":\"1e3\"}}", "{\"a\":{\"n1\":1e3}}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"5\"}", "{\"a\":5}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"-5\"}", "{\"a\":-5}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"2.0\"}", "{\"a\":2.0}"},
        {OF("{\"type\":\"integer\",\"maximum\":9}"), "{\"a\":\"5000\"}", "{\"a\":5000}"},
        {OF("{\"type\":\"number\"}"), "{\"a\":\"1.5\"}", "{\"a\":1.5}"},
        {OF("{\"type\":\"boolean\"}"), "{\"a\":\"true\"}", "{\"a\":true}"},
        {OF("{\"enum\":[1,2]}"), "{\"a\":\"2\"}", "{\"a\":2}"},
        {OF("{\"const\":true}"), "{\"a\":\"true\"}", "{\"a\":true}"},
        {OF("{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}"), "{\"a\":\"5\"}",
         "{\"a\":5}"},
        {OF("{\"anyOf\":[" LIST ",{\"type\":\"object\"}]}"), "{\"a\":\"{}\"}", "{\"a\":{}}"},
        {"{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":" OF(LIST) "}}", "{\"a\":\"[]\"}",
         "{\"a\":[]}"},
        {"{\"allOf\":[" OF(LIST) ",{\"properties\":{\"b\":{\"type\":\"integer\"}}}]}",
         "{\"a\":\"[]\",\"b\":\"1\"}", "{\"a\":[],\"b\":1}"},
        /* The branch that the other members select. */
        {"{\"oneOf\":[{\"properties\":{\"m\":{\"const\":\"x\"},\"v\":{\"type\":\"boolean\"}}},"
         "{\"properties\":{\"m\":{\"const\":\"y\"},\"v\":{\"type\":\"integer\"}}}]}",
         "{\"m\":\"y\",\"v\":\"3\"}", "{\"m\":\"y\",\"v\":3}"},
        {"{\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":\"boolean\"}}",
         "[\"1\",\"true\"]", "[1,true]"},
        /* if and dependentSchemas, also where the deciding member was sent as text. */
        {IF, "{\"n\":\"1\",\"m\":\"2\",\"v\":\"true\",\"w\":null}",
         "{\"n\":1,\"m\":\"2\",\"v\":true}"},
        {IF, "{\"n\":2,\"m\":\"2\",\"v\":\"true\",\"w\":null}",
         "{\"n\":2,\"m\":2,\"v\":\"true\",\"w\":null}"},
        {"{\"dependentSchemas\":{\"n\":" OF("{\"type\":\"integer\"}") ",\"m\":" OF(
             "{\"type\":\"boolean\"}") "}}",
         "{\"n\":0,\"a\":\"5\"}", "{\"n\":0,\"a\":5}"},
        {"{\"allOf\":[" OF(
             "{\"type\":\"string\"}") "],\"required\":[\"c\"],"
                                      "\"unevaluatedProperties\":{\"type\":\"integer\"}}",
         "{\"a\":\"5\",\"b\":\"5\",\"d\":null}", "{\"a\":\"5\",\"b\":5}"},
        {"{\"allOf\":[{\"additionalProperties\":{\"type\":\"string\"}}],"
         "\"properties\":{\"a\":{\"type\":\"integer\"}},"
         "\"unevaluatedProperties\":{\"type\":\"integer\"}}",
         "{\"a\":\"5\",\"b\":\"5\"}", "{\"a\":5,\"b\":\"5\"}"},
        /* Another violation in the same value does not prevent decoding. */
        {"{\"required\":[\"b\"],\"properties\":{\"a\":{\"type\":\"integer\"}}}",
         "{\"a\":\"5\"}", "{\"a\":5}"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        becomes(cases[i][0], cases[i][1], cases[i][2]);
    }
}

static void test_texts_that_stay(void **state)
{
    static const char *const cases[][2] = {
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"abc\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"1.5\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\" 5\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"5 \"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"05\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"+5\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"0x10\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"true\"}"},
        {OF("{\"type\":\"integer\"}"), "{\"a\":\"null\"}"},
        {OF("{\"type\":\"number\"}"), "{\"a\":\"NaN\"}"},
        {OF("{\"type\":\"boolean\"}"), "{\"a\":\"1\"}"},
        {OF("{\"type\":\"boolean\"}"), "{\"a\":\"True\"}"},
        {OF("{\"type\":\"boolean\"}"), "{\"a\":\"yes\"}"},
        {OF(LIST), "{\"a\":\"c1\"}"},
        {OF(LIST), "{\"a\":\"[\\\"c1\\\"\"}"},
        {OF(LIST), "{\"a\":\"[1]\"}"},
        {OF(LIST), "{\"a\":\"{}\"}"},
        {OF(LIST), "{\"a\":\"'c1'\"}"},
        /* A text may be meant. */
        {OF("{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"maxLength\":1}]}"),
         "{\"a\":\"55\"}"},
        {OF("{\"enum\":[1,\"one\"]}"), "{\"a\":\"1\"}"},
        {"{\"required\":[\"b\"],\"properties\":{\"a\":{}}}", "{\"a\":\"5\"}"},
        {"{\"required\":[\"b\"]}", "{\"a\":\"5\"}"},
        /* Deeper than the limit, with what is around it. */
        {OF("{\"type\":\"array\"}"), "{\"a\":\"[[[[[[]]]]]]\"}"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        stays(cases[i][0], cases[i][1]);
    }
    becomes(OF("{\"type\":\"array\"}"), "{\"a\":\"[[[[[]]]]]\"}", "{\"a\":[[[[[]]]]]}");
}

static void test_members_that_clients_add(void **state)
{
    static const char closed[] =
        "{\"properties\":{\"a\":{\"type\":\"string\"}},\"additionalProperties\":false}";
    static const char *const roots[] = {
        "{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":" CLOSED "}}",
        "{\"allOf\":[" OF("{}") "," CLOSED "]}",
        "{\"anyOf\":[" CLOSED ",{\"$ref\":\"#/$defs/x\"}],\"$defs\":{\"x\":" CLOSED "}}",
        "{\"oneOf\":[" CLOSED "]}",
    };
    static const char *const open[] = {
        "{\"allOf\":[" OF("{}") "],\"required\":[\"a\"]}",
        "{\"allOf\":[{\"additionalProperties\":{}}],\"required\":[\"a\"],"
        "\"unevaluatedProperties\":false}",
        "{\"anyOf\":[" CLOSED "," OF("{}") "],\"required\":[\"a\"]}",
        "{\"allOf\":[" CLOSED ",{\"properties\":{\"sessionId\":{}}}]}",
        "{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}],\"required\":[\"a\"]}",
    };
    (void)state;
    becomes(closed, "{\"sessionId\":1,\"a\":\"x\",\"action\":{}}", "{\"a\":\"x\"}");
    becomes(closed, "{\"action\":1,\"actions\":2}", "{\"actions\":2}");
    stays(closed, "{\"a\":{\"action\":1}}");
    for (size_t i = 0; i < NG_COUNT(roots); i++) {
        becomes(roots[i], "{\"sessionId\":1,\"a\":\"x\"}", "{\"a\":\"x\"}");
    }
    for (size_t i = 0; i < NG_COUNT(open); i++) {
        stays(open[i], "{\"sessionId\":1}");
    }
    /* One that the tool has, or takes as any other, is its own. */
    stays("{\"properties\":{\"action\":{\"type\":\"string\"}},\"additionalProperties\":false}",
          "{\"action\":1}");
    stays("{\"required\":[\"a\"]}", "{\"action\":1}");
    stays(
        "{\"anyOf\":[{\"properties\":{\"action\":{\"type\":\"string\"}}}],\"required\":[\"a\"],"
        "\"unevaluatedProperties\":false}",
        "{\"action\":\"x\"}");
    becomes("{\"unevaluatedProperties\":false}", "{\"action\":1}", "{}");
}

static void test_no_memory(void **state)
{
    static const char text[] =
        "{\"properties\":{\"a\":" LIST ",\"b\":{\"oneOf\":[{\"type\":\"object\",\"properties\":"
        "{\"n\":{\"type\":\"integer\"}}}]}}}";
    struct schema *schema = NULL;
    char why[256];
    (void)state;
    assert_int_equal(schema_compile(ng_str_of(text), &schema, why, sizeof(why)), NG_OK);
    for (int at = 0; at < 40; at++) {
        struct arena arena;
        struct json_error error;
        const struct ng_value *value = NULL;
        arena_init(&arena, 0);
        assert_int_equal(json_parse(&arena,
                                    ng_str_of("{\"a\":\"[\\\"c\\\"]\",\"b\":{\"n\":\"1\"}}"),
                                    64, &value, &error),
                         NG_OK);
        alloc_fail_after(at);
        (void)schema_fit(schema, (struct ng_value *)(uintptr_t)value, &arena, &leniency);
        alloc_fail_after(-1);
        arena_done(&arena);
    }
    schema_free(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null_counts_as_not_given),
        cmocka_unit_test(test_texts_of_values),
        cmocka_unit_test(test_texts_that_stay),
        cmocka_unit_test(test_members_that_clients_add),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
