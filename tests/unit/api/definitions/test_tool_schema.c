/* SPDX-License-Identifier: MIT */
/* test_tool_schema.c - a tool's schema as each vendor takes it: what a vendor knows stays, what
 * it does not know is lowered or told in the description, and nothing is sent twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "api/definitions/tool_schema.h"
#include "core/base/str.h"
#include "core/json/json.h"

/* Keywords that each vendor accepts; no others may be sent. */
static const char openai_knows[] =
    "type title description properties required additionalProperties items enum anyOf $ref "
    "$defs "
    "format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems "
    "uniqueItems minLength maxLength pattern default";
static const char gemini_knows[] =
    "type title description properties required additionalProperties items prefixItems enum "
    "anyOf oneOf $id $ref $defs $anchor format minimum maximum minItems maxItems";
/* Refused at the top of a tool's parameters. */
static const char top_refused[] = "anyOf oneOf allOf not enum const";

static void print(enum tool_schema_vendor vendor, const char *schema, struct buf *out)
{
    struct arena arena;
    struct json_error error;
    struct ng_writer writer;
    const struct ng_value *value = NULL;
    arena_init(&arena, 0);
    assert_int_equal(json_parse(&arena, ng_str_of(schema), 64, &value, &error), NG_OK);
    buf_init(out, 65536);
    json_writer_init(&writer, out);
    tool_schema_write(&writer, value, vendor);
    assert_int_equal(out->rc, NG_OK);
    arena_done(&arena);
}

static void check(enum tool_schema_vendor vendor, const char *schema, const char *wanted)
{
    struct buf out;
    print(vendor, schema, &out);
    assert_string_equal(buf_cstr(&out), wanted);
    buf_done(&out);
}

/* ---- one keyword each ---- */

#define TOP(property) "{\"type\":\"object\",\"properties\":{\"a\":" property "}}"

static void test_const(void **state)
{
    (void)state;
    static const char schema[] = TOP("{\"const\":\"x\"}");
    check(TOOL_SCHEMA_OPENAI, schema, TOP("{\"enum\":[\"x\"]}"));
    check(TOOL_SCHEMA_GEMINI, schema, TOP("{\"enum\":[\"x\"]}"));
    check(TOOL_SCHEMA_ANTHROPIC, schema, schema);
    /* Gemini's enums hold no booleans. */
    check(TOOL_SCHEMA_GEMINI, TOP("{\"const\":true}"),
          TOP("{\"description\":\"(const: true)\"}"));
}

static void test_enum(void **state)
{
    (void)state;
    static const char schema[] = TOP("{\"enum\":[1,null],\"description\":\"one\"}");
    check(TOOL_SCHEMA_OPENAI, schema, TOP("{\"enum\":[1,null],\"description\":\"one\"}"));
    check(TOOL_SCHEMA_GEMINI, schema, TOP("{\"description\":\"one (enum: [1,null])\"}"));
}

static void test_tuples(void **state)
{
    (void)state;
    static const char schema[] =
        TOP("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}");
    check(TOOL_SCHEMA_OPENAI, schema,
          TOP("{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\"}]},"
              "\"description\":\"(prefixItems: [{\\\"type\\\":\\\"string\\\"}]; "
              "items: false)\"}"));
    check(TOOL_SCHEMA_GEMINI, schema, schema);
    check(TOOL_SCHEMA_ANTHROPIC, schema, schema);
    /* An array must say what it holds. */
    check(TOOL_SCHEMA_OPENAI, TOP("{\"type\":\"array\"}"),
          TOP("{\"type\":\"array\",\"items\":{}}"));
}

static void test_references(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/definitions/d\",\"title\":"
        "\"A\"}},\"definitions\":{\"d\":{\"type\":\"string\"}}}";
    check(
        TOOL_SCHEMA_OPENAI, schema,
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d\",\"title\":\"A\"}},"
        "\"$defs\":{\"d\":{\"type\":\"string\"}}}");
    /* Nothing may stand beside Gemini's references. */
    check(TOOL_SCHEMA_GEMINI, schema,
          "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d\"}},"
          "\"$defs\":{\"d\":{\"type\":\"string\"}}}");
}

