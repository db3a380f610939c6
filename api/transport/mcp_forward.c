/* SPDX-License-Identifier: MIT */
/* mcp_forward.c - which requests are forwarded, and to which gateway: as remembered, or as the
 * database says. */
#include "mcp_forward.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/client/client_load.h"
#include "core/base/str.h"
#include "core/config/config.h"
#include "mcp_find.h"
#include "mcp_forward_state.h"

/* ---- where the session is ---- */

static struct hint *hint_of(struct mcp_http *mcp, struct ng_str id)
{
    return &mcp->forwards->hints[str_hash(id) % FORWARD_HINTS];
}

static bool read_hint(struct forward *forward)
{
    struct mcp_http *mcp = forward->mcp;
    lock_take(&mcp->lock);
    const struct hint *hint = hint_of(mcp, forward->id);
    bool known = hint->session == str_hash(forward->id) && hint->gateway[0] != '\0';
    if (known) {
        memcpy(forward->target, hint->gateway, sizeof(forward->target));
    }
    lock_release(&mcp->lock);
    return known;
}

static void write_hint(struct forward *forward)
{
    struct mcp_http *mcp = forward->mcp;
    lock_take(&mcp->lock);
    struct hint *hint = hint_of(mcp, forward->id);
    hint->session = str_hash(forward->id);
    memcpy(hint->gateway, forward->target, sizeof(hint->gateway));
    lock_release(&mcp->lock);
}

/* The response is filled. */
static void finish_here(struct forward *forward)
{
    forward->done(forward->response, forward->user);
    mcp_forward_count(forward, false);
    call_unref(forward->call);
}

/* To the gateway that has it. */
static void go_on(struct forward *forward)
{
    if (!mcp_forward_begin(forward)) {
        mcp_forward_finish(forward, EXCHANGE_BROKEN);
    }
}

/* A gateway that has taken a session sends the request to itself: what came with it is gone. */
static void serve_here(struct forward *forward)
{
    struct mcp_http *mcp = forward->mcp;
    struct ng_str own = cluster_id(mcp->gateway->cluster);
    struct mcp_http_request request = {
        .method = forward->method,
        .accept = forward->accept,
        .session_id = forward->id,
        .last_event_id = forward->last_event_id,
        .caller = forward->caller,
    };
    if (forward->method == HTTP_GET) {
        (void)mcp_http_get(mcp, &request, forward->response);
        finish_here(forward);
        return;
    }
    memcpy(forward->target, own.data, own.len);
    go_on(forward);
}

static void look_again(struct forward *forward)
{
    if (forward->rounds < FORWARD_ROUNDS) {
        mcp_forward_find(forward, false);
    } else {
        mcp_forward_finish(forward, EXCHANGE_BROKEN);
    }
}

static void found(const struct mcp_found *found, void *user)
{
    struct forward *forward = user;
    struct mcp_http *mcp = forward->mcp;
    char owner[MCP_SESSION_OWNER_MAX];
    switch (found->place) {
    case MCP_PLACE_HERE:
        serve_here(forward);
        break;
    case MCP_PLACE_THERE:
        memcpy(forward->target, found->gateway, sizeof(forward->target));
        if (forward->came) {
            forward->phase = FORWARD_AWAY;
            mcp_forward_finish(forward, EXCHANGE_BROKEN);
        } else {
            write_hint(forward);
            go_on(forward);
        }
        break;
    case MCP_PLACE_ENDED:
        (void)mcp_sessions_end(mcp->sessions, forward->id,
                               mcp_http_owner(forward->caller, owner));
        forward->response->status = STATUS_NO_CONTENT;
        finish_here(forward);
        break;
    case MCP_PLACE_NONE:
        forward->phase = FORWARD_GONE;
        mcp_forward_finish(forward, EXCHANGE_BROKEN);
        break;
    case MCP_PLACE_MOVED:
        look_again(forward);
        break;
    case MCP_PLACE_REFUSED:
        forward->response->status = STATUS_TOO_MANY;
        forward->response->retry_after_s = found->retry_after_s;
        (void)mcp_http_print_refusal(NG_ERATE, found->message, STR_NONE,
                                     &forward->response->body);
        finish_here(forward);
        break;
    case MCP_PLACE_UNKNOWN:
        forward->phase = FORWARD_ASKED;
        mcp_forward_finish(forward, EXCHANGE_BROKEN);
        break;
    }
}

void mcp_forward_find(struct forward *forward, bool refused)
{
    struct mcp_asked asked = {
        .id = forward->id,
        .caller = forward->caller,
        .ends = forward->method == HTTP_DELETE,
        .is_counted = forward->came || forward->rounds > 0,
    };
    if (refused) {
        memcpy(forward->refused, forward->token, sizeof(forward->refused));
    }
    memcpy(asked.refused, forward->refused, sizeof(asked.refused));
    lock_take(&forward->lock);
    forward->begun = false;
    lock_release(&forward->lock);
    forward->rounds++;
    mcp_find(forward->mcp, &asked, found, forward);
}

