/* SPDX-License-Identifier: MIT */
/* test_mcp_lines.c - `notegate mcp` as its client sees it: the same in a gateway of its own and
 * relayed to one that serves. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "program.h"

#define REQUEST(id, method, params)                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params "}}\n"
#define TELL(method, params)                                                                   \
    "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" params "}}\n"
#define CALL(id, tool, arguments)                                                              \
    REQUEST(id, "tools/call", "\"name\":\"" tool "\",\"arguments\":{" arguments "}")
#define INITIALIZE(version, capabilities)                                                      \
    REQUEST("0", "initialize",                                                                 \
            "\"protocolVersion\":\"" version "\",\"capabilities\":{" capabilities              \
            "},\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}")
#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},\"sampling\":{},"      \
    "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}"
#define READY TELL("notifications/initialized", "")
#define PARIS                                                                                  \
    "{\"role\":\"assistant\",\"model\":\"m\",\"content\":{\"type\":\"text\","                  \
    "\"text\":\"Paris\"}}"

/* A message, and parts of the lines that come after it, in this order; others may be between.
 */
struct step {
    const char *send;
    const char *parts[4];
};

static void expect_line(struct program *mcp, const char *part)
{
    while (strstr(program_line(mcp), part) == NULL) {
    }
}

static void expect_steps(struct program *mcp, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        program_send(mcp, steps[i].send);
        for (size_t j = 0; j < NG_COUNT(steps[i].parts) && steps[i].parts[j] != NULL; j++) {
            expect_line(mcp, steps[i].parts[j]);
        }
    }
}

static void end_mcp(struct program *mcp)
{
    struct ended ended = program_end(mcp, 0);
    if (ended.code != 0) {
        fail_msg("it ended with %d: %s", ended.code, ended.err);
    }
    ended_free(&ended);
}

/* In a gateway of its own, then through one that serves. */
static void expect_both_ways(const struct step *steps, size_t count)
{
    struct program gateway;
    struct program mcp;
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            program_serve(&gateway, "");
        }
        program_start(&mcp, "mcp --agent ada", NULL);
        expect_steps(&mcp, steps, count);
        end_mcp(&mcp);
        if (round == 1) {
            program_stop(&gateway);
        }
    }
}

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

/* The id of a request of the gateway, with its quotes. */
static void id_of(const char *line, char id[64])
{
    const char *at = strstr(line, "\"id\":");
    assert_non_null(at);
    (void)snprintf(id, 64, "%.*s", (int)strcspn(at + 5, ",}"), at + 5);
}

static void answer_question(struct program *mcp, const char *method, const char *result)
{
    char id[64];
    char text[512];
    const char *line;
    do {
        line = program_line(mcp);
    } while (strstr(line, method) == NULL);
    id_of(line, id);
    (void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", id, result);
    program_send(mcp, text);
}

static void ask_and_cancel(struct program *mcp)
{
    static const struct step begin[] = {
        {INITIALIZE("2025-11-25", "\"sampling\":{},\"elicitation\":{}") READY, {"\"id\":0"}},
    };
    expect_steps(mcp, begin, NG_COUNT(begin));
    program_send(mcp, CALL("1", "test_sampling", "\"prompt\":\"x\""));
    answer_question(mcp, "sampling/createMessage", "\"result\":" PARIS);
    expect_line(mcp, "Paris");
    program_send(mcp, CALL("2", "test_elicitation", "\"message\":\"x\""));
    answer_question(mcp, "elicitation/create", "\"result\":{\"action\":\"decline\"}");
    expect_line(mcp, "\"id\":2,");
    program_send(mcp, CALL("3", "test_sampling", "\"prompt\":\"x\""));
    answer_question(mcp, "sampling/createMessage",
                    "\"error\":{\"code\":-1,\"message\":\"no model here\"}");
    expect_line(mcp, "no model here");
    program_send(mcp, CALL("4", "test_sampling", "\"prompt\":\"x\""));
    answer_question(mcp, "sampling/createMessage", "\"result\":5");
    expect_line(mcp, "not of the form");
    program_send(mcp, CALL("5", "test_sampling", "\"prompt\":\"x\""));
    expect_line(mcp, "sampling/createMessage");
    program_send(mcp, TELL("notifications/cancelled", "\"requestId\":5"));
    expect_line(mcp, "notifications/cancelled");
    /* A batch, as the version before had. */
    program_send(mcp, INITIALIZE("2025-03-26", "\"sampling\":{}"));
    expect_line(mcp, "\"id\":0");
    program_send(mcp, "[{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"},"
                      "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
                      "\"name\":\"test_simple_text\",\"arguments\":{}}}]\n");
    expect_line(mcp, "\"id\":7");
    /* The end of the input ends a call that waits for its client. */
    program_send(mcp, CALL("9", "test_sampling", "\"prompt\":\"x\""));
    expect_line(mcp, "sampling/createMessage");
}

