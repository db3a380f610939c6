/* SPDX-License-Identifier: MIT */
/*
 * backend.h - what a storage backend for documents implements.
 *
 * The core decides (write functions, conflicts, cache, idempotency); a backend keeps. Its only
 * writing operation is commit(): a batch whose conditions all hold is stored whole, or nothing
 * of it is. The contract suite in tests/contract runs against every backend; backends/README.md
 * is the guide.
 */
#ifndef NOTEGATE_BACKEND_H
#define NOTEGATE_BACKEND_H

#include "documents.h"
#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a declared field, taken from the document's JSON by the core, so that no backend
 * parses JSON. A tag with several elements comes several times. Never grows. */
struct ng_field_value {
    struct ng_str name;
    enum ng_field_use use;
    struct ng_str text; /* TAG, STRING, TEXT */
    double number;      /* NUMBER */
};

/* How a byte string came from the one of the revision before: `removed` bytes at `at` gave way
 * to `inserted`. Sizes in bytes. Never grows. */
struct ng_splice {
    uint64_t at;
    uint64_t removed;
    struct ng_str inserted;
};

/* In created_seq: the document exists, its created_seq stays what it is. */
#define NG_SEQ_KEEP UINT64_MAX

/* One document's next revision in a batch. Everything lent until done() was called. Read by its
 * size. */
struct ng_put {
    size_t size;
    struct ng_key key;
    uint64_t base_revision; /* condition: this is the newest committed one; 0 = the document has
                               never been */
    uint64_t revision; /* base_revision + 1; equal to base_revision: only the condition, nothing
                          is stored */
    bool deleted;
    bool quiet;         /* no event row */
    bool no_history;    /* earlier revisions need not be kept */
    struct ng_str json; /* whole next state */
    struct ng_str text;
    struct ng_splice json_splice; /* from the base revision; base 0 or a tombstone: from "" */
    struct ng_splice text_splice;
    const struct ng_field_value *fields; /* the collection's declared fields, as they are now */
    size_t field_count;
    int64_t time_ms;
    int64_t created_ms;
    uint64_t created_seq; /* 0: this put creates the document (anew), created_seq is the seq it
                             gets; else NG_SEQ_KEEP */
    struct ng_str agent, tool, action;
    struct ng_str event_data; /* JSON or {NULL, 0} */
    uint64_t seq;    /* out: sequence number given to this change; set before done(). Shared
                        backends may leave 0: it is numbered later (changes() has it then) */
    uint64_t ticket; /* names this put in this process; 0: nothing is built on it */
    /* 0: the base was read from the backend, or its commit has succeeded. Else the ticket of
     * the put that makes the base, which was queued before: if that one fails, this one fails
     * too (NG_ECONFLICT), even if the database meanwhile has another base of the same revision.
     * A ticket that is not on its way any more (its done() has returned) has succeeded: the
     * core queues nothing on one that it was told has failed. */
    uint64_t base_ticket;
};

/* The answer of a call that came with an idempotency key; stored in the same commit. Read by
 * its size. */
struct ng_answer {
    size_t size;
    struct ng_str scope;     /* agent, space and tool, and the caller's key: compared whole */
    struct ng_str body_hash; /* of the arguments */
    struct ng_str reply;     /* opaque bytes of the core */
    int64_t time_ms;
    int64_t expires_ms;
};

/* What one commit() stores. Read by its size. */
struct ng_batch {
    size_t size;
    struct ng_put *const *puts; /* no two with one key */
    size_t put_count; /* 0 with no answer: done() after everything queued before it is done */
    const struct ng_answer
        *answer;       /* or NULL. One with this scope that has not expired: NG_EKEYREUSED */
    char error[512];   /* out: where rc is not NG_OK, one sentence: what failed, where, the way
                          out */
    size_t failed_put; /* out: with NG_ECONFLICT, the index of the put whose condition did not
                          hold */
};

/* Called exactly once for each commit() that returned NG_OK, from any thread, when the batch is
 * durable or has failed: NG_OK, NG_ECONFLICT (a condition), NG_EFULL, NG_EUNAVAILABLE,
 * NG_EKEYREUSED, NG_EINTERNAL. Must be quick. The batch may be freed inside. */
typedef void ng_done_fn(void *user, struct ng_batch *batch, int rc);

/* One record of an export, in this order: documents' revisions (of one document, ascending),
 * events by seq, answers. Revisions that are no longer kept are simply absent; the first one
 * present is whole. Read by its size. */
struct ng_record {
    size_t size;
    enum {
        NG_RECORD_REVISION = 1,
        NG_RECORD_EVENT = 2,
        NG_RECORD_ANSWER = 3,
        NG_RECORD_SEQ = 4
    } kind;
    const struct ng_doc *doc;       /* REVISION: who, when, what; json and text always whole */
    bool newest;                    /* REVISION: it is the document's present state */
    const struct ng_event *event;   /* EVENT */
    const struct ng_answer *answer; /* ANSWER */
    uint64_t seq;                   /* SEQ: the last sequence number given */
    const struct ng_field_value *fields; /* import only, REVISION with newest: as in ng_put */
    size_t field_count;
    bool quiet, no_history; /* import only, from the collection */
};

typedef int ng_record_fn(void *user, const struct ng_record *record);

