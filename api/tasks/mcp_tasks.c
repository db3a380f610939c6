/* SPDX-License-Identifier: MIT */
/* mcp_tasks.c - the methods of tasks in all versions, and which calls of tools become tasks. */
#include <stdio.h>
#include <time.h>

#include "api/server/mcp_client_request.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/dispatch/dispatch.h"
#include "mcp_task_request.h"
#include "mcp_task_table.h"

/* ---- which calls are tasks ---- */

bool mcp_tasks_declared(const struct mcp_exchange *exchange)
{
    const struct ng_value *extensions = json_get(exchange->terms.capabilities, "extensions");
    const struct ng_value *tasks = json_get(extensions, MCP_TASKS_EXTENSION);
    return json_is(tasks, NG_TYPE_OBJECT);
}

static int answer_undeclared(struct mcp_exchange *exchange, const char *sentence)
{
    mcp_answer_error(exchange, 400, MCP_MISSING_CAPABILITY, ng_str_of(sentence),
                     ng_str_of("{\"requiredCapabilities\":{\"extensions\":{"
                               "\"" MCP_TASKS_EXTENSION "\":{}}}}"));
    return NG_OK;
}

int mcp_tasks_answer_undeclared(struct mcp_exchange *exchange)
{
    return answer_undeclared(exchange, "the client does not declare the extension for tasks");
}

static bool take_stateless(struct mcp_exchange *exchange, uint32_t flags,
                           struct mcp_task_order *order, int *ret_rc)
{
    if (!mcp_tasks_declared(exchange)) {
        if ((flags & NG_TOOL_TASK_REQUIRED) == 0) {
            return false;
        }
        *ret_rc = answer_undeclared(exchange, "this tool runs as a task only, and the client "
                                              "does not declare the extension for tasks");
        return true;
    }
    if ((flags & NG_TOOL_TASK_AFTER_ASKING) != 0) {
        if (json_get(exchange->message.params, "inputResponses") == NULL) {
            return false;
        }
        *ret_rc = NG_OK;
        if (!mcp_client_request_begin(exchange)) {
            return true; /* refused, and answered */
        }
        order->answers = exchange->call->ask_answers;
        order->state = exchange->call->ask_state_in;
    }
    order->can_ask = mcp_client_request_kinds(exchange->terms.capabilities);
    *ret_rc = mcp_task_start(exchange, order);
    return true;
}

static bool take_handshake(struct mcp_exchange *exchange, uint32_t flags,
                           struct mcp_task_order *order, int *ret_rc)
{
    const struct ng_value *task = json_get(exchange->message.params, "task");
    const struct ng_value *ttl = json_get(task, "ttl");
    const char *wrong = NULL;
    int code = MCP_METHOD_NOT_FOUND;
    if (exchange->terms.version < MCP_2025_11_25) {
        return false;
    }
    bool is_asked = task != NULL && task->type != NG_TYPE_NULL;
    if (!is_asked && (flags & NG_TOOL_TASK_REQUIRED) == 0) {
        return false;
    }
    if (!is_asked) {
        wrong = "this tool runs as a task only; call it with `params.task`";
    } else if (flags == 0) {
        wrong = "this tool does not run as a task; call it without `params.task`";
    } else if (task->type != NG_TYPE_OBJECT ||
               (ttl != NULL && ttl->type != NG_TYPE_NUMBER && ttl->type != NG_TYPE_NULL)) {
        code = MCP_INVALID_PARAMS;
        wrong = "`params.task` must be an object; its `ttl`, if any, a number of milliseconds";
    }
    if (wrong != NULL) {
        *ret_rc = mcp_refuse(exchange, 200, code, wrong);
        return true;
    }
    if (json_is(ttl, NG_TYPE_NUMBER)) {
        double asked = json_double(ttl);
        if (asked > (double)MCP_TASK_TTL_MAX_MS) {
            order->ttl_ms = MCP_TASK_TTL_MAX_MS;
        } else if (asked < (double)MCP_TASK_TTL_MIN_MS) {
            order->ttl_ms = MCP_TASK_TTL_MIN_MS;
        } else {
            order->ttl_ms = (int64_t)asked;
        }
    }
    order->can_ask = mcp_task_session_asks(exchange);
    *ret_rc = mcp_task_start(exchange, order);
    return true;
}

