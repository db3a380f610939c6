/* SPDX-License-Identifier: MIT */
/* test_mcp_lines.c - `notegate mcp` as its client sees it: the same in a gateway of its own and
 * relayed to one that serves. */
#include "core/base/str.h"
#include "test_mcp_lines_rig.h"

static void versions(void **state)
{
    static const struct step steps[] = {
        {INITIALIZE("2024-11-05", ""), {"\"protocolVersion\":\"2024-11-05\""}},
        {INITIALIZE("2025-03-26", ""), {"\"protocolVersion\":\"2025-03-26\""}},
        {INITIALIZE("2025-06-18", ""), {"\"protocolVersion\":\"2025-06-18\""}},
        {INITIALIZE("1999-01-01", ""), {"\"protocolVersion\":\"2025-11-25\""}},
        {INITIALIZE("2025-11-25", ""), {"\"name\":\"notegate\""}},
        {READY REQUEST("1", "ping", ""), {"\"id\":1,\"result\":{}"}},
        {REQUEST("\"a\"", "tools/list", ""), {"\"name\":\"notebook\""}},
        {REQUEST("12345678901234567890", "ping", ""), {"\"id\":12345678901234567890,"}},
        {REQUEST("2", "no/such", ""), {"-32601"}},
        {REQUEST("3", "tools/call", "\"name\":\"notebok\""), {"-32602"}},
        {REQUEST("4", "tools/call", "\"name\":5"), {"-32602"}},
        {REQUEST("5", "tools/list", "\"cursor\":\"none\""), {"-32602"}},
        {REQUEST("6", "server/discover", META), {"\"supportedVersions\""}},
        {REQUEST("7", "initialize", META), {"-32601"}},
        {REQUEST("8", "logging/setLevel", "\"level\":\"loud\""), {"-32602"}},
        {"{oops\n", {"-32700"}},
        {"[]\n", {"-32600"}},
        {"5\n", {"-32600"}},
        {"\n  \n{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"ping\"}\n", {"-32600"}},
    };
    (void)state;
    expect_both_ways(steps, NG_COUNT(steps));
}

static void calls(void **state)
{
    static const struct step steps[] = {
        {INITIALIZE("2025-11-25", "") READY, {"\"id\":0"}},
        {CALL("1", "notebook", "\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"text\""),
         {"\"id\":1,\"result\""}},
        {CALL("2", "notebook", "\"mode\":\"read\",\"name\":\"none\""),
         {"\"code\":\"NOT_FOUND\""}},
        {CALL("3", "test_image_content", ""), {"\"type\":\"image\""}},
        {CALL("4", "test_multiple_content_types", ""), {"\"type\":\"resource\""}},
        {CALL("5", "test_audio_content", ""), {"\"type\":\"audio\""}},
        {CALL("6", "test_tool_with_logging", ""),
         {"notifications/message", "notifications/message", "notifications/message",
          "\"id\":6,"}},
        {REQUEST("7", "logging/setLevel", "\"level\":\"error\""), {"\"id\":7,\"result\":{}"}},
        {REQUEST("8", "tools/call",
                 "\"name\":\"test_tool_with_progress\",\"_meta\":{\"progressToken\":\"p\"}"),
         {"\"progressToken\":\"p\"", "notifications/progress", "\"id\":8,"}},
        {CALL("9", "notebook", "\"mode\":\"clear\",\"name\":\"n\""), {"\"id\":9,\"result\""}},
    };
    (void)state;
    expect_both_ways(steps, NG_COUNT(steps));
}

