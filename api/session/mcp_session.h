/* SPDX-License-Identifier: MIT */
/*
 * mcp_session.h - sessions of the handshake versions: unguessable, bound to the caller that
 * opened them, bounded in number, gone after a time of silence. A stdio connection has one of
 * its own, outside of the table. All functions may be called from any thread.
 */
#ifndef NOTEGATE_API_MCP_SESSION_H
#define NOTEGATE_API_MCP_SESSION_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "api/protocol/mcp_version.h"
#include "core/base/lock.h"
#include "core/call/call.h"
#include "core/cluster/cluster.h"
#include "core/dispatch/audit.h"
#include "core/dispatch/run_id.h"
#include "mcp_stream.h"

/* Sessions of all callers, of one agent with all its keys, and of one caller: a caller over its
 * limit loses its session that was silent longest. */
#define MCP_SESSIONS_MAX 4096
#define MCP_SESSIONS_PER_AGENT_MAX (MCP_SESSIONS_MAX / 2)
#define MCP_SESSIONS_PER_CALLER_MAX 256
/* Bytes of randomness in an id; it is written as twice as many hexadecimal digits. */
#define MCP_SESSION_ID_BYTES 32
#define MCP_SESSION_ID_LEN (2 * MCP_SESSION_ID_BYTES)
/* Agent names are at most 64 bytes; the key's number is behind it. */
#define MCP_SESSION_OWNER_MAX 96

/* Streams of one session that can be resumed: answers under way, and ended ones that are kept.
 */
#define MCP_SESSION_STREAMS_MAX 32

/* Open requests to one client. */
#define MCP_SESSION_QUESTIONS_MAX 128

struct key;
struct mcp_sessions;
struct mcp_session;

/* State shared by all sessions of one caller; counted references. */
struct mcp_share {
    atomic_int refs;
    size_t sessions; /* under the table's lock */
    struct mcp_kept kept;
};
struct mcp_notifier;

/* A request of the gateway to this client. Memory of the asking call; in the session's list
 * until it is answered or withdrawn. */
struct mcp_question {
    uint64_t id;
    /* The response came: a whole message. In the session's lock: quick, and takes no lock of
     * sessions. It is not in the list any more. */
    void (*answered)(struct mcp_question *question, const struct ng_value *message);
    struct mcp_question *next;
};

/* Abilities that the client declared at initialize, beyond being asked. */
enum mcp_client_ability {
    MCP_CLIENT_ROOTS_CHANGED = 1 /* roots.listChanged */
};

/* A call under way, so that notifications/cancelled finds it. Memory of the exchange. */
struct mcp_inflight {
    const struct ng_value *id;
    struct call *call;
    bool cancelled, notified;
    LIST_ENTRY(mcp_inflight) link;
};

struct mcp_session {
    char id[MCP_SESSION_ID_LEN + 1]; /* "": of a stdio connection */
    char owner[MCP_SESSION_OWNER_MAX];
    char run[RUN_ID_SESSION_SIZE]; /* of its calls that have none nearer; "": none */
    struct key *key;      /* its owner's, a reference, or NULL: the session ends with it */
    atomic_int version;   /* enum mcp_version; MCP_VERSION_NONE until initialize */
    atomic_int log_level; /* enum mcp_log_level, the lowest level for the client */
    /* Of initialize: bits 1 << enum ng_ask_kind, and enum mcp_client_ability. */
    atomic_uint client_asks, client_abilities;
    char client[AUDIT_CLIENT_MAX + 1]; /* its name, under the lock; "": none */
    struct lock lock;                  /* of the inflight and the lists below */
    LIST_HEAD(, mcp_inflight) inflight;
    struct mcp_notifier *notifier; /* its subscriptions (mcp_subscribe.c), a reference */
    /* Called once, with no lock held, when the session ends (DELETE, silence, the end of a
     * stdio connection); or NULL. */
    void (*on_end)(struct mcp_session *session);
    bool ended;
    /* Other gateways find it in the database (mcp_session_store.h). Constant in the table. */
    bool stored;
    atomic_bool moved; /* another gateway has it: the transport lets it go */
    unsigned
        moves; /* between gateways: the ids of its events go on above those of the others */
    struct mcp_question *questions;
    size_t question_count;
    size_t let_in;          /* as many more texts; question_count at most */
    uint64_t question_id;   /* of the last one */
    atomic_int busy;        /* calls under way and open streams: as long it is not silent */
    bool streams_replay;    /* over HTTP: the members below are used */
    struct mcp_stream *own; /* the one that GET opens; made when it is first needed */
    struct mcp_stream *streams[MCP_SESSION_STREAMS_MAX]; /* of POSTs */
    unsigned stream_number;                              /* of the last one */
    struct mcp_share *share;                             /* of a session in the table */
    /* The receiver of its messages, see mcp_session_notify(); NULL: none. */
    void (*say)(struct mcp_session *session, struct ng_str message);
    void *say_user;
    void (*say_release)(void *user); /* at the session's last reference; or NULL */
    atomic_int refs;
    /* The table's. */
    int64_t used_ms;
    struct mcp_session *hash_next; /* out of the table: the next one that ends */
    TAILQ_ENTRY(mcp_session) order;
};

