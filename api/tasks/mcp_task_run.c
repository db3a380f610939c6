/* SPDX-License-Identifier: MIT */
/* mcp_task_run.c - the run of a task: a call without a waiting client. Its task is stored
 * before the tool runs and before the client is answered, its outcome when it ends. */
#include <stdio.h>

#include "api/server/mcp_input.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/dispatch/dispatch.h"
#include "core/keys/keys.h"
#include "core/store/store.h"
#include "mcp_tasks.h"

/* A failure as it is stored: code and sentence. */
#define TASK_ERROR_ROOM 256

struct run {
    struct mcp_tasks *tasks;
    struct mcp_task_entry *entry;  /* of a new task, until it is stored */
    struct call *call;             /* the tool's; a reference */
    struct call *clerk;            /* writes the document; this run is in its memory */
    struct mcp_exchange *exchange; /* waits for the task to be stored; then NULL */
    struct mcp_task task;          /* as it is created; of a resumed one only the id */
    bool has_begun;
    /* The outcome of the run. */
    enum mcp_task_status status;
    struct ng_str outcome, asks, state;
};

struct ng_str mcp_task_owner(struct arena *arena, const struct call *call)
{
    struct ng_str agent = call->caller.agent;
    return arena_printf(arena, "%.*s\n%s", (int)agent.len, agent.data,
                        call->key == NULL ? "" : call->key->id);
}

static void run_free(struct run *run)
{
    call_unref(run->call);
    call_unref(run->clerk);
}

/* ---- the end ---- */

static void print_error(struct buf *out, const struct result *result)
{
    buf_printf(out, "{\"code\":%d,\"message\":", MCP_INTERNAL_ERROR);
    buf_add_json(out, result->message);
    buf_add_char(out, '}');
}

/* The outcome of the call, in its stored form. */
static void conclude(struct run *run)
{
    const struct call *call = run->call;
    const struct result *result = &call->final;
    struct buf text;
    buf_init(&text, CALL_MEMORY_MAX);
    if (result->rc == NG_EINPUT) {
        run->status = MCP_TASK_INPUT_REQUIRED;
        mcp_input_print_all(&text, call);
    } else if (result->rc == NG_ECANCELLED && mcp_tasks_stopping(run->tasks)) {
        run->status = MCP_TASK_FAILED;
        buf_add_c(&text, "{\"code\":-32603,\"message\":\"the gateway was stopped while the "
                         "tool ran\"}");
    } else if (result->rc == NG_EINTERNAL) {
        run->status = MCP_TASK_FAILED; /* the gateway's or the plugin's fault, not an answer */
        print_error(&text, result);
    } else {
        run->status = MCP_TASK_COMPLETED;
        mcp_tools_print_result(&text, call);
    }
    struct ng_str copy = STR_NONE;
    if (text.rc == NG_OK) {
        copy = arena_copy(&run->clerk->arena, buf_str(&text));
    }
    buf_done(&text);
    if (copy.data == NULL) {
        run->status = MCP_TASK_FAILED;
        copy = ng_str_of("{\"code\":-32603,\"message\":\"the gateway ran out of memory\"}");
    }
    if (run->status == MCP_TASK_INPUT_REQUIRED) {
        run->asks = copy;
        run->state = call->ask_state_out;
    } else {
        run->outcome = copy;
    }
}

static bool end_edit(struct mcp_task *task, struct call *call, void *user)
{
    struct run *run = user;
    (void)call;
    if (task->status != MCP_TASK_WORKING) {
        run->status = task->status; /* cancelled meanwhile */
        return false;
    }
    task->status = run->status;
    task->message = STR_NONE;
    task->asks = run->asks;
    task->state = run->state;
    if (run->outcome.data != NULL) {
        task->outcome = run->outcome;
        task->is_error = run->call->final.rc != NG_OK;
    }
    return true;
}

