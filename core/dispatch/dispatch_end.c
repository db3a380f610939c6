/* SPDX-License-Identifier: MIT */
/* dispatch_end.c - the end of a call: accounting, the stored answer of its idempotency key, its
 * completion, and its deadline. */
#include "dispatch_end.h"

#include <stdio.h>

#include "audit.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/store/disk.h"
#include "core/store/idempotency.h"
#include "core/store/store.h"
#include "dispatch.h"
#include "record.h"
#include "timers.h"

/* rc: the code of the answer. */
static void dispatch_account(struct call *call, int rc)
{
    struct gateway *gateway = call->gateway;
    int64_t took = clock_monotonic_ns() - call->started_ns;
    const char *code = "ok";
    if (rc != NG_OK) {
        code = call_error_name(call, rc);
    }
    if (call->tool != NULL) {
        metrics_call(gateway->metrics, call->tool->metrics_slot, code, call->caller.agent,
                     took);
    }
    if (rc == NG_ERATE) {
        metrics_count(gateway->metrics, METRICS_RATE_LIMITED);
    } else if (rc == NG_EFULL) {
        disk_refused(gateway->disk, call->staged.message);
    }
    const struct plugin *plugin = call_plugin(call);
    if (rc == NG_EINTERNAL && plugin != NULL) {
        log_write(NG_LOG_ERROR, "call", "%.*s (plugin %s) failed: %.*s",
                  (int)call->pub.tool.len, call->pub.tool.data, plugin->desc.name,
                  (int)call->staged.message.len,
                  call->staged.message.data != NULL ? call->staged.message.data : "");
    }
    if (call_notes_changes(gateway)) {
        audit_call(call, rc, took);
    }
    if (gateway->recorder != NULL) {
        record_call(gateway->recorder, call, code, took);
    }
    if (log_enabled(NG_LOG_DEBUG) && call->pub.tool.len > 0) {
        log_write(NG_LOG_DEBUG, "call", "%.*s by %.*s: %s in %lld us", (int)call->pub.tool.len,
                  call->pub.tool.data, (int)call->caller.agent.len, call->caller.agent.data,
                  code, (long long)(took / 1000));
    }
}

static void dispatch_idempotency_stored(void *user, int rc)
{
    struct call *call = user;
    (void)rc; /* store_write has put the failure into the call */
    call_complete(call);
}

/* A tool that changed no document still answers a repeated key with its first answer. True:
 * wait for the commit. */
static bool dispatch_store_answer(struct call *call)
{
    if (call->answer_state != CALL_ANSWER_NONE || call->staged.rc != NG_OK ||
        ((call->options & CALL_MUST_REPLY) != 0 && !call_has_reply(call)) ||
        call->after_rc < 0 || atomic_load(&call->failed_rc) < 0) {
        return false;
    }
    struct ng_answer answer;
    call->answer_state = CALL_ANSWER_STORED;
    if (idempotency_answer(call, &answer) != NG_OK) {
        return false;
    }
    call_pend(call);
    int rc = store_write_answered(call->gateway->store, call, NULL, 0, &answer,
                                  dispatch_idempotency_stored, call);
    if (rc != NG_OK) {
        call->staged.rc = rc;
        atomic_fetch_sub(&call->pending, 1);
        return false;
    }
    return true;
}

int dispatch_finish(struct call *call, bool sync)
{
    call_complete_result(call);
    if (call->idempotency != NULL) {
        idempotency_end(call);
    }
    if (call->phase == CALL_ASYNC && call->deadline_ns != 0) {
        timers_remove(call->gateway->timers, call);
    }
    struct gateway *gateway = call->gateway;
    bool counted = call->phase != CALL_NEW;
    call_move(call, CALL_DONE);
    int none = 0;
    bool first = atomic_compare_exchange_strong(&call->answered, &none, 1);
    dispatch_account(call, first ? call->staged.rc : NG_ETIMEOUT);
    if (counted) {
        audit_epochs_leave(&gateway->audit.epochs, call->epoch); /* its entry is queued */
    }
    if (first) {
        call->final = call->staged;
    }
    for (const struct call_end *end = call->ends; end != NULL; end = end->next) {
        end->ended(end->user, call->staged.rc, call->staged.message);
    }
    if (!sync) {
        if (first && call->done != NULL) {
            call->done(call, call->done_user);
        }
        call_unref(call); /* the run's */
    }
    /* Last: gateway_drain() waits for it, and transports and modules are closed then. */
    if (counted) {
        atomic_fetch_sub(&gateway->active, 1);
    }
    if (first) {
        return NG_OK;
    }
    return NG_PENDING;
}

/* Nothing of the call is pending any more. */
void dispatch_over(struct call *call)
{
    /* A failure that its step met, and went on after, is not the call's. */
    ng_step_fn *repeat = call->repeat;
    if (repeat != NULL && !call_has(call, CALL_DEFERRAL_FAILED)) {
        call->repeat = NULL;
        (void)dispatch_continue(&call->pub, repeat, call->repeat_user);
        return;
    }
    if (call->idempotency == NULL || !dispatch_store_answer(call)) {
        (void)dispatch_finish(call, false);
    }
}

void dispatch_expire(struct call *call)
{
    struct gateway *gateway = call->gateway;
    atomic_fetch_add(&gateway->active, 1); /* until its transport has the answer */
    int none = 0;
    if (!atomic_compare_exchange_strong(&call->answered, &none, 1)) {
        atomic_fetch_sub(&gateway->active, 1);
        return;
    }
    /* Not before: a tool that ends because of it would be taken for one that is done. */
    call_set(call, CALL_CANCELLED);
    bool has_rest = call_has(call, CALL_HAS_REST);
    (void)snprintf(
        call->late_text, sizeof(call->late_text),
        "the call took longer than limits.call_timeout allows (%lld ms)%s%s%s",
        (long long)call->gateway->limits.call_timeout_ms,
        call->read_only ? "" : "; a change under way may still be made, read before repeating",
        has_rest ? "; " : "", has_rest ? call->rest_text : "");
    struct result *result = &call->final;
    memset(result, 0, sizeof(*result));
    result->rc = NG_ETIMEOUT;
    result->code = error_name(NULL, NG_ETIMEOUT);
    result->status = error_status(NULL, NG_ETIMEOUT);
    result->message = ng_str_of(call->late_text);
    if (call->done != NULL) {
        call->done(call, call->done_user);
    }
    atomic_fetch_sub(&gateway->active, 1);
}
