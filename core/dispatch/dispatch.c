/* SPDX-License-Identifier: MIT */
/* dispatch.c - the one way of a call: find the tool, may the caller, is the input valid, run,
 * answer. */
#include "dispatch.h"

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/fault/module_run.h"
#include "core/module/watchdog.h"
#include "core/store/idempotency.h"
#include "core/store/store.h"
#include "dispatch_allow.h"
#include "dispatch_end.h"
#include "dispatch_input.h"
#include "dispatch_space.h"
#include "timers.h"

static void dispatch_on_worker(struct task *task);

static struct call *call_of_task(struct task *task)
{
    return (struct call *)(void *)((char *)task - offsetof(struct call, task));
}

/* ---- input ---- */

static bool dispatch_name(struct call *call)
{
    call->tool = registry_find(call->gateway->registry, call->tool_name);
    if (call->tool != NULL) {
        call->pub.tool = ng_str_of(call->tool->desc.name);
        if ((call->tool->desc.flags & NG_TOOL_STAYS) != 0) {
            call_set(call, CALL_STAYS);
        }
    }
    return call->tool != NULL;
}

static int dispatch_unknown(struct call *call)
{
    struct ng_str shown = utf8_cut(call->tool_name, 100);
    struct ng_str near = registry_nearest(call->gateway->registry, call->tool_name);
    const struct tool *meant = NULL;
    if (near.data != NULL) {
        meant = registry_find(call->gateway->registry, near);
    }
    if (meant != NULL && !dispatch_allows(call, meant)) {
        near = str_make(NULL, 0); /* do not reveal its existence */
    }
    call_fail(call, NG_EUNKNOWN_TOOL, "no tool is called \"%.*s\"", (int)shown.len, shown.data);
    if (near.data != NULL) {
        call->staged.hint =
            arena_printf(&call->arena, "Did you mean `%.*s`?", (int)near.len, near.data);
    } else {
        call->staged.hint = ng_str_of("GET /v1/tools (or tools/list) lists the tools.");
    }
    return NG_EUNKNOWN_TOOL;
}

static int dispatch_parse(struct call *call)
{
    static const struct ng_value no_arguments = {.type = NG_TYPE_OBJECT};
    struct json_error error;
    int rc = json_parse(&call->arena, str_or(call->args_text, ng_str_of("{}")),
                        call->gateway->limits.depth, &call->pub.args, &error);
    if (rc != NG_OK) {
        call->pub.args = NULL;
        return call_fail(call, rc == NG_EJSON ? NG_EJSON : NG_EINTERNAL,
                         "the body is not valid JSON: %s (line %zu, column %zu)", error.message,
                         error.line, error.column);
    }
    if (call->pub.args->type == NG_TYPE_NULL) {
        call->pub.args = &no_arguments;
        call->args_text = STR_NONE;
    } else if (call->pub.args->type == NG_TYPE_OBJECT) {
        call->args_text = call->pub.args->text; /* as parsed: no lone surrogates */
    }
    return NG_OK;
}

/* The text of arguments that came as a tree, for the tool's run(). */
static int dispatch_print_args(struct call *call)
{
    if (call->pub.args->text.data != NULL) {
        call->args_text =
            call->pub.args->text; /* the transport parsed them out of its message */
        return NG_OK;
    }
    struct buf text;
    buf_init(&text, CALL_MEMORY_MAX);
    struct ng_str copy = {NULL, 0};
    if (json_print(&text, call->pub.args) == NG_OK) {
        copy = arena_copy(&call->arena, buf_str(&text));
    }
    buf_done(&text);
    call->args_text = copy;
    if (copy.data != NULL) {
        return NG_OK;
    }
    return call_fail(call, NG_EINTERNAL, "out of memory");
}

static int dispatch_prepare(struct call *call)
{
    if (!dispatch_name(call)) {
        return dispatch_unknown(call);
    }
    int rc = NG_OK;
    if (call->pub.args == NULL) {
        rc = dispatch_parse(call);
    }
    call->pub.args = dispatch_arguments(call, call->pub.args);
    if (rc == NG_OK) {
        rc = dispatch_space_take(call);
    }
    if (rc == NG_OK) {
        rc = dispatch_spaces(call, call->tool);
    }
    if (rc == NG_OK) {
        rc = dispatch_authorize(call, call->tool);
    }
    if (rc == NG_OK) {
        struct violations found;
        rc = schema_check(call->tool->params, call->pub.args, &call->arena, &found);
        if (rc != NG_OK) {
            rc = dispatch_refuse_input(call, rc, &found);
        }
    }
    if (rc == NG_OK && call->pub.args->type != NG_TYPE_OBJECT) {
        rc = call_fail(call, NG_EINVAL, "the arguments: expected an object");
    }
    if (rc == NG_OK && call->idempotency_key.len > IDEMPOTENCY_KEY_MAX) {
        rc = call_fail(call, NG_EINVAL, "the idempotency key has %zu bytes; it may have %d",
                       call->idempotency_key.len, IDEMPOTENCY_KEY_MAX);
    }
    if (rc == NG_OK && call->args_text.len == 0 && call->pub.args->count > 0) {
        rc = dispatch_print_args(call);
    }
    return rc;
}

