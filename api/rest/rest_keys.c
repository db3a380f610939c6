/* SPDX-License-Identifier: MIT */
/* rest_keys.c - /v1/keys: the keys, for the role admin. */
#include "api/auth/key_ops.h"
#include "api/http/http_access.h"
#include "api/http/http_reply.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/dispatch/dispatch.h"
#include "rest.h"

#define STATUS_OK 200
#define STATUS_CREATED 201

/* The parsed query. */
struct keys_query {
    bool all, force;
    struct ng_str name; /* in `text`, or absent */
    struct ng_str bad;  /* a parameter that means nothing here; absent: none */
    char text[HTTP_TARGET_MAX + 2];
};

static bool take_flag(struct ng_str value, bool *ret)
{
    *ret = str_is(value, "true") || str_is(value, "1");
    return *ret || str_is(value, "false") || str_is(value, "0");
}

static void parse_query(struct ng_str query, enum key_op op, struct keys_query *ret)
{
    struct ng_str name;
    struct ng_str value;
    ret->all = false;
    ret->force = false;
    ret->name = str_make(NULL, 0);
    ret->bad = str_make(NULL, 0);
    while (http_query_next(&query, &name, &value)) {
        bool good = false;
        if (str_is(name, "all")) {
            good = take_flag(value, &ret->all);
        } else if (str_is(name, "force") && op == KEY_OP_REVOKE) {
            good = take_flag(value, &ret->force);
        } else if (str_is(name, "name") && ret->name.data == NULL) {
            ret->name = str_make(ret->text, 0);
            good = http_decode(value, ret->text, &ret->name.len) == NG_OK &&
                   call_name_valid(ret->name); /* an id is of the same form */
        }
        if (!good) {
            ret->bad = name;
        }
    }
}

static int start(struct http_request *request, enum key_op op)
{
    struct keys_query query;
    parse_query(request->target.query, op, &query);
    if (query.bad.data != NULL) {
        (void)http_reply_error(request, NG_EINVAL,
                               op == KEY_OP_REVOKE
                                   ? "DELETE /v1/keys/ID takes force=true"
                                   : "GET /v1/keys takes all=true and name=AGENT or name=ID",
                               "The parameter \"%.*s\" is unknown here, or has a wrong value",
                               (int)utf8_cut(query.bad, 60).len, query.bad.data);
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    struct key_job *job = arena_zalloc(&call->arena, sizeof(*job));
    if (job == NULL || http_request_keep_body(request, call) != NG_OK) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        call_unref(call);
        return NG_OK;
    }
    job->op = op;
    job->all = query.all;
    job->force = query.force;
    job->name = arena_copy(&call->arena, query.name);
    job->id = arena_copy(&call->arena, request->param);
    call->args_text = http_request_text(request);
    call->on_user = job;
    request->call = call;
    if (dispatch_step(call, key_ops_step, job) == NG_PENDING) {
        return NG_PENDING;
    }
    rest_keys_finish(request);
    return NG_OK;
}

int rest_keys_list(struct http_request *request)
{
    return start(request, KEY_OP_LIST);
}

int rest_keys_add(struct http_request *request)
{
    return start(request, KEY_OP_ADD);
}

int rest_keys_show(struct http_request *request)
{
    return start(request, KEY_OP_SHOW);
}

int rest_keys_set(struct http_request *request)
{
    return start(request, KEY_OP_SET);
}

int rest_keys_revoke(struct http_request *request)
{
    return start(request, KEY_OP_REVOKE);
}

/* A change that failed or was refused; one that went well has its line by now. */
static void audit_failure(struct http_request *request, const struct key_job *job, int rc)
{
    static const char *const events[] = {
        [KEY_OP_ADD] = "key_add", [KEY_OP_SET] = "key_set", [KEY_OP_REVOKE] = "key_revoke"};
    if (key_op_changes(job->op)) {
        /* The path and not the id: that may be a key's whole text, which the path hides. */
        http_access_refused(request, events[job->op], rc, str_make(NULL, 0));
    }
}

void rest_keys_finish(struct http_request *request)
{
    struct call *call = request->call;
    const struct key_job *job = call->on_user;
    if (call->final.rc != NG_OK) {
        audit_failure(request, job, call->final.rc);
        (void)http_reply_call_error(request, call);
    } else {
        if (job->op == KEY_OP_ADD) {
            request->reply.status = STATUS_CREATED;
        } else {
            request->reply.status = STATUS_OK;
        }
        request->reply.changed = key_op_changes(job->op);
        (void)buf_add_str(&request->reply.body, call->final.text);
    }
    request->call = NULL;
    call_unref(call);
}
