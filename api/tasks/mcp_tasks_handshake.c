/* SPDX-License-Identifier: MIT */
/* mcp_tasks_handshake.c - methods of tasks that only 2025-11-25 has: tasks/result, which
 * answers when the task is over, and tasks/list. */
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/dispatch/dispatch.h"
#include "mcp_task_request.h"
#include "mcp_task_table.h"

/* ---- tasks/result ---- */

unsigned mcp_task_session_asks(const struct mcp_exchange *exchange)
{
    const struct mcp_job *job = exchange->job;
    bool can =
        job->session != NULL && job->transport->ask != NULL && job->client_requests != NULL;
    if (!can) {
        return 0;
    }
    return atomic_load(&job->session->client_asks);
}

static enum ng_ask_kind kind_of(struct ng_str method, const struct ng_value *params)
{
    const struct ng_value *mode = json_get(params, "mode");
    if (str_is(method, "sampling/createMessage")) {
        return NG_ASK_MODEL;
    }
    if (str_is(method, "roots/list")) {
        return NG_ASK_ROOTS;
    }
    if (mode != NULL && str_is(mode->text, "url")) {
        return NG_ASK_URL;
    }
    return NG_ASK_FORM;
}

static void print_member(struct buf *out, const struct ng_value *member)
{
    buf_add_json(out, member->key);
    buf_add_char(out, ':');
    (void)json_print(out, member);
}

/* The params of a question of the task, and whose it is. */
static struct ng_str question_of(struct call *call, const struct ng_value *params,
                                 struct ng_str id)
{
    struct buf text;
    buf_init(&text, CALL_MEMORY_MAX);
    buf_add_char(&text, '{');
    const struct ng_value *at = json_first(params);
    for (; at != NULL; at = at->next) {
        print_member(&text, at);
        buf_add_char(&text, ',');
    }
    buf_add_c(&text, "\"_meta\":{\"" MCP_TASKS_RELATED "\":{\"taskId\":");
    buf_add_json(&text, id);
    buf_add_c(&text, "}}}");
    struct ng_str copy = {NULL, 0};
    if (text.rc == NG_OK) {
        copy = arena_copy(&call->arena, buf_str(&text));
    }
    buf_done(&text);
    return copy;
}

/* The request that asked is gone, however that came. */
static void release_question(void *object)
{
    const struct mcp_task_request *request = object;
    mcp_tasks_ask_over(request->tasks, request->id);
}

/* The questions of the task become those of the request that waits for it. */
static int ask_for_task(struct mcp_task_request *request, struct call *call)
{
    const struct ng_value *asks = NULL;
    if (call_pin(call, release_question, request) != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    call->ask_answers = NULL; /* those of the round before are with the task */
    if (json_parse(&call->arena, request->task.asks, JSON_DEPTH_DEFAULT, &asks, NULL) !=
        NG_OK) {
        return call_fail(call, NG_EINTERNAL, "the stored questions of the task are damaged");
    }
    for (const struct ng_value *at = asks->first; at != NULL; at = at->next) {
        const struct ng_value *method = json_get(at, "method");
        const struct ng_value *params = json_get(at, "params");
        struct ng_str key = arena_copy(&call->arena, at->key);
        struct ng_str text = question_of(call, params, request->id);
        if (method == NULL || key.data == NULL || text.data == NULL) {
            return call_fail(call, NG_EINTERNAL, "out of memory");
        }
        (void)call->pub.host->ask(&call->pub, key.data, kind_of(method->text, params), text);
    }
    return NG_EINPUT;
}

/* The task is over, asks something, or has expired. */
static int result_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    struct call *call = call_of(pub);
    int rc = mcp_task_view(request->tasks, call, request->id, request->owner, &request->task);
    if (rc != NG_OK) {
        return rc;
    }
    if (request->task.status == MCP_TASK_INPUT_REQUIRED && call->client_asks != 0 &&
        !call_has(call, CALL_CANCELLED) && !mcp_tasks_stopping(request->tasks)) {
        return ask_for_task(request, call);
    }
    if (!mcp_task_is_over(request->task.status)) {
        return call_fail(call, NG_ECANCELLED, "the request was cancelled");
    }
    if (request->task.status == MCP_TASK_CANCELLED) {
        return NG_OK;
    }
    if (json_parse(&call->arena, request->task.outcome, JSON_DEPTH_DEFAULT, &request->outcome,
                   NULL) != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "the stored outcome of the task is damaged");
    }
    return NG_OK;
}

static int wait_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    struct call *call = call_of(pub);
    if (request == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    if (request->answers != NULL) {
        int rc = mcp_task_request_apply(request, call);
        request->answers = NULL;
        if (rc != NG_OK) {
            return rc;
        }
    }
    mcp_task_remote_find(request->tasks, call, request->id);
    int rc = mcp_tasks_await(request->tasks, call, request->id, request->owner, result_step,
                             request);
    if (rc != NG_OK) {
        return rc;
    }
    return result_step(pub, user);
}

/* After a round of questions: the request's call is another one. NULL: out of memory. */
static struct mcp_task_request *request_again(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    struct mcp_task_request *request = arena_zalloc(&call->arena, sizeof(*request));
    const struct ng_value *id = json_get(exchange->message.params, "taskId");
    if (request == NULL || id == NULL) {
        return NULL;
    }
    request->tasks = mcp_tasks_of(call->gateway);
    request->owner = mcp_task_owner(&call->arena, call);
    request->id = id->text;
    request->answers = call->ask_answers;
    if (request->owner.data == NULL || !mcp_task_request_prepare(request, call)) {
        return NULL;
    }
    call->step_user = request;
    return request;
}

