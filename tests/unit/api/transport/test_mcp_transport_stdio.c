/* SPDX-License-Identifier: MIT */
/* test_mcp_transport_stdio.c - MCP over standard input and output.
 */
#include "test_mcp_transport_rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/serve/mcp_methods.h"
#include "api/transport/mcp_stdio.h"
#include "test_gateway.h"

struct pipes {
    struct mcp_stdio stdio;
    int to, from; /* our ends */
    FILE *lines;
    pthread_t thread;
    int rc;
};

static void *run_stdio(void *user)
{
    struct pipes *pipes = user;
    pipes->rc = mcp_stdio_run(&pipes->stdio);
    (void)close(pipes->stdio.out_fd);
    return NULL;
}

static void stdio_start(struct pipes *pipes)
{
    int in[2];
    int out[2];
    memset(pipes, 0, sizeof(*pipes));
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pipes->stdio.gateway = fixture.gateway;
    pipes->stdio.methods = mcp_methods_all();
    pipes->stdio.caller = &fixture.caller;
    pipes->stdio.in_fd = in[0];
    pipes->stdio.out_fd = out[1];
    pipes->stdio.stop_fd = -1;
    pipes->to = in[1];
    pipes->from = out[0];
    pipes->lines = fdopen(out[0], "r");
    assert_non_null(pipes->lines);
    assert_int_equal(pthread_create(&pipes->thread, NULL, run_stdio, pipes), 0);
}

static void stdio_send(struct pipes *pipes, const char *text)
{
    size_t len = strlen(text);
    assert_int_equal(write(pipes->to, text, len), (ssize_t)len);
}

static void stdio_expect(struct pipes *pipes, const char *part)
{
    static char line[1024 * 1024];
    assert_non_null(fgets(line, sizeof(line), pipes->lines));
    if (strstr(line, part) == NULL) {
        fail_msg("%s is not in %s", part, line);
    }
}

static void stdio_end(struct pipes *pipes)
{
    if (pipes->to >= 0) {
        (void)close(pipes->to);
        pipes->to = -1;
    }
    assert_int_equal(pthread_join(pipes->thread, NULL), 0);
    assert_int_equal(pipes->rc, NG_OK);
    assert_int_equal(fgetc(pipes->lines), EOF); /* nothing was left unread */
    (void)fclose(pipes->lines);
    (void)close(pipes->stdio.in_fd);
}

static void stdio_release_and_expect(struct pipes *pipes, int count)
{
    test_tools_release(true);
    for (int i = 0; i < count; i++) {
        stdio_expect(pipes, "\"waited\"");
    }
}

static void stdio_speaks_both_eras(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                       "\"protocolVersion\":\"2025-06-18\"}}\n");
    stdio_expect(&pipes, "\"protocolVersion\":\"2025-06-18\"");
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\n \r\n");
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\r\n");
    stdio_expect(&pipes, "\"name\":\"t_echo\"");
    stdio_send(&pipes, CALL("3", "t_echo", "{\"text\":\"x\"}") "\n");
    stdio_expect(&pipes, "\"echo:x\"");
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"server/discover\",\"params\":"
               "{" META "}}\n");
    stdio_expect(&pipes, "\"supportedVersions\"");
    stdio_send(&pipes, "[" CALL("5", "t_echo", "{}") "]\n");
    stdio_expect(&pipes, "-32600"); /* not in 2025-06-18 */
    stdio_send(&pipes, "{oops\n");
    stdio_expect(&pipes, "-32700");
    stdio_send(&pipes, CALL("6", "t_echo", "{\"text\":\"last\"}")); /* no line feed */
    (void)close(pipes.to);
    pipes.to = -1;
    stdio_expect(&pipes, "\"echo:last\"");
    stdio_end(&pipes);
}

static void stdio_answers_as_calls_finish(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
               "\"t_wait\",\"_meta\":{\"progressToken\":\"tok\"}}}\n");
    stdio_expect(&pipes,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
                 "{\"progressToken\":\"tok\",\"progress\":1,\"total\":2,\"message\":"
                 "\"waiting\"}}");
    stdio_send(&pipes, CALL("2", "t_echo", "{\"text\":\"first\"}") "\n");
    stdio_expect(&pipes, "\"id\":2,");
    test_tools_release(true);
    stdio_expect(&pipes, "\"progress\":2");
    stdio_expect(&pipes, "\"id\":1,\"result\"");
    stdio_end(&pipes);
}

static void stdio_cancels(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n");
    wait_waiting(1);
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":\"1\"}}\n"); /* another id */
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":1,\"reason\":\"enough\"}}\n");
    wait_waiting(0);
    stdio_send(&pipes, CALL("2", "t_echo", "{}") "\n");
    stdio_expect(&pipes, "\"id\":2,"); /* and nothing for 1 */
    stdio_end(&pipes);
}