/* One finding of verify(): what is wrong and where, one sentence. */
typedef void ng_finding_fn(void *user, const char *text);

enum ng_documents_flags {
    NG_DOCUMENTS_SHARED = 1, /* other gateways may write to it: the core does not cache */
    NG_DOCUMENTS_MEMORY = 2  /* nothing survives the process */
};

/*
 * All functions may be called from many threads at once. `call` carries limits (deadline,
 * cancellation), memory and the error text: return ng_fail(call, NG_E..., "...") with one
 * sentence that names the file or server and the way out. Members up to `answer` are required.
 * Read by its size, which is in the module record.
 */
struct ng_documents {
    const char *name; /* "sqlite" */
    const char *version;
    uint32_t flags; /* enum ng_documents_flags */

    /* The backend's configuration keys, `name.` before each (see struct ng_option). */
    const struct ng_option *options;
    size_t option_count;

    /* Opens (creates, upgrades) the store. conf_text(conf, "data_dir") is where files go; the
     * directory exists and belongs to this process alone. NG_OK: close() runs exactly once,
     * later. */
    int (*open)(struct ng_call *call, const struct ng_conf *conf, void **ret_db);
    /* Ends all queued commits (their done() is called) and closes. NULL is a no-op. */
    void (*close)(void *db);
    /* A collection exists, with these fields. Idempotent, at start, before any use of it.
     * Fields that are new since last time are filled for existing documents by the core (it
     * puts them again). */
    int (*declare)(void *db, struct ng_call *call, const struct ng_collection *collection);
    /* Queues the batch, which stays the caller's and must live until done(). Batches become
     * durable in the order of these calls. Does not block. NG_EBUSY: the queue is full, done()
     * is not called. */
    int (*commit)(void *db, struct ng_batch *batch, ng_done_fn *done, void *user);
    /* One row: the newest revision (0) or the given one. No such document or revision:
     * NG_ENOTFOUND. The newest may be a tombstone (deleted = true). */
    int (*get)(void *db, struct ng_call *call, const struct ng_key *key, uint64_t revision,
               ng_row_fn *row, void *user);
    /* ret_total: rows that match without offset and limit; only if want_total. */
    int (*query)(void *db, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
                 void *user, uint64_t *ret_total);
    int (*history)(void *db, struct ng_call *call, const struct ng_key *key,
                   const struct ng_range *range, ng_row_fn *row, void *user);
    /* Events with seq > since, in order, at most limit. */
    int (*changes)(void *db, struct ng_call *call, uint64_t since, uint32_t limit,
                   ng_event_fn *event, void *user);
    /* The stored answer of this scope, if it has not expired by host->now_ms(): its texts in
     * memory of ng_alloc(call), given with ng_fill(ret, &answer). NG_ENOTFOUND: none. */
    int (*answer)(void *db, struct ng_call *call, struct ng_str scope, struct ng_answer *ret);

    /* Optional from here: NULL means "not offered". New members go last. */
    int (*search)(void *db, struct ng_call *call, const struct ng_search *search,
                  ng_row_fn *row, void *user, uint64_t *ret_total);
    /* NG_OK, or NG_E... with what is wrong. */
    int (*health)(void *db, struct ng_call *call);
    /* Numbers for /metrics: name (notegate_store_<name>) and value. A name that ends in
     * "_total" counts since the start, as Prometheus has it; all others may fall. */
    void (*stats)(void *db, void (*stat)(void *user, const char *name, double value),
                  void *user);
    /* Upkeep that can wait: drop history older than `keep_ms` down to one revision a day (0:
     * keep all), expired answers, delivered tombstones; bring the search index up to date.
     * Called now and then from a worker. pinned(): says whether a revision must stay. */
    int (*maintain)(void *db, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                    bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision),
                    void *user);
    /* One consistent snapshot, while writes go on. */
    int (*export_all)(void *db, struct ng_call *call, ng_record_fn *record, void *user);
    /* Fills an empty store. begin, records in export order, end: commit or throw away all of
     * it. */
    int (*import_begin)(void *db, struct ng_call *call);
    int (*import_record)(void *db, struct ng_call *call, const struct ng_record *record);
    int (*import_end)(void *db, struct ng_call *call, bool keep);
    /* Recomputes every revision and compares; calls finding() for each fault. NG_OK also with
     * findings. */
    int (*verify)(void *db, struct ng_call *call, ng_finding_fn *finding, void *user);
    /* The last sequence number given. */
    uint64_t (*last_seq)(void *db);
    /* What a search like this one is answered by: "text", "filter", ... A constant. NULL: every
     * search is "fts5". */
    const char *(*engine)(void *db, const struct ng_search *search);
    /* Of a shared backend that numbers changes later: waits up to wait_ms until changes() tells
     * everything that was committed before, by whatever gateway, in collections with one of
     * these flags. NG_ETIMEOUT: it does not yet. NULL: it always does. */
    int (*settle)(void *db, struct ng_call *call, uint32_t flags, int64_t wait_ms);
    /* How many rows history() would give for this range without its limit. NULL: the core
     * counts what history() gives. */
    int (*history_count)(void *db, struct ng_call *call, const struct ng_key *key,
                         const struct ng_range *range, uint64_t *ret_count);
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
