/* SPDX-License-Identifier: MIT */
/* store_types.h - types shared by the files of the store: blobs, versions, cached documents,
 * drafts. Included by store*.c only. */
#ifndef NOTEGATE_CORE_STORE_TYPES_H
#define NOTEGATE_CORE_STORE_TYPES_H

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "store.h"
#include "store_results.h"

/* Immutable bytes shared by versions. */
struct blob {
    atomic_uint refs;
    size_t len;
    char data[];
};

struct blob *blob_new(size_t len); /* one reference; the caller fills data */
struct blob *blob_of(struct ng_str text);

static inline struct blob *blob_ref(struct blob *blob)
{
    atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);
    return blob;
}

/* NULL is a no-op. */
static inline void blob_unref(struct blob *blob)
{
    if (blob != NULL && atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) == 1) {
        free(blob);
    }
}

static inline struct ng_str blob_str(const struct blob *blob)
{
    struct ng_str str = {blob->data, blob->len};
    return str;
}

/* One revision of a document in memory. Immutable: what only the commit knows (seq,
 * created_seq) is in the version's committed form, which shares everything else. */
struct version {
    atomic_uint refs;
    struct ng_doc doc; /* points into the blobs and the arena */
    struct blob *key;  /* collection, space and id, one behind the other */
    struct blob *json;
    struct blob *text;
    uint64_t ticket;        /* of the put that makes it; 0: it is committed */
    struct arena arena;     /* the parsed body, author, action */
    struct version *origin; /* of a committed form: the version it shares with; a reference */
    struct version
        *committed; /* memory for the committed form, so that a commit needs none; or NULL */
};

static inline struct version *version_ref(struct version *version)
{
    atomic_fetch_add_explicit(&version->refs, 1, memory_order_relaxed);
    return version;
}

/* For version_unref(): the last reference has gone. */
void version_free(struct version *version);

/* NULL is a no-op. */
static inline void version_unref(void *object)
{
    struct version *version = object;
    if (version != NULL &&
        atomic_fetch_sub_explicit(&version->refs, 1, memory_order_acq_rel) == 1) {
        version_free(version);
    }
}

/* A version of these parts (references are taken); parses json. NULL: *rc says why (NG_EJSON:
 * json is no object). */
struct version *version_new(struct blob *key, size_t collection_len, size_t space_len,
                            struct blob *json, struct blob *text, int *rc);
/* A version of a row that a backend gave. */
struct version *version_of_row(const struct ng_key *key, const struct ng_doc *row, int *rc);
/* "There is no such document." */
struct version *version_of_nothing(const struct ng_key *key);
/* The committed form, once: a reference for the caller. Its number and time are the put's. */
struct version *version_commit(struct version *version, const struct ng_put *put,
                               uint64_t created_seq);
/* Are these the same revision, one perhaps in its committed form? */
static inline bool version_same(const struct version *a, const struct version *b)
{
    return a == b || (a != NULL && b != NULL && (a->origin == b || b->origin == a));
}

size_t version_bytes(const struct version *version);
int version_name(struct version *version, struct ng_str author, struct ng_str action);

/* A document that is, or lately was, in use. */
struct cached_doc {
    struct blob *key;
    size_t collection_len, space_len;
    uint64_t hash;
    struct cached_doc *bucket_next;
    struct cached_doc *lru_prev, *lru_next; /* only while it has no users */
    struct lock lock;                       /* one change function at a time */
    /* The rest under the table's lock. */
    struct version *committed; /* NULL: not loaded */
    struct version *newest;    /* the committed one, or the newest queued one */
    unsigned queued;           /* changes on their way to the disk */
    unsigned users;            /* transactions that hold a pointer to this document */
    /* Shared stores: */
    struct store_txn *waiters_first, *waiters_last; /* wait for their turn */
    struct store_txn
        *owner;       /* one that was let go: until it has queued or, after a loss, ended */
    int64_t seen_ns;  /* when `committed` was the newest one in the database */
    int64_t turn_ns;  /* since when this gateway changes it, without a gap; 0: never */
    int64_t ended_ns; /* when a change of it ended last */
    int64_t contended_until_ns; /* other gateways change it too */
    int64_t gap_until_ns;       /* no change begins, for other gateways' sake */
    unsigned losses;            /* against other gateways, since a commit came through */
    bool read_now;              /* `committed` was read by the holder of the lock */
    bool stale;                 /* read it again before the next change is made of it */
    bool doubted;  /* by the holder of the lock: it reads what the backend confirms */
    bool yielding; /* no further change is queued */
    int poisoned;  /* a queued change failed: those built on it will too, until queued is 0 */
    bool in_lru;
};

static inline struct ng_key cached_doc_key(const struct cached_doc *cached)
{
    const char *at = cached->key->data;
    size_t head = cached->collection_len + cached->space_len;
    struct ng_key key = {{at, cached->collection_len},
                         {at + cached->collection_len, cached->space_len},
                         {at + head, cached->key->len - head}};
    return key;
}

#define STORE_BUCKETS 16384

struct store_table {
    struct lock lock;
    struct cached_doc *buckets[STORE_BUCKETS];
    struct cached_doc *lru_first, *lru_last; /* least lately used first */
    size_t bytes;                            /* of the committed versions held */
    size_t count;
};

void table_init(struct store_table *table);
void table_done(struct store_table *table);
/* The cached document, made where missing, with one more user. NULL: out of memory. */
struct cached_doc *table_use(struct store_table *table, const struct ng_key *key);
void table_leave(struct store_table *table, struct cached_doc *cached);
/* The committed version with a reference, or NULL if it is not in memory. */
struct version *table_committed(struct store_table *table, const struct ng_key *key);
/* With the table's lock held: `version` (a reference passes over) is the committed one now. */
void table_set_committed(struct store_table *table, struct cached_doc *cached,
                         struct version *version);

