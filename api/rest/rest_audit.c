/* SPDX-License-Identifier: MIT */
/* rest_audit.c - /v1/audit: the audit log, for the role admin: entries, the checkpoint, tiles
 * as they lie on the disk, redaction. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "api/audit/audit_list.h"
#include "api/audit/audit_redact.h"
#include "api/auth/key_ops.h"
#include "api/http/http_access.h"
#include "api/http/http_reply.h"
#include "core/audit/audit_disk.h"
#include "core/audit/audit_log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/gateway/gateway_audit.h"
#include "core/history/point.h"
#include "rest.h"

#define STATUS_OK 200
#define PARAMETER_SHOWN 60
#define ERROR_MAX ((size_t)4096)
#define TILE_FOLDER "tile/"
/* Full tiles never change. */
#define CACHE_TILE "private, max-age=31536000, immutable"

/* A request; memory of the call. */
struct audit_job {
    struct audit_filter filter;
    struct audit_page page;
    char file[AUDIT_DISK_NAME_SIZE]; /* below the folder of the log; "": entries */
    bool is_full;                    /* a tile that never changes */
    struct buf bytes;                /* of the file */
};

static void job_release(void *object)
{
    struct audit_job *job = object;
    buf_done(&job->bytes);
}

static void job_path(const struct call *call, char out[PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, "%s/" GATEWAY_AUDIT_FOLDER, call->gateway->data_dir);
}

static int job_no_log(struct call *call)
{
    return call_fail(call, NG_ENOTFOUND, "this gateway has no audit log (`audit`)");
}

/* ---- steps, on a worker ---- */

static int add_entry(void *user, const struct audit_shown *shown)
{
    struct buf *out = user;
    (void)buf_add_c(out, out->data[out->len - 1] == '[' ? "" : ",");
    return audit_shown_json(shown, out);
}

static int list_step(struct ng_call *pub, void *user)
{
    struct audit_job *job = user;
    struct call *call = call_of(pub);
    char path[PATH_MAX];
    struct buf error;
    job_path(call, path);
    buf_init(&error, ERROR_MAX);
    (void)buf_add_c(&job->bytes, "{\"entries\":[");
    int rc = job->bytes.rc != NG_OK ? job->bytes.rc
                                    : audit_list_page(path, &job->filter, &job->page, add_entry,
                                                      &job->bytes, &error);
    if (rc == NG_ENOTFOUND && error.len == 0) {
        rc = job_no_log(call);
    } else if (rc != NG_OK) {
        rc = call_fail(call, rc == NG_EFAILED ? NG_EUNAVAILABLE : rc, "%s",
                       error.len > 0 ? buf_cstr(&error) : "out of memory for the entries");
    } else if (job->page.before > 0) {
        rc = buf_printf(&job->bytes, "],\"has_more\":true,\"next\":%llu}",
                        (unsigned long long)job->page.before);
    } else {
        rc = buf_add_c(&job->bytes, "],\"has_more\":false}");
    }
    buf_done(&error);
    return rc == NG_OK ? ng_reply(pub, ng_str_of("")) : rc;
}

static int file_step(struct ng_call *pub, void *user)
{
    struct audit_job *job = user;
    struct call *call = call_of(pub);
    char path[PATH_MAX];
    struct buf error;
    int dir = -1;
    job_path(call, path);
    buf_init(&error, ERROR_MAX);
    int rc = audit_disk_open(path, false, &dir, &error);
    if (rc == NG_OK) {
        rc = audit_disk_read(dir, job->file, &job->bytes);
        (void)close(dir);
    }
    if (rc == NG_ENOTFOUND) {
        rc = dir < 0 ? job_no_log(call)
                     : call_fail(call, rc, "the audit log has no %s", job->file);
    } else if (rc != NG_OK) {
        rc = call_fail(call, rc, "the audit log's file %s cannot be read", job->file);
    }
    buf_done(&error);
    return rc == NG_OK ? ng_reply(pub, ng_str_of("")) : rc;
}

static int redact_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    const struct ng_value *body = NULL;
    uint64_t count = 0;
    (void)user;
    if (json_parse(&call->arena, call->args_text, JSON_DEPTH_DEFAULT, &body, NULL) != NG_OK ||
        !json_is(json_get(body, "name"), NG_TYPE_STRING) || body->count != 1) {
        return call_fail(call, NG_EINVAL, "the body must be {\"name\": NAME}");
    }
    int rc = audit_redact(call, json_get(body, "name")->text, &count);
    struct ng_str text =
        arena_printf(&call->arena, "{\"names\":%llu}", (unsigned long long)count);
    return rc == NG_OK ? ng_reply(pub, text) : rc;
}

/* ---- requests ---- */

/* True: refused. */
static bool refused(struct http_request *request, const struct call *call, bool changes)
{
    const char *why = NULL;
    int rc = NG_EFORBIDDEN;
    if (request->caller.role != NG_ROLE_ADMIN) {
        why = "The audit log needs the role admin";
    } else if (!key_ops_allowed(call)) { /* no list of tools, all spaces */
        why = "The caller's key is limited to some tools, so it does not see the audit log";
    } else if (changes && request->caller.mode == NG_MODE_ASK) {
        rc = NG_EMODE;
        why =
            "A redaction changes the audit log and the caller's mode is ask, which only reads";
    }
    if (why != NULL) {
        http_access_refused(request, "refused", rc, str_make(NULL, 0));
        (void)http_reply_error(request, rc, NULL, "%s", why);
    }
    return why != NULL;
}

