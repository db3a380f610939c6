/* SPDX-License-Identifier: MIT */
/* test_mcp_streams_calls.c - calls over streams: clients that leave, questions, and all of
 * it at once. */
#include "test_mcp_streams_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/serve/mcp_methods.h"
#include "api/server/mcp_client_request.h"
#include "api/transport/mcp_http.h"
#include "core/base/str.h"
#include "test_gateway.h"

#define ROUNDS 200
/* Of 8 workers, what one agent can have of one plugin. */
#define HELD 3

/* ---- clients that leave ---- */

static struct mcp_http *mcp;

static struct auth_caller caller;

static int set_up(void **state)
{
    static const char *const sets[] = {"limits.workers=8", NULL};
    (void)state;
    gateway = test_gateway_open(sets);
    assert_non_null(gateway);
    assert_int_equal(mcp_http_new(gateway, mcp_methods_all(), &mcp), NG_OK);
    memset(&caller, 0, sizeof(caller));
    caller.agent = ng_str_of("tester");
    caller.role = NG_ROLE_ADMIN;
    caller.mode = NG_MODE_AGENT;
    test_tools_release(false);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_tools_release(true);
    mcp_http_free(mcp);
    test_gateway_close(gateway);
    assert_int_equal(atomic_load(&places), 0);
    return 0;
}

struct post {
    struct mcp_http_request request;
    struct mcp_http_response response;
    char session[MCP_HTTP_SESSION_MAX];
    atomic_bool done;
};

static struct ng_str no_header(const struct mcp_http_request *request, const char *name)
{
    struct ng_str none = {NULL, 0};
    (void)request;
    (void)name;
    return none;
}

static void post_done(struct mcp_http_response *response, void *user)
{
    struct post *post = user;
    (void)response;
    atomic_store(&post->done, true);
}

static void post_init(struct post *post, const char *session, const char *body)
{
    memset(post, 0, sizeof(*post));
    atomic_init(&post->done, false);
    post->request.method = HTTP_POST;
    post->request.content_type = ng_str_of("application/json");
    post->request.accept = ng_str_of("application/json, text/event-stream");
    post->request.caller = &caller;
    post->request.header = no_header;
    post->request.body = ng_str_of(body);
    if (session != NULL) {
        (void)snprintf(post->session, sizeof(post->session), "%s", session);
        post->request.session_id = ng_str_of(post->session);
    }
    buf_init(&post->response.body, (size_t)1024 * 1024);
}

static void post_start(struct post *post)
{
    if (mcp_http_handle(mcp, &post->request, &post->response, post_done, post) == NG_OK) {
        atomic_store(&post->done, true);
    }
}

static void post_wait(struct post *post)
{
    for (int i = 0; i < PATIENCE_MS && !atomic_load(&post->done); i++) {
        a_moment();
    }
    assert_true(atomic_load(&post->done));
}

static void post_free(struct post *post)
{
    http_stream_unref(post->response.stream);
    call_unref(post->response.call);
    buf_done(&post->response.body);
}

static int send_message(const char *session, const char *body)
{
    struct post post;
    post_init(&post, session, body);
    post_start(&post);
    post_wait(&post);
    int status = post.response.status;
    post_free(&post);
    return status;
}

#define INITIALIZE(version)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"                     \
    "\"protocolVersion\":\"" version "\",\"capabilities\":{\"sampling\":{}},"                  \
    "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
#define CALL(id, tool, more)                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":" id                                                          \
    ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\"" more "}}"
#define PROGRESS ",\"_meta\":{\"progressToken\":\"p\"}"

static void open_session(const char *initialize, char session[MCP_HTTP_SESSION_MAX])
{
    struct post post;
    post_init(&post, NULL, initialize);
    post_start(&post);
    post_wait(&post);
    assert_int_equal(post.response.status, 200);
    memcpy(session, post.response.session_id, MCP_HTTP_SESSION_MAX);
    assert_true(session[0] != '\0');
    post_free(&post);
}