/* On a worker of its own: the call may have ended on a thread that must not wait. */
static void store_end(struct task *pool_task)
{
    struct call *clerk =
        (struct call *)(void *)((char *)pool_task - offsetof(struct call, task));
    struct gateway *gateway = clerk->gateway;
    struct run *run = clerk->done_user;
    conclude(run);
    mcp_tasks_run_ends(run->tasks, run->task.id, run->call);
    struct mcp_task_edit edit = {.fn = end_edit, .user = run};
    int rc = mcp_task_change(clerk, run->task.id, &edit);
    if (rc != NG_OK && rc != NG_ENOTFOUND) { /* not one that expired while it ran */
        clerk->pub.host->log(&clerk->pub, NG_LOG_ERROR, "the outcome of a task is lost: %.*s",
                             (int)clerk->staged.message.len,
                             text_or(clerk->staged.message.data, ""));
    }
    mcp_tasks_settle(run->tasks, run->task.id, run->call,
                     rc == NG_OK ? run->status : MCP_TASK_FAILED, rc != NG_OK);
    run_free(run);
    atomic_fetch_sub(&gateway->active, 1);
}

/* The call never came to its tool: no task was made of it. True: the exchange is answered. */
static void refuse(struct run *run)
{
    struct mcp_exchange *exchange = run->exchange;
    mcp_tools_answer(exchange, run->call);
    mcp_tasks_remove(run->tasks, run->entry);
    run_free(run);
}

static void run_done(struct call *call, void *user)
{
    struct run *run = user;
    struct gateway *gateway = call->gateway;
    if (run->exchange != NULL) {
        struct mcp_exchange *exchange = run->exchange;
        refuse(run);
        mcp_exchange_finish(exchange);
        return;
    }
    atomic_fetch_add(&gateway->active, 1); /* until the end is stored */
    run->clerk->task.run = store_end;
    run->clerk->done_user = run;
    pool_resume(gateway->pool, &run->clerk->task);
}

/* ---- while it runs ---- */

static void run_progress(struct call *call, double done, double total, struct ng_str message,
                         void *user)
{
    struct run *run = user;
    struct ng_str shown = utf8_cut(message, MCP_TASK_MESSAGE_MAX - 1);
    char text[MCP_TASK_MESSAGE_MAX];
    (void)call;
    if (shown.len > 0) {
        memcpy(text, shown.data, shown.len);
        text[shown.len] = '\0';
    } else if (total > 0) {
        (void)snprintf(text, sizeof(text), "%g of %g", done, total);
    } else {
        (void)snprintf(text, sizeof(text), "%g", done);
    }
    mcp_tasks_say(run->tasks, run->task.id, text);
}

/* ---- the beginning ---- */

static bool create_edit(struct mcp_task *task, struct call *call, void *user)
{
    const struct run *run = user;
    (void)call;
    *task = run->task;
    return true;
}

static void answer_created(struct mcp_exchange *exchange, const struct mcp_task *task)
{
    bool is_stateless = mcp_is_stateless(exchange->terms.version);
    struct buf *out = mcp_result_open(exchange);
    buf_add_c(out, text_if(!is_stateless, "\"task\":{"));
    mcp_task_print(out, task, is_stateless, false);
    buf_add_c(out, text_if(!is_stateless, "}"));
    mcp_result_end(exchange, "task", STR_NONE); /* a type is of the stateless version alone */
    mcp_answer_close(exchange);
}

/* On a worker, and every check of dispatch() has passed. */
static int run_begin(struct call *call, void *user)
{
    struct run *run = user;
    struct mcp_exchange *exchange = run->exchange;
    if (exchange == NULL) {
        return NG_OK; /* resumed: it is stored */
    }
    struct mcp_task_edit edit = {.fn = create_edit, .user = run, .creates = true};
    int rc = mcp_task_change(run->clerk, run->task.id, &edit);
    if (rc != NG_OK) {
        struct ng_str why = run->clerk->staged.message;
        return call_fail(call, rc, "the task could not be stored: %.*s", (int)why.len,
                         text_or(why.data, ""));
    }
    mcp_tasks_lock(run->tasks);
    run->entry->is_stored = true;
    mcp_tasks_unlock(run->tasks);
    run->exchange = NULL;
    answer_created(exchange, &run->task);
    mcp_exchange_finish(exchange);
    return NG_OK;
}

