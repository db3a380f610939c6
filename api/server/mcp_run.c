/* SPDX-License-Identifier: MIT */
/* mcp_run.c - requests that run a plugin's code, whatever they are called: progress and log
 * messages to the client, cancellation, the answer. */
#include <stddef.h>

#include "core/keys/keys.h"
#include "mcp_client_request.h"

#include "core/base/str.h"
#include "core/call/pool.h"
#include "core/dispatch/dispatch.h"
#include "mcp_server.h"

static void inflight_remove(struct mcp_exchange *exchange)
{
    if (exchange->is_inflight) {
        exchange->taken_back =
            mcp_session_inflight_remove(exchange->job->session, &exchange->inflight) ||
            exchange->taken_back;
        exchange->is_inflight = false;
    }
}

/* The client took the question back, and wants no answer. */
static bool is_unwanted(const struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    return exchange->taken_back &&
           (job->transport->owes_answer == NULL || !job->transport->owes_answer(job));
}

static void answer_run(struct mcp_exchange *exchange)
{
    const struct mcp_run *run = exchange->run;
    inflight_remove(exchange);
    if (is_unwanted(exchange)) {
        return;
    }
    if (exchange->call->final.rc == NG_OK) {
        run->answer(exchange, exchange->call);
    } else {
        run->failed(exchange, exchange->call);
    }
}

/* NG_PENDING: the client was asked something, and the exchange is not ours any more. */
static int end_run(struct mcp_exchange *exchange)
{
    bool stateless = mcp_is_stateless(exchange->terms.version);
    bool answered = false;
    atomic_store(&exchange->answered, true);
    if (exchange->call->final.rc != NG_EINPUT) {
        answer_run(exchange);
        return NG_OK;
    }
    if (stateless) {
        inflight_remove(
            exchange); /* otherwise it stays there: it can be cancelled while it waits */
    }
    if (stateless && is_unwanted(exchange)) {
        return NG_OK;
    }
    if (mcp_client_request(exchange, &answered) == NG_PENDING) {
        return NG_PENDING;
    }
    if (!answered) {
        answer_run(exchange);
    }
    return NG_OK;
}

static void call_done(struct call *call, void *user)
{
    struct mcp_exchange *exchange = user;
    (void)call;
    if (end_run(exchange) != NG_PENDING) {
        mcp_exchange_finish(exchange);
    }
}

/* ---- while it runs ---- */

/* Room for one notification. */
#define MCP_NOTIFICATION_MAX ((size_t)256 * 1024)

static void begin_notification(struct buf *text, struct ng_writer *writer, const char *method)
{
    buf_init(text, MCP_NOTIFICATION_MAX);
    buf_printf(text,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\",\"params\":", method);
    json_writer_init(writer, text);
    json_object(writer);
}

static void notify(struct mcp_exchange *exchange, struct buf *text, struct ng_writer *writer)
{
    json_end(writer);
    buf_add_char(text, '}');
    if (text->rc == NG_OK && !atomic_load(&exchange->answered)) {
        exchange->job->transport->notify(exchange->job, buf_str(text));
    }
    buf_done(text);
}

static void call_progress(struct call *call, double done, double total, struct ng_str message,
                          void *user)
{
    struct mcp_exchange *exchange = user;
    (void)call;
    if (exchange->progressed && !(done > exchange->progress)) {
        return; /* the protocol wants it to rise */
    }
    exchange->progressed = true;
    exchange->progress = done;
    struct buf text;
    struct ng_writer writer;
    begin_notification(&text, &writer, "progress");
    json_name(&writer, "progressToken");
    json_copy(&writer, exchange->progress_token);
    json_name(&writer, "progress");
    json_number(&writer, done);
    if (total > 0) {
        json_name(&writer, "total");
        json_number(&writer, total);
    }
    if (message.len > 0) {
        json_member_string(&writer, "message", message);
    }
    notify(exchange, &text, &writer);
}

static enum mcp_log_level log_level_of(enum ng_level level)
{
    switch (level) {
    case NG_LOG_ERROR:
        return MCP_LOG_ERROR;
    case NG_LOG_WARNING:
        return MCP_LOG_WARNING;
    case NG_LOG_INFO:
        return MCP_LOG_INFO;
    default:
        return MCP_LOG_DEBUG;
    }
}

