/* SPDX-License-Identifier: MIT */
/* mcp_find.c - sessions in the shared database, looked up and taken on a worker. */
#include "mcp_find.h"

#include "api/server/mcp_server.h"
#include "api/session/mcp_session_store.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"

/* Memory of its call. */
struct look {
    struct mcp_http *mcp;
    struct mcp_asked asked;
    char owner[MCP_SESSION_OWNER_MAX];
    struct ng_str owner_text;
    struct mcp_found result;
    mcp_found_fn *found;
    void *user;
};

/* The gateway's own, which no agent delays. NULL: out of memory. */
static struct call *own_call(struct mcp_http *mcp)
{
    struct call *call = call_new(mcp->gateway);
    if (call != NULL) {
        call->caller.agent = ng_str_of("/");
        call->options |= CALL_ON_LOOP | CALL_NO_RATE;
    }
    return call;
}

/* ---- taking ---- */

static void resume(const struct look *look, struct mcp_session *session,
                   const struct mcp_session_record *record)
{
    struct call *who = call_new(look->mcp->gateway);
    if (who != NULL && auth_apply(look->asked.caller, who) == NG_OK) {
        mcp_session_resume(session, who, record);
    }
    call_unref(who);
}

static int take(struct look *look, struct call *call, const struct mcp_session_record *record)
{
    struct mcp_http *mcp = look->mcp;
    struct mcp_session_edit edit = {.kind = MCP_SESSION_TAKE, .record = *record};
    struct mcp_session *session = NULL;
    int rc = mcp_session_edit(call, &edit);
    look->result.place = MCP_PLACE_MOVED;
    if (rc == NG_OK && atomic_load(&edit.moved)) {
        return NG_OK;
    }
    if (rc == NG_OK) {
        rc = mcp_sessions_adopt(mcp->sessions, &edit.record, look->asked.caller->key, &session);
    }
    if (rc == NG_OK) {
        mcp_client_requests_start(mcp->client_requests);
        resume(look, session, record);
        mcp_session_unref(session);
        look->result.place = MCP_PLACE_HERE;
        log_write(NG_LOG_DEBUG, "mcp", "took a session of gateway %.*s",
                  (int)record->gateway.len, record->gateway.data);
    }
    return rc;
}

/* Is it of another gateway that still has it? */
static int ask_holder(const struct look *look, struct call *call,
                      const struct mcp_session_record *record, bool *ret)
{
    struct cluster *cluster = look->mcp->gateway->cluster;
    struct ng_str *ids = NULL;
    size_t ids_count = 0;
    *ret = false;
    if (str_equal(record->gateway, cluster_id(cluster)) ||
        str_is(record->token, look->asked.refused)) {
        return NG_OK;
    }
    int rc = cluster_peers(cluster, call, &ids, &ids_count);
    *ret = rc == NG_OK && cluster_holds(cluster, record->gateway, record->token);
    return rc;
}

static bool is_here(const struct look *look)
{
    struct mcp_session *session =
        mcp_sessions_find(look->mcp->sessions, look->asked.id, look->owner_text);
    mcp_session_unref(session);
    return session != NULL;
}

