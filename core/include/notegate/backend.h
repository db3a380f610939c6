/* SPDX-License-Identifier: MIT */
/*
 * backend.h - interface of a storage backend for documents.
 *
 * The core runs write functions and handles conflicts, the cache and idempotency; a backend
 * stores. Its only write operation is commit(): it stores a batch as a whole if all conditions
 * hold, else nothing. The contract suite in tests/contract runs against every backend; the
 * guide is backends/README.md.
 */
#ifndef NOTEGATE_BACKEND_H
#define NOTEGATE_BACKEND_H

#include "documents.h"
#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a declared field. The core extracts it, so that backends need not parse JSON. A
 * tag with several elements comes several times. Never grows. */
struct ng_field_value {
    struct ng_str name;
    enum ng_field_use use;
    struct ng_str text; /* TAG, STRING, TEXT */
    double number;      /* NUMBER */
};

/* In created_seq: the document exists and keeps its created_seq. */
#define NG_SEQ_KEEP UINT64_MAX

/* The next revision of one document in a batch. Borrowed until done() was called. Read by its
 * size. */
struct ng_put {
    size_t size;
    struct ng_key key;
    /* Condition: the newest committed revision is this one; 0: the document has never existed.
     */
    uint64_t base_revision;
    /* base_revision + 1. Equal to base_revision: checks the condition and stores nothing. */
    uint64_t revision;
    bool deleted;
    bool quiet;         /* no event row */
    bool no_history;    /* earlier revisions may be dropped */
    struct ng_str json; /* the whole next state */
    struct ng_str text;
    struct ng_splice json_splice; /* from the base revision; base 0 or a tombstone: from "" */
    struct ng_splice text_splice;
    const struct ng_field_value *fields; /* present values of the declared fields */
    size_t field_count;
    /* in: not before that of the base revision. A backend that numbers changes as they come
     * puts it forward to that of the change before, before done(). */
    int64_t time_ms;
    int64_t created_ms;
    /* 0: this put creates the document, perhaps once more; its seq becomes the created_seq.
     * Else NG_SEQ_KEEP. */
    uint64_t created_seq;
    struct ng_str agent, tool, action;
    struct ng_str event_data; /* JSON or {NULL, 0} */
    /* out: sequence number of this change, set before done(). A shared backend may leave 0 and
     * assign the number later; changes() returns it then. */
    uint64_t seq;
    uint64_t ticket; /* id of this put in this process; 0: no other put depends on it */
    /* 0: the base was read from the backend, or its commit has succeeded. Else the ticket of
     * the earlier queued put that creates the base. If that put fails, this one must fail, too
     * (NG_ECONFLICT), even if the database has another base with the same revision by then. A
     * ticket that is no longer queued (its done() has returned) has succeeded: the core does
     * not queue puts on a failed one. */
    uint64_t base_ticket;
    struct ng_origin origin;
    struct ng_str gateway; /* id of the gateway that makes the change; absent in an import */
};

/* The answer of a call with an idempotency key, stored in the same commit. Read by its size. */
struct ng_answer {
    size_t size;
    struct ng_str scope;     /* agent, space, tool and key of the caller; compared as a whole */
    struct ng_str body_hash; /* hash of the arguments */
    struct ng_str reply;     /* opaque bytes of the core */
    int64_t time_ms;
    int64_t expires_ms;
};

/* The input of one commit(). Read by its size. */
struct ng_batch {
    size_t size;
    struct ng_put *const *puts; /* with distinct keys */
    size_t put_count; /* 0 without answer: done() comes after all earlier batches are done */
    /* NULL: none. NG_EKEYREUSED if an unexpired answer with this scope exists. */
    const struct ng_answer *answer;
    char error[512]; /* out: after a failure, one sentence with the cause, the place, a way out
                      */
    size_t failed_put; /* out: with NG_ECONFLICT, index of the put whose condition failed */
    /* End of the call, by CLOCK_MONOTONIC in nanoseconds: what fails for the moment is tried
     * again until then. 0: the backend's own time limit. */
    int64_t deadline_ns;
};

/* Called exactly once for each commit() that returned NG_OK, from any thread, when the batch is
 * durable or has failed: NG_OK, NG_ECONFLICT (a condition), NG_EFULL, NG_EUNAVAILABLE,
 * NG_EKEYREUSED, NG_EINTERNAL. Must be quick. It may free the batch. */
typedef void ng_done_fn(void *user, struct ng_batch *batch, int rc);

/* One record of an export, in this order: revisions of documents (ascending for each document),
 * events by seq, answers. Dropped revisions are absent; every revision is complete. Read by its
 * size. */
struct ng_record {
    size_t size;
    enum {
        NG_RECORD_REVISION = 1,
        NG_RECORD_EVENT = 2,
        NG_RECORD_ANSWER = 3,
        NG_RECORD_SEQ = 4
    } kind;
    const struct ng_doc *doc;            /* REVISION: with complete json and text */
    bool newest;                         /* REVISION: the present state of the document */
    const struct ng_event *event;        /* EVENT */
    const struct ng_answer *answer;      /* ANSWER */
    uint64_t seq;                        /* SEQ: the last assigned sequence number */
    const struct ng_field_value *fields; /* import only, REVISION with newest: as in ng_put */
    size_t field_count;
    bool quiet, no_history; /* import only, from the collection */
};

