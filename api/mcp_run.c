/* SPDX-License-Identifier: MIT */
/* mcp_run.c - requests that run a plugin's code, whatever they are called: progress and log
 * messages to the client, cancellation, the answer. */
#include "mcp_server.h"

#include <stddef.h>

#include "pool.h"
#include "str.h"

/* Prints the answer, unless the client took the question back. */
static void end_run(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    atomic_store(&exchange->answered, true);
    bool cancelled = exchange->departed && mcp_session_land(job->session, &exchange->flight);
    if (!cancelled || job->face->answers_cancelled) {
        exchange->run->answer(exchange);
    }
}

static void call_done(struct call *call, void *user)
{
    struct mcp_exchange *exchange = user;
    (void)call;
    end_run(exchange);
    mcp_exchange_finish(exchange);
}

/* ---- while it runs ---- */

/* Room for one notification. */
#define MCP_NOTIFICATION_MAX ((size_t)256 * 1024)

static void notify(struct mcp_exchange *exchange, struct buf *text)
{
    if (text->rc == NG_OK && !atomic_load(&exchange->answered)) {
        exchange->job->face->notify(exchange->job, buf_str(text));
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
    buf_init(&text, MCP_NOTIFICATION_MAX);
    buf_add_c(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":");
    json_writer_init(&writer, &text);
    json_object(&writer);
    json_name(&writer, "progressToken");
    json_copy(&writer, exchange->progress_token);
    json_name(&writer, "progress");
    json_number(&writer, done);
    if (total > 0) {
        json_name(&writer, "total");
        json_number(&writer, total);
    }
    if (message.len > 0) {
        json_name(&writer, "message");
        json_string(&writer, message);
    }
    json_end(&writer);
    buf_add_char(&text, '}');
    notify(exchange, &text);
}

static enum mcp_log_level log_level_of(enum ng_level level)
{
    return level == NG_LOG_ERROR     ? MCP_LOG_ERROR
           : level == NG_LOG_WARNING ? MCP_LOG_WARNING
           : level == NG_LOG_INFO    ? MCP_LOG_INFO
                                     : MCP_LOG_DEBUG;
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
    buf_init(&text, MCP_NOTIFICATION_MAX);
    buf_add_c(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":");
    json_writer_init(&writer, &text);
    json_object(&writer);
    json_name(&writer, "level");
    json_cstring(&writer, mcp_log_level_text(level));
    if (logger != NULL) {
        json_name(&writer, "logger");
        json_cstring(&writer, logger);
    }
    json_name(&writer, "data");
    json_raw(&writer, json);
    json_end(&writer);
    buf_add_char(&text, '}');
    notify(exchange, &text);
}

static void listen_to_call(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    if (exchange->job->face->notify == NULL) {
        return;
    }
    const struct ng_value *token = json_get(exchange->message.meta, "progressToken");
    call->on_user = exchange;
    if (token != NULL && (token->type == NG_TYPE_STRING || token->type == NG_TYPE_NUMBER)) {
        exchange->progress_token = token;
        call->on_progress = call_progress;
    }
    exchange->log_level = exchange->terms.log_level;
    if (!mcp_is_stateless(exchange->terms.version)) {
        int level = exchange->job->session == NULL
                        ? MCP_LOG_NONE
                        : atomic_load(&exchange->job->session->log_level);
        exchange->log_level = level == MCP_LOG_NONE ? MCP_LOG_INFO : (enum mcp_log_level)level;
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
    if (exchange->departed) {
        (void)mcp_session_land(exchange->job->session, &exchange->flight);
        exchange->departed = false;
    }
    exchange->over(exchange);
}

/* Whoever cancels may hold locks: the rest is a worker's. */
static void wait_cancelled(struct call *call, void *user)
{
    struct mcp_exchange *exchange = user;
    (void)call;
    int waits = MCP_WAITS;
    if (atomic_compare_exchange_strong(&exchange->waits, &waits, MCP_WAITS_OVER)) {
        pool_resume(exchange->job->gateway->pool, &exchange->task);
    }
}

void mcp_wait(struct mcp_exchange *exchange, void (*over)(struct mcp_exchange *exchange),
              void *user)
{
    struct mcp_job *job = exchange->job;
    struct call *call = exchange->call;
    exchange->over = over;
    exchange->wait_user = user;
    exchange->task.run = wait_is_over;
    atomic_store(&exchange->waits, MCP_WAITS);
    call->on_user = exchange;
    call->on_cancel = wait_cancelled;
    if (job->session != NULL && !exchange->departed) {
        exchange->flight.id = exchange->message.id;
        exchange->flight.call = call;
        exchange->departed = true;
        mcp_session_depart(job->session, &exchange->flight);
    }
    if (job->face->started != NULL) {
        job->face->started(job, call);
    }
}

bool mcp_wait_over(struct mcp_exchange *exchange)
{
    int waits = MCP_WAITS;
    if (!atomic_compare_exchange_strong(&exchange->waits, &waits, MCP_WAITS_OVER)) {
        return false;
    }
    if (exchange->departed) {
        (void)mcp_session_land(exchange->job->session, &exchange->flight);
        exchange->departed = false;
    }
    return true;
}

/* ---- running ---- */

int mcp_run(struct mcp_exchange *exchange, const struct mcp_run *run)
{
    struct mcp_job *job = exchange->job;
    struct call *call = exchange->call;
    exchange->run = run;
    call->idempotency_key = job->is_batch ? str_make(NULL, 0) : job->idempotency_key;
    call->on_loop = job->on_loop;
    call->done = call_done;
    call->done_user = exchange;
    atomic_init(&exchange->answered, false);
    exchange->progressed = false;
    listen_to_call(exchange);
    if (job->session != NULL) {
        exchange->flight.id = exchange->message.id;
        exchange->flight.call = call;
        exchange->departed = true;
        mcp_session_depart(job->session, &exchange->flight);
    }
    if (job->face->started != NULL) {
        job->face->started(job, call);
    }
    if (run->start(exchange) == NG_PENDING) {
        return NG_PENDING; /* it may be answered already: nothing here is ours any more */
    }
    end_run(exchange);
    return NG_OK;
}