struct ng_draft {
    struct call *call;
    const struct version *base; /* NULL: a draft without document (files) */
    struct ng_str base_json, base_text;
    struct blob *json; /* NULL: unchanged */
    struct blob *text; /* NULL: unchanged */
    bool spliced;      /* the text is the base with this one splice */
    struct ng_splice splice;
    bool deleted;
    struct ng_str event_data;
    int rc; /* a draft call that returns nothing has failed */
};

static inline void draft_done(struct ng_draft *draft)
{
    blob_unref(draft->json);
    blob_unref(draft->text);
    draft->json = NULL;
    draft->text = NULL;
}

static inline bool draft_touched(const struct ng_draft *draft)
{
    return draft->json != NULL || draft->text != NULL || draft->deleted;
}

#define STORE_WATCHERS_MAX 16
/* Threads that run change functions again (shared stores only). */
#define STORE_RETRY_THREADS 4

struct store_retry {
    struct lock lock;
    pthread_cond_t wake;     /* something is due, or stopping */
    pthread_cond_t released; /* a call's memory is free again */
    struct store_txn *first; /* by the time they are due */
    unsigned running;
    bool stopping, ending;
    pthread_t threads[STORE_RETRY_THREADS];
    size_t thread_count;
};

/* How far the clock is believed: see store_now(). */
struct store_clock {
    struct lock lock;
    int64_t base_ms, base_up_ms; /* a time that was right, and the uptime then */
    int64_t ahead_ms;            /* so far the clock is beyond that; 0: it is not */
    int64_t ahead_up_ms;         /* since when */
};

struct store {
    bool shared; /* first, for store_is_shared(). NG_DOCUMENTS_SHARED: reads are never answered
                    from memory */
    const struct ng_documents *backend;
    void *db;
    struct ng_str gateway; /* its id */
    struct store_table table;
    struct store_results results; /* not of a shared store */
    struct lock order; /* recursive; shared: queueing a change and the end of one exclude
                              each other, so that none is queued on one that has failed */
    struct store_retry retry;
    atomic_uint_fast64_t tickets;     /* the last one given */
    atomic_uint_fast64_t round_trips; /* requests to the backend */
    atomic_uint_fast64_t reruns;      /* commits that another gateway was faster than */
    struct rwlock collections_lock;
    struct {
        struct ng_collection desc; /* a copy; fields are the plugin's */
        char name[NG_COLLECTION_MAX + 1];
        bool undeclared; /* shared: the database was away */
    } collections[STORE_COLLECTIONS_MAX];
    size_t collection_count;
    atomic_bool undeclared; /* at least one of them */
    atomic_size_t held;     /* 0, or 1 + the index of the first collection that is held */
    struct lock watch_lock;
    struct store_watcher {
        store_watch_fn *watch;
        void *user;
        const char *collection; /* or NULL */
    } watchers[STORE_WATCHERS_MAX];
    size_t watcher_count;
    struct store_pinner pinners[STORE_PINNERS_MAX];
    size_t pinner_count;
    struct store_clock clock;
    _Atomic int64_t change_ms;  /* time of the newest change */
    _Atomic int64_t keep_ms;    /* history.keep */
    _Atomic int64_t thinned_ms; /* when history was thinned last; 0: is due */
    atomic_uint_fast64_t last_seq;
    atomic_uint_fast64_t hits, misses; /* reads answered from memory, and not */
    atomic_int_fast64_t in_flight;     /* batches not done yet */
    struct lock idle_lock;
    pthread_cond_t idle;
};

/* Shared: a document read so lately is what a change is made of without another look. */
#define STORE_YOUNG_MS 5000

/* Reads the newest committed state from the backend. */
int store_load_now(struct store *store, struct call *call, struct cached_doc *cached,
                   const struct ng_key *key);

/* Loads the newest committed state; the caller holds cached->lock, or may race with another
 * load. */
static inline int store_load(struct store *store, struct call *call, struct cached_doc *cached,
                             const struct ng_key *key)
{
    lock_take(&store->table.lock);
    bool loaded = cached->committed != NULL;
    if (loaded && store->shared && cached->queued == 0) {
        bool young = clock_monotonic_ns() - cached->seen_ns < (int64_t)STORE_YOUNG_MS * 1000000;
        loaded = !cached->stale && (cached->read_now || young);
    }
    lock_release(&store->table.lock);
    if (loaded) {
        return NG_OK;
    }
    return store_load_now(store, call, cached, key);
}

/* A document with a fresh random id: assumed not to exist. The caller holds cached->lock. */
int store_assume_new(struct store *store, struct call *call, struct cached_doc *cached);
int store_check_key(struct store *store, struct call *call, const struct ng_key *key);
/* NG_EWOULDBLOCK: a read on an event loop, and memory does not answer it. */
int store_needs_worker(struct store *store, const struct call *call);
/* Refuses a change of a collection that store_release_referenced() has not released. */
int store_check_held(struct store *store, struct call *call, struct ng_str name);
/* This event was seen. */
static inline void store_saw(struct store *store, uint64_t seq)
{
    uint64_t known = atomic_load(&store->last_seq);
    while (seq > known && !atomic_compare_exchange_weak(&store->last_seq, &known, seq)) {
    }
}

/* At the open: reads the newest time in the store. */
void store_clock_open(struct store *store, struct call *call);

#endif
