/* SPDX-License-Identifier: MIT */
/*
 * db.h - shared by all files of the mongo backend. README.md describes the collections and the
 * path of a change.
 *
 * A mongoc client is used by one thread at a time, so every use is between conn_acquire() and
 * conn_release(). No client is held while a callback of the caller runs.
 */
#ifndef NOTEGATE_MONGO_DB_H
#define NOTEGATE_MONGO_DB_H

#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../shared/bytes.h"
#include "../shared/content_hash.h"
#include "../shared/query_check.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "notegate/backend.h"

#define DB_ERROR_MAX 512

/* Largest document with everything stored in it; the server's own limit is 16 MiB. */
#define DOCUMENT_BYTES_MAX ((size_t)15 * 1024 * 1024)
/* Bytes of a document besides its content: names, times, hashes. */
#define DOCUMENT_ROOM ((size_t)64 * 1024)

/* Batches and bytes that may be queued for the writers; more is NG_EBUSY. */
#define QUEUE_BATCHES_MAX 65536
#define QUEUE_BYTES_MAX ((size_t)256 * 1024 * 1024)
#define WRITERS 4
#define LANES 1024
#define LANE_FAILED 16
/* Puts and bytes of one document combined into one update. */
#define GROUP_MAX 128
#define GROUP_BYTES_MAX ((size_t)4 * 1024 * 1024)

/* Every 64th revision is stored whole; so is one whose splice is not smaller. */
#define WHOLE_EVERY 64
#define BATCH_ID_MAX 25

/* Our own collections. No declared name may begin like this. */
#define OWN_PREFIX "notegate_"
#define OWN_VERSIONS "notegate_versions"
#define OWN_EVENTS "notegate_events"
#define OWN_ANSWERS "notegate_answers"
#define OWN_INTENTS "notegate_intents"
#define OWN_INTENT_PUTS "notegate_intent_puts"
#define OWN_TOMBSTONES "notegate_tombstones"
#define OWN_META "notegate_meta"

/* How a version stores its revision. */
enum kept { KEPT_NONE = 0, KEPT_WHOLE = 1, KEPT_SPLICE = 2 };

/* The result of an operation on the server. */
struct fault {
    int rc;               /* NG_OK or NG_E... */
    bool duplicate;       /* the _id or another unique value already exists */
    bool outcome_unknown; /* it may have been done, or may still be done */
    bool answered;        /* the server itself returned the error */
    uint32_t code;        /* the server's error code */
    char text[DB_ERROR_MAX];
};

struct db_field {
    char *name; /* as declared */
    char *path; /* "notegate.fields.NAME", with each dot of the name as '/' */
    enum ng_field_use use;
    double weight;
};

/* A declared collection. Lives until close, even if a newer declaration replaced it. */
struct db_collection {
    struct db_collection *next;
    char *name;
    uint32_t flags;
    struct db_field *fields;
    size_t field_count;
    bool is_entry; /* its documents have the form of the agent notebook's */
    const char
        *text_member;       /* the member with the document's text: "text", "content", "code" */
    atomic_bool ready;      /* indexes are created */
    atomic_bool refused;    /* the server refused to create them */
    atomic_bool text_index; /* ... and one of them is a text index */
};

struct job;

/* The documents of one hash, changed one after the other. */
struct lane {
    struct lane_node *first, *last;
    /* The document last written here and a lower bound of its revision: a change based on an
     * earlier one need not be sent. */
    uint64_t known_name, known_revision;
    int64_t known_ms;
    /* Tickets of the last failed changes: queued changes based on one of them fail, too. */
    uint64_t failed[LANE_FAILED];
    size_t failed_at;
};

struct queue {
    struct lock lock;
    pthread_cond_t moved;
    pthread_t threads[WRITERS];
    size_t thread_count;
    struct lane lanes[LANES];
    struct job *ready_first, *ready_last;
    struct job *all_first, *all_last; /* in order of arrival */
    size_t batches, bytes;
    bool closing;
};

