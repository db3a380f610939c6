/* SPDX-License-Identifier: MIT */
/* mcp_server.c - jobs, batches and the method table: from a text to its answers, whatever
 * transport it came by. */
#include "mcp_server.h"

#include <stddef.h>
#include <stdio.h>

#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/pool.h"
#include "core/dispatch/dispatch.h"
#include "mcp_resources.h"

/* ---- answers ---- */

struct buf *mcp_answer_open(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    if (job->is_batch) {
        lock_take(&job->lock);
    }
    exchange->answer_at = job->out->len;
    if (job->is_batch) {
        buf_add_char(job->out, job->has_items ? ',' : '[');
        job->has_items = true;
    }
    return job->out;
}

/* An answer that does not fit is replaced by an error that says so. */
static void answer_overflow(struct mcp_exchange *exchange)
{
    struct buf *out = exchange->job->out;
    const char *sentence = "the gateway ran out of memory";
    if (out->rc == NG_ETOOLARGE) {
        sentence = "the answer is larger than this gateway allows; ask for less";
    }
    bool first = out->len > 0 && exchange->answer_at == exchange->job->out_start;
    out->len = exchange->answer_at;
    out->rc = NG_OK;
    if (exchange->job->is_batch) {
        buf_add_char(out, first ? '[' : ',');
    }
    mcp_print_error(out, exchange->message.id, MCP_INTERNAL_ERROR, ng_str_of(sentence),
                    STR_NONE);
    if (out->rc != NG_OK) {
        out->len = exchange->answer_at; /* not even that: the status speaks */
        exchange->job->status = 500;
    }
}

void mcp_answer_close(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    if (job->out->rc != NG_OK) {
        answer_overflow(exchange);
    }
    if (job->is_batch) {
        lock_release(&job->lock);
    }
}