static void questions(void **state)
{
    struct program gateway;
    struct program mcp;
    (void)state;
    program_start(&mcp, "mcp", NULL);
    ask_and_cancel(&mcp);
    end_mcp(&mcp);
    program_serve(&gateway, "");
    program_start(&mcp, "mcp", NULL);
    ask_and_cancel(&mcp);
    end_mcp(&mcp);
    program_stop(&gateway);
}

static void tasks(void **state)
{
    static const struct step older[] = {
        {INITIALIZE("2025-11-25", "") READY, {"\"id\":0"}},
        {REQUEST("1", "tools/call",
                 "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":600},"
                 "\"task\":{\"ttl\":60000}"),
         {"\"status\":\"working\""}},
        {REQUEST("2", "tasks/list", ""), {"\"ttl\":60000"}},
        {REQUEST("3", "tasks/get", "\"taskId\":\"none\""), {"-32602"}},
        {REQUEST("4", "tools/call",
                 "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"},"
                 "\"task\":{}"),
         {"\"id\":4,"}},
        {REQUEST("5", "tools/call",
                 "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":0.01},\"task\":{}"),
         {"\"id\":5,"}},
    };
    (void)state;
    expect_both_ways(older, NG_COUNT(older));
}

/* The gateway behind a relay goes away and comes back: requests fail in between, and the
 * session is restored. */
static void a_gateway_that_is_started_again(void **state)
{
    struct program gateway;
    struct program mcp;
    (void)state;
    program_serve(&gateway, "");
    program_start(&mcp, "mcp", NULL);
    program_send(&mcp, INITIALIZE("2025-11-25", "\"sampling\":{}") READY);
    expect_line(&mcp, "\"id\":0");
    program_send(&mcp, REQUEST("1", "logging/setLevel", "\"level\":\"error\""));
    expect_line(&mcp, "\"id\":1,\"result\":{}");
    program_stop(&gateway);
    program_send(&mcp, CALL("2", "test_simple_text", ""));
    expect_line(&mcp, "\"error\"");
    program_serve(&gateway, "");
    program_send(&mcp, CALL("3", "test_tool_with_logging", ""));
    const char *line = program_line(&mcp);
    assert_non_null(strstr(line, "\"id\":3,\"result\""));
    program_send(&mcp, REQUEST("4", "server/discover", META));
    expect_line(&mcp, "\"supportedVersions\"");
    struct ended ended = program_end(&mcp, SIGTERM);
    assert_int_equal(ended.code, 0);
    ended_free(&ended);
    program_stop(&gateway);
}

/* The server closes the stream of a call, and the relay resumes it. */
static void a_stream_that_is_closed(void **state)
{
    struct program gateway;
    struct program mcp;
    (void)state;
    program_serve(&gateway, "");
    program_start(&mcp, "mcp", NULL);
    program_send(&mcp, INITIALIZE("2025-11-25", "") READY);
    program_send(&mcp, CALL("3", "test_reconnection", ""));
    expect_line(&mcp, "\"id\":3,\"result\"");
    end_mcp(&mcp);
    program_stop(&gateway);
}

static int set_up(void **state)
{
    (void)state;
    (void)program_home();
    /* A task of ten minutes is not waited for. */
    assert_int_equal(setenv("NOTEGATE_SHUTDOWN_TIMEOUT", "50ms", 1), 0);
    return setenv("NOTEGATE_PLUGINS", "notebook,conformance", 1);
}

static int tear_down(void **state)
{
    (void)state;
    program_home_remove();
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(versions),
        TEST(calls),
        TEST(resources_and_prompts),
        TEST(the_stateless_version),
        TEST(questions),
        TEST(tasks),
        TEST(a_gateway_that_is_started_again),
        TEST(a_stream_that_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
