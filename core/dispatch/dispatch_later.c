/* SPDX-License-Identifier: MIT */
/* dispatch_later.c - steps of a call on a worker, after its run; lists that wait for one. */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/call/plugin.h"
#include "core/fault/module_run.h"
#include "dispatch.h"

struct call *dispatch_child(struct call *call)
{
    struct call *child = call_new(call->gateway);
    if (child == NULL) {
        return NULL;
    }
    struct ng_str space = {NULL, 0};
    if (call->caller.space_named) {
        space = call->caller.space;
    }
    int rc = call_set_caller(child, call->caller.agent, space, call->caller.role,
                             call->caller.mode, call->caller.run);
    if (rc == NG_OK && call->caller.spaces != NULL) { /* NULL in start() */
        rc = call_allow_spaces(child, call->caller.spaces, call->caller.space_count,
                               call->caller.all_spaces);
    }
    if (rc != NG_OK) {
        call_unref(child);
        return NULL;
    }
    call_take_origin(child, call);
    child->method = STR_NONE; /* it is not the request itself */
    child->target = STR_NONE;
    child->options = CALL_NO_RATE;
    child->arena.max = CALL_BACKGROUND_MEMORY_MAX;
    child->tool = call->tool;
    child->plugin = call->plugin;
    if (call->caller.spaces == NULL) {
        child->caller.all_spaces = true; /* start() works for all spaces */
    }
    child->read_only = call->read_only;
    child->pub.tool = call->pub.tool;
    return child;
}

void dispatch_take_changes(struct call *call, const struct call *child)
{
    struct arena *arena = &call->arena;
    bool failed = arena->failed;
    bool oom = arena->oom;
    for (const struct call_change *at = child->changes; at != NULL; at = at->next) {
        const struct ng_key key = {at->collection, at->space, at->id};
        struct call_change *note = call_note_change(call, &key, at->revision, at->action);
        if (note != NULL) {
            note->seq = at->seq;
            note->is_stored = at->is_stored;
        }
    }
    if (child->changes != NULL && call->changes_run.len == 0 &&
        !str_equal(child->caller.run_id, call->caller.run_id)) {
        call->changes_run = arena_copy(arena, child->caller.run_id);
    }
    arena->failed = failed; /* an entry that lacks it is no reason to fail the call */
    arena->oom = oom;
}

static void later_run(struct task *task)
{
    struct call *call = (struct call *)(void *)((char *)task - offsetof(struct call, task));
    call->may_block = true;
    ng_step_fn *step = call->later;
    void *user = call->later_user;
    struct async_mutex *mutex = call_mutex(call); /* before the step: it may go on to another */
    struct module_run run;
    call_enter_module(call, &run);
    int rc = step(&call->pub, user);
    module_run_end(&run);
    if (mutex != NULL) {
        async_mutex_unlock(mutex);
    }
    if (rc != NG_PENDING) {
        call->staged.rc = rc;
    }
    call_complete(call);
}

static void later_locked(void *user)
{
    struct call *call = user;
    pool_resume(call->gateway->pool, &call->task);
}

int dispatch_continue(struct ng_call *pub, ng_step_fn *step, void *user)
{
    struct call *call = call_of(pub);
    call->later = step;
    call->later_user = user;
    call->task.run = later_run;
    call->task.group = call_workers(call);
    call_pend(call);
    call->held = true;
    /* Of a serial plugin: behind the run that asks for it, which holds the mutex. */
    struct async_mutex *mutex = call_mutex(call);
    call->mutex_waiter.enter = later_locked;
    call->mutex_waiter.user = call;
    if (mutex == NULL || async_mutex_lock(mutex, &call->mutex_waiter)) {
        pool_resume(call->gateway->pool, &call->task);
    }
    return NG_PENDING;
}

void call_gives(struct call *call)
{
    call->held = false;
}

int call_gave_pending(struct call *call, ng_step_fn *step, void *user)
{
    if (!call->held) {
        return call_fail(call, NG_EINTERNAL,
                         "plugin %s returned NG_PENDING for a list, but took no deferral",
                         call_plugin(call)->desc.name);
    }
    call->repeat = step;
    call->repeat_user = user;
    return NG_PENDING;
}

int call_gave(struct call *call, int rc)
{
    return rc == NG_PENDING ? call_gave_pending(call, call->step, call->step_user) : rc;
}
