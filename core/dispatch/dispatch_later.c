/* SPDX-License-Identifier: MIT */
/* dispatch_later.c - steps of a call on a worker, after its run; lists that wait for one. */
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/fault/module_run.h"
#include "dispatch.h"

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