/* RELAY_IDLE: in a long wait, which a kick ends. */
enum relay_state { RELAY_STOPPED, RELAY_BUSY, RELAY_IDLE, RELAY_CLOSING };

struct relay {
    pthread_t thread;
    struct lock lock;
    pthread_cond_t moved;
    enum relay_state state;
    bool kicked;                /* this gateway committed something */
    atomic_uint_fast64_t dirty; /* relay_mark() of the collections to check */
    int64_t polled_ms;          /* monotonic: last poll of the lease */
    atomic_bool owner;          /* this gateway holds the lease */
    int64_t heartbeat;          /* of the lease, as last seen */
    int64_t heartbeat_since_ms; /* monotonic: when it was first seen */
    int64_t renewed_ms;         /* monotonic: when this gateway renewed it */
    int64_t kick_seen;          /* number of kicks by other gateways, as last seen */
    int64_t scanned_ms;         /* monotonic: last scan without a kick */
    uint64_t next_seq;          /* 0: not known, to be looked up */
    bool recheck;               /* a failed round may have moved some of the entries already */
    int64_t swept_ms;           /* monotonic: last check for leftovers of crashed gateways */
    uint64_t rounds;            /* finished rounds, for threads that wait */
};

/* Batches of other gateways whose age is tracked. */
#define STALENESS_MAX 128

struct batch_age {
    char id[BATCH_ID_MAX];
    int64_t since_ms, seen_ms; /* monotonic */
};

struct staleness {
    struct lock lock;
    struct batch_age items[STALENESS_MAX];
};

struct mongo {
    char where[256]; /* hosts, for messages */
    char *database;
    char gateway[BATCH_ID_MAX]; /* unique to this process */
    int64_t timeout_ms;
    int64_t tombstones_ms; /* how long tombstones stay in their collection */
    mongoc_client_pool_t *pool;
    atomic_int_fast64_t
        down_until_ms; /* monotonic: no attempt before this time; 0: the server is up */
    atomic_int_fast64_t good_ms; /* monotonic: the last answer of the server */
    struct lock down_lock;
    char down_text[DB_ERROR_MAX]; /* the error */
    atomic_uint_fast64_t last_stamp;
    atomic_uint_fast64_t last_batch;
    atomic_uint_fast64_t last_seq;
    atomic_bool own_ready;        /* the indexes of our own collections are created */
    atomic_bool own_refused;      /* the server refused to create them */
    atomic_uint_fast64_t backlog; /* documents with a non-empty outbox at the last scan */

    struct lock collections_lock;
    struct db_collection *collections;

    struct queue queue;
    struct relay relay;
    struct staleness staleness;
    struct import *import;

    atomic_uint_fast64_t stat_updates, stat_puts, stat_batches, stat_failures, stat_retries,
        stat_relayed;
};

/* ---- conn.c: clients, errors, single operations ---- */

int conn_open(struct mongo *db, struct ng_call *call, const struct ng_conf *conf);
void conn_close(struct mongo *db);
/* NULL on failure, with the fault set. */
mongoc_client_t *conn_acquire(struct mongo *db, struct fault *fault);
void conn_release(struct mongo *db, mongoc_client_t *client);
/* Notes that the server has answered. */
void conn_good(struct mongo *db);
void fault_set(struct mongo *db, struct fault *fault, const bson_error_t *error,
               const bson_t *reply);
int fault_fail(struct ng_call *call, const struct fault *fault, const char *doing);
static inline int64_t monotonic_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}
void sleep_ms(int64_t ms);
/* Waits a little longer with each try, with jitter. */
void back_off(unsigned tried);

/* Each operation uses a client of its own. true: done (see the counts for the effect). */
bool op_insert(struct mongo *db, const char *collection, const bson_t *doc,
               struct fault *fault);
bool op_insert_many(struct mongo *db, const char *collection, const bson_t **docs, size_t count,
                    bool ordered, struct fault *fault);
bool op_update(struct mongo *db, const char *collection, const bson_t *filter,
               const bson_t *update, int64_t *ret_matched, struct fault *fault);
bool op_upsert(struct mongo *db, const char *collection, const bson_t *filter,
               const bson_t *update, struct fault *fault);
