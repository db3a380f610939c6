/* SPDX-License-Identifier: MIT */
/* rest_ops.c - operations: health and readiness. */
#include "api/base/build_info.h"
#include "api/http/http_reply.h"
#include "api/http/http_transport.h"
#include "core/audit/writer/audit_writer.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/journal/journal.h"
#include "core/json/json.h"
#include "core/keys/keys.h"
#include "core/module/registry.h"
#include "core/store/disk.h"
#include "core/store/store.h"
#include "rest.h"

#define STATUS_OK 200
#define STATUS_UNAVAILABLE 503

int rest_ops_healthz(struct http_request *request)
{
    request->reply.status = STATUS_OK;
    request->reply.fixed = ng_str_of("{\"status\":\"ok\"}");
    return NG_OK;
}

/* ---- readiness: asks the store, on a worker ---- */

/* All reasons why the gateway is not ready, so that one look shows everything there is to
 * mend. */
struct readyz {
    struct call *call;
    int rc; /* of the first */
    struct ng_str first;
    struct ng_writer *reasons; /* the call's details */
};

/* Sentences of the gateway about itself; a file's name may be long. */
#define REASON_MAX ((size_t)16 * 1024)

static void readyz_failed(struct readyz *ready, int rc, struct ng_str message)
{
    struct ng_str text = message;
    if (message.len <= 0) {
        text = ng_str_of("out of memory");
    }
    if (rc == NG_OK) {
        return;
    }
    if (ready->rc == NG_OK) {
        ready->rc = rc;
        ready->first = arena_copy(&ready->call->arena, text);
        ready->reasons = ready->call->pub.host->details(&ready->call->pub);
        if (ready->reasons != NULL) {
            json_object(ready->reasons);
            json_name(ready->reasons, "reasons");
            json_array(ready->reasons);
        }
    }
    if (ready->reasons != NULL) {
        json_string(ready->reasons, text);
    }
}

/* Work that a plugin has to finish before it serves, asked in a call of the gateway's own:
 * plugins may begin work in it. */
static void readyz_plugins(struct readyz *ready, struct call *own)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(own->gateway->registry, &plugins);
    for (size_t i = 0; i < count; i++) {
        if (plugins[i]->started && plugins[i]->desc.health != NULL) {
            call_reset_result(own);
            int rc = plugins[i]->desc.health(plugins[i]->self, &own->pub);
            readyz_failed(ready, rc, own->staged.message);
        }
    }
}

#define READY "ready" /* the reply where no plugin is making something */

/* Indexes and the like that plugins build while they serve, as a JSON list; READY: none. */
static struct ng_str readyz_working(struct call *call, struct call *own)
{
    struct ng_str working = ng_str_of(READY);
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(own->gateway->registry, &plugins);
    struct buf list;
    buf_init(&list, REASON_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct plugin *plugin = plugins[i];
        struct ng_str text = {NULL, 0};
        if (plugin->started && plugin->desc.working != NULL) {
            call_reset_result(own);
            text = plugin->desc.working(plugin->self, &own->pub);
        }
        if (text.len > 0) {
            (void)buf_add_c(&list, list.len > 0 ? "," : "[");
            (void)buf_add_json(&list, text);
        }
    }
    if (list.len > 0 && buf_add_char(&list, ']') == NG_OK) {
        struct ng_str copy = arena_copy(&call->arena, buf_str(&list));
        if (copy.data != NULL) {
            working = copy;
        }
    }
    buf_done(&list);
    return working;
}

static int readyz_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    struct gateway *gateway = call->gateway;
    struct readyz ready = {.call = call};
    struct call *own = call_new(gateway);
    (void)user;
    if (own == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    own->deadline_ns = call->deadline_ns;
    if (gateway->disk != NULL) {
        disk_look(gateway->disk);
        disk_look_roots(gateway->disk);
    }
    if (gateway->store != NULL) {
        int rc = store_health(gateway->store, own);
        readyz_failed(&ready, rc, own->staged.message);
    }
    if (keys_not_loaded(gateway->keys)) {
        readyz_failed(&ready, NG_EUNAVAILABLE, ng_str_of("the keys have not been read yet"));
    }
    if (gateway->store != NULL && store_is_held(gateway->store)) {
        readyz_failed(&ready, NG_EUNAVAILABLE,
                      ng_str_of("other gateways do not know the collections of this one yet"));
    }
    readyz_plugins(&ready, own);
    struct ng_str working = readyz_working(call, own);
    call_unref(own);
    if (ready.rc == NG_OK) {
        return ng_reply(pub, working);
    }
    if (ready.reasons != NULL) {
        json_end(ready.reasons);
        json_end(ready.reasons);
    }
    return call_fail(call, ready.rc, "%.*s", (int)ready.first.len,
                     text_or(ready.first.data, ""));
}

/* Tools with calls that do not end: their number; of the one at `index` the reason. */
static unsigned stuck_reason(const struct gateway *gateway, unsigned index, struct buf *out)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    unsigned found = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < plugins[i]->tool_count; j++) {
            const struct tool *tool = plugins[i]->tools[j];
            unsigned stuck = atomic_load(&tool->stuck);
            if (stuck > 0 && found++ == index) {
                (void)buf_printf(out,
                                 "%u call%s of %s (plugin %s) %s not ended after %s timeout",
                                 stuck, plural(stuck), tool->desc.name, plugins[i]->desc.name,
                                 stuck == 1 ? "has" : "have", stuck == 1 ? "its" : "their");
            }
        }
    }
    return found;
}