typedef int ng_record_fn(void *user, const struct ng_record *record);

/* The newest kept revision before a point, and the oldest kept one after it, with number and
 * time; revision 0: none. Read by its size. */
struct ng_kept {
    size_t size;
    uint64_t before, before_seq;
    int64_t before_ms;
    uint64_t after, after_seq;
    int64_t after_ms;
};

/* Reports one finding of verify(): one sentence with the fault and its place. */
typedef void ng_finding_fn(void *user, const char *text);

enum ng_documents_flags {
    NG_DOCUMENTS_SHARED = 1,      /* other gateways may write to it: the core does not cache */
    NG_DOCUMENTS_MEMORY = 2,      /* the data does not survive the process */
    NG_DOCUMENTS_ONLY_DELETED = 4 /* knows ng_query.only_deleted: else such queries fail */
};

/* Called by a shared backend, from a thread of its own, when another gateway may have committed
 * something. live: such calls come as long as it is true; false: poll. notice: a sentence for
 * the log, or NULL. Must be quick. */
typedef void ng_watch_fn(void *user, bool live, const char *notice);

/*
 * All functions may be called from many threads at once. `call` has limits (deadline,
 * cancellation), memory and the error message: return ng_fail(call, NG_E..., "...") with one
 * sentence that names the file or server and a way out. Members up to `answer` are required.
 * Read by its size, which is in the module record.
 */
struct ng_documents {
    const char *name; /* "sqlite" */
    const char *version;
    uint32_t flags; /* enum ng_documents_flags */

    /* Configuration keys of the backend, with the prefix `name.` (see struct ng_option). */
    const struct ng_option *options;
    size_t option_count;

    /* Opens, creates or upgrades the store. Files belong into conf_text(conf, "data_dir"); the
     * directory exists and only this process uses it. NG_OK: close() runs exactly once, later.
     */
    int (*open)(struct ng_call *call, const struct ng_conf *conf, void **ret_db);
    /* Completes all queued commits (calls their done()) and closes. NULL is a no-op. */
    void (*close)(void *db);
    /* Declares a collection and its fields. Idempotent; called at start, before any use of it.
     * For existing documents the core fills new fields: it puts the documents again. A later
     * declaration takes the place of a former one. NG_DOCUMENTS_SHARED: one without fields and
     * flags, which the core makes of the collections that only other gateways use, changes
     * nothing in a former one. */
    int (*declare)(void *db, struct ng_call *call, const struct ng_collection *collection);
    /* Queues the batch; the caller owns it and keeps it until done(). Batches become durable in
     * the order of these calls. Does not block. NG_EBUSY: the queue is full; done() is not
     * called. */
    int (*commit)(void *db, struct ng_batch *batch, ng_done_fn *done, void *user);
    /* One row: the newest revision (0), which may be a tombstone (deleted), or the given one.
     * NG_ENOTFOUND: no such document or revision. */
    int (*get)(void *db, struct ng_call *call, const struct ng_key *key, uint64_t revision,
               ng_row_fn *row, void *user);
    /* ret_total: number of matches without offset and limit; only if want_total. */
    int (*query)(void *db, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
                 void *user, uint64_t *ret_total);
    int (*history)(void *db, struct ng_call *call, const struct ng_key *key,
                   const struct ng_range *range, ng_row_fn *row, void *user);
    /* Events with seq > since, in order, at most limit. None is left out that has a number up
     * to last_seq(). */
    int (*changes)(void *db, struct ng_call *call, uint64_t since, uint32_t limit,
                   ng_event_fn *event, void *user);
    /* The stored answer of this scope, unless it has expired by host->now_ms(). Texts are in
     * memory of ng_alloc(call); return it with ng_fill(ret, &answer). NG_ENOTFOUND: none. */
    int (*answer)(void *db, struct ng_call *call, struct ng_str scope, struct ng_answer *ret);