bool op_delete(struct mongo *db, const char *collection, const bson_t *filter, bool many,
               int64_t *ret_deleted, struct fault *fault);
/* The first match, destroyed by the caller; NULL without a fault if there is none. */
bson_t *op_find_one(struct mongo *db, const char *collection, const bson_t *filter,
                    const bson_t *opts, struct fault *fault);
bool op_count(struct mongo *db, const char *collection, const bson_t *filter, uint64_t *ret,
              struct fault *fault);
/* Calls each() for the documents found until it returns non-zero. each() must not call back
 * into the backend, as the client is still in use. */
typedef int op_each_fn(void *user, const bson_t *doc);
bool op_find(struct mongo *db, const char *collection, const bson_t *filter, const bson_t *opts,
             op_each_fn *each, void *user, struct fault *fault);

/* ---- hash.c, and strings ---- */

static inline int str_clip(struct ng_str text, int most)
{
    return (int)size_min(text.len, (size_t)most);
}

/* ---- names.c: names of documents on the server ---- */

#define ENTRY_SPACE "shared"
/* The document's _id: the notebook id itself for entries in the space shared, else SPACE/ID.
 * NG_EINVAL: not UTF-8. */
int name_document(const struct db_collection *collection, struct ng_str space, struct ng_str id,
                  struct bytes *ret);
/* COLLECTION/_id. */
int name_tombstone(const char *collection, struct ng_str document, struct bytes *ret);
/* COLLECTION/_id#REVISION, the revision in 20 digits so that names sort by it. */
int name_version(const char *collection, struct ng_str document, uint64_t revision,
                 struct bytes *ret);
bool is_entry_collection(const char *name, const char **ret_text_member);

/* ---- fields.c: reading and writing members of BSON ---- */

void put_str(bson_t *bson, const char *key,
             struct ng_str text); /* UTF-8, or binary if it is none */
void put_u64(bson_t *bson, const char *key, uint64_t number);
void put_hash(bson_t *bson, const char *key, const unsigned char hash[HASH_BYTES]);
/* Append {outer: {inner: value}}: a condition, an option or an update of one member. */
void nest_bool(bson_t *bson, const char *outer, const char *inner, bool value);
void nest_i32(bson_t *bson, const char *outer, const char *inner, int32_t value);
void nest_i64(bson_t *bson, const char *outer, const char *inner, int64_t value);
void nest_u64(bson_t *bson, const char *outer, const char *inner, uint64_t value);
void nest_date(bson_t *bson, const char *outer, const char *inner, int64_t value);
void nest_str(bson_t *bson, const char *outer, const char *inner, struct ng_str value);
void nest_text(bson_t *bson, const char *outer, const char *inner, const char *value);
/* The member at a dotted path; false if missing. */
bool member(const bson_t *doc, const char *path, bson_iter_t *ret);
struct ng_str member_str(const bson_t *doc, const char *path);
uint64_t member_u64(const bson_t *doc, const char *path);
int64_t member_i64(const bson_t *doc, const char *path); /* numbers, and dates as ms */
bool member_bool(const bson_t *doc, const char *path);
bool member_doc(const bson_t *doc, const char *path, bson_t *ret); /* a view into `doc` */
struct ng_str iter_str(const bson_iter_t *iter);

/* ---- json_in.c, json_out.c: JSON of entries to BSON and back ---- */

/* Appends the members of a JSON object that BSON can represent and that are not reserved;
 * *ret_whole: that was all of them. README.md lists the members stored as BSON dates. */
int json_members(struct ng_str json, bson_t *ret, bool *ret_whole);
/* The JSON of the members in `names`, in that order. */
int json_of(const bson_t *doc, const bson_t *names, struct bytes *ret);
bool date_parse(struct ng_str text, int64_t *ret_ms);
int date_print(struct bytes *ret, int64_t ms);

/* ---- body.c: a put to BSON, a stored document to a row ---- */