/* ---- running ---- */

static int dispatch_run(struct call *call)
{
    struct module_run run;
    int rc = NG_OK;
    call_enter_module(call, &run);
    atomic_store_explicit(&call->begun, true, memory_order_relaxed);
    if (call->step != NULL) {
        rc = call->step(&call->pub, call->step_user);
    } else {
        const struct plugin *plugin = call->tool->plugin;
        if (plugin->desc.configured != NULL) {
            rc = dispatch_check_configured(call);
        }
        if (rc == NG_OK) {
            rc = call->tool->desc.run(plugin->self, &call->pub,
                                      str_or(call->args_text, ng_str_of("{}")));
        }
    }
    module_run_end(&run);
    return rc;
}

/* A code without a sentence is a failure all the same; a sentence without a code is not. */
static void dispatch_take(struct call *call, int rc)
{
    if (rc != NG_PENDING) {
        call->staged.rc = rc;
    } else if (!call_has(call, CALL_WAITS) && call_plugin(call) != NULL) {
        call_fail(call, NG_EINTERNAL,
                  "`%.*s` (plugin %s) returned NG_PENDING, but nothing is pending: it made no "
                  "change and took no deferral",
                  (int)call->pub.tool.len, call->pub.tool.data, call_plugin(call)->desc.name);
    }
}

static void dispatch_unlock(struct call *call)
{
    struct async_mutex *mutex = call->mutex;
    call->mutex = NULL;
    async_mutex_unlock(mutex);
}

/* True: the call continues below. False: it has ended or waits for its key. */
static bool dispatch_idempotency(struct call *call)
{
    if (call->idempotency_key.len == 0 || call->read_only || call->step != NULL ||
        call->idempotency != NULL) {
        return true;
    }
    switch (idempotency_begin(call)) {
    case IDEMPOTENCY_RUN:
        return true;
    case IDEMPOTENCY_WAIT:
        return false;
    case IDEMPOTENCY_ANSWERED:
    case IDEMPOTENCY_FAILED:
    default:
        call_complete(call);
        return false;
    }
}

/* Calls that have begun go on when their key goes, or loses a right; no further one begins.
 * Work that continues a call goes on too. */
static int dispatch_check_key(struct call *call)
{
    if (!key_live(call->key)) {
        return call_fail(call, NG_EUNAUTHENTICATED, "the caller's key %s",
                         key_why_ended(call->key));
    }
    if (key_rights_changed(call->key) && (call->options & CALL_NO_RATE) == 0) {
        return call_fail(call, NG_EBUSY,
                         "the rights of the caller's key changed before the call began; send "
                         "it again");
    }
    return NG_OK;
}

/* The tool may refuse a repeat because the first attempt has made the change. */
static int dispatch_refused(struct call *call, int rc)
{
    if (rc >= NG_OK || rc == NG_EBUSY || call->idempotency == NULL ||
        call_has(call, CALL_WAITS) || call->gateway->repeat_refused == NULL) {
        return rc;
    }
    return call->gateway->repeat_refused(call, rc);
}

static void dispatch_on_worker(struct task *task)
{
    struct call *call = call_of_task(task);
    call->may_block = true;
    if (call_has(call, CALL_CANCELLED)) {
        if (call->mutex != NULL) {
            dispatch_unlock(call);
        }
        call_fail(call, NG_ECANCELLED, "the caller left before the call began");
        call_complete(call);
        return;
    }
    if (dispatch_check_key(call) != NG_OK) { /* since it waited for its turn */
        if (call->mutex != NULL) {
            dispatch_unlock(call);
        }
        call_complete(call);
        return;
    }
    if (!dispatch_idempotency(call)) {
        return;
    }
    struct async_mutex *mutex = call_mutex(call);
    if (mutex != NULL && call->mutex == NULL) {
        if (!async_mutex_lock(mutex, &call->mutex_waiter)) {
            return;
        }
        call->mutex = mutex;
    }
    if (store_runs_again(call->gateway->store)) {
        store_run_begins(call->gateway->store, call);
    }
    int rc = dispatch_run(call);
    if (call->mutex != NULL) {
        dispatch_unlock(call);
    }
    rc = dispatch_refused(call, rc);
    dispatch_take(call, rc);
    if (store_runs_again(call->gateway->store)) {
        store_run_ends(call->gateway->store, call);
    }
    call_complete(call);
}

