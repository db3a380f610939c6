/* SPDX-License-Identifier: MIT */
/*
 * server.h - the connection to MongoDB: a pool of clients, single operations, transactions.
 *
 * A mongoc client is used by one thread at a time, so every use is between conn_acquire() and
 * conn_release(). No client is held while a callback of the caller runs, except while a commit
 * is repeated: the callbacks of queue_shed() then run beside its client.
 */
#ifndef NOTEGATE_MONGO_SERVER_H
#define NOTEGATE_MONGO_SERVER_H

#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../bson/bson_members.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "notegate/backend.h"

#define DB_ERROR_MAX 512
#define BATCH_ID_MAX 25
/* The id of a gateway and a ticket. */
#define PUT_ID_MAX (BATCH_ID_MAX + 21)
#define WRITERS_MAX 64
#define PRIMARY_MAX 320

/* Our own collections. No declared name may begin like this. */
#define OWN_PREFIX "notegate_"
#define OWN_VERSIONS "notegate_versions"
#define OWN_EVENTS "notegate_events"
#define OWN_ANSWERS "notegate_answers"
#define OWN_TOMBSTONES "notegate_tombstones"
#define OWN_META "notegate_meta"

/* The result of an operation on the server. */
struct fault {
    int rc;               /* NG_OK or NG_E... */
    bool duplicate;       /* the _id or another unique value already exists */
    bool outcome_unknown; /* it may have been done, or may still be done */
    bool none_made; /* the outcome is unknown to the driver, but the server made nothing */
    bool answered;  /* the server itself returned the error */
    bool transient; /* TransientTransactionError: the whole transaction may be run again */
    uint32_t code;  /* the server's error code */
    char text[DB_ERROR_MAX];
};

/* Error codes of the server (MongoDB manual, "Error Codes"). */
enum {
    SERVER_UNAUTHORIZED = 13,
    SERVER_AUTH_FAILED = 18,
    SERVER_ILLEGAL_OPERATION = 20,
    SERVER_NO_COLLECTION = 26,
    SERVER_INDEX_NOT_FOUND = 27,
    SERVER_TIME_LIMIT = 50,
    SERVER_COMMAND_UNKNOWN = 59,
    SERVER_CANNOT_CREATE_INDEX = 67,
    SERVER_INVALID_OPTIONS = 72,
    SERVER_INDEX_OPTIONS = 85,
    SERVER_INDEX_KEYS = 86,
    SERVER_WRITE_CONFLICT = 112,
    SERVER_NOT_SUPPORTED = 115,
    SERVER_INDEX_SPECIFICATION = 197,
    SERVER_NOT_IMPLEMENTED = 238,
    SERVER_NO_RESUME_TOKEN = 260,
    SERVER_STREAM_FATAL = 280,
    SERVER_HISTORY_LOST = 286,
    SERVER_TOO_LARGE = 10334,
    SERVER_DUPLICATE = 11000,
    SERVER_NO_SPACE = 14031,
    SERVER_TOO_LARGE_LATER = 17419,
    SERVER_TOO_LARGE_UPDATE = 17420,
    SERVER_STAGE_UNKNOWN = 40324,
    SERVER_NO_STREAMS = 40573,
    FAULT_UNFIT = 1000000,     /* our own: the server lacks what the backend needs */
    FAULT_TEXT_INDEX = 1000001 /* our own: another program's is in the place of ours */
};

#define SESSION_ID_BYTES 16
/* Sessions of one gateway; each thread that writes uses one at a time. */
#define SESSIONS_MAX 64
/* Gateways whose heartbeats are watched: as many as a cluster may have. */
#define GATEWAYS_MAX 256

struct seen_gateway {
    char id[BATCH_ID_MAX];
    int64_t beat;
    unsigned still; /* heartbeats of our own since it was seen to beat */
};

struct presence {
    struct lock lock; /* of ids, noted, lost, lost_count and seen */
    unsigned char ids[SESSIONS_MAX][SESSION_ID_BYTES];
    size_t noted; /* ids that were listed: the last SESSIONS_MAX of them are known */
    /* Sessions whose transaction the server may not know to be over. */
    unsigned char lost[SESSIONS_MAX][SESSION_ID_BYTES];
    size_t lost_count;
    struct seen_gateway seen[GATEWAYS_MAX];
    atomic_bool listed; /* the others see its heartbeat */
    pthread_t thread;
    bool started;
};

/* Of the server: not asked yet or refused, being asked, fit. */
enum admission { ADMIT_PENDING, ADMIT_RUNNING, ADMIT_DONE };

/* The unique index by which no change gets two numbers: not asked for yet, missing, there. */
enum ref_index { REF_UNKNOWN, REF_REFUSED, REF_READY };

struct session;

/* The thread of clock_step.c. */
struct clock_step {
    pthread_t thread;
    bool started;
};

