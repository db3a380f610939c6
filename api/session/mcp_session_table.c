/* SPDX-License-Identifier: MIT */
/* mcp_session_table.c - the table of sessions: found by hash, kept in order of use, so that the
 * longest silent one is at the front. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/keys/keys.h"
#include "mcp_session_store.h"

#define MCP_SESSION_BUCKETS 1024 /* a power of two */

struct mcp_sessions {
    struct lock lock;
    int64_t timeout_ms;
    int64_t shift_ms;       /* mcp_sessions_age */
    atomic_size_t kept_sum; /* bytes of all their streams */
    size_t count;
    void (*forget)(void *user, const struct mcp_session *session);
    void *forget_user;
    TAILQ_HEAD(order, mcp_session) order; /* the one that was silent longest first */
    struct mcp_session *buckets[MCP_SESSION_BUCKETS];
};

static int64_t now_ms(const struct mcp_sessions *sessions)
{
    return clock_monotonic_ns() / 1000000 + sessions->shift_ms;
}

static struct mcp_session **bucket_of(struct mcp_sessions *sessions, struct ng_str id)
{
    return &sessions->buckets[str_hash(id) & (MCP_SESSION_BUCKETS - 1)];
}

static void link_newest(struct mcp_sessions *sessions, struct mcp_session *session)
{
    TAILQ_INSERT_TAIL(&sessions->order, session, order);
    session->used_ms = now_ms(sessions);
}

static void touch(struct mcp_sessions *sessions, struct mcp_session *session)
{
    TAILQ_REMOVE(&sessions->order, session, order);
    link_newest(sessions, session);
}

/* Out of the table, and to the front of *gone with the table's reference. */
static void take_out(struct mcp_sessions *sessions, struct mcp_session *session,
                     struct mcp_session **gone)
{
    struct mcp_session **at = bucket_of(sessions, ng_str_of(session->id));
    while (*at != session) {
        at = &(*at)->hash_next;
    }
    *at = session->hash_next;
    TAILQ_REMOVE(&sessions->order, session, order);
    sessions->count--;
    session->share->sessions--;
    session->hash_next = *gone;
    *gone = session;
}

/* Takes out sessions that were silent too long, as a list: to be ended without the
 * lock. A session with a call under way or an open stream is not silent. */
static struct mcp_session *take_silent(struct mcp_sessions *sessions)
{
    struct mcp_session *gone = NULL;
    struct mcp_session *session;
    int64_t before = now_ms(sessions) - sessions->timeout_ms;
    while ((session = TAILQ_FIRST(&sessions->order)) != NULL && session->used_ms < before) {
        if (atomic_load(&session->busy) > 0) {
            touch(sessions, session);
        } else {
            take_out(sessions, session, &gone);
        }
    }
    return gone;
}

/* Takes out sessions whose key is no longer valid. A busy session counts as
 * used now: its silence begins later. */
static void take_keyless(struct mcp_sessions *sessions, struct mcp_session **gone)
{
    struct mcp_session *session = TAILQ_FIRST(&sessions->order);
    for (size_t left = sessions->count; left > 0; left--) {
        struct mcp_session *next = TAILQ_NEXT(session, order);
        if (!key_live(session->key)) {
            take_out(sessions, session, gone);
        } else if (atomic_load(&session->busy) > 0) {
            touch(sessions, session);
        }
        session = next;
    }
}

static void end_all(struct mcp_session *gone)
{
    while (gone != NULL) {
        struct mcp_session *session = gone;
        gone = session->hash_next;
        mcp_session_close(session);
        mcp_session_unref(session);
    }
}

static void forget_all(const struct mcp_sessions *sessions, struct mcp_session *gone)
{
    for (const struct mcp_session *at = gone; at != NULL; at = at->hash_next) {
        if (at->stored && sessions->forget != NULL) {
            sessions->forget(sessions->forget_user, at);
        }
    }
    end_all(gone);
}

/* Calls under way go on. */
static void let_go_all(struct mcp_session *gone)
{
    while (gone != NULL) {
        struct mcp_session *session = gone;
        gone = session->hash_next;
        mcp_session_hang_up(session);
        mcp_session_cut_own(session);
        mcp_session_unref(session);
    }
}

