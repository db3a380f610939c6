/* SPDX-License-Identifier: MIT */
/* rest_admin.c - requests of the owner's commands to the running gateway: backup, verify (only
 * on the Unix socket), reload, configuration. */
#include <stdio.h>

#include "api/auth/key_ops.h"
#include "api/http/http_access.h"
#include "api/http/http_reply.h"
#include "api/http/http_server.h"
#include "api/http/http_stream_transport.h"
#include "api/ops/reload.h"
#include "api/ops/verify.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/dispatch/audit.h"
#include "core/dispatch/dispatch.h"
#include "core/keys/keys.h"
#include "rest.h"
#include "rest_backup.h"

#define STATUS_OK 200
#define PARAMETER_SHOWN 60

/* The request of the owner; memory of the call. */
struct admin_work {
    bool files;                 /* a backup: with those of the roots */
    struct http_stream *stream; /* of it, until the reply has it */
};

static void admin_work_release(void *object)
{
    struct admin_work *work = object;
    http_stream_drop(work->stream);
    work->stream = NULL;
}

/* Whether it has begun: then all of the data may be read, even if the archive breaks off. */
static void backup_audit(const struct call *call, int rc)
{
    struct audit_event event = {.gateway = call->gateway,
                                .what = "backup",
                                .outcome = rc == NG_OK ? "ok" : error_name(NULL, rc)};
    audit_event_by(&event, call);
    audit_event(&event);
}

static int backup_step(struct ng_call *pub, void *user)
{
    struct admin_work *work = user;
    int rc = rest_backup_begin(call_of(pub), work->files, &work->stream);
    backup_audit(call_of(pub), rc);
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(pub, ng_str_of("begun"));
}

static int verify_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    struct buf out;
    (void)user;
    buf_init(&out, VERIFY_TEXT_MAX);
    int rc = verify_print(call->gateway, call, &out);
    if (rc == NG_OK) {
        if (out.rc == NG_OK) {
            rc = ng_reply(pub, buf_str(&out));
        } else {
            rc = out.rc;
        }
    }
    buf_done(&out);
    return rc;
}

static int admin_refuse(struct http_request *request, int rc, const char *hint,
                        const char *text)
{
    http_access_refused(request, "refused", rc, str_make(NULL, 0));
    (void)http_reply_error(request, rc, hint, "%s", text);
    return NG_OK;
}

/* files=true of the query; ret_files is NULL where the route has no parameters. A misspelt one
 * must not make a backup without the files. */
static bool admin_query(struct http_request *request, bool *ret_files)
{
    struct ng_str query = request->target.query;
    struct ng_str name;
    struct ng_str value;
    while (http_query_next(&query, &name, &value)) {
        bool yes = str_is(value, "true");
        if (ret_files == NULL || !str_is(name, "files") || !(yes || str_is(value, "false"))) {
            (void)http_reply_error(
                request, NG_EINVAL,
                ret_files != NULL ? "The only parameter is files=true" : "It has no parameters",
                "The parameter \"%.*s\" is unknown here, or has a wrong value",
                (int)utf8_cut(name, PARAMETER_SHOWN).len, name.data);
            return false;
        }
        *ret_files = yes;
    }
    return true;
}

/* has_files: the query may say so. */
static int admin_start(struct http_request *request, ng_step_fn *step, bool has_files)
{
    bool files = false;
    const struct auth_connection *who = &request->connection->auth;
    if (who->way != AUTH_SOCKET || who->started == AUTH_STARTED_YES ||
        who->started == AUTH_STARTED_UNSEEN || who->is_unknown) {
        return admin_refuse(request, NG_EFORBIDDEN, "Use the command on the gateway's machine",
                            "This is answered only on the Unix socket in the data directory");
    }
    if (!admin_query(request, has_files ? &files : NULL)) {
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    struct admin_work *work = arena_zalloc(&call->arena, sizeof(*work));
    if (work == NULL || call_pin(call, admin_work_release, work) != NG_OK) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        call_unref(call);
        return NG_OK;
    }
    work->files = files;
    call->options |= CALL_NO_DEADLINE; /* large data take their time; the owner can leave */
    call->on_user = work;
    request->call = call;
    if (dispatch_step(call, step, work) == NG_PENDING) {
        return NG_PENDING;
    }
    rest_admin_finish(request);
    return NG_OK;
}

int rest_admin_backup(struct http_request *request)
{
    return admin_start(request, backup_step, true);
}

int rest_admin_verify(struct http_request *request)
{
    return admin_start(request, verify_step, false);
}

/* ---- reload ---- */

static int reload_step(struct ng_call *pub, void *user)
{
    struct reload *reload = user;
    struct call *call = call_of(pub);
    if (reload == NULL) {
        return call_fail(call, NG_EBUSY, "the gateway is starting or stopping");
    }
    return reload_ask(reload, call);
}

/* `what` begins a sentence. True: refused. */
static bool admin_only(struct http_request *request, const char *what)
{
    char text[128];
    if (request->caller.role == NG_ROLE_ADMIN) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%s needs the role admin; this caller's role is %s",
                   what, key_role_name(request->caller.role));
    (void)admin_refuse(request, NG_EFORBIDDEN, NULL, text);
    return true;
}

int rest_admin_config(struct http_request *request)
{
    if (admin_only(request, "The configuration") || !admin_query(request, NULL)) {
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    bool allowed = key_ops_allowed(call); /* no list of tools */
    call_unref(call);
    if (!allowed) {
        return admin_refuse(request, NG_EFORBIDDEN, NULL,
                            "The caller's key is limited to some tools, so it does not see the "
                            "configuration");
    }
    struct reload *reload = atomic_load(&request->server->reload);
    struct buf *body = &request->reply.body;
    if (reload != NULL) {
        (void)reload_print_config(reload, body);
    } else {
        (void)config_print(request->gateway->config, NULL, NULL, body);
    }
    request->reply.status = STATUS_OK;
    return NG_OK;
}

int rest_admin_reload(struct http_request *request)
{
    if (admin_only(request, "A reload")) {
        return NG_OK;
    }
    if (request->caller.mode == NG_MODE_ASK) {
        return admin_refuse(request, NG_EMODE, NULL,
                            "A reload changes the gateway and the caller's mode is ask, which "
                            "only reads; it needs the mode edit or agent");
    }
    if (!admin_query(request, NULL)) {
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    request->call = call;
    if (dispatch_step(call, reload_step, atomic_load(&request->server->reload)) == NG_PENDING) {
        return NG_PENDING;
    }
    rest_admin_reload_finish(request);
    return NG_OK;
}

void rest_admin_reload_finish(struct http_request *request)
{
    struct call *call = request->call;
    if (call->final.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else {
        request->reply.status = STATUS_OK;
        (void)buf_add_str(&request->reply.body, call->final.text);
    }
    request->call = NULL;
    call_unref(call);
}

void rest_admin_finish(struct http_request *request)
{
    struct call *call = request->call;
    struct http_reply *reply = &request->reply;
    struct admin_work *work = call->on_user;
    if (call->final.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else if (work->stream != NULL) {
        reply->status = STATUS_OK;
        reply->content_type = "application/x-ndjson";
        reply->stream = work->stream;
        work->stream = NULL;
    } else {
        reply->status = STATUS_OK;
        (void)buf_add_str(&reply->body, call->final.text);
    }
    request->call = NULL;
    call_unref(call);
}
