/* SPDX-License-Identifier: MIT */
/* rest_admin.c - what the owner's commands ask of the running gateway: backup, verify (only on
 * the Unix socket); and a reload, for every admin. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "archive.h"
#include "clock.h"
#include "dispatch.h"
#include "http_access.h"
#include "http_reply.h"
#include "http_server.h"
#include "keys.h"
#include "reload.h"
#include "routes.h"
#include "str.h"
#include "verify.h"

#define STATUS_OK 200

/* A copy on its way; memory of the call. */
struct admin_copy {
    int fd; /* a file without a name in the data directory; -1: none, or handed over */
    uint64_t size;
};

static void admin_copy_release(void *object)
{
    struct admin_copy *copy = object;
    if (copy->fd >= 0) {
        (void)close(copy->fd);
        copy->fd = -1;
    }
}

static int admin_put(void *user, struct ng_str bytes)
{
    struct admin_copy *copy = user;
    while (bytes.len > 0) {
        ssize_t written = write(copy->fd, bytes.data, bytes.len);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return errno == ENOSPC || errno == EDQUOT ? NG_EFULL : NG_EUNAVAILABLE;
        }
        copy->size += (uint64_t)written;
        bytes.data += written;
        bytes.len -= (size_t)written;
    }
    return NG_OK;
}

/* The copy is made in one go into a file without a name: a slow reader then holds no snapshot
 * of the database open, and the answer has a length. */
static int backup_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    struct admin_copy *copy = user;
    struct archive_counts counts;
    copy->fd = open(call->gateway->data_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (copy->fd < 0) {
        return call_fail(call, NG_EUNAVAILABLE,
                         "no temporary file can be made in the data directory %s",
                         call->gateway->data_dir);
    }
    int rc = archive_write_store(call->gateway->store, call, clock_unix_ms(), admin_put, copy,
                                 &counts);
    return rc == NG_OK ? ng_reply(pub, ng_str_of("done")) : rc;
}

static int verify_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    struct buf out;
    (void)user;
    buf_init(&out, VERIFY_TEXT_MAX);
    int rc = verify_print(call->gateway, call, &out);
    if (rc == NG_OK) {
        rc = out.rc == NG_OK ? ng_reply(pub, buf_str(&out)) : out.rc;
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

static int admin_start(struct http_request *request, ng_step_fn *step)
{
    if (!request->connection->auth.is_socket || request->connection->auth.is_started) {
        return admin_refuse(request, NG_EFORBIDDEN,
                            "Use the command on the gateway's own machine",
                            "This is answered only on the Unix socket in the data directory");
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    struct admin_copy *copy = arena_zalloc(&call->arena, sizeof(*copy));
    if (copy == NULL) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        call_unref(call);
        return NG_OK;
    }
    copy->fd = -1;
    if (call_pin(call, admin_copy_release, copy) != NG_OK) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        call_unref(call);
        return NG_OK;
    }
    call->no_deadline = true; /* large data take their time; the owner can leave */
    call->on_user = copy;
    request->call = call;
    if (dispatch_step(call, step, copy) == NG_PENDING) {
        return NG_PENDING;
    }
    rest_admin_finish(request);
    return NG_OK;
}

int rest_admin_backup(struct http_request *request)
{
    return admin_start(request, backup_step);
}

int rest_admin_verify(struct http_request *request)
{
    return admin_start(request, verify_step);
}

/* ---- reload ---- */

static int reload_step(struct ng_call *pub, void *user)
{
    struct reload *reload = user;
    struct call *call = call_of(pub);
    return reload == NULL ? call_fail(call, NG_EBUSY, "the gateway is starting or stopping")
                          : reload_ask(reload, call);
}

int rest_admin_reload(struct http_request *request)
{
    if (request->caller.role != NG_ROLE_ADMIN) {
        char text[128];
        (void)snprintf(text, sizeof(text),
                       "A reload needs the role admin; this caller's role is %s",
                       key_role_name(request->caller.role));
        return admin_refuse(request, NG_EFORBIDDEN, NULL, text);
    }
    if (request->caller.mode == NG_MODE_ASK) {
        return admin_refuse(request, NG_EMODE, NULL,
                            "A reload changes the gateway and the caller's mode is ask, which "
                            "only reads; it needs the mode edit or agent");
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
    if (call->result.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else {
        request->reply.status = STATUS_OK;
        (void)buf_add_str(&request->reply.body, call->result.text);
    }
    request->call = NULL;
    call_unref(call);
}

void rest_admin_finish(struct http_request *request)
{
    struct call *call = request->call;
    struct http_reply *reply = &request->reply;
    struct admin_copy *copy = call->on_user;
    if (call->result.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else if (copy->fd >= 0) {
        reply->status = STATUS_OK;
        reply->content_type = "application/x-ndjson";
        reply->has_file = true;
        reply->file_fd = copy->fd;
        reply->file_size = copy->size;
        copy->fd = -1;
    } else {
        reply->status = STATUS_OK;
        (void)buf_add_str(&reply->body, call->result.text);
    }
    request->call = NULL;
    call_unref(call);
}
