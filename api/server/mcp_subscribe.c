/* SPDX-License-Identifier: MIT */
/* mcp_subscribe.c - notifications of a session of the handshake versions: lists that changed,
 * from notifications/initialized on, and the resources it subscribes to. */
#include "api/session/mcp_session_store.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "mcp_notifier.h"

static void send_to_session(void *session, struct ng_str message)
{
    mcp_session_notify(session, message);
}

static void session_ended(struct mcp_session *session)
{
    lock_take(&session->lock);
    struct mcp_notifier *notifier = session->notifier;
    session->notifier = NULL;
    lock_release(&session->lock);
    mcp_notifier_close(notifier);
    mcp_notifier_unref(notifier);
    mcp_session_unref(session); /* the notifier's */
}

/* The receiver of notifications: the caller of this message. A call of its own, with a
 * reference. */
static struct call *who_asks(struct mcp_exchange *exchange)
{
    struct call *who = call_new(exchange->job->gateway);
    if (who != NULL && (auth_apply(exchange->job->caller, who) != NG_OK ||
                        dispatch_spaces(who, NULL) != NG_OK)) {
        call_unref(who);
        who = NULL;
    }
    return who;
}

/* Under the session's lock: with a reference, or NULL. */
static struct mcp_notifier *notifier_found(struct mcp_session *session)
{
    if (session->notifier != NULL) {
        mcp_notifier_ref(session->notifier);
    }
    return session->notifier;
}

static struct mcp_notifier *find_notifier(struct mcp_session *session)
{
    lock_take(&session->lock);
    struct mcp_notifier *notifier = notifier_found(session);
    lock_release(&session->lock);
    return notifier;
}

/* The session's notifier, with a reference for the caller; made if it has none. caller: of the
 * session; NULL for want of memory. NULL: out of memory, or the session has ended. */
static struct mcp_notifier *make_notifier(struct mcp_session *session, struct call *caller)
{
    struct mcp_notifier *made = NULL;
    unsigned lists = NG_LIST_TOOLS | NG_LIST_RESOURCES | NG_LIST_PROMPTS;
    if (caller == NULL ||
        mcp_notifier_new(caller, lists, STR_NONE, send_to_session, session, &made) != NG_OK) {
        return NULL;
    }
    lock_take(&session->lock);
    bool first = session->notifier == NULL && !session->ended;
    if (first) {
        session->notifier = made; /* the reference is the session's */
        session->on_end = session_ended;
        (void)atomic_fetch_add(&session->refs, 1);
    }
    struct mcp_notifier *notifier = notifier_found(session);
    lock_release(&session->lock);
    if (first) {
        (void)mcp_notifier_open(notifier, STR_NONE); /* a no-op where the session ended */
    } else {
        mcp_notifier_unref(made);
    }
    return notifier;
}

static struct mcp_notifier *notifier_of(struct mcp_exchange *exchange)
{
    struct mcp_session *session = exchange->job->session;
    struct mcp_notifier *notifier = find_notifier(session);
    if (notifier == NULL) {
        struct call *who = who_asks(exchange);
        notifier = make_notifier(session, who);
        call_unref(who); /* the notifier keeps it */
    }
    return notifier;
}

void mcp_session_subscribed(struct mcp_exchange *exchange)
{
    mcp_notifier_unref(notifier_of(exchange));
}

/* ---- resources/subscribe, resources/unsubscribe ---- */

/* The resource, as far as the caller may see it. */
static int find_resource(struct call *call, struct ng_str text, struct mcp_source *source,
                         struct mcp_uri *uri, const char **ret_why)
{
    int rc = mcp_source_of_uri(call, text, source, uri, ret_why);
    if (rc == NG_OK && source->desc->kind != NULL && !mcp_space_visible(call, uri->space)) {
        rc = NG_ENOTFOUND;
    }
    return rc;
}