static void dispatch_locked(void *user)
{
    struct call *call = user;
    call->mutex = call_mutex(call);
    pool_resume(call->gateway->pool, &call->task);
}

static struct ng_str dispatch_lane(const struct call *call)
{
    if (call->lane.data != NULL) {
        return call->lane;
    }
    return call->caller.agent;
}

/* call->begin in the caller's own lane: the lane of the tool may be full. */
static void dispatch_begin(struct task *task)
{
    struct call *call = call_of_task(task);
    call->may_block = true;
    int rc = call->begin(call, call->done_user);
    call->task.run = dispatch_on_worker;
    if (rc == NG_OK && pool_submit(call->gateway->pool, dispatch_lane(call), task) != NG_OK) {
        rc = call_fail(call, NG_EBUSY, "too many calls are waiting; try again in a moment");
    }
    if (rc != NG_OK) {
        call->staged.rc = rc;
        call_complete(call);
    }
}

/* The caller is authenticated and the tool is known; all other checks need the arguments. */
static void dispatch_unparsed(struct task *task)
{
    struct call *call = call_of_task(task);
    call->may_block = true;
    int rc;
    if (call_has(call, CALL_CANCELLED)) {
        rc = call_fail(call, NG_ECANCELLED, "the caller left before the call began");
    } else {
        rc = dispatch_prepare(call);
    }
    if (rc != NG_OK) {
        call->staged.rc = rc;
        call_complete(call);
        return;
    }
    call->task.run = dispatch_on_worker;
    dispatch_on_worker(task);
}

/* Hands the call to the workers. NG_OK: done with a failure; NG_PENDING. */
static int dispatch_submit(struct call *call)
{
    struct gateway *gateway = call->gateway;
    bool is_parsed = call->pub.args != NULL || call->step != NULL;
    call_move(call, CALL_ASYNC);
    if (call->begin != NULL) {
        call->task.run = dispatch_begin;
    } else {
        if (is_parsed) {
            call->task.run = dispatch_on_worker;
        } else {
            call->task.run = dispatch_unparsed;
        }
    }
    call->task.group = call_workers(call);
    call->mutex_waiter.enter = dispatch_locked;
    call->mutex_waiter.user = call;
    call_ref(call); /* the run's */
    if (call->deadline_ns != 0) {
        timers_add(gateway->timers, call);
    }
    struct ng_str lane;
    if (call->begin != NULL) {
        lane = call->caller.agent;
    } else {
        lane = dispatch_lane(call);
    }
    int rc = pool_submit(gateway->pool, lane, &call->task);
    if (rc == NG_OK) {
        return NG_PENDING;
    }
    unsigned queue = atomic_load(&gateway->limits.queue);
    if (rc == NG_ERATE) {
        call_fail(call, NG_EBUSY,
                  "%u calls of this agent are waiting already, its half of limits.queue; try "
                  "again when some are done",
                  queue - queue / 2);
    } else if (rc == NG_EINTERNAL) {
        call_fail(call, NG_EINTERNAL, "Out of memory while a call was queued.");
    } else {
        call_fail(call, NG_EBUSY,
                  "%u calls are waiting already (limits.queue); try again in a moment", queue);
    }
    atomic_store(&call->pending, 0);
    rc = dispatch_finish(call, true);
    call_unref(call);
    return rc;
}