static void call_log(struct call *call, enum ng_level ng_level, const char *logger,
                     struct ng_str json, void *user)
{
    struct mcp_exchange *exchange = user;
    enum mcp_log_level level = log_level_of(ng_level);
    (void)call;
    if (level < exchange->log_level) {
        return;
    }
    struct buf text;
    struct ng_writer writer;
    begin_notification(&text, &writer, "message");
    json_member_cstring(&writer, "level", mcp_log_level_text(level));
    if (logger != NULL) {
        json_member_cstring(&writer, "logger", logger);
    }
    json_name(&writer, "data");
    json_raw(&writer, json);
    notify(exchange, &text, &writer);
}

static void call_detach_client(struct call *call, int64_t retry_ms, void *user)
{
    struct mcp_exchange *exchange = user;
    (void)call;
    if (!atomic_load(&exchange->answered)) {
        exchange->job->transport->detach_client(exchange->job, retry_ms);
    }
}

static void listen_to_call(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    if (exchange->job->transport->detach_client != NULL) {
        call->on_detach_client = call_detach_client;
    }
    if (exchange->job->transport->notify == NULL) {
        return;
    }
    const struct ng_value *token = json_get(exchange->message.meta, "progressToken");
    if (token != NULL && (token->type == NG_TYPE_STRING || token->type == NG_TYPE_NUMBER)) {
        exchange->progress_token = token;
        call->on_progress = call_progress;
    }
    exchange->log_level = exchange->terms.log_level;
    if (!mcp_is_stateless(exchange->terms.version)) {
        if (exchange->job->session != NULL) {
            exchange->log_level =
                (enum mcp_log_level)atomic_load(&exchange->job->session->log_level);
        }
        if (exchange->log_level == MCP_LOG_NONE) {
            exchange->log_level = MCP_LOG_INFO;
        }
    }
    if (exchange->log_level != MCP_LOG_NONE) {
        call->on_log = call_log;
    }
}

/* ---- waiting ---- */

static void wait_is_over(struct task *task)
{
    struct mcp_exchange *exchange =
        (struct mcp_exchange *)(void *)((char *)task - offsetof(struct mcp_exchange, task));
    inflight_remove(exchange);
    exchange->over(exchange);
}

void mcp_wait_wake(struct mcp_exchange *exchange)
{
    int waits = MCP_WAITS;
    if (atomic_compare_exchange_strong(&exchange->waits, &waits, MCP_WAITS_OVER)) {
        pool_resume(exchange->job->gateway->pool, &exchange->task);
    }
}

/* The cancelling thread may hold locks: a worker does the rest. */
static void call_cancelled(struct call *call, void *user)
{
    (void)call;
    mcp_wait_wake(user);
}

static void inflight_add(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    if (job->session != NULL && !exchange->is_inflight) {
        exchange->inflight.id = exchange->message.id;
        exchange->inflight.call = exchange->call;
        exchange->is_inflight = true;
        mcp_session_inflight_add(job->session, &exchange->inflight);
    }
}

/* Before anybody else sees the call. */
static void watch_call(struct mcp_exchange *exchange)
{
    exchange->call->on_user = exchange;
    exchange->call->on_cancel = call_cancelled;
}

static void tell_started(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    if (job->transport->started != NULL && !job->is_batch) {
        job->transport->started(job, exchange->call);
    }
}

void mcp_wait(struct mcp_exchange *exchange, void (*over)(struct mcp_exchange *exchange),
              void *user)
{
    struct call *call = exchange->call;
    struct mcp_session *session = exchange->job->session;
    exchange->over = over;
    exchange->wait_user = user;
    exchange->task.run = wait_is_over;
    if (exchange->run == NULL) { /* else mcp_run() has done that */
        watch_call(exchange);
        tell_started(exchange);
    }
    call_ref(call); /* the exchange lies in its memory, or in memory that it keeps */
    inflight_add(exchange);
    if (session != NULL) {
        (void)atomic_fetch_add(&session->refs, 1);
    }
    atomic_store(&exchange->waits, MCP_WAITS);
    if (call_has(call, CALL_CANCELLED) || (session != NULL && mcp_session_has_ended(session))) {
        mcp_wait_wake(exchange);
    }
    mcp_session_unref(session);
    call_unref(call);
}