/* False: answered with an error. */
static bool resolve(struct mcp_exchange *exchange, struct ng_str text,
                    struct mcp_source *source, struct mcp_uri *uri)
{
    struct call *call = exchange->call;
    const char *why = "there is no such resource";
    int rc = dispatch_spaces(call, NULL);
    if (rc == NG_OK) {
        rc = find_resource(call, text, source, uri, &why);
    }
    if (rc == NG_OK && uri->revision > 0) {
        rc = NG_EINVAL;
        why = "an earlier revision never changes; leave ?revision out";
    }
    if (rc != NG_OK) {
        mcp_answer_unknown_uri(exchange, text, ng_str_of(why));
    }
    return rc == NG_OK;
}

static int subscription(struct mcp_exchange *exchange, bool on)
{
    static const struct mcp_run run = {NULL, mcp_answer_saved, mcp_answer_not_saved,
                                       mcp_session_edit_step};
    struct mcp_source source;
    struct mcp_uri uri;
    struct ng_str text = mcp_text_param(exchange, "uri", "the URI of a resource");
    if (text.data == NULL) {
        return NG_OK;
    }
    if (exchange->job->session == NULL) {
        return mcp_refuse(exchange, 400, MCP_INVALID_REQUEST,
                          "subscriptions belong to a session: open one with `initialize` and "
                          "send its Mcp-Session-Id");
    }
    if (!resolve(exchange, text, &source, &uri)) {
        return NG_OK;
    }
    struct mcp_notifier *notifier = notifier_of(exchange);
    int rc = NG_OK;
    if (notifier == NULL) {
        rc = NG_EINTERNAL;
    }
    if (rc == NG_OK && on) {
        rc = mcp_notifier_add(notifier, &source, &uri, text);
    } else if (rc == NG_OK) {
        (void)mcp_notifier_remove(notifier, &source, &uri);
    }
    mcp_notifier_unref(notifier);
    if (rc == NG_OK) {
        struct mcp_session_edit edit = {.kind = MCP_SESSION_UNSUBSCRIBE, .uri = text};
        if (on) {
            edit.kind = MCP_SESSION_SUBSCRIBE;
        }
        return mcp_session_save(exchange, &edit, &run);
    }
    if (rc == NG_EBUSY) {
        if (!exchange->job->is_batch) {
            exchange->job->retry_after_s = MCP_NOTIFIER_RETRY_S;
        }
        return mcp_refuse(exchange, 503, 503, MCP_NOTIFIER_NO_ROOM);
    }
    if (rc == NG_ETOOLARGE) {
        return mcp_refuse_params(exchange,
                                 "this session has the maximum of subscriptions (1000, or 1 "
                                 "MiB of URIs); unsubscribe from some first");
    }
    return mcp_refuse_oom(exchange);
}

int mcp_resources_subscribe(struct mcp_exchange *exchange)
{
    return subscription(exchange, true);
}

int mcp_resources_unsubscribe(struct mcp_exchange *exchange)
{
    return subscription(exchange, false);
}

/* ---- a session of another gateway ---- */

void mcp_session_resume(struct mcp_session *session, struct call *caller,
                        const struct mcp_session_record *record)
{
    struct mcp_notifier *notifier = find_notifier(session);
    const struct ng_value *at = NULL;
    if (notifier != NULL || dispatch_spaces(caller, NULL) != NG_OK) {
        mcp_notifier_unref(notifier);
        return;
    }
    notifier = make_notifier(session, caller);
    if (notifier != NULL && json_is(record->uris, NG_TYPE_ARRAY)) {
        at = record->uris->first;
    }
    for (; at != NULL; at = at->next) {
        struct mcp_source source;
        struct mcp_uri uri;
        const char *why = NULL;
        if (find_resource(caller, at->text, &source, &uri, &why) == NG_OK) {
            (void)mcp_notifier_add(notifier, &source, &uri, at->text);
        }
    }
    if (notifier != NULL) {
        mcp_notifier_tell_all(notifier);
        mcp_notifier_unref(notifier);
    }
}