void mcp_result_begin(struct mcp_exchange *exchange, struct buf *out)
{
    buf_add_c(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    mcp_print_id(out, exchange->message.id);
    buf_add_c(out, ",\"result\":{");
}

void mcp_result_end(struct mcp_exchange *exchange, const char *type, struct ng_str meta)
{
    struct buf *out = exchange->job->out;
    static const char stateless[] =
        "\",\"_meta\":{\"" MCP_META_SERVER_INFO
        "\":{\"name\":\"notegate\",\"version\":\"" NOTEGATE_VERSION "\"}";
    bool is_stateless = mcp_is_stateless(exchange->terms.version);
    if ((is_stateless || meta.len > 0) && out->len > 0 && out->data[out->len - 1] != '{') {
        buf_add_char(out, ',');
    }
    if (is_stateless) {
        buf_add_c(out, "\"resultType\":\"");
        buf_add_c(out, type);
        buf_add(out, stateless, sizeof(stateless) - 1);
        if (meta.len > 0) {
            buf_add_char(out, ',');
        }
    } else if (meta.len > 0) {
        buf_add_c(out, "\"_meta\":{");
    }
    buf_add_str(out, meta);
    if (is_stateless || meta.len > 0) {
        buf_add_char(out, '}');
    }
    buf_add_c(out, "}}");
}

void mcp_answer_error(struct mcp_exchange *exchange, int status, int code,
                      struct ng_str message, struct ng_str data)
{
    struct buf *out = mcp_answer_open(exchange);
    mcp_print_error(out, exchange->message.id, code, message, data);
    if (!exchange->job->is_batch) {
        exchange->job->status = status;
    }
    mcp_answer_close(exchange);
}

struct buf *mcp_result_open(struct mcp_exchange *exchange)
{
    struct buf *out = mcp_answer_open(exchange);
    mcp_result_begin(exchange, out);
    return out;
}

void mcp_result_close(struct mcp_exchange *exchange, struct ng_str meta)
{
    mcp_result_end(exchange, "complete", meta);
    mcp_answer_close(exchange);
}

int mcp_answer_done(struct mcp_exchange *exchange)
{
    (void)mcp_result_open(exchange);
    mcp_result_close(exchange, STR_NONE);
    return NG_OK;
}

int mcp_refuse(struct mcp_exchange *exchange, int status, int code, const char *sentence)
{
    mcp_answer_error(exchange, status, code, ng_str_of(sentence), STR_NONE);
    return NG_OK;
}

int mcp_refuse_params(struct mcp_exchange *exchange, const char *sentence)
{
    return mcp_refuse(exchange, 200, MCP_INVALID_PARAMS, sentence);
}

int mcp_refuse_oom(struct mcp_exchange *exchange)
{
    return mcp_refuse(exchange, 500, MCP_INTERNAL_ERROR, "the gateway ran out of memory");
}

static void answer_refusal(struct mcp_exchange *exchange)
{
    const struct mcp_terms *terms = &exchange->terms;
    struct buf data;
    buf_init(&data, 2 * (size_t)MCP_SENTENCE_MAX + 6 * terms->requested.len);
    if (terms->says_supported) {
        buf_add_c(&data, "{\"supported\":");
        mcp_print_versions(&data);
        buf_add_c(&data, ",\"requested\":");
        buf_add_json(&data, terms->requested);
        buf_add_char(&data, '}');
    }
    mcp_answer_error(exchange, terms->status, terms->code, ng_str_of(terms->message),
                     buf_str_or(&data, STR_NONE));
    buf_done(&data);
}

/* ---- messages ---- */

static const struct mcp_method *find_method(const struct mcp_methods *methods,
                                            struct ng_str name)
{
    for (size_t i = 0; i < methods->count; i++) {
        if (str_is(name, methods->items[i].name)) {
            return &methods->items[i];
        }
    }
    return NULL;
}

static void run_notification(struct mcp_exchange *exchange)
{
    const struct mcp_message *message = &exchange->message;
    struct mcp_session *session = exchange->job->session;
    if (session != NULL && str_is(message->method, "notifications/cancelled")) {
        const struct ng_value *id = json_get(message->params, "requestId");
        if (id != NULL) {
            mcp_session_cancel(session, id);
        }
    }
    if (session != NULL && str_is(message->method, "notifications/initialized")) {
        mcp_session_subscribed(exchange);
    }
}

static int run_request(struct mcp_exchange *exchange)
{
    const struct mcp_message *message = &exchange->message;
    if (exchange->job->is_full) {
        return mcp_refuse(exchange, 503, 503,
                          "too many requests are in flight on this connection; wait for "
                          "answers, then send the request again");
    }
    bool stateless = mcp_is_stateless(exchange->terms.version);
    unsigned version = MCP_VERSIONS_HANDSHAKE;
    if (stateless) {
        version = MCP_VERSIONS_STATELESS;
    }
    const struct mcp_method *method = find_method(exchange->job->methods, message->method);
    if (method == NULL || (method->versions & version) == 0) {
        struct ng_str sentence = arena_printf(
            &exchange->job->call->arena, "this gateway has no method \"%.*s\" in MCP %s",
            (int)(size_min(message->method.len, MCP_SENTENCE_MAX)), message->method.data,
            mcp_version_text(exchange->terms.version));
        mcp_answer_error(exchange, stateless ? 404 : 200, MCP_METHOD_NOT_FOUND, sentence,
                         STR_NONE);
        return NG_OK;
    }
    if (exchange->job->is_batch && method->handle == mcp_initialize) {
        return mcp_refuse(exchange, 400, MCP_INVALID_REQUEST,
                          "`initialize` cannot be part of a batch");
    }
    if (!mcp_rate_take(exchange, method)) {
        return NG_OK;
    }
    return method->handle(exchange);
}

static void release_call(void *object)
{
    call_unref(object);
}

int mcp_keep_call(struct call *call, struct call *kept)
{
    call_ref(kept);
    return call_pin(call, release_call, kept);
}

/* A batch's requests run as calls of their own. They keep the job's call, which owns their
 * arguments: a tool may run on after its answer was given. */
static int give_call(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    if (!job->is_batch || exchange->message.kind != MCP_REQUEST) {
        exchange->call = job->call;
        return NG_OK;
    }
    struct call *call = call_new(job->gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        call->face = job->call->face;
        rc = auth_apply(job->caller, call);
    }
    if (rc == NG_OK) {
        rc = mcp_keep_call(call, job->call);
    }
    if (rc != NG_OK) {
        call_unref(call);
        (void)mcp_refuse_oom(exchange);
        return NG_EINTERNAL;
    }
    lock_take(&job->lock);
    exchange->call = call;
    lock_release(&job->lock);
    if (call_has(job->call, CALL_CANCELLED)) {
        call_cancel(call);
    }
    return NG_OK;
}

void mcp_exchange_give_call(struct mcp_exchange *exchange, struct call *call)
{
    struct mcp_job *job = exchange->job;
    if (job->is_batch) {
        lock_take(&job->lock); /* mcp_job_cancel() reads it */
    }
    struct call *before = exchange->call;
    exchange->call = call;
    if (job->is_batch) {
        lock_release(&job->lock);
    }
    if (before != job->call) {
        call_unref(before);
    }
}

/* The next call of a batch that is still to be cancelled, with a reference. */
static struct call *take_uncancelled(struct mcp_job *job)
{
    struct call *call = NULL;
    lock_take(&job->lock);
    for (size_t i = 0; i < job->count && call == NULL; i++) {
        struct call *of = job->many[i].call;
        if (of != NULL && of != job->call && !call_has(of, CALL_CANCELLED)) {
            call = of;
            call_ref(call);
        }
    }
    lock_release(&job->lock);
    return call;
}

void mcp_job_cancel(struct mcp_job *job)
{
    if (!job->is_batch) {
        call_cancel(job->call);
        return;
    }
    struct call *call;
    while ((call = take_uncancelled(job)) != NULL) {
        call_cancel(call);
        call_unref(call);
    }
}

/* The call of a batch runs no tool: cancelling it cancels the others. */
static void batch_cancelled(struct call *call, void *user)
{
    (void)call;
    mcp_job_cancel(user);
}

static int run_message(struct mcp_exchange *exchange, const struct ng_value *value)
{
    struct mcp_job *job = exchange->job;
    const char *error = "";
    exchange->is_inflight = false;
    exchange->progress_token = NULL;
    exchange->run = NULL;
    exchange->rounds = 0;
    exchange->taken_back = false;
    atomic_init(&exchange->answered, false);
    atomic_init(&exchange->waits, MCP_WAITS_NOT);
    if (mcp_message_read(value, &exchange->message, &error) != NG_OK) {
        return mcp_refuse(exchange, 400, MCP_INVALID_REQUEST, error);
    }
    enum mcp_version agreed = MCP_VERSION_NONE;
    if (job->session != NULL) {
        agreed = (enum mcp_version)atomic_load(&job->session->version);
    }
    bool fits = mcp_version_decide(&exchange->message, job->headers, agreed, &exchange->terms);
    if (fits && exchange->message.kind == MCP_RESPONSE) {
        fits = !mcp_is_stateless(exchange->terms.version);
        if (!fits) {
            exchange->terms.code = MCP_INVALID_REQUEST;
            exchange->terms.status = 400;
            (void)snprintf(exchange->terms.message, sizeof(exchange->terms.message),
                           "this version of MCP has no answers from the client; send the "
                           "request again with `inputResponses`");
        }
    }
    if (!fits) {
        if (exchange->message.kind == MCP_REQUEST || job->transport->is_http) {
            answer_refusal(exchange);
        }
        return NG_OK;
    }
    if (exchange->message.kind == MCP_RESPONSE) {
        if (job->session != NULL) {
            (void)mcp_session_answer(job->session, exchange->message.id, value);
        }
        return NG_OK;
    }
    if (exchange->message.kind != MCP_REQUEST) {
        run_notification(exchange);
        return NG_OK;
    }
    if (give_call(exchange) != NG_OK) {
        return NG_OK;
    }
    mcp_take_session(exchange);
    mcp_take_asked(exchange);
    int rc = mcp_take_work(exchange) ? run_request(exchange) : NG_OK;
    if (rc != NG_PENDING) {
        mcp_exchange_give_call(exchange, NULL);
    }
    return rc;
}

/* ---- jobs ---- */

static void close_job(struct mcp_job *job)
{
    if (job->is_batch) {
        if (job->has_items && buf_add_char(job->out, ']') != NG_OK) {
            job->out->len = job->out_start;
            job->status = 500;
        }
    }
    if (job->status == 200 && job->out->len == job->out_start) {
        job->status = 202;
    }
}

void mcp_exchange_finish(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    mcp_exchange_give_call(exchange, NULL);
    if (atomic_fetch_sub(&job->left, 1) == 1) {
        close_job(job);
        job->done(job);
    }
}

static int refuse_job(struct mcp_job *job, const struct ng_value *id, int code,
                      struct ng_str message)
{
    mcp_print_error(job->out, id, code, message, STR_NONE);
    job->status = 400;
    if (code == MCP_INTERNAL_ERROR) {
        job->status = 500;
    }
    return NG_OK;
}

static void destroy_lock(void *object)
{
    lock_done(object);
}

static int run_batch(struct mcp_job *job, const struct ng_value *batch)
{
    enum mcp_version version = MCP_VERSION_NONE;
    if (job->session != NULL) {
        version = (enum mcp_version)atomic_load(&job->session->version);
    }
    if (version == MCP_VERSION_NONE && job->headers != NULL) {
        version = mcp_version_parse(job->headers->version);
    }
    const char *wrong = NULL;
    if (!mcp_has_batches(version)) {
        wrong = "this version of MCP has no batches; send each message by itself";
    } else if (batch->count == 0) {
        wrong = "a batch must have a message";
    } else if (batch->count > MCP_BATCH_MAX) {
        wrong = "a batch may have 100 messages at most; send several";
    }
    if (wrong != NULL) {
        return refuse_job(job, NULL, MCP_INVALID_REQUEST, ng_str_of(wrong));
    }
    job->many = arena_zalloc(&job->call->arena, batch->count * sizeof(*job->many));
    /* The lock lives as long as the call: a cancel may come after the answer. */
    lock_init(&job->lock, LOCK_MCP_BATCH);
    if (job->many == NULL || call_pin(job->call, destroy_lock, &job->lock) != NG_OK) {
        return refuse_job(job, NULL, MCP_INTERNAL_ERROR,
                          ng_str_of("the gateway ran out of memory"));
    }
    job->is_batch = true;
    job->count = batch->count;
    atomic_store(&job->left, batch->count + 1);
    job->call->on_user = job;
    job->call->on_cancel = batch_cancelled;
    mcp_take_batch_run(job, batch);
    if (job->transport->started != NULL) {
        job->transport->started(job, job->call);
    }
    size_t done = 1;
    size_t i = 0;
    for (const struct ng_value *item = batch->first; item != NULL; item = item->next) {
        job->many[i].job = job;
        if (run_message(&job->many[i++], item) != NG_PENDING) {
            done += 1;
        }
    }
    /* The run held one itself, so no other thread can have reached zero. */
    if (atomic_fetch_sub(&job->left, done) != done) {
        return NG_PENDING;
    }
    close_job(job);
    return NG_OK;
}

/* NG_OK: job->out has the answers. */
static int refuse_no_memory(struct mcp_job *job)
{
    if (job->rate == MCP_RATE_DUE) {
        mcp_session_let_in_again(job->session); /* it may be sent again */
    }
    return refuse_job(job, NULL, MCP_INTERNAL_ERROR,
                      ng_str_of("the gateway ran out of memory"));
}

static int run_text(struct mcp_job *job)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    if (json_parse(&job->call->arena, job->text,
                   job->gateway->limits.depth + MCP_ENVELOPE_DEPTH, &value, &error) != NG_OK) {
        if (error.code == NG_EINTERNAL) {
            return refuse_no_memory(job);
        }
        if (!mcp_rate_after_parse(job, NULL)) {
            return NG_OK;
        }
        struct ng_str sentence = arena_printf(
            &job->call->arena, "the message is not JSON: %s (line %zu, column %zu)",
            error.message, error.line, error.column);
        return refuse_job(job, mcp_message_partial_id(error.partial), MCP_PARSE_ERROR,
                          str_or(sentence, ng_str_of("the message is not JSON")));
    }
    if (!mcp_rate_after_parse(job, value)) {
        return NG_OK;
    }
    if (value->type == NG_TYPE_ARRAY) {
        return run_batch(job, value);
    }
    job->one.job = job;
    if (run_message(&job->one, value) == NG_PENDING) {
        return NG_PENDING;
    }
    close_job(job);
    return NG_OK;
}