struct mongo {
    char where[256]; /* hosts, for messages */
    _Atomic(enum admission) admission;
    bool sharded; /* written before the admission ends */
    /* Finishes what an older version left in the database, before the admission ends. */
    bool (*finish_former)(struct session *session, struct fault *fault);
    /* Before a transaction or its commit is tried again: queue_shed(). */
    void (*shed)(struct mongo *db);
    char *database;
    char gateway[BATCH_ID_MAX]; /* unique to this process */
    int64_t timeout_ms;
    size_t writers;
    int64_t tombstones_ms; /* how long tombstones stay in their collection */
    mongoc_client_pool_t *pool;
    struct clock_step clock_step;
    atomic_int_fast64_t
        down_until_ms; /* monotonic: no attempt before this time; 0: the server is up */
    atomic_int_fast64_t good_ms; /* monotonic: the last answer of the server */
    struct lock down_lock;
    char down_text[DB_ERROR_MAX]; /* the error */
    atomic_uint_fast64_t last_stamp;
    atomic_uint_fast64_t last_seq;
    /* How often there was a new primary, and up to which one that is settled (doubts.c). */
    atomic_uint_fast64_t doubts, settled;
    char primary[PRIMARY_MAX]; /* host and election of the last one; of the driver's callback */
    atomic_bool closing;       /* the threads of clock_step, indexes and watch are to end */
    _Atomic(enum ref_index) ref_index;
    atomic_bool half_restored;    /* a restore of another process is not complete */
    atomic_bool importing;        /* one of this process is under way */
    atomic_uint_fast64_t backlog; /* documents with a non-empty outbox at the last scan */

    struct lock collections_lock;
    struct db_collection *collections;
    struct presence presence;

    /* Each belongs to the room that declares it. */
    struct queue *queue;
    struct relay *relay;
    struct watch *watch;
    struct indexes *indexes;
    struct import *import;

    atomic_uint_fast64_t stat_updates, stat_puts, stat_batches, stat_failures, stat_retries,
        stat_relayed;
};

/* ---- conn.c ---- */

int conn_open(struct mongo *db, struct ng_call *call, const struct ng_conf *conf);
void conn_close(struct mongo *db);
/* NULL on failure, with the fault set. */
mongoc_client_t *conn_acquire(struct mongo *db, struct fault *fault);
void conn_release(struct mongo *db, mongoc_client_t *client);
/* The server does not answer: one operation at a time tries it. */
bool conn_is_down(struct mongo *db);
/* The fault of those that do not try it. */
void conn_refuse(struct mongo *db, struct fault *fault);
/* Notes that the server has answered. */
void conn_good(struct mongo *db);
void conn_down(struct mongo *db, const struct fault *fault);
static inline int64_t monotonic_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}
/* Starts a thread; NG_EINTERNAL: it cannot be started. */
int thread_open(pthread_t *thread, void *(*main)(void *), void *user, bool *ret_started);
void sleep_ms(int64_t ms);
/* Waits until the time is over or the flag is set. false: it is set. */
bool pause_unless(atomic_bool *flag, int64_t ms);
/* Waits a little longer with each try, with jitter. */
void back_off(unsigned tried);

/* ---- doubts.c ---- */

/* Counts the primaries from now on. */
void doubts_watch(struct mongo *db);
/* With a new one: makes it show all that was acknowledged. The fault is that of an operation
 * that was not sent. */
bool doubts_settle(struct mongo *db, mongoc_client_t *client, struct fault *fault);
/* Whether there was a new primary since. The driver sends a read again that a server did not
 * answer, to a new primary, too: such a read is to be repeated. */
bool doubts_grew(const struct mongo *db, uint64_t *inout_seen);
/* Makes a read of one document wait until a majority has what it shows, and all that
 * was acknowledged before it. So later reads of this member show that, too. */
bson_t *linearizable(bson_t *opts);

/* ---- clock_step.c ---- */

void *clock_step_main(void *user);

/* ---- fault.c ---- */

void fault_set(struct mongo *db, struct fault *fault, const bson_error_t *error,
               const bson_t *reply);
