/* SPDX-License-Identifier: MIT */
/* mcp_subscribe.c - notifications of a session of the handshake versions: lists that changed,
 * from notifications/initialized on, and the resources it subscribes to. */
#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "mcp_notifier.h"

/* The notifications of a session. Memory of its own, until the session ends. */
struct subscriber {
    struct mcp_session_end end; /* first */
    struct mcp_session *session;
    struct mcp_notifier *notifier;
};

static const struct ng_str no_text = {NULL, 0};

static void send_to_session(void *user, struct ng_str message)
{
    struct subscriber *subscriber = user;
    mcp_session_notify(subscriber->session, message);
}

static void hearing_free(struct subscriber *subscriber)
{
    mcp_notifier_unref(subscriber->notifier);
    mcp_session_unref(subscriber->session);
    free(subscriber);
}

static void session_ended(struct mcp_session *session, void *user)
{
    struct subscriber *subscriber = user;
    mcp_notifier_close(subscriber->notifier);
    lock_take(&session->lock);
    struct mcp_notifier *notifier = session->notifier;
    session->notifier = NULL;
    lock_release(&session->lock);
    mcp_notifier_unref(notifier);
    hearing_free(subscriber);
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

static struct subscriber *hearing_new(struct mcp_exchange *exchange)
{
    struct subscriber *subscriber = alloc_zeroed(1, sizeof(*subscriber));
    struct call *who = NULL;
    if (subscriber != NULL) {
        who = who_asks(exchange);
    }
    unsigned lists = NG_LIST_TOOLS | NG_LIST_RESOURCES | NG_LIST_PROMPTS;
    if (who == NULL || mcp_notifier_new(who, lists, no_text, send_to_session, subscriber,
                                        &subscriber->notifier) != NG_OK) {
        call_unref(who);
        free(subscriber);
        return NULL;
    }
    call_unref(who); /* the notifier keeps it */
    subscriber->session = exchange->job->session;
    (void)atomic_fetch_add(&subscriber->session->refs, 1);
    subscriber->end.ended = session_ended;
    subscriber->end.user = subscriber;
    return subscriber;
}

/* The session's notifier, with a reference for the caller; made if it has none. NULL: out of
 * memory, or the session has ended. */
static struct mcp_notifier *notifier_of(struct mcp_exchange *exchange)
{
    struct mcp_session *session = exchange->job->session;
    struct subscriber *made = NULL;
    struct mcp_notifier *notifier = NULL;
    lock_take(&session->lock);
    notifier = session->notifier;
    if (notifier != NULL) {
        mcp_notifier_ref(notifier);
    }
    lock_release(&session->lock);
    if (notifier != NULL) {
        return notifier;
    }
    made = hearing_new(exchange);
    if (made == NULL) {
        return NULL;
    }
    lock_take(&session->lock);
    bool first = session->notifier == NULL && !session->ended;
    if (first) {
        session->notifier = made->notifier;
        mcp_notifier_ref(made->notifier); /* the session's */
    }
    notifier = session->notifier;
    if (notifier != NULL) {
        mcp_notifier_ref(notifier);
    }
    lock_release(&session->lock);
    if (!first) {
        hearing_free(made);
        return notifier;
    }
    /* Opened before the session's end can close it. */
    (void)mcp_notifier_open(made->notifier, no_text);
    if (!mcp_session_on_end(session, &made->end)) {
        session_ended(session, made);
    }
    return notifier;
}

void mcp_session_subscribed(struct mcp_exchange *exchange)
{
    mcp_notifier_unref(notifier_of(exchange));
}

/* ---- resources/subscribe, resources/unsubscribe ---- */

static int answer_done(struct mcp_exchange *exchange)
{
    struct buf *out = mcp_answer_open(exchange);
    mcp_result_begin(exchange, out);
    mcp_result_end(exchange, out, no_text);
    mcp_answer_close(exchange);
    return NG_OK;
}

/* The resource it names, as far as the caller may see it. False: answered with an error. */
static bool resolve(struct mcp_exchange *exchange, struct ng_str text,
                    struct mcp_source *source, struct mcp_uri *uri)
{
    struct call *call = exchange->call;
    const char *why = "there is no such resource";
    int rc = dispatch_spaces(call, NULL);
    if (rc == NG_OK) {
        rc = mcp_source_of_uri(call, text, source, uri, &why);
    }
    if (rc == NG_OK && source->desc->kind != NULL && !mcp_space_visible(call, uri->space)) {
        rc = NG_ENOTFOUND;
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
    struct mcp_source source;
    struct mcp_uri uri;
    struct ng_str text = mcp_text_param(exchange, "uri", "the URI of a resource");
    if (text.data == NULL) {
        return NG_OK;
    }
    if (exchange->job->session == NULL) {
        mcp_answer_error(exchange, 400, MCP_INVALID_REQUEST,
                         ng_str_of("subscriptions belong to a session: open one with "
                                   "`initialize` and send its Mcp-Session-Id"),
                         no_text);
        return NG_OK;
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
        return answer_done(exchange);
    }
    if (rc == NG_EBUSY) {
        if (!exchange->job->is_batch) {
            exchange->job->retry_after_s = MCP_NOTIFIER_RETRY_S;
        }
        mcp_answer_error(exchange, 503, 503, ng_str_of(MCP_NOTIFIER_NO_ROOM), no_text);
    } else if (rc == NG_ETOOLARGE) {
        mcp_answer_error(exchange, 200, MCP_INVALID_PARAMS,
                         ng_str_of("this session has the maximum of subscriptions (1000, or 1 "
                                   "MiB of URIs); unsubscribe from some first"),
                         no_text);
    } else {
        mcp_answer_error(exchange, 500, MCP_INTERNAL_ERROR,
                         ng_str_of("the gateway ran out of memory"), no_text);
    }
    return NG_OK;
}

int mcp_resources_subscribe(struct mcp_exchange *exchange)
{
    return subscription(exchange, true);
}

int mcp_resources_unsubscribe(struct mcp_exchange *exchange)
{
    return subscription(exchange, false);
}
