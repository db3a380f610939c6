/* SPDX-License-Identifier: MIT */
/* host_later.c - deferred and background work of a plugin, its notices about lists, and the
 * gateways that share its work. */

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/cluster/cluster.h"
#include "core/dispatch/dispatch.h"
#include "core/fault/module_run.h"
#include "host.h"

struct gateway *host_gateway(const struct ng_host *host)
{
    return (struct gateway *)(uintptr_t)((uintptr_t)host - offsetof(struct gateway, host));
}

struct ng_deferred *host_defer(struct ng_call *pub)
{
    call_pend(call_of(pub));
    call_of(pub)->held = true;
    deferrals_add(call_of(pub));
    return (struct ng_deferred *)(void *)pub;
}

void host_finish(struct ng_deferred *deferred, int rc)
{
    struct call *call = (struct call *)(void *)deferred;
    if (rc < 0) {
        call->staged.rc = rc;
        call_set(call, CALL_DEFERRAL_FAILED);
    }
    deferrals_remove(call);
    call_complete(call);
}

static void host_background_done(struct call *call, void *user)
{
    (void)user;
    if (call->final.rc != NG_OK) {
        log_write(NG_LOG_WARNING, "background", "%.*s", (int)call->final.message.len,
                  call->final.message.data);
    }
    call_unref(call);
}

static struct call *host_background_new(struct call *call)
{
    struct call *background = dispatch_child(call);
    if (background != NULL) {
        background->done = host_background_done;
    }
    return background;
}

int host_background(struct ng_call *pub, ng_step_fn *step, void *user)
{
    struct call *call = call_of(pub);
    struct call *background = host_background_new(call);
    if (background == NULL) {
        return call_no_memory(call);
    }
    if (dispatch_step(background, step, user) == NG_OK) {
        int rc = background->final.rc;
        call_fail(call, rc, "%.*s", (int)background->final.message.len,
                  background->final.message.data);
        call_unref(background);
        return rc;
    }
    return NG_OK;
}

struct ng_later *host_later(struct ng_call *pub)
{
    return (struct ng_later *)(void *)host_background_new(call_of(pub));
}

int host_start_later(struct ng_later *later, ng_step_fn *step, void *user)
{
    struct call *background = (struct call *)(void *)later;
    int rc = NG_OK;
    if (background != NULL && step != NULL && dispatch_step(background, step, user) != NG_OK) {
        return NG_OK; /* it runs, and frees itself */
    }
    if (background != NULL && step != NULL) {
        rc = background->final.rc;
    }
    call_unref(background);
    return rc;
}

void host_lists_changed(const struct ng_host *host, unsigned lists)
{
    struct gateway *gateway = host_gateway(host);
    if (gateway->lists_changed != NULL) {
        gateway->lists_changed(gateway, lists, gateway->lists_user);
    }
}

struct ng_str host_gateway_name(const struct ng_host *host)
{
    return cluster_name(host_gateway(host)->cluster);
}

uint64_t host_gateway_term(const struct ng_host *host)
{
    return cluster_term(host_gateway(host)->cluster);
}

int host_gateway_find(struct ng_call *pub, struct ng_str name, bool *ret_alive,
                      struct ng_str *ret_where)
{
    struct call *call = call_of(pub);
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    return cluster_find(call->gateway->cluster, call, name, ret_alive, ret_where);
}
