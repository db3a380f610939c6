/* SPDX-License-Identifier: MIT */
/* host_run.c - services of a running call: progress, time, log, questions to the user. */

#include <limits.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/store/idempotency.h"
#include "host.h"

void host_progress(struct ng_call *pub, double done, double total, struct ng_str message)
{
    struct call *call = call_of(pub);
    if (call->on_progress != NULL) {
        call->on_progress(call, done, total, message, call->on_user);
    }
}

void host_mask_cancel(struct ng_call *pub)
{
    call_set(call_of(pub), CALL_CANCEL_MASKED);
}

struct ng_str host_idempotency_token(struct ng_call *pub)
{
    return idempotency_token(call_of(pub));
}

bool host_cancelled(struct ng_call *pub)
{
    const struct call *call = call_of(pub);
    if (call_has(call, CALL_CANCEL_MASKED)) {
        return false;
    }
    /* A call that the timers watch (CALL_TIMED) does not check its deadline here: they answer
     * it, and cancel it afterwards. If a tool ended before that, it would pass for done. */
    return call_has(call, CALL_CANCELLED) ||
           (call->gateway != NULL &&
            atomic_load_explicit(&call->gateway->cancelling, memory_order_relaxed)) ||
           (!call_has(call, CALL_TIMED) && call->deadline_ns != 0 &&
            clock_monotonic_ns() >= call->deadline_ns);
}

int64_t host_remaining_ms(struct ng_call *pub)
{
    const struct call *call = call_of(pub);
    if (call->deadline_ns == 0) {
        return INT64_MAX;
    }
    int64_t left = (call->deadline_ns - clock_monotonic_ns()) / 1000000;
    return i64_max(left, 0);
}

bool host_may_block(struct ng_call *pub)
{
    return call_of(pub)->may_block;
}

int64_t host_now_ms(void)
{
    return clock_unix_ms();
}

void host_log(struct ng_call *pub, enum ng_level level, const char *format, ...)
{
    const struct call *call = call_of(pub);
    const char *where = "module";
    if (call->tool != NULL) {
        where = call->tool->plugin->desc.name;
    }
    va_list args;
    va_start(args, format);
    log_vwrite(level, where, format, args);
    va_end(args);
}

void host_log_text(struct ng_call *pub, enum ng_level level, struct ng_str text)
{
    host_log(pub, level, "%.*s", (int)size_min(text.len, INT_MAX),
             text.data != NULL ? text.data : "");
}

void host_notify_log(struct ng_call *pub, enum ng_level level, const char *logger,
                     struct ng_str json)
{
    struct call *call = call_of(pub);
    if (call->on_log != NULL) {
        call->on_log(call, level, logger, json, call->on_user);
    }
}

void host_detach_client(struct ng_call *pub, int64_t retry_ms)
{
    struct call *call = call_of(pub);
    if (call->on_detach_client != NULL && retry_ms >= 0) {
        call->on_detach_client(call, retry_ms, call->on_user);
    }
}

bool host_client_can(struct ng_call *pub, enum ng_ask_kind kind)
{
    return (call_of(pub)->client_asks & (1U << kind)) != 0;
}

bool call_answer_fits(enum ng_ask_kind kind, const struct ng_value *answer)
{
    if (answer->type != NG_TYPE_OBJECT) {
        return false;
    }
    if (kind == NG_ASK_ROOTS) {
        const struct ng_value *roots = json_get(answer, "roots");
        return roots != NULL && roots->type == NG_TYPE_ARRAY;
    }
    if (kind == NG_ASK_MODEL) {
        return true;
    }
    const struct ng_value *action = json_get(answer, "action");
    const struct ng_value *content = json_get(answer, "content");
    if (action == NULL || action->type != NG_TYPE_STRING ||
        !str_in_words(action->text, "accept decline cancel")) {
        return false;
    }
    bool has_content = content != NULL && content->type == NG_TYPE_OBJECT;
    return has_content || kind == NG_ASK_URL || !str_is(action->text, "accept");
}

const struct ng_value *host_ask(struct ng_call *pub, const char *key, enum ng_ask_kind kind,
                                struct ng_str request)
{
    struct call *call = call_of(pub);
    const struct ng_value *answer = NULL;
    if (call->ask_answers != NULL) {
        answer = json_get(call->ask_answers, key);
    }
    if (answer != NULL && call_answer_fits(kind, answer)) {
        return answer;
    }
    struct ask *ask = arena_zalloc(&call->arena, sizeof(*ask));
    if (ask != NULL) {
        ask->key = arena_copy(&call->arena, ng_str_of(key));
        ask->kind = kind;
        ask->malformed = answer != NULL;
        ask->request = arena_copy(&call->arena, request);
        struct ask **last = &call->asks;
        while (*last != NULL) {
            last = &(*last)->next;
        }
        *last = ask;
    }
    return NULL;
}

void host_ask_state(struct ng_call *pub, struct ng_str state)
{
    struct call *call = call_of(pub);
    call->ask_state_out = arena_copy(&call->arena, state);
}

struct ng_str host_asked_state(struct ng_call *pub)
{
    return call_of(pub)->ask_state_in;
}