static void stdio_finishes_what_runs(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n" CALL("2", "t_wait", "{}") "\n");
    wait_waiting(2);
    (void)close(pipes.to);
    pipes.to = -1;
    test_tools_release(true);
    stdio_expect(&pipes, "waited");
    stdio_expect(&pipes, "waited");
    stdio_end(&pipes);
}

static void stdio_logs_to_the_client(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_log", "{}") "\n");
    stdio_expect(&pipes,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
                 "\"level\":\"warning\",\"logger\":\"t_log\",\"data\":{\"loud\":true}}}");
    stdio_expect(&pipes, "logged");
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/setLevel\","
                       "\"params\":{\"level\":\"error\"}}\n");
    stdio_expect(&pipes, "\"id\":2");
    stdio_send(&pipes, CALL("3", "t_log", "{}") "\n");
    stdio_expect(&pipes, "logged");
    /* The stateless version says it per request, and nothing means none. */
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"t_log\"," META "}}\n");
    stdio_expect(&pipes, "logged");
    stdio_end(&pipes);
}

static void stdio_bounds_lines(void **state)
{
    static char line[70 * 1024];
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    memset(line, 'x', sizeof(line) - 1);
    for (int i = 0; i < 3; i++) {
        stdio_send(&pipes, line);
    }
    stdio_send(&pipes, "\n" CALL("1", "t_echo", "{}") "\n");
    stdio_expect(&pipes, "\"code\":413");
    stdio_expect(&pipes, "\"id\":1,\"result\"");
    stdio_end(&pipes);
}

static void stdio_ends_when_told(void **state)
{
    struct pipes pipes;
    int stop[2];
    (void)state;
    assert_int_equal(pipe(stop), 0);
    memset(&pipes, 0, sizeof(pipes));
    int in[2];
    int out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pipes.stdio = (struct mcp_stdio){.gateway = fixture.gateway,
                                     .methods = mcp_methods_all(),
                                     .caller = &fixture.caller,
                                     .in_fd = in[0],
                                     .out_fd = out[1],
                                     .stop_fd = stop[0]};
    pipes.to = in[1];
    pipes.lines = fdopen(out[0], "r");
    assert_int_equal(pthread_create(&pipes.thread, NULL, run_stdio, &pipes), 0);
    stdio_send(&pipes, CALL("1", "t_echo", "{}") "\n");
    stdio_expect(&pipes, "\"id\":1");
    assert_int_equal(write(stop[1], "x", 1), 1);
    assert_int_equal(pthread_join(pipes.thread, NULL), 0);
    assert_int_equal(pipes.rc, NG_OK);
    (void)fclose(pipes.lines);
    (void)close(in[0]);
    (void)close(in[1]);
    (void)close(stop[0]);
    (void)close(stop[1]);
}

static void stdio_outlives_its_client(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n");
    wait_waiting(1);
    (void)fclose(pipes.lines); /* the reader is gone */
    stdio_send(&pipes, CALL("2", "t_echo", "{}") "\n");
    assert_int_equal(pthread_join(pipes.thread, NULL), 0);
    assert_int_equal(pipes.rc, NG_OK);
    assert_int_equal(test_tools_waiting(), 0); /* cancelled, not waited for */
    (void)close(pipes.to);
    (void)close(pipes.stdio.in_fd);
}

/* More requests than are taken at once: the rest is told so, and none is lost. */
static void stdio_bounds_what_is_under_way(void **state)
{
    struct pipes pipes;
    int more = 6;
    (void)state;
    stdio_start(&pipes);
    for (int i = 0; i < MCP_STDIO_IN_FLIGHT_MAX + more; i++) {
        stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n");
    }
    for (int i = 0; i < more; i++) {
        stdio_expect(&pipes, "\"error\":{\"code\":503");
    }
    stdio_release_and_expect(&pipes, MCP_STDIO_IN_FLIGHT_MAX);
    stdio_end(&pipes);
}

/* A client that asks and does not read holds up itself only; it gets every answer later. */
static void stdio_waits_for_slow_readers(void **state)
{
    struct pipes pipes;
    int count = 300;
    (void)state;
    stdio_start(&pipes);
    for (int i = 0; i < count; i++) {
        stdio_send(&pipes, CALL("1", "t_big", "{\"bytes\":20000}") "\n");
    }
    for (int i = 0; i < count; i++) {
        stdio_expect(&pipes, "\\u0001\\u0001");
    }
    stdio_end(&pipes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stdio_speaks_both_eras),
        TEST(stdio_answers_as_calls_finish),
        TEST(stdio_cancels),
        TEST(stdio_finishes_what_runs),
        TEST(stdio_logs_to_the_client),
        TEST(stdio_bounds_lines),
        TEST(stdio_ends_when_told),
        TEST(stdio_outlives_its_client),
        TEST(stdio_bounds_what_is_under_way),
        TEST(stdio_waits_for_slow_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
