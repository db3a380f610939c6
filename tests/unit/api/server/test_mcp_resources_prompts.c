/* SPDX-License-Identifier: MIT */
/* test_mcp_resources_prompts.c - prompts, and completion of arguments.
 */
#include "test_mcp_resources_rig.h"

#include <stdlib.h>
#include <string.h>

/* ---- prompts ---- */

static void prompts_are_listed(void **state)
{
    (void)state;
    expect(
        REQUEST("prompts/list", ""),
        "{\"name\":\"json\",\"description\":\"An object.\",\"arguments\":[{\"name\":\"word\","
        "\"required\":true},{\"name\":\"broken\",\"description\":\"Breaks it.\","
        "\"required\":false}]},{\"name\":\"parts\",\"title\":\"Parts\",\"description\":"
        "\"A text and an image.\",\"arguments\":[]}");
}

static void prompts_answer(void **state)
{
    (void)state;
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"word\":\"red\"}"),
           "\"result\":{\"description\":\"red\",\"messages\":[]}");
    expect(REQUEST("prompts/get", "\"name\":\"parts\""),
           "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"{}\"}},"
           "{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"AQID\",\"mimeType\":"
           "\"image/png\"}}]");
    expect(REQUEST("prompts/get",
                   "\"name\":\"json\",\"arguments\":{\"word\":\"red\",\"broken\":"
                   "\"1\"}"),
           "-32603");
    expect(REQUEST("prompts/get", "\"name\":\"nothing\""), "-32603");
}

static void prompt_arguments_are_checked(void **state)
{
    (void)state;
    expect(REQUEST("prompts/get", "\"name\":\"json\""), "needs the argument `word`");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"word\":1}"),
           "`word` of `json` must be a string");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"word\":\"green\"}"),
           "must be one of [");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"wort\":\"red\"}"),
           "has no argument `wort`");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":[]"), "-32602");
    expect(REQUEST("prompts/get", "\"name\":\"none\""), "no prompt is called");
    expect(REQUEST("prompts/get", ""), "-32602");
}

/* ---- completion ---- */

static void values_are_completed(void **state)
{
    (void)state;
    expect(REQUEST("completion/complete",
                   "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"json\"},\"argument\":{\"name\":"
                   "\"word\",\"value\":\"r\"}"),
           "{\"completion\":{\"values\":[\"red\",\"rose\"],\"total\":2,\"hasMore\":false}}");
    expect(REQUEST("completion/complete",
                   "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://one/{number}/data\"},"
                   "\"argument\":{\"name\":\"number\",\"value\":\"\"}"),
           "\"values\":[\"number\"]");
    expect(
        REQUEST("completion/complete",
                "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"notegate://{space}/item/{id}\"}"
                ",\"argument\":{\"name\":\"id\",\"value\":\"i44\"},\"context\":{\"arguments\":"
                "{\"space\":\"shared\"}}"),
        "\"values\":[\"i440\",\"i441\",\"i442\",\"i443\",\"i444\",\"i445\",\"i446\",\"i447\","
        "\"i448\",\"i449\"],\"total\":10,\"hasMore\":false");
    char *text = ask(REQUEST("completion/complete",
                             "\"ref\":{\"type\":\"ref/resource\",\"uri\":"
                             "\"notegate://{space}/item/{id}\"},\"argument\":{\"name\":\"id\","
                             "\"value\":\"\"}"));
    assert_int_equal(count_of(text, "\"i"), 100 + count_of(text, "\"id\""));
    assert_non_null(strstr(text, "\"hasMore\":true"));
    free(text);
    expect(REQUEST("completion/complete", "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
           "-32602");
    expect(
        REQUEST("completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"json\"}"),
        "-32602");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(prompts_are_listed),
        TEST(prompts_answer),
        TEST(prompt_arguments_are_checked),
        TEST(values_are_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