/* A run in the memory of its clerk, a call that writes with the rights of `call`. Its reference
 * to `call` passes over. NULL: out of memory. */
static struct run *run_new(struct mcp_tasks *tasks, struct call *call)
{
    struct call *clerk = call_new(call->gateway);
    struct run *run = clerk == NULL ? NULL : arena_zalloc(&clerk->arena, sizeof(*run));
    if (run == NULL || call_set_caller(clerk, call->caller.agent, STR_NONE, call->caller.role,
                                       call->caller.mode, call->caller.run) != NG_OK) {
        call_unref(clerk);
        return NULL;
    }
    run->tasks = tasks;
    run->call = call;
    run->clerk = clerk;
    call->options &= ~(unsigned)CALL_ON_LOOP;
    call->options |= CALL_NO_DEADLINE; /* it has until the task expires */
    call->begin = run_begin;
    call->done = run_done;
    call->done_user = run;
    /* Tools that hold a worker must not keep their owner from asking after them. */
    call->lane = arena_printf(&call->arena, "%.*s\n", (int)call->caller.agent.len,
                              call->caller.agent.data);
    call->on_progress = run_progress;
    call->on_user = run;
    return run;
}

struct call *mcp_task_prepare(const struct call *from)
{
    const struct ng_caller *caller = &from->caller;
    struct call *call = call_new(from->gateway);
    struct ng_str space = STR_NONE;
    if (call == NULL) {
        return NULL;
    }
    if (caller->space_named) {
        space = caller->space;
    }
    int rc =
        call_set_caller(call, caller->agent, space, caller->role, caller->mode, caller->run);
    /* The result of dispatch_spaces() for a caller without a key depends on the space it
     * names. */
    if (rc == NG_OK && (from->key != NULL || caller->all_spaces) && caller->spaces != NULL) {
        rc = call_allow_spaces(call, caller->spaces, caller->space_count, caller->all_spaces);
    }
    call_take_origin(call, from);
    call->options |= from->options & CALL_NO_RATE;
    if (rc != NG_OK) {
        call_unref(call);
        return NULL;
    }
    return call;
}

/* The request's parts of a call of the task; texts are lent by `task`, which lives as long. */
static int fill_call(struct call *call, const struct mcp_task *task)
{
    call->tool_name = task->tool;
    call->args_text = task->arguments;
    call->client_asks = task->can_ask;
    call->ask_state_in = task->state;
    if (task->answers.data == NULL) {
        return NG_OK;
    }
    return json_parse(&call->arena, task->answers, JSON_DEPTH_DEFAULT, &call->ask_answers,
                      NULL);
}

static struct ng_str print_value(struct arena *arena, const struct ng_value *value)
{
    struct buf text;
    struct ng_str copy = STR_NONE;
    if (value == NULL) {
        return STR_NONE;
    }
    buf_init(&text, CALL_MEMORY_MAX);
    if (json_print(&text, value) == NG_OK) {
        copy = arena_copy(arena, buf_str(&text));
    }
    buf_done(&text);
    return copy;
}

