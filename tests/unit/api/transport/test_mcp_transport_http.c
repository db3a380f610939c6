/* SPDX-License-Identifier: MIT */
/* test_mcp_transport_http.c - media types, methods and statuses of HTTP, and calls that are
 * cancelled. */
#include "test_mcp_transport_rig.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"

static int status_with(const char *content_type, const char *accept, const char **ret_type)
{
    struct exchange exchange;
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    exchange.request.content_type = ng_str_of(content_type);
    exchange.request.accept = ng_str_of(accept);
    exchange_run(&exchange);
    int status = exchange.response.status;
    *ret_type = exchange.response.content_type;
    if (*ret_type != NULL) {
        assert_string_equal(exchange_text(&exchange),
                            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
                            "\n\n");
    }
    exchange_free(&exchange);
    return status;
}

static void media_types(void **state)
{
    const char *type = NULL;
    (void)state;
    assert_int_equal(status_with("application/json; charset=utf-8", "*/*", &type), 200);
    assert_int_equal(status_with("Application/JSON", NULL, &type), 200);
    assert_int_equal(status_with("application/json", "text/html, application/*;q=0.1", &type),
                     200);
    assert_null(type);
    assert_int_equal(status_with("application/json", "text/event-stream", &type), 200);
    assert_string_equal(type, "text/event-stream");
    assert_int_equal(status_with("application/json", "text/html", &type), 406);
    assert_int_equal(status_with("text/plain", "*/*", &type), 415);
    assert_int_equal(status_with("*/*", "*/*", &type), 415);
    assert_int_equal(status_with("text/plain, application/json", "*/*", &type), 415);
    assert_int_equal(status_with("text/plain;, application/json", "*/*", &type), 415);
    assert_int_equal(status_with("application/json; charset=utf-16", "*/*", &type), 415);
    assert_int_equal(status_with(NULL, "*/*", &type), 415);
}

static void other_http_methods(void **state)
{
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, "");
    exchange.request.method = HTTP_GET; /* without a session */
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 400);
    exchange_free(&exchange);
    exchange_init(&exchange, "");
    exchange.request.method = HTTP_GET;
    exchange.request.accept = ng_str_of("application/json");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 406);
    exchange_free(&exchange);
    exchange_init(&exchange, "");
    exchange.request.method = HTTP_GET;
    exchange.request.protocol_version = ng_str_of("2026-07-28");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 405);
    assert_string_equal(exchange.response.allow, "POST");
    exchange_free(&exchange);
    exchange_init(&exchange, "");
    exchange.request.method = HTTP_DELETE;
    exchange.request.protocol_version = ng_str_of("2026-07-28");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 405);
    assert_string_equal(exchange.response.allow, "POST");
    exchange_free(&exchange);
}

static void calls_can_be_cancelled(void **state)
{
    struct exchange exchange;
    char id[MCP_HTTP_SESSION_MAX];
    (void)state;
    /* By the transport, when the client left. */
    exchange_init(&exchange, CALL("1", "t_wait", "{}"));
    exchange_start(&exchange);
    wait_waiting(1);
    assert_non_null(exchange.response.call);
    call_cancel(exchange.response.call);
    exchange_wait(&exchange);
    assert_non_null(strstr(exchange_text(&exchange), "\"code\":\"CANCELLED\""));
    exchange_free(&exchange);
    /* By a notification in the same session, and by the end of the session. */
    for (int round = 0; round < 2; round++) {
        open_session(id, "2025-11-25");
        exchange_init(&exchange, CALL("\"c\"", "t_wait", "{}"));
        exchange.request.session_id = ng_str_of(id);
        exchange_start(&exchange);
        wait_waiting(1);
        if (round == 0) {
            assert_int_equal(
                in_session(id, HTTP_POST,
                           "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                           "\"params\":{\"requestId\":\"c\"}}"),
                202);
        } else {
            assert_int_equal(in_session(id, HTTP_DELETE, ""), 204);
        }
        exchange_wait(&exchange);
        if (round == 0) { /* a cancelled request gets no answer */
            assert_int_equal(exchange.response.status, 202);
            assert_string_equal(exchange_text(&exchange), "");
        } else {
            assert_non_null(strstr(exchange_text(&exchange), "\"code\":\"CANCELLED\""));
        }
        exchange_free(&exchange);
    }
}