static int refuse_busy(struct mcp_job *job, const char *sentence)
{
    mcp_job_refuse_unread(job, NULL, 503, ng_str_of(sentence));
    job->retry_after_s = 1;
    if (job->rate == MCP_RATE_DUE) {
        mcp_session_let_in_again(job->session); /* it may be sent again */
    }
    return NG_OK;
}

static void run_on_worker(struct task *task)
{
    struct mcp_job *job =
        (struct mcp_job *)(void *)((char *)task - offsetof(struct mcp_job, task));
    int rc;
    job->on_loop = false;
    if (call_has(job->call, CALL_CANCELLED)) {
        rc = refuse_busy(job, "the client left, or the gateway stopped, before the message was "
                              "read");
    } else {
        rc = run_text(job);
    }
    if (rc != NG_PENDING) {
        job->done(job);
    }
}

/* A large text is parsed on a worker when it is its agent's turn. */
static int run_later(struct mcp_job *job)
{
    struct call *call = job->call;
    if (job->transport->keep(job) != NG_OK) {
        return refuse_no_memory(job);
    }
    job->task.run = run_on_worker;
    switch (pool_submit(job->gateway->pool, call->caller.agent, &job->task)) {
    case NG_OK:
        return NG_PENDING; /* the job may be gone by now */
    case NG_ERATE:
        return refuse_busy(job, "the waiting calls of this agent fill its half of "
                                "limits.queue; try again when some are done");
    case NG_EBUSY:
        return refuse_busy(job, "the waiting calls fill limits.queue; try again in a moment");
    default:
        return refuse_no_memory(job);
    }
}

int mcp_job_run(struct mcp_job *job)
{
    job->status = 200;
    job->retry_after_s = 0;
    job->out_start = job->out->len;
    job->is_batch = false;
    job->has_items = false;
    job->run[0] = '\0';
    atomic_init(&job->left, 1);
    bool later =
        job->on_loop && job->transport->keep != NULL && job->text.len > DISPATCH_INLINE_BYTES;
    if (!mcp_rate_before_parse(job)) {
        return NG_OK;
    }
    if (later) {
        return run_later(job);
    }
    return run_text(job);
}