/* Tries the tool right here, on an event loop. NG_EWOULDBLOCK: it has to go to a worker. */
static int dispatch_inline(struct call *call)
{
    struct async_mutex *mutex = call_mutex(call);
    if (mutex != NULL) {
        if (!async_mutex_lock(mutex, NULL)) {
            return NG_EWOULDBLOCK;
        }
        call->mutex = mutex;
    }
    call->may_block = false;
    call_move(call, CALL_INLINE);
    if (store_runs_again(call->gateway->store)) {
        store_run_begins(call->gateway->store, call);
    }
    struct watchdog_loop *loop =
        watchdog_loop_begin(call->gateway->watchdog, call->tool, call->started_ns);
    int rc = dispatch_run(call);
    watchdog_loop_end(loop);
    if (call->mutex != NULL) {
        dispatch_unlock(call);
    }
    bool on_worker = rc == NG_EWOULDBLOCK && !call->held;
    if (on_worker) {
        call_reset_result(call);
    } else {
        dispatch_take(call, rc);
    }
    if (store_runs_again(call->gateway->store)) {
        store_run_ends(call->gateway->store, call);
    }
    if (on_worker) {
        call_move(call, CALL_ADMITTED);
        return rc;
    }
    if (atomic_load_explicit(&call->pending, memory_order_acquire) > 1) {
        call_move(call, CALL_ASYNC);
        call_ref(call); /* the run's, if a commit ends the call */
        if (call->deadline_ns != 0) {
            timers_add(call->gateway->timers, call);
        }
    }
    if (atomic_fetch_sub_explicit(&call->pending, 1, memory_order_acq_rel) != 1) {
        return NG_PENDING;
    }
    bool referenced = call->phase == CALL_ASYNC;
    rc = dispatch_finish(call, true);
    if (referenced) {
        call_unref(call);
    }
    return rc;
}

static int dispatch_admit(struct call *call)
{
    struct gateway *gateway = call->gateway;
    call->started_ns = clock_monotonic_ns();
    atomic_fetch_add(&gateway->active, 1);
    call->epoch = audit_epochs_enter(&gateway->audit.epochs);
    call_move(call, CALL_ADMITTED);
    if (atomic_load(&gateway->stopping)) {
        return call_fail(call, NG_EBUSY, "the gateway is stopping");
    }
    int rc = dispatch_check_key(call);
    return rc == NG_OK && call->key != NULL ? dispatch_rate(call) : rc;
}

static int dispatch_end_now(struct call *call)
{
    if (call->started_ns == 0) { /* refused before it was admitted */
        call->started_ns = clock_monotonic_ns();
    }
    atomic_store(&call->pending, 0);
    return dispatch_finish(call, true);
}

int dispatch(struct call *call)
{
    int rc;
    if (call->staged.rc != NG_OK) {
        rc = call->staged.rc;
    } else {
        rc = dispatch_admit(call);
    }
    bool on_loop = (call->options & CALL_ON_LOOP) != 0;
    bool parses_later =
        on_loop && call->pub.args == NULL && call->args_text.len > DISPATCH_INLINE_BYTES;
    if (rc == NG_OK) {
        if (!parses_later) {
            rc = dispatch_prepare(call);
        } else if (!dispatch_name(call)) {
            rc = dispatch_unknown(call);
        }
    } else if (rc == NG_ERATE) {
        (void)dispatch_name(call); /* it is counted as a call of that tool */
    }
    if (rc != NG_OK) {
        return dispatch_end_now(call);
    }
    call->options |= CALL_MUST_REPLY;
    if ((call->options & CALL_NO_DEADLINE) == 0 &&
        (call->tool->desc.flags & NG_TOOL_OWN_TIMEOUT) == 0) {
        call->deadline_ns = call->started_ns + call->gateway->limits.call_timeout_ms * 1000000;
    }
    call->over = dispatch_over;
    atomic_store(&call->pending, 1);
    bool from_memory =
        (call->tool->desc.flags & NG_TOOL_MEMORY) != 0 && !watchdog_distrusts(call->tool);
    if (on_loop && from_memory && call->args_text.len <= DISPATCH_INLINE_BYTES &&
        (call->idempotency_key.len == 0 || call->read_only)) {
        rc = dispatch_inline(call);
        if (rc != NG_EWOULDBLOCK) {
            return rc;
        }
    }
    return dispatch_submit(call);
}

int dispatch_step(struct call *call, ng_step_fn *step, void *user)
{
    int rc;
    if (call->staged.rc != NG_OK) {
        rc = call->staged.rc;
    } else {
        rc = dispatch_admit(call);
    }
    if (rc == NG_OK) {
        rc = dispatch_spaces(call, call->tool);
    }
    if (rc != NG_OK) {
        return dispatch_end_now(call);
    }
    call->step = step;
    call->step_user = user;
    if ((call->options & CALL_NO_DEADLINE) == 0 &&
        (call->tool == NULL || (call->tool->desc.flags & NG_TOOL_OWN_TIMEOUT) == 0)) {
        call->deadline_ns = call->started_ns + call->gateway->limits.call_timeout_ms * 1000000;
    }
    call->over = dispatch_over;
    atomic_store(&call->pending, 1);
    return dispatch_submit(call);
}

int64_t dispatch_active(struct gateway *gateway)
{
    return atomic_load(&gateway->active);
}
