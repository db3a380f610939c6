/* SPDX-License-Identifier: MIT */
/* mcp_tasks_older.c - what only 2025-11-25 has of tasks: tasks/result, which answers when the
 * task is over, and tasks/list. */
#include "mcp_task_request.h"
#include "str.h"

static const struct ng_str no_text = {NULL, 0};

/* ---- tasks/result ---- */

static int wait_step(struct ng_call *pub, void *user);

static enum ng_ask_kind kind_of(const struct ng_value *ask)
{
    const struct ng_value *method = json_get(ask, "method");
    const struct ng_value *params = json_get(ask, "params");
    if (method != NULL && str_is(method->text, "sampling/createMessage")) {
        return NG_ASK_MODEL;
    }
    if (method != NULL && str_is(method->text, "roots/list")) {
        return NG_ASK_ROOTS;
    }
    const struct ng_value *mode = json_get(params, "mode");
    return mode != NULL && str_is(mode->text, "url") ? NG_ASK_URL : NG_ASK_FORM;
}

/* The params of a question, and in their _meta which task it is about. */
static struct ng_str params_of(struct call *call, const struct ng_value *ask, struct ng_str id)
{
    const struct ng_value *params = json_get(ask, "params");
    struct ng_str copy = no_text;
    struct buf text;
    struct ng_writer writer;
    buf_init(&text, CALL_MEMORY_MAX);
    json_writer_init(&writer, &text);
    json_object(&writer);
    for (const struct ng_value *at = params == NULL ? NULL : params->first; at != NULL;
         at = at->next) {
        if (!str_is(at->key, "_meta")) {
            json_name_str(&writer, at->key);
            json_copy(&writer, at);
        }
    }
    json_name(&writer, "_meta");
    json_object(&writer);
    json_name(&writer, MCP_TASKS_RELATED);
    json_object(&writer);
    json_name(&writer, "taskId");
    json_string(&writer, id);
    json_end(&writer);
    json_end(&writer);
    json_end(&writer);
    if (text.rc == NG_OK) {
        copy = arena_copy(&call->arena, buf_str(&text));
    }
    buf_done(&text);
    return copy;
}

static void release_call(void *object)
{
    call_unref(object);
}

/* The task waits for input, and this request is where the client is asked. NG_EINPUT: it is
 * now, and the request runs again with the answers. */
static int ask_step(struct ng_call *pub, struct mcp_task_request *request)
{
    struct call *call = call_of(pub);
    const struct ng_value *asks = NULL;
    struct json_error error;
    bool is_open = false;
    if (json_parse(&call->arena, request->task.asks, JSON_DEPTH_DEFAULT, &asks, &error) !=
        NG_OK) {
        return call_fail(call, NG_EINTERNAL, "the stored questions of the task are broken");
    }
    for (const struct ng_value *at = asks->first; at != NULL; at = at->next) {
        const char *key = arena_copy(&call->arena, at->key).data;
        struct ng_str params = params_of(call, at, request->id);
        if (key == NULL || params.data == NULL) {
            return call_fail(call, NG_EINTERNAL, "out of memory");
        }
        is_open = pub->host->ask(pub, key, kind_of(at), params) == NULL || is_open;
    }
    if (is_open) {
        return NG_EINPUT;
    }
    request->answers = call->ask_answers;
    call->ask_answers = NULL; /* what is asked next has not been answered */
    request->prepared = mcp_task_prepare_as(call);
    if (request->prepared == NULL || call_pin(call, release_call, request->prepared) != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = mcp_task_answer(request, call);
    return rc == NG_OK ? wait_step(pub, request) : rc;
}

/* The task does not work any more, or has expired. */
static int result_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    struct call *call = call_of(pub);
    struct json_error error;
    int rc = mcp_task_view(request->tasks, call, request->id, request->owner, &request->task);
    if (rc != NG_OK) {
        return rc;
    }
    if (request->task.status == MCP_TASK_INPUT_REQUIRED) {
        return ask_step(pub, request);
    }
    if (!mcp_task_is_over(request->task.status)) {
        return call_fail(call, NG_ECANCELLED, "the request was cancelled");
    }
    if (request->task.status == MCP_TASK_CANCELLED) {
        return NG_OK;
    }
    if (json_parse(&call->arena, request->task.outcome, JSON_DEPTH_DEFAULT, &request->outcome,
                   &error) != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "the stored outcome of the task is broken");
    }
    return NG_OK;
}

static int wait_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    struct call *call = call_of(pub);
    int rc = mcp_tasks_await(request->tasks, call, request->id, request->owner, result_step,
                             request);
    return rc == NG_OK ? result_step(pub, user) : rc;
}