/* One put, prepared on the caller's thread. */
struct prepared {
    const struct db_collection *collection;
    struct bytes name; /* _id */
    unsigned char hash[HASH_BYTES];
    size_t lane;
    uint64_t hash_of_name;
    uint64_t ticket, base_ticket; /* of the put */
};

/* `placed`: given by an import, with numbers and times; else NULL. */
int body_insert(const struct ng_doc *placed, const struct prepared *prepared,
                const struct ng_put *put, bson_t *outbox, uint64_t outbox_bytes,
                const char *batch, uint64_t stamp, bson_t *ret);
int body_update(const struct prepared *prepared, const struct ng_put *put,
                const struct ng_put *creator, bson_t *outbox, uint64_t outbox_bytes,
                const char *batch, uint64_t stamp, bson_t *ret);
/* Adds the entry of the put to an outbox array; returns its size. */
uint64_t outbox_add(bson_t *outbox, uint32_t at, const struct ng_put *put,
                    const unsigned char hash[HASH_BYTES], const char *batch, uint64_t stamp);
/* A row for a stored document. Points into the document and into json. */
int body_row(const struct db_collection *collection, const bson_t *doc, bool with_text,
             struct bytes *json, struct ng_doc *ret);

/* ---- collections.c ---- */

int collection_declare(struct mongo *db, struct ng_call *call,
                       const struct ng_collection *decl);
const struct db_collection *collection_find(struct mongo *db, struct ng_str name);
/* Creates the missing indexes. */
void collections_prepare(struct mongo *db);

/* Called before a write that may be the collection's first. Creates its indexes unless they
 * exist or the server refused them: that costs nothing while the collection is empty, and a
 * server may fail to create a collection for an insert and for an index at the same time. */
void collection_prepare(struct mongo *db, const char *name);
void collections_free(struct mongo *db);
/* The declared collections, newest declaration of each; free() the list. */
struct db_collection **collections_list(struct mongo *db, size_t *ret_count);

/* ---- staleness.c: how long other gateways' batches have been unfinished ---- */

void staleness_open(struct staleness *staleness);
void staleness_close(struct staleness *staleness);
/* Whether the batch was first seen at least so long ago. The first call starts the count. */
bool staleness_exceeds(struct staleness *staleness, struct ng_str id, int64_t ms);

/* ---- queue.c, put.c, intent.c, answers.c ---- */

struct lane_node {
    struct lane_node *next;
    struct job *job;
    size_t lane;
};

struct job {
    struct job *ready_next, *all_next, *all_prev;
    struct ng_batch *batch;
    ng_done_fn *done;
    void *user;
    size_t bytes;
    int rc;
    bool taken;
    bool poisoned; /* a change it is based on has failed */
    size_t put_count;
    size_t waiting; /* lanes in which other jobs are before it */
    struct lane_node *nodes;
    size_t node_count;
    struct prepared *puts;
};

int queue_open(struct mongo *db);
void queue_close(struct mongo *db);
int queue_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user);

/* Stores the jobs: one put each, all of the same document, each based on the one before. */
void put_group(struct mongo *db, struct job **jobs, size_t count);
/* The revision of a tombstone that left its collection; 0 if there is none. */
bool tombstone_find(struct mongo *db, const struct prepared *prepared, uint64_t *ret,
                    struct fault *fault);
void batch_id(struct mongo *db, char ret[BATCH_ID_MAX]);
uint64_t stamp_next(struct mongo *db);
int batch_fault(struct job *job, const struct fault *fault);

/* Stores a job of several documents. */
void intent_commit(struct mongo *db, struct job *job);
/* Completes the intent that locks a document if it is committed, aborts it if it is too old.
 * true: read the document again at once. */
bool intent_help(struct mongo *db, const bson_t *doc, const char *collection,
                 struct fault *fault);
/* Applies the intent if it is committed, as a reader needs. true: it was; read again. */
bool intent_finish(struct mongo *db, const bson_t *doc, struct fault *fault);
/* Completes what crashed gateways left unfinished. */
void intent_sweep(struct mongo *db);

/* Claims the scope of the batch's answer. NG_OK: claimed for this batch. */
int answer_claim(struct mongo *db, struct job *job, const char *batch,
                 const struct prepared *target, uint64_t revision, struct fault *fault);