static void resources_and_prompts(void **state)
{
    static const struct step steps[] = {
        {INITIALIZE("2025-11-25", "") READY, {"\"id\":0"}},
        {CALL("1", "notebook", "\"mode\":\"create\",\"name\":\"r\",\"newStr\":\"text\""),
         {"\"id\":1,\"result\""}},
        {REQUEST("2", "resources/templates/list", ""), {"\"uriTemplate\""}},
        {REQUEST("3", "resources/list", ""), {"\"resources\":["}},
        {REQUEST("4", "resources/read", "\"uri\":\"test://static-text\""), {"\"contents\""}},
        {REQUEST("5", "resources/read", "\"uri\":\"no://such\""), {"-32002"}},
        {REQUEST("6", "resources/read", ""), {"-32602"}},
        {REQUEST("7", "resources/subscribe", "\"uri\":\"test://watched-resource\""),
         {"\"id\":7,\"result\":{}"}},
        {CALL("8", "test_update_watched_resource", "\"text\":\"new\""),
         {"notifications/resources/updated"}},
        {REQUEST("9", "resources/unsubscribe", "\"uri\":\"test://watched-resource\""),
         {"\"id\":9,\"result\":{}"}},
        {REQUEST("10", "resources/subscribe", "\"uri\":\"no://such\""), {"-32002"}},
        {REQUEST("11", "prompts/list", ""), {"\"prompts\":["}},
        {REQUEST("12", "prompts/get", "\"name\":\"notebook_guide\",\"arguments\":{}"),
         {"\"messages\""}},
        {REQUEST("13", "prompts/get", "\"name\":\"none\""), {"-32602"}},
        {REQUEST("14", "completion/complete",
                 "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"notebook_guide\"},"
                 "\"argument\":{\"name\":\"name\",\"value\":\"r\"}"),
         {"\"completion\":{\"values\":["}},
        {REQUEST("15", "completion/complete",
                 "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"none\"},"
                 "\"argument\":{\"name\":\"a\",\"value\":\"\"}"),
         {"-32602"}},
        {CALL("16", "test_trigger_tool_change", ""), {"notifications/tools/list_changed"}},
        {CALL("17", "test_trigger_prompt_change", ""), {"notifications/prompts/list_changed"}},
    };
    (void)state;
    expect_both_ways(steps, NG_COUNT(steps));
}

static void the_stateless_version(void **state)
{
    static const struct step steps[] = {
        {REQUEST("1", "server/discover", META), {"\"resultType\":\"complete\""}},
        {REQUEST("2", "tools/list", META), {"\"cacheScope\":\"private\""}},
        {REQUEST("3", "tools/call", "\"name\":\"test_simple_text\",\"arguments\":{}," META),
         {"\"resultType\":\"complete\""}},
        {REQUEST("4", "tools/call",
                 "\"name\":\"test_input_required_result_elicitation\",\"arguments\":{}," META),
         {"\"resultType\":\"input_required\""}},
        {REQUEST("5", "tools/call",
                 "\"name\":\"test_input_required_result_elicitation\",\"arguments\":{},"
                 "\"inputResponses\":{\"user_name\":{\"action\":\"accept\",\"content\":"
                 "{\"name\":\"Ada\"}}}," META),
         {"Ada"}},
        {REQUEST("6", "tools/call",
                 "\"name\":\"test_input_required_result_elicitation\",\"arguments\":{},"
                 "\"inputResponses\":{\"user_name\":5}," META),
         {"-32602"}},
        {REQUEST("31", "tools/call",
                 "\"name\":\"test_input_required_result_sampling\",\"arguments\":{}," META),
         {"sampling/createMessage"}},
        {REQUEST("32", "tools/call",
                 "\"name\":\"test_input_required_result_list_roots\",\"arguments\":{}," META),
         {"\"roots\":{}"}},
        {REQUEST(
             "33", "tools/call",
             "\"name\":\"test_input_required_result_multiple_inputs\",\"arguments\":{}," META),
         {"\"id\":33,"}},
        {REQUEST("34", "tools/call",
                 "\"name\":\"test_input_required_result_multi_round\",\"arguments\":{}," META),
         {"\"requestState\""}},
        {REQUEST("35", "tools/call",
                 "\"name\":\"test_input_required_result_request_state\",\"arguments\":{},"
                 "\"requestState\":\"forged\",\"inputResponses\":{}," META),
         {"-32602"}},
        {REQUEST("\"s\"", "subscriptions/listen",
                 "\"notifications\":{\"toolsListChanged\":true}," META),
         {"notifications/subscriptions/acknowledged"}},
        {REQUEST("7", "tools/call",
                 "\"name\":\"test_trigger_tool_change\",\"arguments\":{}," META),
         {"notifications/tools/list_changed"}},
        {TELL("notifications/cancelled", "\"requestId\":\"s\""), {NULL}},
        {REQUEST("8", "resources/read", "\"uri\":\"test://static-text\"," META),
         {"\"contents\""}},
        {REQUEST("9", "prompts/list", META), {"\"prompts\""}},
        {REQUEST("10", "tasks/get", "\"taskId\":\"none\"," META), {"-32602"}},
        {REQUEST("11", "no/such", META), {"-32601"}},
    };
    (void)state;
    expect_both_ways(steps, NG_COUNT(steps));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(versions),
        TEST(calls),
        TEST(resources_and_prompts),
        TEST(the_stateless_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
