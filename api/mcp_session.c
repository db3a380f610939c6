/* SPDX-License-Identifier: MIT */
/* mcp_session.c - the table of sessions: found by hash, kept in order of use, so that what was
 * silent longest is at the front. */
#include "mcp_session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "keys.h"
#include "str.h"

#define MCP_SESSION_BUCKETS 1024 /* a power of two */

struct mcp_sessions {
    pthread_mutex_t lock;
    int64_t timeout_ms;
    int64_t shift_ms;       /* mcp_sessions_age */
    atomic_size_t kept_sum; /* bytes of all their streams */
    size_t count;
    struct mcp_session *oldest, *newest;
    struct mcp_session *buckets[MCP_SESSION_BUCKETS];
};

/* What all sessions of one caller have together. */
struct mcp_share {
    atomic_int refs;
    size_t sessions; /* under the table's lock */
    struct key *key; /* a reference; or NULL */
    struct mcp_kept kept;
};

/* ---- one session ---- */

static void share_unref(struct mcp_share *share)
{
    if (share != NULL && atomic_fetch_sub(&share->refs, 1) == 1) {
        key_unref(share->key);
        free(share);
    }
}

struct mcp_kept *mcp_session_kept(struct mcp_session *session)
{
    return session->share == NULL ? NULL : &session->share->kept;
}

struct mcp_session *mcp_session_new(void)
{
    struct mcp_session *session = alloc_zeroed(1, sizeof(*session));
    if (session == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&session->lock, NULL) != 0) {
        free(session);
        return NULL;
    }
    atomic_init(&session->refs, 1);
    atomic_init(&session->version, MCP_VERSION_NONE);
    atomic_init(&session->log_level, MCP_LOG_NONE);
    atomic_init(&session->client_asks, 0);
    atomic_init(&session->busy, 0);
    atomic_init(&session->client_abilities, 0);
    return session;
}

void mcp_session_unref(struct mcp_session *session)
{
    if (session == NULL || atomic_fetch_sub(&session->refs, 1) != 1) {
        return;
    }
    (void)pthread_mutex_destroy(&session->lock);
    if (session->say_release != NULL) {
        session->say_release(session->say_user);
    }
    share_unref(session->share);
    free(session);
}

void mcp_session_depart(struct mcp_session *session, struct mcp_flight *flight)
{
    flight->cancelled = false;
    flight->told = false;
    flight->prev = NULL;
    (void)pthread_mutex_lock(&session->lock);
    flight->next = session->flights;
    if (flight->next != NULL) {
        flight->next->prev = flight;
    }
    session->flights = flight;
    (void)pthread_mutex_unlock(&session->lock);
    (void)atomic_fetch_add(&session->busy, 1);
}

bool mcp_session_land(struct mcp_session *session, struct mcp_flight *flight)
{
    (void)pthread_mutex_lock(&session->lock);
    if (flight->next != NULL) {
        flight->next->prev = flight->prev;
    }
    if (flight->prev != NULL) {
        flight->prev->next = flight->next;
    } else {
        session->flights = flight->next;
    }
    bool cancelled = flight->cancelled;
    (void)pthread_mutex_unlock(&session->lock);
    (void)atomic_fetch_sub(&session->busy, 1);
    return cancelled;
}

/* Takes one call that is to be cancelled, with a reference: cancelling may end the call at
 * once, which takes the lock again. */
static struct call *take_flight(struct mcp_session *session, const struct ng_value *id)
{
    struct call *call = NULL;
    (void)pthread_mutex_lock(&session->lock);
    for (struct mcp_flight *flight = session->flights; flight != NULL && call == NULL;
         flight = flight->next) {
        if (!flight->cancelled && (id == NULL || mcp_id_equal(flight->id, id))) {
            flight->cancelled = true;
            call = flight->call;
            call_ref(call);
        }
    }
    (void)pthread_mutex_unlock(&session->lock);
    return call;
}