bool mcp_tasks_take(struct mcp_exchange *exchange, struct ng_str name,
                    const struct ng_value *arguments, int *ret_rc)
{
    const struct gateway *gateway = exchange->job->gateway;
    if (gateway->tasks.self == NULL) {
        return false;
    }
    const struct tool *tool = registry_find(gateway->registry, name);
    if (tool == NULL) {
        return false;
    }
    uint32_t flags = tool->desc.flags & (NG_TOOL_TASK_ALLOWED | NG_TOOL_TASK_REQUIRED);
    bool is_stateless = mcp_is_stateless(exchange->terms.version);
    if (flags == 0 && is_stateless) {
        return false;
    }
    struct mcp_task_order order = {
        .tool = name, .arguments = arguments, .ttl_ms = MCP_TASK_TTL_MS};
    if (is_stateless) {
        flags |= tool->desc.flags & NG_TOOL_TASK_AFTER_ASKING;
        return take_stateless(exchange, flags, &order, ret_rc);
    }
    return take_handshake(exchange, flags, &order, ret_rc);
}

/* ---- requests about a task ---- */

struct mcp_task_request *mcp_task_request_new(struct mcp_exchange *exchange)
{
    struct arena *arena = &exchange->call->arena;
    bool is_stateless = mcp_is_stateless(exchange->terms.version);
    if (is_stateless && !mcp_tasks_declared(exchange)) {
        (void)mcp_tasks_answer_undeclared(exchange);
        return NULL;
    }
    struct mcp_tasks *tasks = mcp_tasks_of(exchange->job->gateway);
    if (tasks == NULL || (!is_stateless && exchange->terms.version < MCP_2025_11_25)) {
        (void)mcp_refuse(exchange, is_stateless ? 404 : 200, MCP_METHOD_NOT_FOUND,
                         tasks == NULL ? "this gateway runs no tasks"
                                       : "this version of MCP has no tasks");
        return NULL;
    }
    struct mcp_task_request *request = arena_zalloc(arena, sizeof(*request));
    if (request != NULL) {
        request->owner = mcp_task_owner(arena, exchange->call);
    }
    if (request == NULL || request->owner.data == NULL) {
        (void)mcp_refuse_oom(exchange);
        return NULL;
    }
    request->is_stateless = is_stateless;
    request->tasks = tasks;
    return request;
}

struct mcp_task_request *mcp_task_request_named(struct mcp_exchange *exchange)
{
    struct mcp_task_request *request = mcp_task_request_new(exchange);
    const struct ng_value *id = json_get(exchange->message.params, "taskId");
    if (request == NULL) {
        return NULL;
    }
    if (!json_is(id, NG_TYPE_STRING)) {
        (void)mcp_refuse_params(exchange, "`params.taskId` must be a string, the id of a task");
        return NULL;
    }
    request->id = id->text;
    return request;
}

void mcp_task_request_failed(struct mcp_exchange *exchange, const struct call *call)
{
    const struct result *result = &call->final;
    if (!exchange->job->is_batch) {
        exchange->job->retry_after_s = result->retry_after_s;
    }
    int status = result->status;
    int code = result->status;
    if (result->rc == NG_ENOTFOUND || result->rc == NG_EINVAL) {
        status = 200;
        code = MCP_INVALID_PARAMS;
    } else if (result->rc == NG_EINTERNAL) {
        code = MCP_INTERNAL_ERROR;
    }
    mcp_answer_error(exchange, status, code, result->message, STR_NONE);
}

int mcp_task_request_run(struct mcp_exchange *exchange, struct mcp_task_request *request,
                         const struct mcp_run *run)
{
    if (request == NULL) {
        return NG_OK; /* answered */
    }
    exchange->call->step_user = request;
    return mcp_run(exchange, run);
}