/* Anchors, identifiers and pointers become "#/$defs/...", or what they mean stands there. */
static void test_places(void **state)
{
    (void)state;
#define WHERE(ref)                                                                             \
    "{\"$id\":\"urn:x\",\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"" ref            \
    "\"}},\"$defs\":{\"d\":{\"$anchor\":\"here\",\"type\":\"string\"}}}"
    static const char *const same[] = {WHERE("#here"), WHERE("#/$defs/d"), WHERE("urn:x#here"),
                                       WHERE("urn:x#/$defs/d")};
    for (size_t i = 0; i < NG_COUNT(same); i++) {
        check(TOOL_SCHEMA_OPENAI, same[i],
              "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d\"}},"
              "\"$defs\":{\"d\":{\"type\":\"string\",\"description\":"
              "\"($anchor: \\\"here\\\")\"}}}");
        check(TOOL_SCHEMA_ANTHROPIC, same[i],
              "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d\"}},"
              "\"$defs\":{\"d\":{\"$anchor\":\"here\",\"type\":\"string\"}}}");
    }
    static const char elsewhere[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"prefixItems\":["
        "{\"type\":\"number\"}]},\"b\":{\"$ref\":\"#/properties/a/prefixItems/0\"}}}";
    check(TOOL_SCHEMA_GEMINI, elsewhere,
          "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"prefixItems\":["
          "{\"type\":\"number\"}]},\"b\":{\"anyOf\":[{\"type\":\"number\"}]}}}");
    /* In itself: to a depth, then in words. */
    struct buf out;
    print(TOOL_SCHEMA_OPENAI, TOP("{\"items\":{\"$ref\":\"#/properties/a\"}}"), &out);
    assert_non_null(strstr(buf_cstr(&out), "($ref: "));
    assert_null(strstr(buf_cstr(&out), "\"$ref\""));
    buf_done(&out);
    check(TOOL_SCHEMA_OPENAI, TOP("{\"$ref\":\"#\"}"), TOP("{\"$ref\":\"#\"}"));
}

static void test_names(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\":\"object\",\"required\":[\"a\",\"b[]\"],\"properties\":{\"a\":{},\"b[]\":{"
        "\"type\":\"string\"}}}";
    check(TOOL_SCHEMA_OPENAI, schema, schema);
    check(TOOL_SCHEMA_ANTHROPIC, schema,
          "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{}},\"description\":"
          "\"(required: \\\"b[]\\\"; b[]: {\\\"type\\\":\\\"string\\\"})\"}");
}

static void test_all_of(void **state)
{
    (void)state;
    check(TOOL_SCHEMA_OPENAI, TOP("{\"allOf\":[{\"type\":\"string\"}]}"),
          TOP("{\"anyOf\":[{\"type\":\"string\"}]}"));
    check(TOOL_SCHEMA_GEMINI, TOP("{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}"),
          TOP("{\"description\":\"(allOf: [{\\\"minimum\\\":1},{\\\"maximum\\\":2}])\"}"));
    check(TOOL_SCHEMA_ANTHROPIC, TOP("{\"allOf\":[{\"minimum\":1}]}"),
          TOP("{\"allOf\":[{\"minimum\":1}]}"));
}

static void test_formats(void **state)
{
    (void)state;
    static const char schema[] =
        TOP("{\"type\":\"string\",\"format\":\"date-time\",\"minLength\":3}");
    check(TOOL_SCHEMA_OPENAI, schema, schema);
    check(TOOL_SCHEMA_GEMINI, schema,
          TOP("{\"type\":\"string\",\"format\":\"date-time\",\"description\":\"(minLength: "
              "3)\"}"));
}

static void test_top(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\":\"object\",\"$schema\":\"x\",\"oneOf\":[{\"required\":[\"a\"]}]}";
    static const char lowered[] =
        "{\"type\":\"object\",\"description\":\"(oneOf: [{\\\"required\\\":[\\\"a\\\"]}])\"}";
    check(TOOL_SCHEMA_OPENAI, schema, lowered);
    check(TOOL_SCHEMA_GEMINI, schema, lowered);
    check(TOOL_SCHEMA_ANTHROPIC, schema, lowered);
}

/* ---- everything at once ---- */

static void only_known(const struct ng_value *schema, const char *known, bool top)
{
    assert_int_equal(schema->type, NG_TYPE_OBJECT);
    for (const struct ng_value *one = schema->first; one != NULL; one = one->next) {
        assert_true(known == NULL || str_in_words(one->key, known));
        assert_false(top && str_in_words(one->key, top_refused));
        if (str_in_words(one->key, "properties $defs")) {
            for (const struct ng_value *each = one->first; each != NULL; each = each->next) {
                only_known(each, known, false);
            }
        } else if (str_in_words(one->key, "anyOf allOf oneOf prefixItems")) {
            for (const struct ng_value *each = one->first; each != NULL; each = each->next) {
                only_known(each, known, false);
            }
        } else if (str_is(one->key, "items") && one->type == NG_TYPE_OBJECT) {
            only_known(one, known, false);
        }
    }
}

static void test_only_what_is_known(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"$schema\":\"s\",\"$id\":\"i\",\"$comment\":\"c\",\"type\":\"object\",\"anyOf\":[{}]"
        ","
        "\"allOf\":[{\"if\":{},\"then\":{}}],\"oneOf\":[{}],\"not\":{},\"enum\":[{}],"
        "\"minProperties\":1,\"propertyNames\":{},\"patternProperties\":{\"x\":{}},"
        "\"dependentRequired\":{\"a\":[\"b\"]},\"x-vendor\":1,\"properties\":{"
        "\"a\":{\"const\":\"x\",\"enum\":[\"x\",\"y\"]},"
        "\"b\":{\"anyOf\":[{\"type\":\"string\"}],\"oneOf\":[{}],\"allOf\":[{}]},"
        "\"c\":{\"oneOf\":[{\"const\":1}],\"allOf\":[{}]},"
        "\"d\":{\"type\":\"array\",\"prefixItems\":[{\"const\":2}],\"items\":{\"pattern\":"
        "\"x\"},"
        "\"contains\":{},\"minContains\":1,\"uniqueItems\":true},"
        "\"e\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"multipleOf\":2,\"examples\":[4]},"
        "\"f\":{\"$ref\":\"#/$defs/g\",\"unevaluatedProperties\":false}},"
        "\"$defs\":{\"g\":{\"not\":{},\"contentEncoding\":\"base64\"}}}";
    static const struct {
        enum tool_schema_vendor vendor;
        const char *known;
    } vendors[] = {
        {TOOL_SCHEMA_OPENAI, openai_knows},
        {TOOL_SCHEMA_GEMINI, gemini_knows},
        {TOOL_SCHEMA_ANTHROPIC, NULL},
    };
    for (size_t i = 0; i < NG_COUNT(vendors); i++) {
        struct buf out;
        struct arena arena;
        struct json_error error;
        const struct ng_value *value = NULL;
        arena_init(&arena, 0);
        print(vendors[i].vendor, schema, &out);
        /* A member that came twice is refused by the parser. */
        assert_int_equal(json_parse(&arena, buf_str(&out), 64, &value, &error), NG_OK);
        if (vendors[i].known != NULL) {
            only_known(value, vendors[i].known, true);
        }
        buf_done(&out);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_const),  cmocka_unit_test(test_enum),
        cmocka_unit_test(test_tuples), cmocka_unit_test(test_references),
        cmocka_unit_test(test_all_of), cmocka_unit_test(test_formats),
        cmocka_unit_test(test_top),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_only_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