void mcp_session_cancel(struct mcp_session *session, const struct ng_value *id)
{
    struct call *call = take_flight(session, id);
    while (call != NULL) {
        call_cancel(call);
        call_unref(call);
        call = id == NULL ? take_flight(session, id) : NULL;
    }
}

/* ---- its own messages, its end ---- */

void mcp_session_notify(struct mcp_session *session, struct ng_str message)
{
    if (session->say != NULL) {
        session->say(session, message);
    }
}

bool mcp_session_on_end(struct mcp_session *session, struct mcp_session_end *end)
{
    (void)pthread_mutex_lock(&session->lock);
    bool open = !session->ended;
    if (open) {
        end->next = session->ends;
        session->ends = end;
    }
    (void)pthread_mutex_unlock(&session->lock);
    return open;
}

bool mcp_session_off_end(struct mcp_session *session, struct mcp_session_end *end)
{
    (void)pthread_mutex_lock(&session->lock);
    struct mcp_session_end **at = &session->ends;
    while (*at != NULL && *at != end) {
        at = &(*at)->next;
    }
    bool found = *at != NULL;
    if (found) {
        *at = end->next;
    }
    (void)pthread_mutex_unlock(&session->lock);
    return found;
}

static struct mcp_session_end *take_end(struct mcp_session *session)
{
    (void)pthread_mutex_lock(&session->lock);
    session->ended = true;
    struct mcp_session_end *end = session->ends;
    if (end != NULL) {
        session->ends = end->next;
    }
    (void)pthread_mutex_unlock(&session->lock);
    return end;
}

/* The next call that may wait for this client, with a reference. */
static struct call *take_waiting(struct mcp_session *session)
{
    struct call *call = NULL;
    (void)pthread_mutex_lock(&session->lock);
    struct mcp_flight *flight = session->flights;
    while (flight != NULL && flight->told) {
        flight = flight->next;
    }
    if (flight != NULL) {
        flight->told = true;
        call = flight->call;
        call_ref(call);
    }
    (void)pthread_mutex_unlock(&session->lock);
    return call;
}

void mcp_session_hang_up(struct mcp_session *session)
{
    struct mcp_session_end *end;
    struct call *call;
    while ((end = take_end(session)) != NULL) {
        end->ended(session, end->user);
    }
    while ((call = take_waiting(session)) != NULL) {
        if (call->on_cancel != NULL) {
            call->on_cancel(call, call->on_user); /* wakes what waits; what runs goes on */
        }
        call_unref(call);
    }
}

bool mcp_session_has_ended(struct mcp_session *session)
{
    (void)pthread_mutex_lock(&session->lock);
    bool ended = session->ended;
    (void)pthread_mutex_unlock(&session->lock);
    return ended;
}

void mcp_session_close(struct mcp_session *session)
{
    mcp_session_hang_up(session);
    mcp_session_cancel(session, NULL);
    mcp_session_cut_streams(session);
}

/* ---- what the gateway asks ---- */

bool mcp_session_ask(struct mcp_session *session, struct mcp_question *question)
{
    (void)pthread_mutex_lock(&session->lock);
    bool open = !session->ended && session->question_count < MCP_SESSION_QUESTIONS_MAX;
    question->id = ++session->question_id;
    if (open) {
        session->question_count++;
        question->next = session->questions;
        session->questions = question;
    }
    (void)pthread_mutex_unlock(&session->lock);
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
    }
    return found;
}

bool mcp_session_withdraw(struct mcp_session *session, struct mcp_question *question)
{
    (void)pthread_mutex_lock(&session->lock);
    bool found = take_question(session, question);
    (void)pthread_mutex_unlock(&session->lock);
    return found;
}

bool mcp_session_answer(struct mcp_session *session, const struct ng_value *id,
                        const struct ng_value *message)
{
    int64_t number = 0;
    if (id == NULL || id->type != NG_TYPE_NUMBER || json_integer(id, &number) != NG_OK) {
        return false;
    }
    (void)pthread_mutex_lock(&session->lock);
    struct mcp_question *question = session->questions;
    while (question != NULL && question->id != (uint64_t)number) {
        question = question->next;
    }
    if (question != NULL) {
        (void)take_question(session, question);
        question->answered(question, message);
    }
    (void)pthread_mutex_unlock(&session->lock);
    return question != NULL;
}