    /* Optional from here: NULL means "not offered". New members go last. */
    int (*search)(void *db, struct ng_call *call, const struct ng_search *search,
                  ng_row_fn *row, void *user, uint64_t *ret_total);
    /* NG_OK, or an error with a message. */
    int (*health)(void *db, struct ng_call *call);
    /* Numbers for /metrics: name (notegate_store_<name>) and value. A name that ends in
     * "_total" is a Prometheus counter, any other a gauge. */
    void (*stats)(void *db, void (*stat)(void *user, const char *name, double value),
                  void *user);
    /* Background upkeep: thins history older than `keep_ms` to one revision a day (0: keeps
     * all), removes expired answers and delivered tombstones, updates the search index. Called
     * from time to time on a worker. pinned(): true if a revision must stay. */
    int (*maintain)(void *db, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                    bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision),
                    void *user);
    /* One consistent snapshot, during concurrent writes. */
    int (*export_all)(void *db, struct ng_call *call, ng_record_fn *record, void *user);
    /* Fills an empty store: begin, records in export order, end. keep: commit all of it, else
     * discard it. */
    int (*import_begin)(void *db, struct ng_call *call);
    int (*import_record)(void *db, struct ng_call *call, const struct ng_record *record);
    int (*import_end)(void *db, struct ng_call *call, bool keep);
    /* Recomputes every revision, compares, and calls finding() for each fault. NG_OK also with
     * findings. */
    int (*verify)(void *db, struct ng_call *call, ng_finding_fn *finding, void *user);
    /* The last assigned sequence number. */
    uint64_t (*last_seq)(void *db);
    /* The engine for such a search: "text", "filter", ... A constant. NULL: every search is
     * "fts5". */
    const char *(*engine)(void *db, const struct ng_search *search);
    /* For a shared backend that assigns sequence numbers later: waits up to wait_ms until
     * changes() returns all changes committed before, of any gateway, in collections with one
     * of these flags. NG_ETIMEOUT: not yet. NULL: changes() is always complete. */
    int (*settle)(void *db, struct ng_call *call, uint32_t flags, int64_t wait_ms);
    /* Number of rows that history() has for this range without its limit. NULL: the core counts
     * the rows of history(). */
    int (*history_count)(void *db, struct ng_call *call, const struct ng_key *key,
                         const struct ng_range *range, uint64_t *ret_count);
    /* Sets the function that learns of commits by other gateways, once after open(). NULL ends
     * that, before close(): it returns when no call of the former one is under way. NULL here:
     * the core polls changes(). */
    void (*watch)(void *db, ng_watch_fn *changed, void *user);
    /* Advice to the operator, for `notegate check`: missing rights and indexes, sharding.
     * Calls advice() with one sentence or command each. */
    int (*advise)(void *db, struct ng_call *call, ng_finding_fn *advice, void *user);
    /* As get() of revision 0, and never older than what anybody was told to be stored before
     * this call, whatever has happened to the servers since. Asked before a call is refused
     * because of the state of a document. NULL: get() is so. */
    int (*confirm)(void *db, struct ng_call *call, const struct ng_key *key, ng_row_fn *row,
                   void *user);
    /* All or none: documents can be purged. All of them may be repeated, also after a failure
     * halfway. */

    /* Removes all revisions before this one, which is a deletion, and the data of their events.
     * NG_OK also if there are none. */
    int (*purge)(void *db, struct ng_call *call, const struct ng_key *key, uint64_t revision);
    /* The events with numbers above `since` up to `until`, in order, that are of a revision
     * before this one, or of another document of the space and have data that contain `about`.
     * Not those that changes() never gives. Their own data may be absent. */
    int (*purge_events)(void *db, struct ng_call *call, const struct ng_key *key,
                        uint64_t revision, struct ng_str about, uint64_t since, uint64_t until,
                        ng_event_fn *event, void *user);
    /* Removes the data of these events. */
    int (*purge_data)(void *db, struct ng_call *call, const uint64_t *seqs, size_t count);
    /* Removes the bytes of what was purged from the search index, the log and free space of the
     * backend's own files. Takes as long as to write them anew. */
    int (*purge_sweep)(void *db, struct ng_call *call);
    /* Rows of all runs with a change above `since` and up to `until`, of these changes only, in
     * no order, quiet collections too. NULL: the core reads all changes. */
    int (*runs)(void *db, struct ng_call *call, uint64_t since, uint64_t until, ng_run_fn *run,
                void *user);
    /* The kept revisions around a point: before it those with numbers up to `seq` (UINT64_MAX:
     * any) and times up to `time_ms` (INT64_MAX: any). Return them with ng_fill(ret, &kept).
     * NG_ENOTFOUND: no such document. NULL: the core searches history(). */
    int (*revision_at)(void *db, struct ng_call *call, const struct ng_key *key, uint64_t seq,
                       int64_t time_ms, struct ng_kept *ret);
    /* The events that `trail` selects with numbers up to its `until`, newest first; it may pass
     * others of these numbers too. It looks at `looks` rows of the database, or does about as
     * much work. *ret_next: `until` of a call that goes on, less than
     * this one's; 0: there are no more. After a callback that stops it is not read. NULL: the
     * core reads changes(). */
    int (*trail)(void *db, struct ng_call *call, const struct ng_trail *trail, uint64_t looks,
                 ng_event_fn *event, void *user, uint64_t *ret_next);
};

#define NG_EXPORT_DOCUMENTS(backend)                                                           \
    NG_EXPORT_NOTE(NG_KIND_DOCUMENTS);                                                         \
    NG_EXTERN __attribute__((visibility("default"))) const struct ng_module ng_module;         \
    const struct ng_module ng_module = {                                                       \
        NG_ABI,        NG_KIND_DOCUMENTS,          sizeof(backend),                            \
        NG_NEEDS_HOST, {sizeof(struct ng_option)}, &(backend),                                 \
    }

#ifdef __cplusplus
}
#endif

#endif
