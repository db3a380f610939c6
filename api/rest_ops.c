/* SPDX-License-Identifier: MIT */
/* rest_ops.c - for those who run the gateway: health, readiness, metrics. */
#include "dispatch.h"
#include "gateway.h"
#include "http_reply.h"
#include "http_server.h"
#include "journal.h"
#include "keys.h"
#include "log_queue.h"
#include "record.h"
#include "registry.h"
#include "routes.h"
#include "str.h"

#define STATUS_OK 200
#define STATUS_UNAVAILABLE 503
#define METRICS_TEXT_MAX ((size_t)4 * 1024 * 1024)

int rest_ops_healthz(struct http_request *request)
{
    request->reply.status = STATUS_OK;
    request->reply.fixed = ng_str_of("{\"status\":\"ok\"}");
    return NG_OK;
}

/* ---- readiness: asks the store, on a worker ---- */

/* What a plugin has to finish before it serves, asked in a call of the gateway's own: plugins
 * may begin work in it. */
static int readyz_plugins(struct call *call)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(call->gateway->registry, &plugins);
    struct call *own = call_new(call->gateway);
    int rc = own == NULL ? NG_EINTERNAL : NG_OK;
    if (own != NULL) {
        own->deadline_ns = call->deadline_ns;
    }
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        if (plugins[i]->started && plugins[i]->desc.health != NULL) {
            rc = plugins[i]->desc.health(plugins[i]->self, &own->pub);
        }
    }
    if (rc != NG_OK) {
        struct ng_str text = own == NULL ? ng_str_of("out of memory") : own->work.message;
        rc = call_fail(call, rc, "%.*s", (int)text.len, text.data == NULL ? "" : text.data);
    }
    call_unref(own);
    return rc;
}

static int readyz_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    (void)user;
    int rc = call->gateway->store == NULL ? NG_OK : store_health(call->gateway->store, call);
    if (rc == NG_OK && keys_unread(call->gateway->keys)) {
        rc = call_fail(call, NG_EUNAVAILABLE, "the keys have not been read yet");
    }
    rc = rc != NG_OK ? rc : readyz_plugins(call);
    return rc == NG_OK ? ng_reply(pub, ng_str_of("ready")) : rc;
}

static void readyz_print(struct http_request *request, const struct call *call)
{
    struct http_reply *reply = &request->reply;
    bool ready = call->result.rc == NG_OK && !atomic_load(&request->gateway->stopping);
    reply->status = ready ? STATUS_OK : STATUS_UNAVAILABLE;
    reply->retry_after_s = ready ? 0 : HTTP_RETRY_AFTER_S;
    /* A journal that is away loses nothing: calls are taken all the same. */
    bool degraded =
        request->gateway->journal != NULL && journal_degraded(request->gateway->journal);
    (void)buf_printf(&reply->body, "{\"status\":\"%s\"",
                     !ready     ? "not ready"
                     : degraded ? "degraded"
                                : "ready");
    if (request->gateway->journal != NULL && request->authenticated) {
        long long backlog = (long long)journal_backlog(request->gateway->journal);
        if (degraded || backlog > 0) {
            (void)buf_printf(&reply->body, ",\"backlog\":%lld", backlog);
        }
        if (ready && degraded) {
            (void)buf_printf(&reply->body,
                             ",\"message\":\"the journal takes no events; %lld wait for it\"",
                             backlog);
        }
    }
    if (!ready && request->authenticated) { /* no details for strangers */
        (void)buf_printf(&reply->body, ",\"code\":\"%s\",\"message\":",
                         call->result.code == NULL || call->result.rc == NG_OK
                             ? error_name(NULL, NG_EBUSY)
                             : call->result.code);
        (void)buf_add_json(&reply->body, call->result.rc == NG_OK
                                             ? ng_str_of("the gateway is stopping")
                                             : call->result.message);
    }
    (void)buf_add_char(&reply->body, '}');
}