/* ---- the table ---- */

static int64_t now_ms(const struct mcp_sessions *sessions)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + sessions->shift_ms;
}

static struct mcp_session **bucket_of(struct mcp_sessions *sessions, struct ng_str id)
{
    return &sessions->buckets[str_hash(id) & (MCP_SESSION_BUCKETS - 1)];
}

static void link_newest(struct mcp_sessions *sessions, struct mcp_session *session)
{
    session->newer = NULL;
    session->older = sessions->newest;
    if (sessions->newest != NULL) {
        sessions->newest->newer = session;
    } else {
        sessions->oldest = session;
    }
    sessions->newest = session;
    session->used_ms = now_ms(sessions);
}

static void unlink_order(struct mcp_sessions *sessions, struct mcp_session *session)
{
    if (session->newer != NULL) {
        session->newer->older = session->older;
    } else {
        sessions->newest = session->older;
    }
    if (session->older != NULL) {
        session->older->newer = session->newer;
    } else {
        sessions->oldest = session->newer;
    }
}

/* Out of the table; the table's reference passes to the caller. */
static void take_out(struct mcp_sessions *sessions, struct mcp_session *session)
{
    struct mcp_session **at = bucket_of(sessions, ng_str_of(session->id));
    while (*at != session) {
        at = &(*at)->hash_next;
    }
    *at = session->hash_next;
    unlink_order(sessions, session);
    sessions->count--;
    session->share->sessions--;
}

/* Takes out who was silent too long, as a list by `older`: to be ended without the lock. A call
 * under way and an open stream are no silence. */
static struct mcp_session *take_silent(struct mcp_sessions *sessions)
{
    struct mcp_session *gone = NULL;
    int64_t before = now_ms(sessions) - sessions->timeout_ms;
    while (sessions->oldest != NULL && sessions->oldest->used_ms < before) {
        struct mcp_session *session = sessions->oldest;
        if (atomic_load(&session->busy) > 0) {
            unlink_order(sessions, session);
            link_newest(sessions, session);
            continue;
        }
        take_out(sessions, session);
        session->older = gone;
        gone = session;
    }
    return gone;
}

static void end_all(struct mcp_session *gone)
{
    while (gone != NULL) {
        struct mcp_session *session = gone;
        gone = session->older;
        if (key_live(session->share->key)) {
            mcp_session_close(session);
        } else { /* what runs goes on when its key goes */
            mcp_session_hang_up(session);
            mcp_session_cut_streams(session);
        }
        mcp_session_unref(session);
    }
}

/* Takes out the sessions of keys that are revoked or have expired, onto the list `gone`. */
static struct mcp_session *take_dead(struct mcp_sessions *sessions, struct mcp_session *gone)
{
    struct mcp_session *newer = NULL;
    for (struct mcp_session *at = sessions->oldest; at != NULL; at = newer) {
        newer = at->newer;
        if (!key_live(at->share->key)) {
            take_out(sessions, at);
            at->older = gone;
            gone = at;
        }
    }
    return gone;
}

/* The owner's first session in the order of use, or NULL. */
static struct mcp_session *first_of(struct mcp_sessions *sessions, const char *owner)
{
    struct mcp_session *at = sessions->oldest;
    while (at != NULL && strcmp(at->owner, owner) != 0) {
        at = at->newer;
    }
    return at;
}

/* Who has to go for one more of this share: its own session if it has its full number, one of
 * the caller with the most if the table is full. NULL: nobody has to, or *ret_rc. */