/* timeout_ms: silence after which a session is gone. */
int mcp_sessions_new(int64_t timeout_ms, struct mcp_sessions **ret);
void mcp_sessions_free(struct mcp_sessions *sessions);
/* Before the first session. forget(user, session): a stored session came to its end here, but
 * not by mcp_sessions_end(). No lock is held. */
void mcp_sessions_set_forget(struct mcp_sessions *sessions,
                             void (*forget)(void *user, const struct mcp_session *session),
                             void *user);
void mcp_sessions_set_timeout(struct mcp_sessions *sessions, int64_t timeout_ms);
int64_t mcp_sessions_timeout(struct mcp_sessions *sessions);
/* owner, key (or NULL): the caller that may use it. stored: other gateways are to find it. In a
 * full table the caller with the most sessions loses one; NG_EBUSY: no caller has more than
 * this one. *ret has a reference for the caller. */
int mcp_sessions_open(struct mcp_sessions *sessions, struct ng_str owner, struct key *key,
                      enum mcp_version version, bool stored, struct mcp_session **ret);
/* One that another gateway had, as the record says. Is it in the table already, that one. */
struct mcp_session_record;
int mcp_sessions_adopt(struct mcp_sessions *sessions, const struct mcp_session_record *record,
                       struct key *key, struct mcp_session **ret);
/* Stored sessions leave the table, perhaps to be found in the database again: their own streams
 * and what waits for their clients end, calls go on. */
void mcp_sessions_let_go(struct mcp_sessions *sessions);
/* The same of one session. */
void mcp_sessions_let_go_of(struct mcp_sessions *sessions, const struct mcp_session *session);
/* With a reference, and used just now. NULL: there is none of this id, or it is another
 * caller's. */
struct mcp_session *mcp_sessions_find(struct mcp_sessions *sessions, struct ng_str id,
                                      struct ng_str owner);
/* False: as above. Calls under way are cancelled. */
bool mcp_sessions_end(struct mcp_sessions *sessions, struct ng_str id, struct ng_str owner);
/* Of any owner. */
bool mcp_sessions_has(struct mcp_sessions *sessions, struct ng_str id);
size_t mcp_sessions_count(struct mcp_sessions *sessions);
/* Tests: time passes. */
void mcp_sessions_age(struct mcp_sessions *sessions, int64_t ms);

/* One outside of any table, with one reference. NULL: out of memory. */
struct mcp_session *mcp_session_new(void);
void mcp_session_unref(struct mcp_session *session); /* NULL is a no-op */
void mcp_share_unref(struct mcp_share *share);       /* NULL is a no-op */

void mcp_session_inflight_add(struct mcp_session *session, struct mcp_inflight *inflight);
/* True: it was cancelled by the client meanwhile. */
bool mcp_session_inflight_remove(struct mcp_session *session, struct mcp_inflight *inflight);
/* Cancels the call with this id; an unknown one is ignored. id NULL: all of them. */
void mcp_session_cancel(struct mcp_session *session, const struct ng_value *id);

/*
 * One notification, a whole JSON-RPC message, from outside of any request: over HTTP it goes to
 * the session's GET stream (kept within a bound while none is open, the oldest goes first),
 * over stdio it is a line. Any thread; never blocks; the caller holds a reference.
 */
void mcp_session_notify(struct mcp_session *session, struct ng_str message);
/* Nothing comes from the client any more: on_end() is called, what waits for it ends; what runs
 * goes on. Again: a no-op. */
void mcp_session_hang_up(struct mcp_session *session);
bool mcp_session_has_ended(struct mcp_session *session);
/* The session ends: calls under way are cancelled, on_end() is called. Again: a no-op.
 */
void mcp_session_close(struct mcp_session *session);

/* Gives the question its id and keeps it. False: the session has ended, or is asked too much.
 */
bool mcp_session_ask(struct mcp_session *session, struct mcp_question *question);
/* Takes it back; answered() is over or will not be called. True: it was still open. */
bool mcp_session_withdraw(struct mcp_session *session, struct mcp_question *question);
/* A response came from the client. False: to nothing that was asked. */
bool mcp_session_answer(struct mcp_session *session, const struct ng_value *id,
                        const struct ng_value *message);
/* A text that is not small may be the answer to an open question: one for each is parsed before
 * it counts against the client's rate. False: no more of them. Again: it was counted, and takes
 * the place of no answer. */
bool mcp_session_let_in(struct mcp_session *session);
void mcp_session_let_in_again(struct mcp_session *session);

/* Now and then: those gone silent go now, not only when the next one comes, and those whose key
 * was revoked or has expired; silence begins when the last call or stream ends. */
void mcp_sessions_sweep(struct mcp_sessions *sessions);
/* Every session ends. */
void mcp_sessions_close_all(struct mcp_sessions *sessions);

/* mcp_session_stream.c; with a reference each. */
/* The one that GET opens. NULL: out of memory, or the session has ended. */
struct mcp_stream *mcp_session_own_stream(struct mcp_session *session);
/* For the answer to a POST; NULL also where as many are under way as a session has. */
struct mcp_stream *mcp_session_new_stream(struct mcp_session *session);
/* NULL: there is none of this number (any more). */
struct mcp_stream *mcp_session_find_stream(struct mcp_session *session, unsigned number);
/* All end; the session is ending. */
void mcp_session_cut_streams(struct mcp_session *session);
void mcp_session_cut_own(struct mcp_session *session);

#endif