static bool audit_reason(const struct gateway *gateway, struct buf *out)
{
    struct audit_writer *writer = gateway->audit.writer;
    if (writer == NULL || !audit_writer_is_failing(writer, out)) {
        return false;
    }
    size_t waiting = audit_writer_waiting(writer);
    (void)buf_printf(out, "; %zu entries wait, and from %zu on changes are refused", waiting,
                     AUDIT_WAITING_MAX);
    return true;
}

/* Faults that do not stop calls. Nothing is lost while a journal is away; a gateway with a full
 * disk still reads. `out`: emptied. False: no further fault. */
static bool degraded_reason(struct gateway *gateway, unsigned index, struct buf *out)
{
    bool journal = gateway->journal != NULL && journal_degraded(gateway->journal);
    bool left_out = gateway->left_out.len > 0;
    buf_clear(out);
    if (journal && index == 0) {
        (void)buf_printf(out, "the journal takes no events; %lld wait for it",
                         (long long)journal_backlog(gateway->journal));
        return true;
    }
    index -= journal;
    bool audit = audit_reason(gateway, out);
    if (audit && index == 0) {
        return true;
    }
    index -= audit;
    buf_clear(out);
    unsigned stuck = stuck_reason(gateway, index, out);
    if (index < stuck) {
        return true;
    }
    index -= stuck;
    if (left_out && index == 0) {
        (void)buf_printf(out, "plugins left out because they crashed the gateway: %.*s",
                         (int)gateway->left_out.len, gateway->left_out.data);
        return true;
    }
    return gateway->disk != NULL && disk_reason(gateway->disk, index - left_out, out);
}

static void print_degraded(struct http_request *request)
{
    struct buf *body = &request->reply.body;
    struct buf reason;
    buf_init(&reason, REASON_MAX);
    for (unsigned i = 0; degraded_reason(request->gateway, i, &reason); i++) {
        if (i == 0) {
            (void)buf_add_c(body, ",\"message\":");
            (void)buf_add_json(body, buf_str(&reason));
        }
        (void)buf_add_c(body, i == 0 ? ",\"reasons\":[" : ",");
        (void)buf_add_json(body, buf_str(&reason));
    }
    (void)buf_add_char(body, ']');
    buf_done(&reason);
}

static void print_not_ready(struct http_request *request, const struct call *call)
{
    struct buf *body = &request->reply.body;
    const struct result *result = &call->final;
    bool stopping = result->rc == NG_OK;
    (void)buf_printf(body, ",\"code\":\"%s\",\"message\":",
                     stopping || result->code == NULL ? error_name(NULL, NG_EBUSY)
                                                      : result->code);
    (void)buf_add_json(body, stopping ? ng_str_of("the gateway is stopping") : result->message);
    /* The members of the details without their braces. */
    if (!stopping && result->details.len > 2) {
        (void)buf_add_char(body, ',');
        (void)buf_add(body, result->details.data + 1, result->details.len - 2);
    }
}

static void readyz_print(struct http_request *request, const struct call *call)
{
    struct http_reply *reply = &request->reply;
    struct gateway *gateway = request->gateway;
    struct buf reason;
    bool ready = call->final.rc == NG_OK && !http_server_drains(request->server) &&
                 !atomic_load(&gateway->stopping);
    buf_init(&reason, REASON_MAX);
    bool degraded = degraded_reason(gateway, 0, &reason);
    buf_done(&reason);
    const char *status = "ready";
    reply->status = STATUS_OK;
    if (!ready) {
        status = "not ready";
        reply->status = STATUS_UNAVAILABLE;
        reply->retry_after_s = HTTP_RETRY_AFTER_S;
    } else if (degraded) {
        status = "degraded";
    }
    (void)buf_printf(&reply->body, "{\"status\":\"%s\"", status);
    if (request->authenticated) { /* no details for strangers */
        if (request->caller.role == NG_ROLE_ADMIN) {
            (void)buf_printf(&reply->body, ",\"version\":\"%s\"", build_version());
        }
        long long backlog = 0;
        if (gateway->journal != NULL) {
            backlog = (long long)journal_backlog(gateway->journal);
        }
        bool away = gateway->journal != NULL && journal_degraded(gateway->journal);
        if (away || backlog > 0) {
            (void)buf_printf(&reply->body, ",\"backlog\":%lld", backlog);
        }
        if (!ready) {
            print_not_ready(request, call);
        } else if (degraded) {
            print_degraded(request);
        }
        struct ng_str working = call->final.text;
        if (ready && working.len > 0 && working.data[0] == '[') {
            (void)buf_add_c(&reply->body, ",\"working\":");
            (void)buf_add_str(&reply->body, working);
        }
    }
    (void)buf_add_char(&reply->body, '}');
}

/* A step of the gateway's own: the identity of the caller does not matter, and no agent's calls
 * delay it: an agent's name has no slash, so this lane of the workers is private. */
static int start_step(struct http_request *request, ng_step_fn *step)
{
    struct call *call = call_new(request->gateway);
    if (call == NULL) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return NG_OK;
    }
    call->caller.agent = ng_str_of("/");
    call->options |= CALL_ON_LOOP;
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

void rest_ops_finish(struct http_request *request)
{
    struct call *call = request->call;
    readyz_print(request, call);
    request->call = NULL;
    call_unref(call);
}