static struct mcp_session *over_share(struct mcp_sessions *sessions, struct mcp_session *own,
                                      int *ret_rc)
{
    size_t has = own == NULL ? 0 : own->share->sessions;
    if (has >= MCP_SESSIONS_PER_CALLER_MAX) {
        return own;
    }
    if (sessions->count < MCP_SESSIONS_MAX) {
        return NULL;
    }
    struct mcp_session *most = sessions->oldest;
    for (struct mcp_session *at = most; at != NULL; at = at->newer) {
        most = at->share->sessions > most->share->sessions ? at : most;
    }
    if (most->share->sessions <= has + 1) {
        *ret_rc = NG_EBUSY;
        return NULL;
    }
    return most;
}

static struct mcp_share *share_new(struct mcp_sessions *sessions, struct key *key)
{
    struct mcp_share *share = alloc_zeroed(1, sizeof(*share));
    if (share != NULL) {
        atomic_init(&share->refs, 1);
        atomic_init(&share->kept.own, 0);
        share->kept.all = &sessions->kept_sum;
        share->key = key;
        if (key != NULL) {
            key_ref(key);
        }
    }
    return share;
}

static int make_id(char id[MCP_SESSION_ID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[MCP_SESSION_ID_BYTES];
    ssize_t got;
    do {
        got = getrandom(bytes, sizeof(bytes), 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(bytes)) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        id[2 * i] = digits[bytes[i] >> 4];
        id[2 * i + 1] = digits[bytes[i] & 15];
    }
    id[MCP_SESSION_ID_LEN] = '\0';
    return NG_OK;
}

int mcp_sessions_new(int64_t timeout_ms, struct mcp_sessions **ret)
{
    struct mcp_sessions *sessions = alloc_zeroed(1, sizeof(*sessions));
    if (sessions == NULL) {
        return NG_EINTERNAL;
    }
    if (pthread_mutex_init(&sessions->lock, NULL) != 0) {
        free(sessions);
        return NG_EINTERNAL;
    }
    sessions->timeout_ms = timeout_ms;
    atomic_init(&sessions->kept_sum, 0);
    *ret = sessions;
    return NG_OK;
}

void mcp_sessions_set_timeout(struct mcp_sessions *sessions, int64_t timeout_ms)
{
    (void)pthread_mutex_lock(&sessions->lock);
    sessions->timeout_ms = timeout_ms;
    (void)pthread_mutex_unlock(&sessions->lock);
}

void mcp_sessions_free(struct mcp_sessions *sessions)
{
    if (sessions == NULL) {
        return;
    }
    mcp_sessions_close_all(sessions);
    (void)pthread_mutex_destroy(&sessions->lock);
    free(sessions);
}

void mcp_sessions_close_all(struct mcp_sessions *sessions)
{
    struct mcp_session *gone = NULL;
    (void)pthread_mutex_lock(&sessions->lock);
    while (sessions->oldest != NULL) {
        struct mcp_session *session = sessions->oldest;
        take_out(sessions, session);
        session->older = gone;
        gone = session;
    }
    (void)pthread_mutex_unlock(&sessions->lock);
    end_all(gone);
}

void mcp_sessions_sweep(struct mcp_sessions *sessions)
{
    (void)pthread_mutex_lock(&sessions->lock);
    struct mcp_session *gone = take_dead(sessions, take_silent(sessions));
    (void)pthread_mutex_unlock(&sessions->lock);
    end_all(gone);
}

static void end_silent(struct mcp_sessions *sessions)
{
    (void)pthread_mutex_lock(&sessions->lock);
    struct mcp_session *gone = take_silent(sessions);
    (void)pthread_mutex_unlock(&sessions->lock);
    end_all(gone);
}

static void say(struct mcp_session *session, struct ng_str message)
{
    struct mcp_stream *stream = mcp_session_own_stream(session);
    if (stream != NULL) {
        (void)mcp_stream_add(stream, message, MCP_STREAM_MAY_DROP);
        mcp_stream_unref(stream);
    }
}

static void link_session(struct mcp_sessions *sessions, struct mcp_session *session)
{
    struct mcp_session **bucket = bucket_of(sessions, ng_str_of(session->id));
    session->hash_next = *bucket;
    *bucket = session;
    link_newest(sessions, session);
    sessions->count++;
    session->share->sessions++;
    (void)atomic_fetch_add(&session->refs, 1);
}

/* Under the lock. *gone: who had to go for it. */
static int add_session(struct mcp_sessions *sessions, struct mcp_session *session,
                       struct mcp_session **gone)
{
    int rc = NG_OK;
    *gone = take_dead(sessions, take_silent(sessions));
    struct mcp_session *own = first_of(sessions, session->owner);
    struct mcp_session *over = over_share(sessions, own, &rc);
    if (rc != NG_OK) {
        return rc;
    }
    if (own != NULL) { /* the share it came with is not needed */
        share_unref(session->share);
        session->share = own->share;
        (void)atomic_fetch_add(&session->share->refs, 1);
    }
    if (over != NULL) {
        take_out(sessions, over);
        over->older = *gone;
        *gone = over;
    }
    link_session(sessions, session);
    return NG_OK;
}

int mcp_sessions_open(struct mcp_sessions *sessions, struct ng_str owner, struct key *key,
                      enum mcp_version version, struct mcp_session **ret)
{
    struct mcp_session *session = mcp_session_new();
    struct mcp_session *gone = NULL;
    if (session == NULL) {
        return NG_EINTERNAL;
    }
    session->share = share_new(sessions, key);
    if (session->share == NULL || owner.len >= sizeof(session->owner) ||
        make_id(session->id) != NG_OK) {
        mcp_session_unref(session);
        return NG_EINTERNAL;
    }
    memcpy(session->owner, owner.data, owner.len);
    atomic_store(&session->version, (int)version);
    session->say = say;
    session->streams_replay = true;
    (void)pthread_mutex_lock(&sessions->lock);
    int rc = add_session(sessions, session, &gone);
    (void)pthread_mutex_unlock(&sessions->lock);
    end_all(gone);
    if (rc != NG_OK) {
        mcp_session_unref(session);
        return rc;
    }
    *ret = session;
    return NG_OK;
}

/* Under the lock. */
static struct mcp_session *look_up(struct mcp_sessions *sessions, struct ng_str id,
                                   struct ng_str owner)
{
    struct mcp_session *session = *bucket_of(sessions, id);
    while (session != NULL && !str_is(id, session->id)) {
        session = session->hash_next;
    }
    return session != NULL && str_is(owner, session->owner) ? session : NULL;
}

struct mcp_session *mcp_sessions_find(struct mcp_sessions *sessions, struct ng_str id,
                                      struct ng_str owner)
{
    end_silent(sessions);
    (void)pthread_mutex_lock(&sessions->lock);
    struct mcp_session *session = look_up(sessions, id, owner);
    if (session != NULL) {
        unlink_order(sessions, session);
        link_newest(sessions, session);
        (void)atomic_fetch_add(&session->refs, 1);
    }
    (void)pthread_mutex_unlock(&sessions->lock);
    return session;
}

bool mcp_sessions_end(struct mcp_sessions *sessions, struct ng_str id, struct ng_str owner)
{
    end_silent(sessions);
    (void)pthread_mutex_lock(&sessions->lock);
    struct mcp_session *session = look_up(sessions, id, owner);
    if (session != NULL) {
        take_out(sessions, session);
    }
    (void)pthread_mutex_unlock(&sessions->lock);
    if (session == NULL) {
        return false;
    }
    mcp_session_close(session);
    mcp_session_unref(session);
    return true;
}

size_t mcp_sessions_count(struct mcp_sessions *sessions)
{
    (void)pthread_mutex_lock(&sessions->lock);
    size_t count = sessions->count;
    (void)pthread_mutex_unlock(&sessions->lock);
    return count;
}

void mcp_sessions_age(struct mcp_sessions *sessions, int64_t ms)
{
    (void)pthread_mutex_lock(&sessions->lock);
    sessions->shift_ms += ms;
    (void)pthread_mutex_unlock(&sessions->lock);
}