static int not_found(struct call *call, struct ng_str id)
{
    return call_fail(call, NG_ENOTFOUND,
                     "there is no task \"%.*s\"; it may have expired, or it is another "
                     "caller's",
                     (int)utf8_cut(id, MCP_TASK_ID_LEN).len, id.data);
}

/* Status and sentence of a living task, from the table. */
static bool look(struct mcp_tasks *tasks, struct ng_str id, struct ng_str owner,
                 struct mcp_task_entry *ret)
{
    mcp_tasks_lock(tasks);
    const struct mcp_task_entry *entry = mcp_tasks_find(tasks, id, owner);
    if (entry != NULL) {
        *ret = *entry; /* the copy's pointers are not used */
    }
    mcp_tasks_unlock(tasks);
    return entry != NULL;
}

int mcp_task_view(struct mcp_tasks *tasks, struct call *call, struct ng_str id,
                  struct ng_str owner, struct mcp_task *ret)
{
    struct mcp_task_entry entry;
    bool is_known = look(tasks, id, owner, &entry);
    if (!is_known) {
        mcp_task_remote_find(tasks, call, id);
        is_known = look(tasks, id, owner, &entry);
    }
    if (!is_known) {
        return not_found(call, id);
    }
    int rc = mcp_task_load(call, id, ret);
    if (rc != NG_OK) {
        if (rc != NG_ENOTFOUND) {
            return rc;
        }
        return not_found(call, id);
    }
    if (entry.is_lost) {
        ret->status = MCP_TASK_FAILED;
        ret->outcome = ng_str_of("{\"code\":-32603,\"message\":\"the tool ended, but the "
                                 "outcome could not be stored\"}");
    } else if (entry.status == MCP_TASK_WORKING && ret->status != MCP_TASK_CANCELLED &&
               entry.host != MCP_TASK_ELSEWHERE) {
        ret->status = MCP_TASK_WORKING; /* the end is reported when the run is over */
    }
    if (ret->status == MCP_TASK_WORKING) {
        ret->message = arena_copy(&call->arena, ng_str_of(entry.message));
    }
    return NG_OK;
}

/* ---- tasks/get ---- */

static int view_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    return mcp_task_view(request->tasks, call_of(pub), request->id, request->owner,
                         &request->task);
}

static void answer_task(struct mcp_exchange *exchange, const struct call *call)
{
    const struct mcp_task_request *request = call->step_user;
    bool is_stateless = mcp_is_stateless(exchange->terms.version);
    struct buf *out = mcp_result_open(exchange);
    mcp_task_print(out, &request->task, is_stateless, is_stateless);
    mcp_result_close(exchange, STR_NONE);
}

int mcp_tasks_get(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {NULL, answer_task, mcp_task_request_failed, view_step};
    return mcp_task_request_run(exchange, mcp_task_request_named(exchange), &run);
}

/* ---- tasks/update ---- */