/* More than an event loop parses; the rest of the message is at its end. */
static char *large(const char *message)
{
    size_t size = DISPATCH_INLINE_BYTES + 1;
    size_t len = strlen(message);
    char *text = alloc_bytes(size + len + 1);
    assert_non_null(text);
    memset(text, ' ', size);
    memcpy(text + size, message, len + 1);
    return text;
}

/* Holds a worker of the agent. */
struct holding {
    struct task task;
    atomic_int *held;
    atomic_bool *released;
};

static void hold(struct task *task)
{
    const struct timespec step = {0, 1000000};
    const struct holding *holding = (const struct holding *)(const void *)task;
    atomic_fetch_add(holding->held, 1);
    while (!atomic_load(holding->released)) {
        (void)nanosleep(&step, NULL);
    }
    atomic_fetch_sub(holding->held, 1);
}

static void large_messages_wait_for_a_worker(void **state)
{
    const struct timespec step = {0, 1000000};
    struct holding holding[4]; /* the agent's half of the workers */
    struct exchange exchange;
    atomic_int held = 0;
    atomic_bool released = false;
    char id[MCP_HTTP_SESSION_MAX];
    char *call = large(CALL("9", "t_echo", "{\"text\":\"late\"}"));
    (void)state;
    for (size_t i = 0; i < NG_COUNT(holding); i++) {
        holding[i] = (struct holding){{.run = hold}, &held, &released};
        assert_int_equal(
            pool_submit(fixture.gateway->pool, fixture.caller.agent, &holding[i].task), NG_OK);
    }
    while (atomic_load(&held) < (int)NG_COUNT(holding)) {
        (void)nanosleep(&step, NULL);
    }
    exchange_init(&exchange, call);
    exchange_start(&exchange);
    assert_false(exchange.done);
    call_cancel(exchange.response.call); /* the client left */
    atomic_store(&released, true);
    exchange_wait(&exchange);
    assert_int_equal(exchange.response.status, 503);
    assert_non_null(strstr(exchange_text(&exchange), "before the message was read"));
    exchange_free(&exchange);
    while (atomic_load(&held) > 0) {
        (void)nanosleep(&step, NULL);
    }
    /* In a session leaving is not cancelling. */
    open_session(id, "2025-11-25");
    exchange_init(&exchange, call);
    exchange.request.session_id = ng_str_of(id);
    exchange_start(&exchange);
    exchange_wait(&exchange);
    assert_non_null(exchange.response.left);
    assert_int_equal(exchange.response.status, 200);
    assert_non_null(strstr(exchange_text(&exchange), "echo:late"));
    exchange_free(&exchange);
    free(call);
}

static void large_messages_are_messages(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *part;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 200, "\"result\":{}"},
        {"[" CALL("1", "t_echo", "{\"text\":\"a\"}") "," CALL("2", "t_echo",
                                                              "{\"text\":\"b\"}") "]",
         200, "echo:b"},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", 202, ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\"}", 200, "-32601"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 202, ""},
        {"[]", 400, "a batch must have a message"},
        {"{", 400, "-32700"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
         "\"protocolVersion\":\"2025-11-25\"}}",
         200, "serverInfo"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char *text = large(cases[i].text);
        expect_part(text, cases[i].status, cases[i].part);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(media_types),
        TEST(other_http_methods),
        TEST(calls_can_be_cancelled),
        TEST(large_messages_wait_for_a_worker),
        TEST(large_messages_are_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
