/* SPDX-License-Identifier: MIT */
/* mcp_session.c - one session: its running calls, its questions, its end. */
#include "mcp_session.h"

#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/keys/keys.h"

/* ---- one session ---- */

struct mcp_session *mcp_session_new(void)
{
    struct mcp_session *session = alloc_zeroed(1, sizeof(*session));
    if (session == NULL) {
        return NULL;
    }
    lock_init(&session->lock, LOCK_MCP_SESSION);
    atomic_init(&session->refs, 1);
    atomic_init(&session->version, MCP_VERSION_NONE);
    atomic_init(&session->log_level, MCP_LOG_NONE);
    atomic_init(&session->client_asks, 0);
    atomic_init(&session->busy, 0);
    atomic_init(&session->client_abilities, 0);
    return session;
}

void mcp_share_unref(struct mcp_share *share)
{
    if (share != NULL && atomic_fetch_sub(&share->refs, 1) == 1) {
        free(share);
    }
}

void mcp_session_unref(struct mcp_session *session)
{
    if (session == NULL || atomic_fetch_sub(&session->refs, 1) != 1) {
        return;
    }
    lock_done(&session->lock);
    key_unref(session->key);
    if (session->say_release != NULL) {
        session->say_release(session->say_user);
    }
    mcp_share_unref(session->share);
    free(session);
}

void mcp_session_inflight_add(struct mcp_session *session, struct mcp_inflight *inflight)
{
    inflight->cancelled = false;
    inflight->notified = false;
    lock_take(&session->lock);
    LIST_INSERT_HEAD(&session->inflight, inflight, link);
    lock_release(&session->lock);
    (void)atomic_fetch_add(&session->busy, 1);
}

bool mcp_session_inflight_remove(struct mcp_session *session, struct mcp_inflight *inflight)
{
    lock_take(&session->lock);
    LIST_REMOVE(inflight, link);
    bool cancelled = inflight->cancelled;
    lock_release(&session->lock);
    (void)atomic_fetch_sub(&session->busy, 1);
    return cancelled;
}

/* Takes one call to cancel, with a reference: cancelling may end the call at
 * once, which takes the lock again. */
static struct call *inflight_take(struct mcp_session *session, const struct ng_value *id)
{
    struct call *call = NULL;
    lock_take(&session->lock);
    for (struct mcp_inflight *inflight = LIST_FIRST(&session->inflight);
         inflight != NULL && call == NULL; inflight = LIST_NEXT(inflight, link)) {
        if (!inflight->cancelled && (id == NULL || mcp_id_equal(inflight->id, id))) {
            inflight->cancelled = true;
            call = inflight->call;
            call_ref(call);
        }
    }
    lock_release(&session->lock);
    return call;
}

void mcp_session_cancel(struct mcp_session *session, const struct ng_value *id)
{
    struct call *call = inflight_take(session, id);
    while (call != NULL) {
        call_cancel(call);
        call_unref(call);
        call = id == NULL ? inflight_take(session, id) : NULL;
    }
}

/* ---- its own messages, its end ---- */

void mcp_session_notify(struct mcp_session *session, struct ng_str message)
{
    if (session->say != NULL) {
        session->say(session, message);
    }
}

/* The next call that may wait for this client, with a reference. */
static struct call *take_waiting(struct mcp_session *session)
{
    struct call *call = NULL;
    lock_take(&session->lock);
    struct mcp_inflight *inflight = LIST_FIRST(&session->inflight);
    while (inflight != NULL && inflight->notified) {
        inflight = LIST_NEXT(inflight, link);
    }
    if (inflight != NULL) {
        inflight->notified = true;
        call = inflight->call;
        call_ref(call);
    }
    lock_release(&session->lock);
    return call;
}

void mcp_session_hang_up(struct mcp_session *session)
{
    struct call *call;
    lock_take(&session->lock);
    void (*on_end)(struct mcp_session * session) = session->on_end;
    session->ended = true;
    session->on_end = NULL;
    lock_release(&session->lock);
    if (on_end != NULL) {
        on_end(session);
    }
    while ((call = take_waiting(session)) != NULL) {
        if (call->on_cancel != NULL) {
            call->on_cancel(call,
                            call->on_user); /* wakes waiting calls; running calls continue */
        }
        call_unref(call);
    }
}

bool mcp_session_has_ended(struct mcp_session *session)
{
    lock_take(&session->lock);
    bool ended = session->ended;
    lock_release(&session->lock);
    return ended;
}

void mcp_session_close(struct mcp_session *session)
{
    mcp_session_hang_up(session);
    mcp_session_cancel(session, NULL);
    mcp_session_cut_streams(session);
}

/* ---- requests of the gateway ---- */

bool mcp_session_ask(struct mcp_session *session, struct mcp_question *question)
{
    lock_take(&session->lock);
    bool open = !session->ended && session->question_count < MCP_SESSION_QUESTIONS_MAX;
    question->id = ++session->question_id;
    if (open) {
        session->question_count++;
        session->let_in++;
        question->next = session->questions;
        session->questions = question;
    }
    lock_release(&session->lock);
    return open;
}

/* Under the lock. */
static bool take_question(struct mcp_session *session, const struct mcp_question *question)
{
    struct mcp_question **at = &session->questions;
    while (*at != NULL && *at != question) {
        at = &(*at)->next;
    }
    bool found = *at != NULL;
    if (found) {
        *at = question->next;
        session->question_count--;
        if (session->let_in > session->question_count) {
            session->let_in = session->question_count;
        }
    }
    return found;
}

bool mcp_session_withdraw(struct mcp_session *session, struct mcp_question *question)
{
    lock_take(&session->lock);
    bool found = take_question(session, question);
    lock_release(&session->lock);
    return found;
}

bool mcp_session_answer(struct mcp_session *session, const struct ng_value *id,
                        const struct ng_value *message)
{
    int64_t number = 0;
    if (!json_is(id, NG_TYPE_NUMBER) || json_integer(id, &number) != NG_OK) {
        return false;
    }
    lock_take(&session->lock);
    struct mcp_question *question = session->questions;
    while (question != NULL && question->id != (uint64_t)number) {
        question = question->next;
    }
    if (question != NULL) {
        (void)take_question(session, question);
        question->answered(question, message);
    }
    lock_release(&session->lock);
    return question != NULL;
}

bool mcp_session_let_in(struct mcp_session *session)
{
    lock_take(&session->lock);
    bool room = session->let_in > 0;
    session->let_in -= room;
    lock_release(&session->lock);
    return room;
}

void mcp_session_let_in_again(struct mcp_session *session)
{
    lock_take(&session->lock);
    session->let_in += session->let_in < session->question_count;
    lock_release(&session->lock);
}