static void get(struct post *post, const char *session, const char *last_event_id)
{
    post_init(post, session, "");
    post->request.method = HTTP_GET;
    if (last_event_id != NULL) {
        post->request.last_event_id = ng_str_of(last_event_id);
    }
    post_start(post);
    post_wait(post);
    assert_int_equal(post->response.kind, MCP_HTTP_STREAM);
}

static void wait_waiting(int count)
{
    for (int i = 0; i < PATIENCE_MS && test_tools_waiting() != count; i++) {
        a_moment();
    }
    assert_int_equal(test_tools_waiting(), count);
}

static void hang_up_post(struct post *post)
{
    hang_up(post->response.stream);
}

static void leaving_a_stream_cancels(void **state)
{
    struct post post;
    (void)state;
    post_init(&post, NULL,
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
              "\"t_wait\",\"_meta\":{\"progressToken\":1,"
              "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
              "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
    post.request.protocol_version = ng_str_of("2026-07-28");
    post.request.mcp_method = ng_str_of("tools/call");
    post.request.mcp_name = ng_str_of("t_wait");
    post_start(&post);
    post_wait(&post);
    assert_int_equal(post.response.kind, MCP_HTTP_STREAM);
    wait_waiting(1);
    hang_up_post(&post);
    wait_waiting(0);
    post_free(&post);
}

static void leaving_a_batch_cancels_all_of_it(void **state)
{
    struct post post;
    (void)state;
    post_init(&post, NULL, "[" CALL("1", "t_wait", PROGRESS) "," CALL("2", "t_wait", "") "]");
    post_start(&post);
    post_wait(&post);
    wait_waiting(2);
    hang_up_post(&post);
    wait_waiting(0);
    post_free(&post);
}

/* Its answer is there, and was not read. */
static void leaving_an_answered_batch(void **state)
{
    struct post post;
    (void)state;
    post_init(&post, NULL, "[" CALL("1", "t_wait", PROGRESS) "," CALL("2", "t_wait", "") "]");
    post_start(&post);
    post_wait(&post);
    wait_waiting(2);
    int wakes = atomic_load(&post.response.stream->wakes);
    test_tools_release(true);
    for (int i = 0; i < PATIENCE_MS && atomic_load(&post.response.stream->wakes) == wakes;
         i++) {
        a_moment();
    }
    assert_true(atomic_load(&post.response.stream->wakes) > wakes);
    hang_up_post(&post);
    post_free(&post);
}

static void a_client_that_takes_only_events(void **state)
{
    struct post post;
    struct buf out;
    (void)state;
    buf_init(&out, 65536);
    post_init(&post, NULL, CALL("1", "t_wait", PROGRESS));
    post.request.accept = ng_str_of("text/event-stream");
    post_start(&post);
    post_wait(&post);
    assert_int_equal(post.response.kind, MCP_HTTP_STREAM);
    wait_waiting(1);
    test_tools_release(true);
    read_until(post.response.stream, NULL, &out);
    assert_non_null(strstr(buf_cstr(&out), "\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\""));
    assert_null(strstr(buf_cstr(&out), "data: event"));
    post_free(&post);
    buf_done(&out);
}

static void leaving_a_plain_batch_cancels_all_of_it(void **state)
{
    struct post post;
    (void)state;
    post_init(&post, NULL, "[" CALL("1", "t_wait", "") "," CALL("2", "t_wait", "") "]");
    post_start(&post);
    wait_waiting(2);
    assert_non_null(post.response.call);
    call_cancel(post.response.call);
    wait_waiting(0);
    post_wait(&post);
    post_free(&post);
}

static void leaving_a_session_does_not_cancel(void **state)
{
    char session[MCP_HTTP_SESSION_MAX];
    struct post post;
    struct post again;
    struct buf out;
    (void)state;
    buf_init(&out, 65536);
    open_session(INITIALIZE("2025-11-25"), session);
    post_init(&post, session, CALL("1", "t_wait", PROGRESS));
    post_start(&post);
    post_wait(&post);
    assert_non_null(post.response.left);
    wait_waiting(1);
    hang_up_post(&post);
    mcp_http_age(mcp, (int64_t)2 * 3600 * 1000); /* a call under way is no silence */
    assert_int_equal(
        send_message(session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"), 200);
    test_tools_release(true);
    get(&again, session, "1-0");
    read_until(again.response.stream, NULL, &out);
    assert_non_null(strstr(buf_cstr(&out), "notifications/progress"));
    assert_non_null(strstr(buf_cstr(&out), "\"id\":1,\"result\""));
    post_free(&again);
    post_free(&post);
    buf_done(&out);
}

static void silence_ends_a_session(void **state)
{
    char session[MCP_HTTP_SESSION_MAX];
    struct post own;
    (void)state;
    open_session(INITIALIZE("2025-11-25"), session);
    get(&own, session, NULL);
    mcp_http_age(mcp, (int64_t)2 * 3600 * 1000); /* nor is an open stream */
    assert_int_equal(
        send_message(session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"), 200);
    post_free(&own);
    mcp_http_age(mcp, (int64_t)2 * 3600 * 1000);
    assert_int_equal(
        send_message(session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"), 404);
}

/* ---- questions ---- */

static void start_asking(struct post *post, const char *session, struct buf *out)
{
    post_init(post, session, CALL("1", "t_ask", ""));
    post_start(post);
    post_wait(post);
    assert_int_equal(post->response.kind, MCP_HTTP_STREAM);
    read_until(post->response.stream, "\"id\":1,\"method\":\"sampling/createMessage\"", out);
}

static void asks_and_runs_again(void **state)
{
    char session[MCP_HTTP_SESSION_MAX];
    struct post post;
    struct buf out;
    (void)state;
    buf_init(&out, 65536);
    open_session(INITIALIZE("2025-11-25"), session);
    start_asking(&post, session, &out);
    assert_int_equal(send_message(session, "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}"),
                     202);
    assert_int_equal(send_message(session, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"),
                     202);
    read_until(post.response.stream, NULL, &out);
    assert_non_null(strstr(buf_cstr(&out), "\"text\":\"asked\""));
    post_free(&post);
    buf_done(&out);
}

static void nobody_answers(void **state)
{
    char session[MCP_HTTP_SESSION_MAX];
    struct post post;
    struct buf out;
    (void)state;
    buf_init(&out, 65536);
    open_session(INITIALIZE("2025-11-25"), session);
    start_asking(&post, session, &out);
    mcp_http_age(mcp, MCP_CLIENT_REQUEST_WAIT_MS + 1);
    read_until(post.response.stream, NULL, &out);
    assert_non_null(strstr(buf_cstr(&out), "did not answer the question"));
    assert_non_null(strstr(buf_cstr(&out), "notifications/cancelled"));
    post_free(&post);
    buf_done(&out);
}

static void the_end_ends_the_waiting(void **state)
{
    char session[MCP_HTTP_SESSION_MAX];
    struct post post;
    struct buf out;
    (void)state;
    buf_init(&out, 65536);
    open_session(INITIALIZE("2025-11-25"), session);
    start_asking(&post, session, &out);
    mcp_http_cancel_all(mcp);
    read_until(post.response.stream, NULL, &out);
    post_free(&post);
    buf_done(&out);
}

/* ---- races ---- */

struct racer {
    const char *session;
    const char *body;
};

static void *send_it(void *user)
{
    struct racer *racer = user;
    (void)send_message(racer->session, racer->body);
    return NULL;
}

/* The answer, cancelling and the client's leaving at the same moment: one of them wins, nothing
 * is lost or freed twice. */
static void answer_cancel_and_leave_at_once(void **state)
{
    char session[MCP_HTTP_SESSION_MAX];
    (void)state;
    open_session(INITIALIZE("2025-11-25"), session);
    for (int i = 1; i <= ROUNDS; i++) {
        struct post post;
        struct buf out;
        char asked[64];
        char answer[64];
        pthread_t threads[2];
        buf_init(&out, 65536);
        post_init(&post, session, CALL("1", "t_ask", ""));
        post_start(&post);
        post_wait(&post);
        (void)snprintf(asked, sizeof(asked), "\"id\":%d,\"method\"", i);
        read_until(post.response.stream, asked, &out);
        (void)snprintf(answer, sizeof(answer), "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}",
                       i);
        struct racer racers[2] = {
            {session, answer},
            {session, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                      "\"requestId\":1}}"},
        };
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(pthread_create(&threads[k], NULL, send_it, &racers[k]), 0);
        }
        if (i % 2 == 0) {
            hang_up_post(&post);
        } else {
            read_until(post.response.stream, NULL, &out);
        }
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(pthread_join(threads[k], NULL), 0);
        }
        post_free(&post);
        buf_done(&out);
    }
}

static void *delete_it(void *user)
{
    struct post post;
    post_init(&post, user, "");
    post.request.method = HTTP_DELETE;
    post_start(&post);
    post_free(&post);
    return NULL;
}

/* A question is on its way to a session that ends: nothing of the answered call is used. */
static void ask_and_end_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        char session[MCP_HTTP_SESSION_MAX];
        struct post post;
        pthread_t thread;
        open_session(INITIALIZE("2025-11-25"), session);
        post_init(&post, session, CALL("1", "t_ask", ""));
        post.request.accept = ng_str_of(i % 2 == 0 ? "application/json" : "*/*");
        assert_int_equal(pthread_create(&thread, NULL, delete_it, session), 0);
        post_start(&post);
        assert_int_equal(pthread_join(thread, NULL), 0);
        post_wait(&post);
        post_free(&post);
    }
}

static void *hang_up_thread(void *user)
{
    hang_up_post(user);
    return NULL;
}

static void *release_thread(void *user)
{
    (void)user;
    test_tools_release(true);
    return NULL;
}

/* Without a session: the call ends by itself while its client leaves. */
static void end_and_leave_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct post post;
        pthread_t threads[2];
        test_tools_release(false);
        post_init(&post, NULL,
                  i % 2 == 0 ? CALL("1", "t_wait", PROGRESS)
                             : "[" CALL("1", "t_wait", PROGRESS) "," CALL("2", "t_wait",
                                                                          PROGRESS) "]");
        post_start(&post);
        post_wait(&post);
        assert_int_equal(pthread_create(&threads[0], NULL, hang_up_thread, &post), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, release_thread, NULL), 0);
        assert_int_equal(pthread_join(threads[0], NULL), 0);
        assert_int_equal(pthread_join(threads[1], NULL), 0);
        post_free(&post);
        wait_waiting(0);
    }
}

/* A call of a session continues if its client leaves before the first message; no stream is
 * opened for a client that is gone. */
static void leaving_before_anything_was_said(void **state)
{
    struct post held[HELD];
    struct post post;
    char session[MCP_HTTP_SESSION_MAX];
    (void)state;
    open_session(INITIALIZE("2025-11-25"), session);
    for (int i = 0; i < HELD; i++) {
        post_init(&held[i], NULL, CALL("1", "t_wait", ""));
        post_start(&held[i]);
    }
    for (int i = 0; i < PATIENCE_MS && test_tools_waiting() < HELD; i++) {
        a_moment();
    }
    assert_int_equal(test_tools_waiting(), HELD);
    post_init(&post, session, CALL("2", "t_wait", PROGRESS));
    post_start(&post);
    assert_non_null(post.response.call);
    assert_non_null(post.response.left);
    post.response.left(post.response.left_user);
    assert_false(call_has(post.response.call, CALL_CANCELLED));
    assert_false(atomic_load(&post.done));
    test_tools_release(true);
    post_wait(&post);
    assert_int_equal(post.response.kind, MCP_HTTP_BODY);
    assert_null(post.response.stream);
    assert_int_equal(post.response.status, 200);
    post_free(&post);
    for (int i = 0; i < HELD; i++) {
        post_wait(&held[i]);
        post_free(&held[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(leaving_a_stream_cancels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaving_a_batch_cancels_all_of_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaving_an_answered_batch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_takes_only_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ask_and_end_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaving_a_plain_batch_cancels_all_of_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(leaving_a_session_does_not_cancel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaving_before_anything_was_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(silence_ends_a_session, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asks_and_runs_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_ends_the_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answer_cancel_and_leave_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(end_and_leave_at_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