/* Of this share the session that was silent longest; one that is busy only where all are. */
static struct mcp_session *first_of(struct mcp_sessions *sessions,
                                    const struct mcp_share *share)
{
    struct mcp_session *first = NULL;
    for (struct mcp_session *at = TAILQ_FIRST(&sessions->order); at != NULL;
         at = TAILQ_NEXT(at, order)) {
        if (at->share == share && atomic_load(&at->busy) == 0) {
            return at;
        }
        if (first == NULL && at->share == share) {
            first = at;
        }
    }
    return first;
}

static struct mcp_share *share_of(struct mcp_sessions *sessions, const char *owner)
{
    struct mcp_session *at = TAILQ_FIRST(&sessions->order);
    while (at != NULL && strcmp(at->owner, owner) != 0) {
        at = TAILQ_NEXT(at, order);
    }
    if (at == NULL) {
        return NULL;
    }
    return at->share;
}

/* An owner is an agent's name, which has no space, and a key behind one. */
static bool same_agent(const char *a, const char *b)
{
    size_t len = strcspn(a, " ");
    return len == strcspn(b, " ") && memcmp(a, b, len) == 0;
}

/* The agent has half of the table, with all its keys: its session that was silent longest, one
 * that is busy only where all are. NULL: it has less. */
static struct mcp_session *over_of_agent(struct mcp_sessions *sessions, const char *owner)
{
    struct mcp_session *first = NULL;
    size_t has = 0;
    if (sessions->count < MCP_SESSIONS_PER_AGENT_MAX) {
        return NULL;
    }
    for (struct mcp_session *at = TAILQ_FIRST(&sessions->order); at != NULL;
         at = TAILQ_NEXT(at, order)) {
        if (same_agent(at->owner, owner)) {
            has++;
            bool idle = atomic_load(&at->busy) == 0;
            if (first == NULL || (idle && atomic_load(&first->busy) > 0)) {
                first = at;
            }
        }
    }
    if (has < MCP_SESSIONS_PER_AGENT_MAX) {
        return NULL;
    }
    return first;
}

/* The session to evict for one more session of `own` (or of a caller that has none, NULL):
 * one of its own if it has its full number, one of the caller with the most if the table is
 * full. */
static int find_over(struct mcp_sessions *sessions, const struct mcp_share *own,
                     const char *owner, struct mcp_session **ret)
{
    size_t has = own == NULL ? 0 : own->sessions;
    const struct mcp_share *most = own;
    *ret = over_of_agent(sessions, owner);
    if (*ret != NULL) {
        return NG_OK;
    }
    if (has < MCP_SESSIONS_PER_CALLER_MAX) {
        if (sessions->count < MCP_SESSIONS_MAX) {
            return NG_OK;
        }
        for (struct mcp_session *at = TAILQ_FIRST(&sessions->order); at != NULL;
             at = TAILQ_NEXT(at, order)) {
            const struct mcp_share *share = at->share;
            if (share != NULL && (most == NULL || share->sessions > most->sessions)) {
                most = share;
            }
        }
        if (most == NULL || most->sessions <= has + 1) {
            return NG_EBUSY;
        }
    }
    *ret = first_of(sessions, most);
    return NG_OK;
}

static struct mcp_share *share_new(struct mcp_sessions *sessions)
{
    struct mcp_share *share = alloc_zeroed(1, sizeof(*share));
    if (share != NULL) {
        atomic_init(&share->refs, 1);
        atomic_init(&share->kept.own, 0);
        share->kept.all = &sessions->kept_sum;
    }
    return share;
}

int mcp_sessions_new(int64_t timeout_ms, struct mcp_sessions **ret)
{
    struct mcp_sessions *sessions = alloc_zeroed(1, sizeof(*sessions));
    if (sessions == NULL) {
        return NG_EINTERNAL;
    }
    lock_init(&sessions->lock, LOCK_MCP_SESSIONS);
    TAILQ_INIT(&sessions->order);
    sessions->timeout_ms = timeout_ms;
    atomic_init(&sessions->kept_sum, 0);
    *ret = sessions;
    return NG_OK;
}

void mcp_sessions_set_timeout(struct mcp_sessions *sessions, int64_t timeout_ms)
{
    lock_take(&sessions->lock);
    sessions->timeout_ms = timeout_ms;
    lock_release(&sessions->lock);
}

