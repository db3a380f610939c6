/* SPDX-License-Identifier: MIT */
/* test_mcp_lines_tasks.c - tasks over `notegate mcp`: made, watched, asked for, cancelled, and
 * found again by the next gateway. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/str.h"
#include "test_mcp_lines_rig.h"

#define ID_BYTES 128
#define ACCEPT(content) "{\"action\":\"accept\",\"content\":{" content "}}"

/* The id of the task in the next line that has one. */
static void task_of(struct program *mcp, char id[ID_BYTES])
{
    const char *at = strstr(expect_line(mcp, "\"taskId\":\""), "\"taskId\":\"") + 10;
    (void)snprintf(id, ID_BYTES, "%.*s", (int)strcspn(at, "\""), at);
}

/* A request about a task; more: further members of its parameters. */
static void ask_about(struct program *mcp, const char *method, const char *id, const char *more)
{
    char text[2048];
    (void)snprintf(text, sizeof(text),
                   "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"%s\",\"params\":{"
                   "\"taskId\":\"%s\"%s}}\n",
                   method, id, more);
    program_send(mcp, text);
}

/* Asks until the task has this status. */
static void reach(struct program *mcp, const char *id, const char *status)
{
    const struct timespec step = {0, 1000000};
    const char *line;
    do {
        (void)nanosleep(&step, NULL);
        ask_about(mcp, "tasks/get", id, "," META);
        line = expect_line(mcp, "\"id\":9,");
        assert_non_null(strstr(line, "\"status\""));
    } while (strstr(line, status) == NULL);
}

static void handshake_tasks(struct program *mcp)
{
    static const struct step begin[] = {
        {INITIALIZE("2025-11-25", "\"elicitation\":{}") READY, {"\"id\":0"}},
        {REQUEST("3", "tasks/get", "\"taskId\":\"none\""), {"-32602"}},
        {REQUEST("3", "tasks/result", "\"taskId\":\"none\""), {"-32602"}},
        {REQUEST("3", "tasks/list", "\"cursor\":\"none\""), {"-32602"}},
        {REQUEST("3", "tools/call",
                 "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"},\"task\":{}"),
         {"-32601"}},
        {REQUEST("3", "tools/call", "\"name\":\"failing_job\",\"arguments\":{}"),
         {"\"error\""}},
    };
    char id[ID_BYTES];
    expect_steps(mcp, begin, NG_COUNT(begin));
    /* Its result is waited for, and its questions are asked meanwhile. */
    program_send(mcp, REQUEST("1", "tools/call",
                              "\"name\":\"multi_input\",\"arguments\":{},\"task\":{}"));
    task_of(mcp, id);
    ask_about(mcp, "tasks/result", id, "");
    answer_question(mcp, "What is your name?", "\"result\":" ACCEPT("\"name\":\"Ada\""));
    answer_question(mcp, "Shall it go on?", "\"result\":" ACCEPT("\"confirm\":true"));
    (void)expect_line(mcp, "Both answers came, from Ada");
    ask_about(mcp, "tasks/get", id, "");
    (void)expect_line(mcp, "\"status\":\"completed\"");
    /* One that is cancelled. */
    program_send(mcp, REQUEST("2", "tools/call",
                              "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":600},"
                              "\"task\":{\"ttl\":60000}"));
    task_of(mcp, id);
    ask_about(mcp, "tasks/cancel", id, "");
    (void)expect_line(mcp, "\"status\":\"cancelled\"");
    ask_about(mcp, "tasks/cancel", id, "");
    (void)expect_line(mcp, "-32602");
    program_send(mcp, REQUEST("3", "tasks/list", ""));
    (void)expect_line(mcp, "\"ttl\":60000");
}

static void stateless_tasks(struct program *mcp)
{
    static const struct step begin[] = {
        {REQUEST("3", "tasks/get", "\"taskId\":\"none\"," META), {"-32602"}},
        {REQUEST("3", "tasks/list", META), {"-32601"}},
        {REQUEST("4", "subscriptions/listen", "\"notifications\":{\"taskIds\":5}," META),
         {"-32602"}},
    };
    char id[ID_BYTES];
    char text[2048];
    expect_steps(mcp, begin, NG_COUNT(begin));
    program_send(mcp,
                 REQUEST("1", "tools/call", "\"name\":\"multi_input\",\"arguments\":{}," META));
    task_of(mcp, id);
    reach(mcp, id, "input_required");
    (void)snprintf(text, sizeof(text),
                   REQUEST("\"s\"", "subscriptions/listen",
                           "\"notifications\":{\"taskIds\":[\"%s\",\"none\"]}," META),
                   id);
    program_send(mcp, text);
    (void)snprintf(text, sizeof(text), "\"taskIds\":[\"%s\"]", id);
    (void)expect_line(mcp, text);
    ask_about(mcp, "tasks/update", id,
              ",\"inputResponses\":{\"name\":" ACCEPT("\"name\":\"Eve\"") "}," META);
    (void)expect_line(mcp, "\"id\":9,\"result\"");
    ask_about(mcp, "tasks/update", id, ",\"inputResponses\":5," META);
    (void)expect_line(mcp, "-32602");
    ask_about(mcp, "tasks/update", id,
              ",\"inputResponses\":{\"confirm\":" ACCEPT("\"confirm\":true") "}," META);
    (void)expect_line(mcp, "Both answers came, from Eve");
    program_send(mcp, TELL("notifications/cancelled", "\"requestId\":\"s\""));
    program_send(mcp,
                 REQUEST("2", "tools/call",
                         "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":600}," META));
    task_of(mcp, id);
    ask_about(mcp, "tasks/cancel", id, "," META);
    (void)expect_line(mcp, "\"id\":9,\"result\"");
    ask_about(mcp, "tasks/get", id, "," META);
    (void)expect_line(mcp, "\"status\":\"cancelled\"");
}

static void both_ways(void (*talk)(struct program *mcp))
{
    struct program gateway;
    struct program mcp;
    program_start(&mcp, "mcp", NULL);
    talk(&mcp);
    end_mcp(&mcp);
    program_serve(&gateway, "");
    program_start(&mcp, "mcp", NULL);
    talk(&mcp);
    end_mcp(&mcp);
    program_stop(&gateway);
}

static void tasks_of_the_handshake(void **state)
{
    (void)state;
    both_ways(handshake_tasks);
}

static void tasks_without_a_session(void **state)
{
    (void)state;
    both_ways(stateless_tasks);
}

/* A task of a gateway that died has failed; its client asks the next one. */
static void a_gateway_that_died(void **state)
{
    struct program gateway;
    struct program mcp;
    char id[ID_BYTES];
    (void)state;
    program_serve(&gateway, "");
    program_start(&mcp, "mcp", NULL);
    program_send(&mcp,
                 REQUEST("2", "tools/call",
                         "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":600}," META));
    task_of(&mcp, id);
    struct ended ended = program_end(&gateway, SIGKILL);
    assert_int_equal(ended.code, 128 + SIGKILL);
    ended_free(&ended);
    ask_about(&mcp, "tasks/get", id, "," META);
    (void)expect_line(&mcp, "\"error\"");
    program_serve(&gateway, "");
    ask_about(&mcp, "tasks/get", id, "," META);
    (void)expect_line(&mcp, "\"status\":\"failed\"");
    end_mcp(&mcp);
    program_stop(&gateway);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_of_the_handshake),
        TEST(tasks_without_a_session),
        TEST(a_gateway_that_died),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