bool mcp_wait_over(struct mcp_exchange *exchange)
{
    int waits = MCP_WAITS;
    if (!atomic_compare_exchange_strong(&exchange->waits, &waits, MCP_WAITS_OVER)) {
        return false;
    }
    inflight_remove(exchange);
    return true;
}

/* ---- running ---- */

static int start_run(struct mcp_exchange *exchange)
{
    const struct mcp_run *run = exchange->run;
    if (run->step != NULL) {
        return dispatch_step(exchange->call, run->step, exchange->call->step_user);
    }
    return run->start(exchange);
}

static int begin(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    struct call *call = exchange->call;
    if (!job->is_batch) {
        call->idempotency_key = job->idempotency_key;
    }
    call->done = call_done;
    call->done_user = exchange;
    atomic_store(&exchange->answered, false);
    watch_call(exchange);
    listen_to_call(exchange);
    inflight_add(exchange);
    if (start_run(exchange) == NG_PENDING) {
        return NG_PENDING; /* it may be answered already: nothing here is ours any more */
    }
    return end_run(exchange);
}

int mcp_run(struct mcp_exchange *exchange, const struct mcp_run *run)
{
    exchange->run = run;
    exchange->progressed = false;
    if (exchange->job->on_loop) {
        exchange->call->options |= CALL_ON_LOOP;
    }
    if (!mcp_client_request_begin(exchange)) {
        return NG_OK;
    }
    tell_started(exchange);
    return begin(exchange);
}

/* ---- running again ---- */

/* A call like the one before: the same caller; the request is in the job's memory. */
static struct call *call_again(struct mcp_exchange *exchange)
{
    const struct call *before = exchange->call;
    const struct ng_caller *caller = &before->caller;
    struct call *call = call_new(exchange->job->gateway);
    struct ng_str space = {NULL, 0};
    if (call == NULL) {
        return NULL;
    }
    if (caller->space_named) {
        space = caller->space;
    }
    int rc =
        call_set_caller(call, caller->agent, space, caller->role, caller->mode, caller->run);
    if (rc == NG_OK && caller->spaces != NULL) {
        rc = call_allow_spaces(call, caller->spaces, caller->space_count, caller->all_spaces);
    }
    if (mcp_keep_call(call, exchange->job->call) != NG_OK || rc != NG_OK) {
        call_unref(call);
        return NULL;
    }
    /* Copies: in a batch the call before goes. */
    call_take_origin(call, before);
    call->ask_state_in = arena_copy(&call->arena, mcp_ask_state(before));
    call->client_asks = before->client_asks;
    call->options |= CALL_NO_RATE; /* the answer to our question is no new call */
    return call;
}

void mcp_run_again(struct mcp_exchange *exchange, const struct ng_value *answers)
{
    struct call *call = call_again(exchange);
    if (call == NULL) {
        mcp_run_fail(exchange, NG_EINTERNAL, "the gateway ran out of memory");
        return;
    }
    call->ask_answers = answers;
    mcp_exchange_give_call(exchange, call);
    if (begin(exchange) != NG_PENDING) {
        mcp_exchange_finish(exchange);
    }
}

void mcp_run_set_result(struct mcp_exchange *exchange, int rc, const char *sentence)
{
    struct result *result = &exchange->call->final;
    memset(result, 0, sizeof(*result));
    result->rc = rc;
    result->code = error_name(NULL, rc);
    result->status = error_status(NULL, rc);
    result->message = arena_copy(&exchange->call->arena, ng_str_of(sentence));
    if (result->message.data == NULL) {
        result->message = ng_str_of("the gateway ran out of memory");
    }
}

void mcp_run_fail(struct mcp_exchange *exchange, int rc, const char *sentence)
{
    mcp_run_set_result(exchange, rc, sentence);
    answer_run(exchange);
    mcp_exchange_finish(exchange);
}