/* Moves the answers to the questions from `asks` to `answers`. */
static int merge(struct mcp_task_request *request, struct call *call, struct mcp_task *task)
{
    struct arena *arena = &call->arena;
    const struct ng_value *asks = NULL;
    const struct ng_value *known = NULL;
    struct buf left;
    struct buf given;
    struct ng_writer left_writer;
    struct ng_writer given_writer;
    size_t open = 0;
    struct ng_str before = str_or(task->answers, ng_str_of("{}"));
    if (json_parse(arena, task->asks, JSON_DEPTH_DEFAULT, &asks, NULL) != NG_OK ||
        json_parse(arena, before, JSON_DEPTH_DEFAULT, &known, NULL) != NG_OK) {
        return NG_EINTERNAL;
    }
    buf_init(&left, CALL_MEMORY_MAX);
    buf_init(&given, CALL_MEMORY_MAX);
    json_writer_init(&left_writer, &left);
    json_writer_init(&given_writer, &given);
    json_object(&left_writer);
    json_object(&given_writer);
    for (const struct ng_value *at = known->first; at != NULL; at = at->next) {
        if (json_get_str(asks, at->key) == NULL) {
            json_name_str(&given_writer, at->key);
            json_copy(&given_writer, at);
        }
    }
    for (const struct ng_value *at = asks->first; at != NULL; at = at->next) {
        const struct ng_value *answer = json_get_str(request->answers, at->key);
        struct ng_writer *writer = &left_writer;
        if (answer != NULL) {
            writer = &given_writer;
        }
        json_name_str(writer, at->key);
        json_copy(writer, answer != NULL ? answer : at);
        open += answer == NULL;
    }
    json_end(&left_writer);
    json_end(&given_writer);
    task->asks = arena_copy(arena, buf_str(&left));
    task->answers = arena_copy(arena, buf_str(&given));
    bool holds = left.rc == NG_OK && given.rc == NG_OK && task->asks.data != NULL &&
                 task->answers.data != NULL;
    buf_done(&left);
    buf_done(&given);
    request->is_complete = open == 0;
    if (holds) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

static bool update_edit(struct mcp_task *task, struct call *call, void *user)
{
    struct mcp_task_request *request = user;
    request->is_complete = false;
    if (task->status != MCP_TASK_INPUT_REQUIRED) {
        return false; /* answers that come too late are no fault */
    }
    request->asks_before = arena_copy(&call->arena, task->asks);
    request->answers_before = arena_copy(&call->arena, task->answers);
    request->merge_rc = NG_EINTERNAL;
    if (request->asks_before.data != NULL) {
        request->merge_rc = merge(request, call, task);
    }
    if (request->merge_rc != NG_OK) {
        request->is_complete = false;
        return false;
    }
    if (request->is_complete) {
        task->status = MCP_TASK_WORKING;
        task->asks = STR_NONE;
    }
    return true;
}

/* The call was refused: the questions are open again. */
static bool reopen_edit(struct mcp_task *task, struct call *call, void *user)
{
    const struct mcp_task_request *request = user;
    (void)call;
    if (task->status != MCP_TASK_WORKING) {
        return false;
    }
    task->status = MCP_TASK_INPUT_REQUIRED;
    task->asks = request->asks_before;
    task->answers = request->answers_before;
    return true;
}

static int resume(struct mcp_task_request *request, struct call *call)
{
    int rc = mcp_task_load(call, request->id, &request->task);
    if (rc != NG_OK) {
        return rc;
    }
    call_ref(request->prepared);
    rc = mcp_task_resume(request->tasks, request->prepared, &request->task, call);
    if (rc == NG_OK || rc == NG_ECONFLICT) {
        return NG_OK; /* cancelled meanwhile: the answers are not needed any more */
    }
    struct call *clerk = call_new(call->gateway); /* `call` has its failure to tell */
    struct mcp_task_edit edit = {.fn = reopen_edit, .user = request};
    if (clerk == NULL || mcp_task_change(clerk, request->id, &edit) != NG_OK) {
        mcp_tasks_settle(request->tasks, request->id, NULL, MCP_TASK_FAILED, true);
    } else {
        mcp_tasks_settle(request->tasks, request->id, NULL, MCP_TASK_INPUT_REQUIRED, false);
    }
    call_unref(clerk);
    return rc;
}

int mcp_task_request_apply(struct mcp_task_request *request, struct call *call)
{
    struct mcp_task_entry entry;
    mcp_task_remote_find(request->tasks, call, request->id);
    if (!look(request->tasks, request->id, request->owner, &entry)) {
        return not_found(call, request->id);
    }
    if (entry.status != MCP_TASK_INPUT_REQUIRED && !entry.is_ending) {
        return NG_OK;
    }
    struct mcp_task_edit edit = {.fn = update_edit, .user = request};
    int rc = mcp_task_change(call, request->id, &edit);
    if (rc == NG_OK && request->merge_rc != NG_OK) {
        rc = call_fail(call, NG_EINTERNAL, "the answers could not be added to the task");
    }
    if (rc != NG_OK || !request->is_complete) {
        return rc;
    }
    mcp_tasks_settle(request->tasks, request->id, NULL, MCP_TASK_WORKING, false);
    return resume(request, call);
}

bool mcp_task_request_prepare(struct mcp_task_request *request, struct call *call)
{
    request->prepared = mcp_task_prepare(call);
    if (request->prepared == NULL) {
        return false;
    }
    int rc = mcp_keep_call(call, request->prepared);
    call_unref(request->prepared);
    return rc == NG_OK;
}

static int update_step(struct ng_call *pub, void *user)
{
    return mcp_task_request_apply(user, call_of(pub));
}

/* An acknowledgement: the state of the task is for tasks/get to tell. */
static void answer_done(struct mcp_exchange *exchange, const struct call *call)
{
    (void)call;
    (void)mcp_answer_done(exchange);
}

int mcp_tasks_update(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {NULL, answer_done, mcp_task_request_failed, update_step};
    struct mcp_task_request *request = mcp_task_request_named(exchange);
    if (request == NULL) {
        return NG_OK;
    }
    request->answers = json_get(exchange->message.params, "inputResponses");
    if (request->answers == NULL || request->answers->type != NG_TYPE_OBJECT) {
        return mcp_refuse_params(exchange, "`params.inputResponses` must be an object: the key "
                                           "of each question and its answer");
    }
    for (const struct ng_value *at = request->answers->first; at != NULL; at = at->next) {
        if (at->type != NG_TYPE_OBJECT) {
            return mcp_refuse_params(exchange, "each answer in `params.inputResponses` must be "
                                               "an object");
        }
    }
    if (!mcp_task_request_prepare(request, exchange->call)) {
        return mcp_refuse_oom(exchange);
    }
    return mcp_task_request_run(exchange, request, &run);
}

/* ---- tasks/cancel ---- */

static bool cancel_edit(struct mcp_task *task, struct call *call, void *user)
{
    struct mcp_task_request *request = user;
    (void)call;
    request->did_cancel = !mcp_task_is_over(task->status);
    request->task.status = task->status; /* as it was found */
    if (!request->did_cancel) {
        return false;
    }
    task->status = MCP_TASK_CANCELLED;
    task->asks = STR_NONE;
    task->message = ng_str_of("cancelled by the client");
    return true;
}

static int cancel_step(struct ng_call *pub, void *user)
{
    struct mcp_task_request *request = user;
    struct call *call = call_of(pub);
    struct mcp_task_entry entry;
    mcp_task_remote_find(request->tasks, call, request->id);
    if (!look(request->tasks, request->id, request->owner, &entry)) {
        return not_found(call, request->id);
    }
    struct mcp_task_edit edit = {.fn = cancel_edit, .user = request};
    int rc = mcp_task_change(call, request->id, &edit);
    if (rc != NG_OK) {
        return rc;
    }
    if (request->did_cancel) {
        mcp_tasks_settle(request->tasks, request->id, NULL, MCP_TASK_CANCELLED, false);
        mcp_tasks_cancel_run(request->tasks, request->id);
    }
    if (request->is_stateless) {
        return NG_OK;
    }
    if (!request->did_cancel) {
        return call_fail(call, NG_EINVAL, "the task has ended: it is %s",
                         mcp_task_status_text(request->task.status));
    }
    return mcp_task_view(request->tasks, call, request->id, request->owner, &request->task);
}

static void answer_cancel(struct mcp_exchange *exchange, const struct call *call)
{
    if (mcp_is_stateless(exchange->terms.version)) {
        answer_done(exchange, call);
    } else {
        answer_task(exchange, call);
    }
}

int mcp_tasks_cancel(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {NULL, answer_cancel, mcp_task_request_failed,
                                       cancel_step};
    return mcp_task_request_run(exchange, mcp_task_request_named(exchange), &run);
}