static int fill_task(struct run *run, const struct mcp_exchange *exchange,
                     const struct mcp_task_order *order)
{
    struct arena *arena = &run->clerk->arena;
    const struct ng_caller *caller = &exchange->call->caller;
    struct mcp_task *task = &run->task;
    task->owner = mcp_task_owner(arena, exchange->call);
    task->tool = arena_copy(arena, order->tool);
    if (caller->space_named) {
        task->space = arena_copy(arena, caller->space);
    }
    task->run = arena_copy(arena, caller->run_id);
    task->arguments = print_value(arena, order->arguments);
    task->status = MCP_TASK_WORKING;
    task->ttl_ms = order->ttl_ms;
    task->can_ask = order->can_ask;
    task->answers = print_value(arena, order->answers);
    task->state = arena_copy(arena, order->state);
    bool holds = task->owner.data != NULL && task->tool.data != NULL &&
                 task->arguments.data != NULL &&
                 (caller->run_id.data == NULL || task->run.data != NULL) &&
                 (order->answers == NULL || task->answers.data != NULL) &&
                 (order->state.data == NULL || task->state.data != NULL) &&
                 fill_call(run->call, task) == NG_OK;
    if (!exchange->job->is_batch) {
        run->call->idempotency_key =
            arena_copy(&run->call->arena, exchange->job->idempotency_key);
    }
    if (holds) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

static int answer_no_room(struct mcp_exchange *exchange, int rc, const char *why)
{
    if (rc == NG_EINTERNAL) {
        return mcp_refuse(exchange, 500, MCP_INTERNAL_ERROR, why);
    }
    if (!exchange->job->is_batch) {
        exchange->job->retry_after_s = 1;
    }
    int status = error_status(NULL, rc);
    return mcp_refuse(exchange, status, status, why);
}

int mcp_task_start(struct mcp_exchange *exchange, const struct mcp_task_order *order)
{
    struct mcp_tasks *tasks = mcp_tasks_of(exchange->job->gateway);
    const char *why = "the gateway ran out of memory";
    struct call *call = mcp_task_prepare(exchange->call);
    struct run *run = NULL;
    if (call != NULL) {
        run = run_new(tasks, call);
    }
    if (run == NULL) {
        call_unref(call);
        return answer_no_room(exchange, NG_EINTERNAL, why);
    }
    int rc = fill_task(run, exchange, order);
    if (rc == NG_OK) {
        rc = mcp_tasks_add(tasks, run->task.owner, order->ttl_ms, call, &run->entry, &why);
    }
    if (rc != NG_OK) {
        run_free(run);
        return answer_no_room(exchange, rc, why);
    }
    run->exchange = exchange;
    run->task.id = ng_str_of(run->entry->id);
    run->task.created_ms = run->entry->created_ms;
    run->task.updated_ms = run->entry->created_ms;
    run->task.id = arena_copy(&run->clerk->arena, run->task.id);
    if (run->task.id.data == NULL) {
        refuse(run);
        return NG_OK;
    }
    if (dispatch(call) == NG_PENDING) {
        return NG_PENDING; /* it may have ended already: nothing here is ours any more */
    }
    refuse(run);
    return NG_OK;
}

int mcp_task_resume(struct mcp_tasks *tasks, struct call *call, const struct mcp_task *task,
                    struct call *asker)
{
    struct run *run = run_new(tasks, call);
    if (run == NULL) {
        call_unref(call);
        return call_fail(asker, NG_EINTERNAL, "out of memory");
    }
    struct arena *arena = &run->clerk->arena;
    run->task.id = arena_copy(arena, task->id);
    run->task.tool = arena_copy(arena, task->tool);
    run->task.arguments = arena_copy(arena, task->arguments);
    run->task.answers = arena_copy(arena, task->answers);
    run->task.state = arena_copy(arena, task->state);
    run->task.can_ask = task->can_ask;
    int rc = NG_OK;
    if (run->task.id.data == NULL || run->task.tool.data == NULL ||
        run->task.arguments.data == NULL || fill_call(call, &run->task) != NG_OK) {
        rc = call_fail(asker, NG_EINTERNAL, "out of memory");
    }
    if (rc == NG_OK && task->space.data != NULL) {
        (void)call_set_caller(call, STR_NONE, task->space, call->caller.role, call->caller.mode,
                              call->caller.run);
    }
    if (task->run.data != NULL) { /* not that of the request which resumes it */
        call_set_run(call, task->run);
    }
    if (rc == NG_OK) {
        rc = mcp_tasks_hold(tasks, task->id, call, asker);
    }
    if (rc != NG_OK) {
        run_free(run);
        return rc;
    }
    if (dispatch(call) == NG_PENDING) {
        return NG_OK;
    }
    rc = call_fail(asker, call->final.rc, "%.*s", (int)call->final.message.len,
                   text_or(call->final.message.data, ""));
    mcp_tasks_let_go(tasks, task->id);
    run_free(run);
    return rc;
}