int fault_fail(struct ng_call *call, const struct fault *fault, const char *doing);
/* The same, unless rc is NG_OK. */
int fault_end(struct ng_call *call, int rc, const struct fault *fault, const char *doing);
int fault_refuse(struct fault *fault, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int fault_conflict(struct fault *fault);

/* ---- admit.c ---- */

/* Whether the server has what the backend needs. The first call asks it. */
bool server_admit(struct mongo *db, mongoc_client_t *client, struct fault *fault);

/* ---- session.c ---- */

enum session_kind { SESSION_TXN, SESSION_SNAPSHOT };

/* A client in a transaction, or one whose reads all show the same moment. One thread at a time
 * uses it; no callback of the caller runs in it. */
struct session {
    struct mongo *db;
    mongoc_client_t *client;
    mongoc_client_session_t *session; /* NULL: neither, only the client */
    enum session_kind kind;
    uint64_t moment; /* SESSION_SNAPSHOT: a cluster time; 0: that of the first read */
    bool repeats;    /* a commit of the same has failed, and may have been made */
};

bool session_begin(struct mongo *db, enum session_kind kind, struct session *ret,
                   struct fault *fault);
/* Aborts a transaction that was not committed. */
void session_end(struct session *session);
/* The operations of one transaction. NG_OK: commit; NG_PENDING: again, after a pause; else
 * abort with this code. May run several times. */
typedef int txn_fn(struct session *session, void *user, struct fault *fault);
/* Runs a transaction until it is committed or refused, at most until that monotonic time.
 * NG_ETIMEOUT: its result is unknown. */
int txn_run(struct mongo *db, txn_fn *step, void *user, int64_t until_ms, struct fault *fault);
/* Of a change that was not confirmed in time: NG_ETIMEOUT. */
int fault_unknown(struct mongo *db, struct fault *fault);

/* ---- op.c: single operations. session NULL: outside of one, with a client of its own. true:
 * done (see the counts for the effect). Filters, updates, options and commands are destroyed,
 * documents are not. ---- */

bool op_insert(struct mongo *db, struct session *session, const char *collection,
               const bson_t *doc, struct fault *fault);
bool op_insert_many(struct mongo *db, struct session *session, const char *collection,
                    const bson_t **docs, size_t count, struct fault *fault);
/* ret_done: whether there was such a document; or NULL. */
bool op_update(struct mongo *db, struct session *session, const char *collection,
               bson_t *filter, bson_t *update, bool *ret_done, struct fault *fault);
bool op_update_all(struct mongo *db, const char *collection, bson_t *filter, bson_t *update,
                   struct fault *fault);
/* ret_found: whether there was one before; or NULL. */
bool op_upsert(struct mongo *db, struct session *session, const char *collection,
               bson_t *filter, bson_t *update, bool *ret_found, struct fault *fault);
/* ret_deleted: or NULL. */
bool op_delete(struct mongo *db, struct session *session, const char *collection,
               bson_t *filter, bool many, int64_t *ret_deleted, struct fault *fault);
/* Calls each() for the documents found until it returns non-zero. each() must not call back
 * into the backend, as the client is still in use. */
typedef int op_each_fn(void *user, const bson_t *doc);
bool op_find(struct mongo *db, struct session *session, const char *collection, bson_t *filter,
             bson_t *opts, op_each_fn *each, void *user, struct fault *fault);
/* The first match, destroyed by the caller; NULL without a fault if there is none. Outside of a
 * session it is what was acknowledged. */
bson_t *op_find_one(struct mongo *db, struct session *session, const char *collection,
                    bson_t *filter, bson_t *opts, struct fault *fault);
/* Only in a snapshot. */
bool op_count(struct mongo *db, struct session *session, const char *collection,
              const bson_t *filter, uint64_t *ret, struct fault *fault);
/* A command of any kind. ret_reply: or NULL; destroyed by the caller, also after a fault. */
bool op_command(struct mongo *db, struct session *session, const char *database,
                bson_t *command, bson_t *ret_reply, struct fault *fault);

/* ---- docs.c ---- */

struct docs {
    bson_t **list;
    size_t count, cap, bytes;
    size_t most, bytes_most; /* after which it is full; 0: as many as there are */
    bool is_full;
    int rc; /* NG_OK or NG_EINTERNAL: no memory */
};

/* Takes the document. Positive: the list is full, or there is no memory. */
int docs_add(struct docs *docs, bson_t *doc);
/* For op_find(): copies the document. */
int docs_keep(void *user, const bson_t *doc);
void docs_clear(struct docs *docs);
void docs_done(struct docs *docs);

/* ---- walk.c ---- */

/* fault: as of an operation; a code without one is the visitor's own. Positive: stop. */
typedef int walk_fn(void *user, const bson_t *doc, struct fault *fault);

struct walk {
    struct mongo *db;
    struct session *session; /* or NULL */
    struct ng_call *call;    /* its cancellation ends the walk with NG_ECANCELLED; or NULL */
    const char *collection;
    bson_t *filter, *fields; /* or NULL: of all documents, whole; destroyed at the end */
    walk_fn *each;           /* may use the backend and change the document */
    void *user;
};

int walk_documents(const struct walk *walk, struct fault *fault);

/* ---- presence.c ---- */

int presence_open(struct mongo *db);
void presence_close(struct mongo *db);
/* Heartbeats of our own since that gateway was seen to beat. */
unsigned presence_still(struct mongo *db, struct ng_str gateway);
/* Lists the session of a transaction with those of this gateway, before its first use. */
bool presence_note(struct session *session, struct fault *fault);
/* The line of a transaction broke: the next heartbeat ends its session. */
void presence_lost(struct session *session);
/* The mark of a restore in OWN_META. */
bson_t *restore_mark(void);
/* Looks for the mark. false: a fault. */
bool restore_look(struct mongo *db, struct session *session, struct fault *fault);
/* true, with the fault set: the database holds a part of a backup. */
bool restore_refuses(struct mongo *db, struct fault *fault);

#endif