int64_t mcp_sessions_timeout(struct mcp_sessions *sessions)
{
    lock_take(&sessions->lock);
    int64_t timeout_ms = sessions->timeout_ms;
    lock_release(&sessions->lock);
    return timeout_ms;
}

void mcp_sessions_free(struct mcp_sessions *sessions)
{
    if (sessions == NULL) {
        return;
    }
    mcp_sessions_close_all(sessions);
    lock_done(&sessions->lock);
    free(sessions);
}

void mcp_sessions_close_all(struct mcp_sessions *sessions)
{
    struct mcp_session *gone = NULL;
    lock_take(&sessions->lock);
    while (!TAILQ_EMPTY(&sessions->order)) {
        take_out(sessions, TAILQ_FIRST(&sessions->order), &gone);
    }
    lock_release(&sessions->lock);
    end_all(gone);
}

void mcp_sessions_sweep(struct mcp_sessions *sessions)
{
    lock_take(&sessions->lock);
    struct mcp_session *gone = take_silent(sessions);
    take_keyless(sessions, &gone);
    lock_release(&sessions->lock);
    forget_all(sessions, gone);
}

/* Under the lock. */
static struct mcp_session *look_up_any(struct mcp_sessions *sessions, struct ng_str id)
{
    struct mcp_session *session = *bucket_of(sessions, id);
    while (session != NULL && !str_is(id, session->id)) {
        session = session->hash_next;
    }
    return session;
}

/* Under the lock. */
static struct mcp_session *look_up(struct mcp_sessions *sessions, struct ng_str id,
                                   struct ng_str owner)
{
    struct mcp_session *session = look_up_any(sessions, id);
    if (session != NULL && str_is(owner, session->owner)) {
        return session;
    }
    return NULL;
}

static void say(struct mcp_session *session, struct ng_str message)
{
    struct mcp_stream *stream = mcp_session_own_stream(session);
    if (stream != NULL) {
        (void)mcp_stream_add(stream, message, MCP_STREAM_MAY_DROP);
        mcp_stream_unref(stream);
    }
}

/* Under the lock. *gone: the evicted session. */
static int add_session(struct mcp_sessions *sessions, struct mcp_session *session,
                       struct mcp_session **gone)
{
    struct mcp_session *over = NULL;
    *gone = take_silent(sessions);
    struct mcp_share *own = share_of(sessions, session->owner);
    int rc = find_over(sessions, own, session->owner, &over);
    if (rc != NG_OK) {
        return rc;
    }
    if (own != NULL) { /* the one it came with is not needed */
        (void)atomic_fetch_add(&own->refs, 1);
        mcp_share_unref(session->share);
        session->share = own;
    }
    if (over != NULL) {
        take_out(sessions, over, gone);
    }
    struct mcp_session **bucket = bucket_of(sessions, ng_str_of(session->id));
    session->hash_next = *bucket;
    *bucket = session;
    link_newest(sessions, session);
    sessions->count++;
    session->share->sessions++;
    (void)atomic_fetch_add(&session->refs, 1);
    return NG_OK;
}

void mcp_sessions_set_forget(struct mcp_sessions *sessions,
                             void (*forget)(void *user, const struct mcp_session *session),
                             void *user)
{
    sessions->forget = forget;
    sessions->forget_user = user;
}

static struct mcp_session *new_session(struct mcp_sessions *sessions, struct ng_str owner,
                                       struct key *key, enum mcp_version version)
{
    struct mcp_session *session = mcp_session_new();
    if (session == NULL) {
        return NULL;
    }
    session->share = share_new(sessions);
    if (session->share == NULL || owner.len >= sizeof(session->owner)) {
        mcp_session_unref(session);
        return NULL;
    }
    memcpy(session->owner, owner.data, owner.len);
    atomic_store(&session->version, (int)version);
    session->say = say;
    session->streams_replay = true;
    session->key = key;
    if (key != NULL) {
        key_ref(key);
    }
    return session;
}

/* Takes the reference of `session`, which has its id. */
static int join(struct mcp_sessions *sessions, struct mcp_session *session,
                struct mcp_session **ret)
{
    struct mcp_session *gone = NULL;
    int rc = NG_OK;
    run_id_of_session(ng_str_of(session->id), session->run); /* once, not with each call */
    lock_take(&sessions->lock);
    struct mcp_session *known =
        look_up(sessions, ng_str_of(session->id), ng_str_of(session->owner));
    if (known == NULL) {
        rc = add_session(sessions, session, &gone);
    } else {
        (void)atomic_fetch_add(&known->refs, 1);
    }
    lock_release(&sessions->lock);
    forget_all(sessions, gone);
    if (known != NULL || rc != NG_OK) {
        mcp_session_unref(session);
        session = known;
    }
    *ret = session;
    return rc;
}