static int start_result(struct mcp_exchange *exchange)
{
    exchange->call->no_deadline = true; /* the task has one: it expires */
    return dispatch_step(exchange->call, wait_step, exchange->run_user);
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
        buf_add_c(out, any ? "," : "");
        buf_add_json(out, at->key);
        buf_add_char(out, ':');
        (void)json_print(out, at);
        any = true;
    }
    buf_add_c(meta, "\"" MCP_TASKS_RELATED "\":{\"taskId\":");
    buf_add_json(meta, request->id);
    buf_add_char(meta, '}');
    const struct ng_value *kept = json_get(request->outcome, "_meta");
    for (const struct ng_value *at = kept == NULL ? NULL : kept->first; at != NULL;
         at = at->next) {
        buf_add_char(meta, ',');
        buf_add_json(meta, at->key);
        buf_add_char(meta, ':');
        (void)json_print(meta, at);
    }
}

static void answer_result(struct mcp_exchange *exchange)
{
    const struct mcp_task_request *request = exchange->run_user;
    if (mcp_task_request_failed(exchange)) {
        return;
    }
    if (request->task.status == MCP_TASK_CANCELLED) {
        mcp_answer_error(exchange, 200, MCP_INVALID_PARAMS,
                         ng_str_of("the task was cancelled: it has no result"), no_text);
        return;
    }
    if (request->task.status == MCP_TASK_FAILED) {
        const struct ng_value *message = json_get(request->outcome, "message");
        mcp_answer_error(exchange, 200, MCP_INTERNAL_ERROR,
                         message != NULL ? message->text : ng_str_of("the task failed"),
                         no_text);
        return;
    }
    struct buf *out = mcp_answer_open(exchange);
    struct buf meta;
    buf_init(&meta, out->max);
    mcp_result_begin(exchange, out);
    print_outcome(out, &meta, request);
    mcp_result_end(exchange, out, meta.rc == NG_OK ? buf_str(&meta) : no_text);
    mcp_answer_close(exchange);
    buf_done(&meta);
}

int mcp_tasks_result(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_result, answer_result};
    struct mcp_task_request *request = mcp_task_request_named(exchange);
    if (request == NULL) {
        return NG_OK;
    }
    exchange->run_user = request;
    return mcp_run(exchange, &run);
}

/* ---- tasks/list ---- */

static int list_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    struct call *call = call_of(pub);
    struct arena *arena = &call->arena;
    size_t count = MCP_TASKS_PAGE + 1; /* one more tells whether there is a next page */
    char(*ids)[MCP_TASK_ID_LEN + 1] = arena_alloc(arena, count * sizeof(*ids));
    request->page = arena_zalloc(arena, MCP_TASKS_PAGE * sizeof(*request->page));
    if (ids == NULL || request->page == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    mcp_tasks_lock(request->tasks);
    bool is_known = mcp_tasks_page(request->tasks, request->owner, request->id, ids, &count);
    mcp_tasks_unlock(request->tasks);
    if (!is_known) {
        return call_fail(call, NG_EINVAL,
                         "`params.cursor` is not one of this gateway's, or it "
                         "has expired: begin again without it");
    }
    request->has_more = count > MCP_TASKS_PAGE;
    for (size_t i = 0; i < count && i < MCP_TASKS_PAGE; i++) {
        struct mcp_task *task = &request->page[request->count];
        int rc = mcp_task_view(request->tasks, call, ng_str_of(ids[i]), request->owner, task);
        if (rc == NG_OK) {
            request->count++;
        } else if (rc != NG_ENOTFOUND) {
            return rc;
        }
    }
    return NG_OK;
}

static int start_list(struct mcp_exchange *exchange)
{
    return dispatch_step(exchange->call, list_step, exchange->call->step_user);
}

static void answer_list(struct mcp_exchange *exchange)
{
    const struct mcp_task_request *request = exchange->call->step_user;
    if (mcp_task_request_failed(exchange)) {
        return;
    }
    struct buf *out = mcp_answer_open(exchange);
    mcp_result_begin(exchange, out);
    buf_add_c(out, "\"tasks\":[");
    for (size_t i = 0; i < request->count; i++) {
        buf_add_c(out, i == 0 ? "{" : ",{");
        mcp_task_print(out, &request->page[i], false, false);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
    if (request->has_more && request->count > 0) {
        buf_add_c(out, ",\"nextCursor\":");
        buf_add_json(out, request->page[request->count - 1].id);
    }
    mcp_result_end(exchange, out, no_text);
    mcp_answer_close(exchange);
}

int mcp_tasks_list(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_list, answer_list};
    struct mcp_task_request *request = mcp_task_request_new(exchange);
    const struct ng_value *cursor = json_get(exchange->message.params, "cursor");
    if (request == NULL) {
        return NG_OK;
    }
    if (cursor != NULL && cursor->type != NG_TYPE_STRING) {
        mcp_answer_error(exchange, 200, MCP_INVALID_PARAMS,
                         ng_str_of("`params.cursor` must be a string, of an earlier page"),
                         no_text);
        return NG_OK;
    }
    if (cursor != NULL) {
        request->id = cursor->text;
    }
    exchange->call->step_user = request;
    return mcp_run(exchange, &run);
}