static int run(struct mcp_http *mcp, const struct mcp_http_request *request, bool came,
               struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    struct forward *forward = mcp_forward_new(mcp);
    if (forward == NULL || auth_apply(request->caller, forward->call) != NG_OK ||
        mcp_forward_keep(forward, request) != NG_OK) {
        if (forward != NULL) {
            call_unref(forward->call);
        }
        return mcp_http_refuse(response, STATUS_UNAVAILABLE, STATUS_UNAVAILABLE,
                               "the gateway ran out of memory; try again");
    }
    forward->came = came;
    forward->done = done;
    forward->user = user;
    mcp_forward_start(forward, response);
    if (came || !read_hint(forward) || !mcp_forward_begin(forward)) {
        mcp_forward_find(forward, false);
    }
    return NG_PENDING;
}

/* Is it a request for a session that the database may have? A caller without a key is known by
 * its connection only. */
static bool may_be_stored(const struct mcp_http *mcp, const struct mcp_http_request *request)
{
    return mcp->forwards != NULL && request->caller->key != NULL && !request->is_local &&
           request->session_id.len == MCP_SESSION_ID_LEN;
}

void mcp_forward_check_lapses(struct mcp_http *mcp)
{
    if (mcp->forwards == NULL) {
        return;
    }
    uint64_t lapses = cluster_lapses(mcp->gateway->cluster);
    if (atomic_load(&mcp->forwards->lapses) != lapses) {
        mcp_sessions_let_go(mcp->sessions);
        atomic_store(&mcp->forwards->lapses, lapses); /* until then none is served */
    }
}

static bool is_here(struct mcp_http *mcp, const struct mcp_http_request *request)
{
    char owner[MCP_SESSION_OWNER_MAX];
    struct mcp_session *session = mcp_sessions_find(mcp->sessions, request->session_id,
                                                    mcp_http_owner(request->caller, owner));
    mcp_session_unref(session);
    return session != NULL;
}

int mcp_forward(struct mcp_http *mcp, const struct mcp_http_request *request,
                struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    struct ng_str token = STR_NONE;
    if (request->session_id.data == NULL) {
        return NG_ENOTFOUND;
    }
    if (request->header != NULL) {
        token = request->header(request, FORWARD_HEADER);
    }
    if (token.data != NULL && !cluster_is_token(mcp->gateway->cluster, token)) {
        return mcp_http_refuse(response, STATUS_MISDIRECTED, MCP_INVALID_REQUEST,
                               "the header " FORWARD_HEADER " is not for this gateway");
    }
    if (!may_be_stored(mcp, request)) {
        return NG_ENOTFOUND;
    }
    mcp_forward_check_lapses(mcp);
    if (request->method != HTTP_DELETE && is_here(mcp, request)) {
        return NG_ENOTFOUND;
    }
    return run(mcp, request, token.data != NULL, response, done, user);
}

/* ---- all ---- */

/* A file that cannot be read would make every forwarded request fail. */
static int keep_authorities(const struct gateway *gateway, struct mcp_forwards *forwards,
                            struct buf *error)
{
    struct ng_str path = config_text(gateway->config, "cluster.authorities");
    if (path.len == 0) {
        return NG_OK;
    }
    forwards->authorities = str_dup(path);
    if (forwards->authorities == NULL) {
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    if (access(forwards->authorities, R_OK) != 0) {
        (void)buf_printf(error,
                         "cluster.authorities is \"%s\", which cannot be read: %s; it must be "
                         "a file of certificates (PEM)",
                         forwards->authorities, strerror(errno));
        return NG_EINVAL;
    }
    return NG_OK;
}

int mcp_forwards_open(struct gateway *gateway, struct mcp_forwards **ret, struct buf *error)
{
    *ret = NULL;
    if (!cluster_advertises(gateway->cluster)) {
        return NG_OK;
    }
    struct mcp_forwards *forwards = alloc_zeroed(1, sizeof(*forwards));
    if (forwards == NULL) {
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    int rc = client_load(&forwards->module, error);
    if (rc == NG_OK) {
        forwards->api = dlsym(forwards->module, EXCHANGE_SYMBOL);
        if (forwards->api == NULL || forwards->api->version != EXCHANGE_API) {
            (void)buf_add_c(error, "client.so is not of this version of notegate");
            rc = NG_EUNAVAILABLE;
        }
    }
    if (rc == NG_OK) {
        rc = keep_authorities(gateway, forwards, error);
    }
    if (rc == NG_OK) {
        rc = forwards->api->open(&forwards->exchanges);
    }
    if (rc != NG_OK) {
        mcp_forwards_close(forwards);
        return rc;
    }
    *ret = forwards;
    return NG_OK;
}

void mcp_forwards_cancel(struct mcp_forwards *forwards)
{
    if (forwards != NULL) {
        forwards->api->refuse(forwards->exchanges);
    }
}

void mcp_forwards_close(struct mcp_forwards *forwards)
{
    if (forwards == NULL) {
        return;
    }
    if (forwards->api != NULL && forwards->exchanges != NULL) {
        forwards->api->close(forwards->exchanges);
    }
    if (forwards->module != NULL) {
        (void)dlclose(forwards->module);
    }
    free(forwards->authorities);
    free(forwards);
}