int mcp_sessions_open(struct mcp_sessions *sessions, struct ng_str owner, struct key *key,
                      enum mcp_version version, bool stored, struct mcp_session **ret)
{
    struct mcp_session *session = new_session(sessions, owner, key, version);
    if (session == NULL || !random_hex(MCP_SESSION_ID_BYTES, session->id)) {
        mcp_session_unref(session);
        return NG_EINTERNAL;
    }
    session->stored = stored;
    return join(sessions, session, ret);
}

int mcp_sessions_adopt(struct mcp_sessions *sessions, const struct mcp_session_record *record,
                       struct key *key, struct mcp_session **ret)
{
    struct mcp_session *session = new_session(sessions, record->owner, key, record->version);
    if (session == NULL || record->id.len != MCP_SESSION_ID_LEN ||
        record->client.len > AUDIT_CLIENT_MAX) {
        mcp_session_unref(session);
        return NG_EINTERNAL;
    }
    memcpy(session->id, record->id.data, record->id.len);
    memcpy(session->client, record->client.data, record->client.len);
    session->stored = true;
    session->moves = record->moves;
    atomic_store(&session->log_level, (int)record->log_level);
    atomic_store(&session->client_asks, record->asks);
    atomic_store(&session->client_abilities, record->abilities);
    return join(sessions, session, ret);
}

struct mcp_session *mcp_sessions_find(struct mcp_sessions *sessions, struct ng_str id,
                                      struct ng_str owner)
{
    lock_take(&sessions->lock);
    struct mcp_session *gone = take_silent(sessions);
    struct mcp_session *session = look_up(sessions, id, owner);
    if (session != NULL) {
        touch(sessions, session);
        (void)atomic_fetch_add(&session->refs, 1);
    }
    lock_release(&sessions->lock);
    forget_all(sessions, gone);
    return session;
}

bool mcp_sessions_end(struct mcp_sessions *sessions, struct ng_str id, struct ng_str owner)
{
    lock_take(&sessions->lock);
    struct mcp_session *gone = NULL;
    struct mcp_session *silent = take_silent(sessions);
    struct mcp_session *session = look_up(sessions, id, owner);
    if (session != NULL) {
        take_out(sessions, session, &gone);
    }
    lock_release(&sessions->lock);
    end_all(gone);
    forget_all(sessions, silent);
    return session != NULL;
}

void mcp_sessions_let_go(struct mcp_sessions *sessions)
{
    struct mcp_session *gone = NULL;
    lock_take(&sessions->lock);
    struct mcp_session *session = TAILQ_FIRST(&sessions->order);
    while (session != NULL) {
        struct mcp_session *next = TAILQ_NEXT(session, order);
        if (session->stored) {
            take_out(sessions, session, &gone);
        }
        session = next;
    }
    lock_release(&sessions->lock);
    let_go_all(gone);
}

void mcp_sessions_let_go_of(struct mcp_sessions *sessions, const struct mcp_session *session)
{
    struct mcp_session *gone = NULL;
    lock_take(&sessions->lock);
    struct mcp_session *known =
        look_up(sessions, ng_str_of(session->id), ng_str_of(session->owner));
    if (known == session) {
        take_out(sessions, known, &gone);
    }
    lock_release(&sessions->lock);
    let_go_all(gone);
}

bool mcp_sessions_has(struct mcp_sessions *sessions, struct ng_str id)
{
    lock_take(&sessions->lock);
    bool has = look_up_any(sessions, id) != NULL;
    lock_release(&sessions->lock);
    return has;
}

size_t mcp_sessions_count(struct mcp_sessions *sessions)
{
    lock_take(&sessions->lock);
    size_t count = sessions->count;
    lock_release(&sessions->lock);
    return count;
}

void mcp_sessions_age(struct mcp_sessions *sessions, int64_t ms)
{
    lock_take(&sessions->lock);
    sessions->shift_ms += ms;
    lock_release(&sessions->lock);
}