/* The call of a request that is allowed, with its job; NULL: it is answered. */
static struct call *job_new(struct http_request *request, bool changes, struct audit_job **ret)
{
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NULL;
    }
    struct audit_job *job = arena_zalloc(&call->arena, sizeof(*job));
    bool fits = job != NULL;
    if (fits) {
        buf_init(&job->bytes, request->reply.body.max);
        fits = call_pin(call, job_release, job) == NG_OK;
    }
    if (!fits) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    if (!fits || refused(request, call, changes)) {
        call_unref(call);
        return NULL;
    }
    call->on_user = job;
    *ret = job;
    return call;
}

static int job_start(struct http_request *request, struct call *call, ng_step_fn *step)
{
    request->call = call;
    if (dispatch_step(call, step, call->on_user) == NG_PENDING) {
        return NG_PENDING;
    }
    rest_audit_finish(request);
    return NG_OK;
}

static bool take_parameter(struct call *call, struct audit_job *job, struct ng_str name,
                           struct ng_str sent)
{
    char *room = arena_alloc(&call->arena, sent.len + 1);
    struct ng_str value = {room, 0};
    uint64_t number;
    if (room == NULL || http_decode(sent, room, &value.len) != NG_OK) {
        return false;
    }
    if (str_is(name, "before")) {
        return str_number(value, UINT64_MAX, &job->page.before);
    }
    if (str_is(name, "limit")) {
        bool good = str_number(value, AUDIT_LIST_MAX, &number) && number > 0;
        job->page.limit = good ? (size_t)number : 0;
        return good;
    }
    return audit_filter_set(&job->filter, name, value) == NG_OK;
}

int rest_audit_list(struct http_request *request)
{
    struct audit_job *job = NULL;
    struct ng_str query = request->target.query;
    struct ng_str name;
    struct ng_str value;
    struct call *call = job_new(request, false, &job);
    if (call == NULL) {
        return NG_OK;
    }
    job->page = (struct audit_page){UINT64_MAX, AUDIT_LIST_LOOKS, AUDIT_LIST_DEFAULT};
    while (http_query_next(&query, &name, &value)) {
        if (!take_parameter(call, job, name, value)) {
            (void)http_reply_error(
                request, NG_EINVAL,
                "It takes " AUDIT_FILTER_NAMES
                ", before and limit (1 to 200); points are " POINT_FORMS
                "; a path is absolute, and not beside an id",
                "The parameter \"%.*s\" is unknown here, or has a wrong value",
                (int)utf8_cut(name, PARAMETER_SHOWN).len, name.data);
            call_unref(call);
            return NG_OK;
        }
    }
    return job_start(request, call, list_step);
}

int rest_audit_checkpoint(struct http_request *request)
{
    struct audit_job *job = NULL;
    struct call *call = job_new(request, false, &job);
    if (call == NULL) {
        return NG_OK;
    }
    (void)snprintf(job->file, sizeof(job->file), "%s", AUDIT_CHECKPOINT_FILE);
    return job_start(request, call, file_step);
}

/* "0/x001/067", "entries/067.p/12": nothing else leads to a file. */
static bool is_tile(struct ng_str path)
{
    char last = '/';
    for (size_t i = 0; i < path.len; i++) {
        char c = path.data[i];
        bool good = str_is_digit(c) || str_is_alpha(c) || (c == '/' && last != '/') ||
                    (c == '.' && str_is_digit(last));
        if (!good) {
            return false;
        }
        last = c;
    }
    return path.len > 0 && path.len < AUDIT_DISK_NAME_SIZE - sizeof(TILE_FOLDER) &&
           str_is_digit(last);
}

int rest_audit_tile(struct http_request *request)
{
    struct audit_job *job = NULL;
    struct ng_str path = request->param;
    struct call *call = job_new(request, false, &job);
    if (call == NULL) {
        return NG_OK;
    }
    if (!is_tile(path)) {
        (void)http_reply_error(request, NG_ENOTFOUND,
                               "Paths are those of C2SP tlog-tiles: tile/0/000, "
                               "tile/entries/x001/067.p/12",
                               "The audit log has no such tile");
        call_unref(call);
        return NG_OK;
    }
    (void)snprintf(job->file, sizeof(job->file), TILE_FOLDER "%.*s", (int)path.len, path.data);
    job->is_full = strchr(job->file, '.') == NULL;
    return job_start(request, call, file_step);
}

int rest_audit_redact(struct http_request *request)
{
    struct audit_job *job = NULL;
    struct call *call = job_new(request, true, &job);
    if (call == NULL) {
        return NG_OK;
    }
    if (http_request_keep_body(request, call) != NG_OK) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        call_unref(call);
        return NG_OK;
    }
    call->args_text = http_request_text(request);
    request->reply.changed = true;
    return job_start(request, call, redact_step);
}

void rest_audit_finish(struct http_request *request)
{
    struct call *call = request->call;
    struct http_reply *reply = &request->reply;
    const struct audit_job *job = call->on_user;
    if (call->final.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else {
        reply->status = STATUS_OK;
        (void)buf_add_str(&reply->body, call->final.text.len > 0
                                            ? call->final.text
                                            : str_make(job->bytes.data, job->bytes.len));
    }
    if (call->final.rc == NG_OK && job->file[0] != '\0') {
        bool is_note = str_is(ng_str_of(job->file), AUDIT_CHECKPOINT_FILE);
        reply->content_type =
            is_note ? "text/plain; charset=utf-8" : "application/octet-stream";
        reply->cache = job->is_full ? CACHE_TILE : NULL;
    }
    request->call = NULL;
    call_unref(call);
}
