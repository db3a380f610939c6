/* SPDX-License-Identifier: MIT */
/* test_mcp_lines_asking.c - requests of the gateway to the client of `notegate mcp`, and what
 * the relay does when its gateway leaves. */
#include <signal.h>
#include <string.h>

#include "core/base/str.h"
#include "test_mcp_lines_rig.h"

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
    expect_line(mcp, "\"isError\":true");
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
    assert_non_null(strstr(program_line(&mcp), "\"id\":3,\"result\""));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(questions),
        TEST(a_gateway_that_is_started_again),
        TEST(a_stream_that_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