static int start_result(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    struct mcp_task_request *request = call->step_user;
    if (request == NULL) {
        request = request_again(exchange);
    }
    call->client_asks = mcp_task_session_asks(exchange);
    call->options |= CALL_NO_DEADLINE; /* the task has one: it expires */
    return dispatch_step(call, wait_step, request);
}

/* The members of the stored result, and in its _meta whose it is. */
static void print_outcome(struct buf *out, struct buf *meta,
                          const struct mcp_task_request *request)
{
    bool any = false;
    for (const struct ng_value *at = request->outcome->first; at != NULL; at = at->next) {
        if (str_is(at->key, "_meta")) {
            continue;
        }
        buf_add_c(out, text_if(any, ","));
        print_member(out, at);
        any = true;
    }
    buf_add_c(meta, "\"" MCP_TASKS_RELATED "\":{\"taskId\":");
    buf_add_json(meta, request->id);
    buf_add_char(meta, '}');
    const struct ng_value *kept = json_get(request->outcome, "_meta");
    for (const struct ng_value *at = json_first(kept); at != NULL; at = at->next) {
        buf_add_char(meta, ',');
        print_member(meta, at);
    }
}

static void answer_result(struct mcp_exchange *exchange, const struct call *call)
{
    const struct mcp_task_request *request = call->step_user;
    if (request->task.status == MCP_TASK_CANCELLED) {
        (void)mcp_refuse_params(exchange, "the task was cancelled: it has no result");
        return;
    }
    if (request->task.status == MCP_TASK_FAILED) {
        const struct ng_value *message = json_get(request->outcome, "message");
        mcp_answer_error(exchange, 200, MCP_INTERNAL_ERROR,
                         message != NULL ? message->text : ng_str_of("the task failed"),
                         STR_NONE);
        return;
    }
    struct buf *out = mcp_result_open(exchange);
    struct buf meta;
    buf_init(&meta, out->max);
    print_outcome(out, &meta, request);
    mcp_result_close(exchange, buf_str_or(&meta, STR_NONE));
    buf_done(&meta);
}

int mcp_tasks_result(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_result, answer_result, mcp_task_request_failed,
                                       NULL};
    return mcp_task_request_run(exchange, mcp_task_request_named(exchange), &run);
}

/* ---- tasks/list ---- */

/* A cursor: id and creation of the last task of the page before, "ID-MS". It holds also when
 * that one has expired meanwhile. */
#define CURSOR_DIGITS 15

static void print_cursor(struct buf *out, const struct mcp_task_place *place)
{
    buf_printf(out, ",\"nextCursor\":\"%s-%lld\"", place->id, (long long)place->created_ms);
}

static bool read_cursor(struct ng_str text, struct mcp_task_place *ret)
{
    size_t digits = MCP_TASK_ID_LEN + 1; /* the beginning of the page */
    uint64_t created_ms = 0;
    if (text.len <= digits || text.len > digits + CURSOR_DIGITS ||
        text.data[MCP_TASK_ID_LEN] != '-' || memchr(text.data, '\0', MCP_TASK_ID_LEN) != NULL ||
        !str_number(str_make(text.data + digits, text.len - digits), INT64_MAX, &created_ms)) {
        return false;
    }
    *ret = (struct mcp_task_place){.created_ms = (int64_t)created_ms};
    memcpy(ret->id, text.data, MCP_TASK_ID_LEN);
    return true;
}

static int list_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    struct call *call = call_of(pub);
    struct arena *arena = &call->arena;
    size_t count = MCP_TASKS_PAGE + 1; /* one more tells whether there is a next page */
    struct mcp_task_place *places = arena_alloc(arena, count * sizeof(*places));
    request->page = arena_zalloc(arena, MCP_TASKS_PAGE * sizeof(*request->page));
    if (places == NULL || request->page == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = mcp_task_remote_find_owned(request->tasks, call, request->owner);
    if (rc != NG_OK) {
        return rc;
    }
    mcp_tasks_lock(request->tasks);
    mcp_tasks_page(request->tasks, request->owner, request->has_place ? &request->place : NULL,
                   places, &count);
    mcp_tasks_unlock(request->tasks);
    request->has_more = count > MCP_TASKS_PAGE;
    if (request->has_more) {
        request->place = places[MCP_TASKS_PAGE - 1];
    }
    for (size_t i = 0; i < count && i < MCP_TASKS_PAGE; i++) {
        struct mcp_task *task = &request->page[request->count];
        rc = mcp_task_view(request->tasks, call, ng_str_of(places[i].id), request->owner, task);
        if (rc == NG_OK) {
            request->count++;
        } else if (rc != NG_ENOTFOUND) {
            return rc;
        }
    }
    return NG_OK;
}

static void answer_list(struct mcp_exchange *exchange, const struct call *call)
{
    const struct mcp_task_request *request = call->step_user;
    struct buf *out = mcp_result_open(exchange);
    buf_add_c(out, "\"tasks\":[");
    for (size_t i = 0; i < request->count; i++) {
        buf_add_c(out, i == 0 ? "{" : ",{");
        mcp_task_print(out, &request->page[i], false, false);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
    if (request->has_more) {
        print_cursor(out, &request->place);
    }
    mcp_result_close(exchange, STR_NONE);
}

int mcp_tasks_list(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {NULL, answer_list, mcp_task_request_failed, list_step};
    struct mcp_task_request *request = mcp_task_request_new(exchange);
    const struct ng_value *cursor = json_get(exchange->message.params, "cursor");
    if (request != NULL && cursor != NULL) {
        request->has_place = true;
        if (cursor->type != NG_TYPE_STRING || !read_cursor(cursor->text, &request->place)) {
            return mcp_refuse_params(
                exchange,
                "`params.cursor` is not a cursor of this gateway; leave it out to start again");
        }
    }
    return mcp_task_request_run(exchange, request, &run);
}