/* A step of the gateway's own: who asked does not matter, and no agent's calls are in its way:
 * an agent's name has no slash, so this lane of the workers is its own. */
static int start_step(struct http_request *request, ng_step_fn *step)
{
    struct call *call = call_new(request->gateway);
    if (call == NULL) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return NG_OK;
    }
    call->caller.agent = ng_str_of("/");
    call->on_loop = true;
    call->done = http_request_call_done;
    call->done_user = request;
    request->call = call;
    if (dispatch_step(call, step, NULL) == NG_PENDING) {
        return NG_PENDING;
    }
    rest_ops_finish(request);
    return NG_OK;
}

int rest_ops_readyz(struct http_request *request)
{
    return start_step(request, readyz_step);
}

/* ---- metrics ---- */

static void metrics_stat(void *user, const char *name, double value)
{
    struct buf *out = user;
    (void)buf_printf(out, "# TYPE notegate_store_%s gauge\nnotegate_store_%s %.17g\n", name,
                     name, value);
}

static bool sees_tool(void *user, const char *tool)
{
    return key_allows_tool(user, tool);
}

/* Right here and not on a worker: it has to be readable above all when these are all busy. It
 * only reads counters. */
int rest_ops_metrics(struct http_request *request)
{
    struct gateway *gateway = request->gateway;
    struct http_reply *reply = &request->reply;
    struct buf out;
    buf_init(&out, METRICS_TEXT_MAX);
    struct metrics_reader reader = {request->caller.agent, sees_tool, request->caller.key};
    bool admin = request->caller.role == NG_ROLE_ADMIN;
    (void)metrics_print(gateway->metrics, admin ? NULL : &reader, &out);
    (void)buf_printf(&out,
                     "# HELP notegate_log_dropped_total Log lines that nobody read in time.\n"
                     "# TYPE notegate_log_dropped_total counter\n"
                     "notegate_log_dropped_total %llu\n",
                     (unsigned long long)log_queue_dropped());
    if (gateway->recorder != NULL) {
        (void)buf_printf(&out,
                         "# HELP notegate_calls_not_recorded_total Calls that "
                         "journal.record_calls could not record.\n"
                         "# TYPE notegate_calls_not_recorded_total counter\n"
                         "notegate_calls_not_recorded_total %llu\n",
                         (unsigned long long)record_lost(gateway->recorder));
    }
    if (gateway->journal != NULL) {
        (void)buf_printf(&out,
                         "# HELP notegate_outbox_backlog Events that wait for the journal.\n"
                         "# TYPE notegate_outbox_backlog gauge\n"
                         "notegate_outbox_backlog %lld\n",
                         (long long)journal_backlog(gateway->journal));
        metrics_head(&out, "notegate_journal_degraded", "gauge",
                     "Whether the journal takes no events just now.");
        (void)buf_printf(&out, "notegate_journal_degraded %d\n",
                         journal_degraded(gateway->journal) ? 1 : 0);
    }
    metrics_head(&out, "notegate_mcp_sessions", "gauge", "Open MCP sessions over HTTP.");
    (void)buf_printf(&out, "notegate_mcp_sessions %zu\n",
                     mcp_http_sessions(request->server->mcp));
    if (gateway->keys != NULL) {
        metrics_head(&out, "notegate_keys", "gauge", "Keys that are good.");
        (void)buf_printf(&out, "notegate_keys %zu\n", keys_count(gateway->keys));
    }
    metrics_print_process(&out);
    if (gateway->store != NULL) {
        store_stats(gateway->store, metrics_stat, &out);
    }
    if (out.rc == NG_OK) {
        reply->status = STATUS_OK;
        reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
        (void)buf_add_str(&reply->body, buf_str(&out));
    } else {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    buf_done(&out);
    return NG_OK;
}

void rest_ops_finish(struct http_request *request)
{
    struct call *call = request->call;
    readyz_print(request, call);
    request->call = NULL;
    call_unref(call);
}
