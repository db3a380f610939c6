/* SPDX-License-Identifier: MIT */
/* test_command_args.c - KEY=VALUE words by the types that a tool's schema allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/command/command_args.h"
#include "core/base/str.h"

static const char schema_text[] =
    "{\"type\":\"object\",\"$defs\":{\"place\":{\"type\":\"object\"},"
    "\"deep\":{\"$ref\":\"#/$defs/deep\"}},\"properties\":{"
    "\"text\":{\"type\":\"string\"},"
    "\"count\":{\"type\":\"integer\"},"
    "\"ratio\":{\"type\":\"number\"},"
    "\"flag\":{\"type\":\"boolean\"},"
    "\"nothing\":{\"type\":\"null\"},"
    "\"place\":{\"$ref\":\"#/$defs/place\"},"
    "\"lost\":{\"$ref\":\"#/$defs/none/at/all\"},"
    "\"other\":{\"$ref\":\"http://x\"},"
    "\"deep\":{\"$ref\":\"#/$defs/deep\"},"
    "\"names\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"numbers\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"
    "\"either\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"boolean\"}]},"
    "\"list\":{\"type\":[\"integer\",\"null\"]},"
    "\"one\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]},"
    "\"choice\":{\"enum\":[\"a\",1,true,null,{},[]]},"
    "\"fixed\":{\"const\":5},"
    "\"any\":{}}}";

static void expect_args(const char *word, int rc, const char *wanted)
{
    struct arena arena;
    const struct ng_value *schema = NULL;
    struct json_error json;
    struct buf out;
    struct buf error;
    arena_init(&arena, 1024 * 1024);
    buf_init(&out, 65536);
    buf_init(&error, 65536);
    assert_int_equal(
        json_parse(&arena, ng_str_of(schema_text), JSON_DEPTH_DEFAULT, &schema, &json), NG_OK);
    int got = command_args_build(schema, &word, 1, &out, &error);
    const char *text = rc == NG_OK ? buf_cstr(&out) : buf_cstr(&error);
    if (got != rc) {
        fail_msg("%s: %d, %s%s", word, got, buf_cstr(&out), buf_cstr(&error));
    }
    assert_string_equal(text, wanted);
    buf_done(&out);
    buf_done(&error);
    arena_done(&arena);
}

static void typed_words(void **state)
{
    static const struct {
        const char *word, *wanted;
    } cases[] = {
        {"text=5", "{\"text\":\"5\"}"},
        {"text=a=b\"", "{\"text\":\"a=b\\\"\"}"},
        {"text=", "{\"text\":\"\"}"},
        {"count=5", "{\"count\":5}"},
        {"ratio=0.5", "{\"ratio\":0.5}"},
        {"ratio=5", "{\"ratio\":5}"},
        {"flag=true", "{\"flag\":true}"},
        {"nothing=null", "{\"nothing\":null}"},
        {"place={\"a\":1}", "{\"place\":{\"a\":1}}"},
        {"names=a,b", "{\"names\":[\"a\",\"b\"]}"},
        {"names=[\"a\"]", "{\"names\":[\"a\"]}"},
        {"names=", "{\"names\":[]}"},
        {"names=a,[b", "{\"names\":[\"a\",\"[b\"]}"},
        {"numbers=1,2", "{\"numbers\":[1,2]}"},
        {"either=false", "{\"either\":false}"},
        {"list=null", "{\"list\":null}"},
        {"one=5", "{\"one\":5}"},
        {"one=five", "{\"one\":\"five\"}"},
        {"choice=a", "{\"choice\":\"a\"}"},
        {"choice=1", "{\"choice\":1}"},
        {"choice={}", "{\"choice\":{}}"},
        {"fixed=5", "{\"fixed\":5}"},
        {"any=5", "{\"any\":5}"},
        {"any=five", "{\"any\":\"five\"}"},
        /* A text may be meant, as over REST. */
        {"text=[\"c1\"", "{\"text\":\"[\\\"c1\\\"\"}"},
        {"one={a", "{\"one\":\"{a\"}"},
        {"any=[a", "{\"any\":\"[a\"}"},
        {"unknown=true", "{\"unknown\":true}"},
        {"lost=5", "{\"lost\":5}"},
        {"other=x", "{\"other\":\"x\"}"},
        {"deep=x", "{\"deep\":\"x\"}"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        expect_args(cases[i].word, NG_OK, cases[i].wanted);
    }
}

static void wrong_words(void **state)
{
    static const struct {
        const char *word, *wanted;
    } cases[] = {
        {"count=five", "\"count\" is an integer; \"five\" is not"},
        {"count=0.5", "\"count\" is an integer; \"0.5\" is not"},
        {"ratio=half", "\"ratio\" is a number; \"half\" is not"},
        {"flag=yes", "\"flag\" is true or false; \"yes\" is not"},
        {"nothing=0", "\"nothing\" is null; \"0\" is not"},
        {"place=here", "\"place\" is a JSON object; \"here\" is not"},
        {"numbers=1,b", "\"numbers\" is an integer; \"b\" is not"},
        {"names=[\"c1\"", "\"names\" is a JSON array, or words separated by commas; "
                          "\"[\"c1\"\" is not: line 1, column 6: the text ends too early"},
        {"names={a", "\"names\" is a JSON array, or words separated by commas; \"{a\" is not: "
                     "line 1, column 2: a value or a sign of punctuation is expected, found a"},
        {"place={\"a\":1", "\"place\" is a JSON object; \"{\"a\":1\" is not: line 1, column 7: "
                           "the text ends too early"},
        {"place=[1]", "\"place\" is a JSON object; \"[1]\" is not"},
        {"either=x", "\"either\" is an integer; \"x\" is not"},
        {"word", "\"word\" is neither KEY=VALUE nor a JSON object"},
        {"=x", "\"=x\" is neither KEY=VALUE nor a JSON object"},
        {"text=\xff", "argument 1 is not UTF-8"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        expect_args(cases[i].word, NG_EINVAL, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typed_words),
        cmocka_unit_test(wrong_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