static int look_up(struct look *look, struct call *call)
{
    struct mcp_session_record record;
    bool is_held = false;
    if (!look->asked.ends && is_here(look)) {
        look->result.place = MCP_PLACE_HERE;
        return NG_OK;
    }
    int rc = mcp_session_load(call, look->asked.id, &record);
    if (rc == NG_ENOTFOUND || (rc == NG_OK && !str_equal(record.owner, look->owner_text))) {
        look->result.place = MCP_PLACE_NONE;
        call_reset_result(call);
        return NG_OK;
    }
    if (rc == NG_OK) {
        rc = ask_holder(look, call, &record, &is_held);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (is_held && record.gateway.len == CLUSTER_ID_LEN) {
        memcpy(look->result.gateway, record.gateway.data, CLUSTER_ID_LEN);
        look->result.place = MCP_PLACE_THERE;
        return NG_OK;
    }
    if (!look->asked.ends) {
        return take(look, call, &record);
    }
    struct mcp_session_edit edit = {.kind = MCP_SESSION_ERASE, .record = record};
    rc = mcp_session_edit(call, &edit);
    look->result.place = MCP_PLACE_ENDED;
    if (rc == NG_ECONFLICT) { /* the gateway that took it has to end it */
        call_reset_result(call);
        look->result.place = MCP_PLACE_MOVED;
        rc = NG_OK;
    }
    return rc;
}

static int look_step(struct ng_call *call, void *user)
{
    return look_up(user, call_of(call));
}

static void looked(struct call *call, void *user)
{
    static const struct mcp_found unknown = {.place = MCP_PLACE_UNKNOWN};
    const struct look *look = user;
    const struct mcp_found refused = {.place = MCP_PLACE_REFUSED,
                                      .message = call->final.message,
                                      .retry_after_s = call->final.retry_after_s};
    const struct mcp_found *result = &unknown;
    if (call->final.rc == NG_OK) { /* otherwise the step may still run */
        result = &look->result;
    } else if (call->final.rc == NG_ERATE) {
        result = &refused;
    }
    look->found(result, look->user);
}

static struct look *new_look(struct mcp_http *mcp, struct call *call,
                             const struct mcp_asked *asked)
{
    struct look *look = arena_zalloc(&call->arena, sizeof(*look));
    if (look == NULL || auth_apply(asked->caller, call) != NG_OK) {
        return NULL;
    }
    look->mcp = mcp;
    look->asked = *asked;
    look->asked.id = arena_copy(&call->arena, asked->id);
    look->asked.caller = auth_keep(asked->caller, call);
    look->owner_text = mcp_http_owner(asked->caller, look->owner);
    if (asked->is_counted) {
        call->caller.agent = ng_str_of("/"); /* for the lane alone */
    } else {
        call->options &= ~(unsigned)CALL_NO_RATE;
    }
    if (look->asked.id.data == NULL || look->asked.caller == NULL) {
        return NULL;
    }
    return look;
}

void mcp_find(struct mcp_http *mcp, const struct mcp_asked *asked, mcp_found_fn *found,
              void *user)
{
    static const struct mcp_found unknown = {.place = MCP_PLACE_UNKNOWN};
    struct call *call = own_call(mcp);
    struct look *look = NULL;
    if (call != NULL) {
        look = new_look(mcp, call, asked);
    }
    if (look == NULL) {
        call_unref(call);
        found(&unknown, user);
        return;
    }
    look->found = found;
    look->user = user;
    call->done = looked;
    call->done_user = look;
    if (dispatch_step(call, look_step, look) != NG_PENDING) {
        looked(call, look);
    }
    call_unref(call);
}

/* ---- documents without a session ---- */

static void own_done(struct call *call, void *user)
{
    (void)call;
    mcp_http_count_job(user, false);
}

/* The transport does not end before it. */
static void run_own(struct mcp_http *mcp, struct call *call, ng_step_fn *step, void *user,
                    void (*done)(struct call *call, void *user))
{
    call->done = done;
    call->done_user = mcp;
    mcp_http_count_job(mcp, true);
    if (dispatch_step(call, step, user) != NG_PENDING) {
        done(call, mcp);
    }
}

void mcp_find_forget(struct mcp_http *mcp, const struct mcp_session *session)
{
    struct call *call = own_call(mcp);
    struct mcp_session_edit *edit = NULL;
    if (call != NULL) {
        edit = arena_zalloc(&call->arena, sizeof(*edit));
    }
    if (edit != NULL) {
        edit->kind = MCP_SESSION_FORGET;
        edit->record.moves = session->moves;
        edit->record.id = arena_copy(&call->arena, ng_str_of(session->id));
        if (edit->record.id.data != NULL) {
            run_own(mcp, call, mcp_session_edit_step, edit, own_done);
        }
    }
    call_unref(call);
}

static int sweep_step(struct ng_call *pub, void *user)
{
    struct mcp_http *mcp = user;
    return mcp_session_sweep_stored(call_of(pub), mcp->sessions, &mcp->orphans);
}

static void sweep_done(struct call *call, void *user)
{
    struct mcp_http *mcp = user;
    atomic_store(&mcp->sweeps, false);
    own_done(call, user);
}

void mcp_find_sweep(struct mcp_http *mcp)
{
    int64_t now = clock_monotonic_ns();
    int64_t every = mcp_sessions_timeout(mcp->sessions) * 1000000;
    if (mcp->forwards == NULL || atomic_load(&mcp->sweeps) || now - mcp->swept_ns < every) {
        return;
    }
    struct call *call = own_call(mcp);
    if (call != NULL) {
        mcp->swept_ns = now;
        atomic_store(&mcp->sweeps, true);
        call->options |= CALL_NO_DEADLINE;
        run_own(mcp, call, sweep_step, mcp, sweep_done);
    }
    call_unref(call);
}