void answer_settle(struct mongo *db, struct job *job, const char *batch, bool keep);
int answer_get(void *self, struct ng_call *call, struct ng_str scope, struct ng_answer *ret);
/* The stored form of an answer. */
void answer_doc(const struct ng_answer *answer, const char *state, const char *batch,
                bson_t *ret);
void answer_only(struct mongo *db, struct job *job);

/* Whether this batch's change of the document was made, even if the document changed again
 * since. */
int batch_landed(struct mongo *db, const char *collection, struct ng_str document,
                 uint64_t revision, const char *batch, bool *ret, struct fault *fault);

/* ---- relay.c ---- */

/* Looks up the last sequence number given, if the server is reachable. */
void relay_begin(struct mongo *db);
bool last_seq_read(struct mongo *db, struct fault *fault);
int relay_open(struct mongo *db);
void relay_close(struct mongo *db);
/* Tells the relay that an outbox of this collection (NULL: of any) is not empty. */
void relay_kick(struct mongo *db, const struct db_collection *collection);
/* Waits until everything committed before has been moved, whichever gateway holds the lease. */
int relay_drain(struct mongo *db, struct ng_call *call);
int relay_settle(void *self, struct ng_call *call, uint32_t flags, int64_t wait_ms);

/* ---- versions.c, read.c, query.c, terms.c, search.c ---- */

/* The content at one revision, kept while walking the revisions of a document. */
struct state {
    uint64_t revision; /* 0: nothing loaded */
    struct bytes json, text;
};
int state_apply(struct state *state, const bson_t *version);
void state_done(struct state *state);
/* Calls each() for the kept versions of [from, to], ascending or descending, including those
 * still in the outbox of `doc` (or NULL). */
int versions_each(struct mongo *db, const char *collection, struct ng_str name,
                  const bson_t *doc, const struct ng_range *range, op_each_fn *each, void *user,
                  struct fault *fault);
int version_load(struct mongo *db, const char *collection, struct ng_str name,
                 const bson_t *doc, uint64_t revision, struct state *state,
                 struct fault *fault);
void version_row(const bson_t *version, const struct ng_key *key, struct ng_doc *ret);

/* The newest state on the server, with intents completed. NG_ENOTFOUND: never existed. */
int doc_load(struct mongo *db, const struct db_collection *collection, struct ng_str name,
             bson_t **ret, struct fault *fault);
int read_get(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
             ng_row_fn *row, void *user);
int read_history(void *self, struct ng_call *call, const struct ng_key *key,
                 const struct ng_range *range, ng_row_fn *row, void *user);
void event_row(const bson_t *from, struct ng_event *ret);
int read_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                 ng_event_fn *event, void *user);

int terms_check(struct ng_call *call, const struct db_collection *collection,
                const struct ng_query *query);
/* The time limit of a read on the server: that of the call, at most mongo.timeout. */
void add_time_limit(bson_t *opts, const struct mongo *db, struct ng_call *call);
/* The filter of a query. false: nothing can match. */
bool terms_filter(const struct db_collection *collection, const struct ng_query *query,
                  bson_t *ret);
const char *sort_path(const struct db_collection *collection, struct ng_str sort);
int query_run(void *self, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total);
/* Passes the rows of the documents to row(); *ret_stop: it wants no more. */
int report_rows(const struct db_collection *collection, bson_t *const *docs, size_t count,
                bool with_text, ng_row_fn *row, void *user, bool *ret_stop);
int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total);
const char *search_engine(void *self, const struct ng_search *search);

/* ---- upkeep ---- */

int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                 bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision),
                 void *user);
int export_run(void *self, struct ng_call *call, ng_record_fn *record, void *user);
/* Frees the memory of an import that was not ended. */
void import_drop(struct mongo *db);
int import_begin(void *self, struct ng_call *call);
int import_record(void *self, struct ng_call *call, const struct ng_record *record);
int import_end(void *self, struct ng_call *call, bool keep);
int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user);

#endif
