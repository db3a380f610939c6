/* SPDX-License-Identifier: MIT */
/* store.c - opening the documents, reading them, watching their changes. Writing is in
 * store_change.c. */
#include "store.h"

#include <stddef.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/module/abi_size.h"
#include "store_txn.h"

_Static_assert(offsetof(struct store, shared) == 0, "store_is_shared() reads the first member");

int store_needs_worker(struct store *store, const struct call *call)
{
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    (void)atomic_fetch_add_explicit(&store->round_trips, 1, memory_order_relaxed);
    return NG_OK;
}

int store_open(struct call *call, const struct ng_documents *backend,
               const struct ng_conf *conf, struct store **ret)
{
    struct store *store = alloc_zeroed(1, sizeof(*store));
    if (store == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory while the store was opened");
    }
    store->backend = backend;
    store->shared = (backend->flags & NG_DOCUMENTS_SHARED) != 0;
    int rc = backend->open(&call->pub, conf, &store->db);
    if (rc != NG_OK) {
        free(store);
        return rc;
    }
    table_init(&store->table);
    results_init(&store->results);
    rwlock_init(&store->collections_lock, LOCK_STORE_COLLECTIONS);
    lock_init(&store->watch_lock, LOCK_STORE_WATCH);
    lock_init(&store->idle_lock, LOCK_STORE_IDLE);
    lock_init(&store->clock.lock, LOCK_STORE_CLOCK);
    lock_cond_init(&store->idle);
    lock_init(&store->order, LOCK_STORE_ORDER); /* done() may come from inside of commit() */
    atomic_init(&store->keep_ms, config_view_int(conf, "history.keep"));
    atomic_init(&store->last_seq, backend->last_seq != NULL ? backend->last_seq(store->db) : 0);
    store_clock_open(store, call);
    *ret = store;
    rc = store_retry_start(store);
    if (rc == NG_OK) {
        return NG_OK;
    }
    return call_fail(call, rc, "no thread could be started for the store");
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    lock_take(&store->idle_lock);
    while (atomic_load(&store->in_flight) > 0) {
        lock_wait(&store->idle, &store->idle_lock);
    }
    lock_release(&store->idle_lock);
    store_retry_done(store);
    store->backend->close(store->db);
    lock_done(&store->order);
    table_done(&store->table);
    results_done(&store->results);
    rwlock_done(&store->collections_lock);
    lock_done(&store->watch_lock);
    lock_done(&store->idle_lock);
    lock_done(&store->clock.lock);
    pthread_cond_destroy(&store->idle);
    free(store);
}

void store_set_gateway(struct store *store, struct ng_str id)
{
    store->gateway = id;
}

void store_stop(struct store *store)
{
    if (store != NULL) {
        store_retry_stop(store);
    }
}

const struct ng_documents *store_backend(struct store *store, void **ret_db)
{
    *ret_db = store->db;
    return store->backend;
}

/* ---- reading ---- */

struct row_copy {
    const struct ng_key *key;
    struct version *version;
    int rc;
};

static int row_copy_take(void *user, const struct ng_doc *row)
{
    struct row_copy *copy = user;
    copy->version = version_of_row(copy->key, row, &copy->rc);
    return 1;
}

/* The newest revision, as the backend's confirm() gives it. */
#define REVISION_CONFIRMED UINT64_MAX

static int store_ask(struct store *store, struct call *call, const struct ng_key *key,
                     uint64_t revision, struct abi_given *given)
{
    const struct ng_documents *backend = store->backend;
    if (revision == REVISION_CONFIRMED) {
        return backend->confirm(store->db, &call->pub, key, abi_give_row, given);
    }
    return backend->get(store->db, &call->pub, key, revision, abi_give_row, given);
}

/* One revision from the backend as a version with a reference. */
static int store_fetch(struct store *store, struct call *call, const struct ng_key *key,
                       uint64_t revision, struct version **ret)
{
    struct row_copy copy = {key, NULL, NG_OK};
    struct result before = call->staged;
    struct abi_given given = {
        .backend = store->backend->name, .to.row = row_copy_take, .user = &copy};
    bool newest = revision == 0 || revision == REVISION_CONFIRMED;
    int rc = store_ask(store, call, key, revision, &given);
    rc = abi_given_end(call, &given, rc);
    if (rc == NG_ENOTFOUND && newest) {
        call->staged = before; /* a missing document is no failure */
        copy.version = version_of_nothing(key);
        if (copy.version != NULL) {
            rc = NG_OK;
        } else {
            rc = NG_EINTERNAL;
        }
    } else if (rc == NG_OK && copy.version == NULL) {
        if (copy.rc != NG_OK) {
            rc = copy.rc;
        } else {
            rc = NG_EINTERNAL;
        }
    }
    if (rc == NG_OK) {
        *ret = copy.version;
        return NG_OK;
    }
    version_unref(copy.version); /* a row came, and then a failure */
    if (call->staged.message.data == NULL) {
        call_fail(call, rc,
                  rc == NG_ENOTFOUND ? "that revision is not kept"
                                     : "the document could not be read");
    }
    return rc;
}

int store_load_now(struct store *store, struct call *call, struct cached_doc *cached,
                   const struct ng_key *key)
{
    struct store_table *table = &store->table;
    int rc = store_needs_worker(store, call);
    if (rc != NG_OK) {
        return rc;
    }
    struct version *version = NULL;
    lock_take(&table->lock);
    bool confirm = cached->doubted;
    lock_release(&table->lock);
    rc = store_fetch(store, call, key, confirm ? REVISION_CONFIRMED : 0, &version);
    if (rc != NG_OK) {
        return rc;
    }
    lock_take(&table->lock);
    bool replace = cached->committed == NULL || (store->shared && cached->queued == 0);
    if (replace) {
        cached->seen_ns = clock_monotonic_ns();
        cached->read_now = true;
        cached->stale = false;
        table_set_committed(table, cached, version);
        version_unref(cached->newest);
        cached->newest = version_ref(version);
        version = NULL;
    }
    lock_release(&table->lock);
    version_unref(version);
    return NG_OK;
}

int store_assume_new(struct store *store, struct call *call, struct cached_doc *cached)
{
    struct store_table *table = &store->table;
    struct ng_key key = cached_doc_key(cached);
    struct version *nothing = version_of_nothing(&key);
    if (nothing == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    lock_take(&table->lock);
    if (cached->committed == NULL) {
        cached->seen_ns = clock_monotonic_ns();
        table_set_committed(table, cached, nothing);
        version_unref(cached->newest);
        cached->newest = version_ref(nothing);
        nothing = NULL;
    }
    lock_release(&table->lock);
    version_unref(nothing);
    return NG_OK;
}

/* Shared: reads the database. Otherwise loads with its lock, so that no change is under
 * way that the row might lag behind. */
static int store_read_newest(struct store *store, struct call *call, const struct ng_key *key,
                             struct version **ret)
{
    if (store->shared) {
        return store_fetch(store, call, key, 0, ret);
    }
    struct cached_doc *cached = table_use(&store->table, key);
    if (cached == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    lock_take(&cached->lock);
    int rc = store_load(store, call, cached, key);
    lock_release(&cached->lock);
    if (rc == NG_OK) {
        *ret = table_committed(&store->table, key);
    }
    table_leave(&store->table, cached);
    return rc;
}

int store_get(struct store *store, struct call *call, const struct ng_key *key,
              uint64_t revision, const struct ng_doc **ret_doc)
{
    int rc = store_check_key(store, call, key);
    if (rc != NG_OK) {
        return rc;
    }
    struct version *version = NULL;
    if (!store->shared) {
        version = table_committed(&store->table, key);
    }
    if (version != NULL && revision != 0 && version->doc.revision != revision) {
        version_unref(version);
        version = NULL;
    }
    (void)atomic_fetch_add_explicit(version != NULL ? &store->hits : &store->misses, 1,
                                    memory_order_relaxed);
    if (version == NULL) {
        rc = store_needs_worker(store, call);
        if (rc == NG_OK) {
            if (revision == 0) {
                rc = store_read_newest(store, call, key, &version);
            } else {
                rc = store_fetch(store, call, key, revision, &version);
            }
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    rc = call_pin(call, version_unref, version);
    if (rc != NG_OK) {
        return call_fail(call, rc, "out of memory");
    }
    *ret_doc = &version->doc;
    return NG_OK;
}

bool store_lends(const struct call *call, struct ng_str text)
{
    for (const struct pin *pin = call->pins; pin != NULL; pin = pin->next) {
        if (pin->release == version_unref) {
            const struct version *version = pin->object;
            if (version->doc.text.data == text.data && version->doc.text.len == text.len) {
                return true;
            }
        }
    }
    return false;
}

static int store_check_query(struct store *store, struct call *call,
                             const struct ng_query *query)
{
    if (store_collection(store, query->collection) == NULL) {
        return call_fail(call, NG_EINTERNAL, "no plugin has declared the collection \"%.*s\"",
                         (int)query->collection.len, query->collection.data);
    }
    if (query->only_deleted && (store->backend->flags & NG_DOCUMENTS_ONLY_DELETED) == 0) {
        return call_fail(call, NG_EUNAVAILABLE, "the backend %s cannot list deleted documents",
                         store->backend->name);
    }
    if (query->term_count > NG_TERMS_MAX) {
        return call_fail(call, NG_EINVAL, "a query has %zu conditions, it may have %d",
                         query->term_count, NG_TERMS_MAX);
    }
    return NG_OK;
}

/* A query or a search, and where its answer goes. */
struct store_listing {
    const struct ng_query *query;
    const struct ng_search *search; /* NULL: a query */
    ng_row_fn *row;
    void *user;
    uint64_t *ret_total;
};

static void listing_end(const struct store_listing *listing, uint64_t total, bool at_least)
{
    if (listing->query->want_total && listing->ret_total != NULL) {
        *listing->ret_total = total;
    }
    if (listing->search != NULL && listing->search->at_least != NULL) {
        *listing->search->at_least = at_least;
    }
}

/* From a kept result. The rows live until the call ends. */
static int listing_kept(struct call *call, const struct store_listing *listing,
                        struct store_result *result)
{
    if (call_pin(call, result_unref, result) != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    results_give(result, listing->row, listing->user);
    listing_end(listing, result->total, result->at_least);
    return NG_OK;
}

/* From the backend. */
static int listing_read(struct store *store, struct call *call,
                        const struct store_listing *listing, struct store_ask *ask)
{
    struct abi_given given = {.backend = store->backend->name};
    uint64_t total = 0;
    bool at_least = false;
    int rc;
    given.to.row = listing->row;
    given.user = listing->user;
    if (ask->collect != NULL) {
        given.to.row = results_row;
        given.user = ask;
    }
    if (listing->search == NULL) {
        rc = store->backend->query(store->db, &call->pub, listing->query, abi_give_row, &given,
                                   &total);
    } else {
        struct ng_search search = *listing->search;
        search.at_least = &at_least;
        rc = store->backend->search(store->db, &call->pub, &search, abi_give_row, &given,
                                    &total);
    }
    rc = abi_given_end(call, &given, rc);
    results_keep(&store->results, ask, total, at_least, rc == NG_OK);
    if (rc == NG_OK) {
        listing_end(listing, total, at_least);
    }
    return rc;
}

static int store_list(struct store *store, struct call *call,
                      const struct store_listing *listing)
{
    struct store_ask ask;
    struct store_result *result = NULL;
    ask.collect = NULL;
    ask.row = listing->row;
    ask.user = listing->user;
    if (!store->shared && results_find(&store->results, listing->query, listing->search,
                                       call->may_block, &ask, &result)) {
        (void)atomic_fetch_add_explicit(&store->hits, 1, memory_order_relaxed);
        return listing_kept(call, listing, result);
    }
    int rc = store_needs_worker(store, call);
    if (rc != NG_OK) {
        return rc;
    }
    (void)atomic_fetch_add_explicit(&store->misses, 1, memory_order_relaxed);
    return listing_read(store, call, listing, &ask);
}

int store_query(struct store *store, struct call *call, const struct ng_query *query,
                ng_row_fn *row, void *user, uint64_t *ret_total)
{
    struct store_listing listing = {.query = query, .row = row, .user = user};
    listing.ret_total = ret_total;
    int rc = store_check_query(store, call, query);
    if (rc != NG_OK) {
        return rc;
    }
    return store_list(store, call, &listing);
}

int store_search(struct store *store, struct call *call, const struct ng_search *search,
                 ng_row_fn *row, void *user, uint64_t *ret_total, const char **ret_engine)
{
    struct store_listing listing = {
        .query = search->query, .search = search, .row = row, .user = user};
    listing.ret_total = ret_total;
    int rc = store_check_query(store, call, search->query);
    if (rc != NG_OK) {
        return rc;
    }
    if (store->backend->search == NULL) {
        return call_fail(call, NG_EUNAVAILABLE, "the backend %s has no full-text search",
                         store->backend->name);
    }
    if (ret_engine != NULL) {
        if (store->backend->engine != NULL) {
            *ret_engine = store->backend->engine(store->db, search);
        } else {
            *ret_engine = "fts5";
        }
    }
    return store_list(store, call, &listing);
}

int store_history(struct store *store, struct call *call, const struct ng_key *key,
                  const struct ng_range *range, ng_row_fn *row, void *user)
{
    int rc = store_check_key(store, call, key);
    if (rc == NG_OK) {
        rc = store_needs_worker(store, call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct abi_given given = {.backend = store->backend->name, .to.row = row, .user = user};
    rc = store->backend->history(store->db, &call->pub, key, range, abi_give_row, &given);
    return abi_given_end(call, &given, rc);
}

static int store_count_row(void *user, const struct ng_doc *row)
{
    (void)row;
    ++*(uint64_t *)user;
    return 0;
}

int store_history_count(struct store *store, struct call *call, const struct ng_key *key,
                        const struct ng_range *range, uint64_t *ret_count)
{
    struct ng_range all = {
        .size = sizeof(all), .from = range->from, .to = range->to, .limit = UINT32_MAX};
    int rc = store_check_key(store, call, key);
    if (rc == NG_OK) {
        rc = store_needs_worker(store, call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t count = 0;
    if (store->backend->history_count != NULL) {
        rc = store->backend->history_count(store->db, &call->pub, key, &all, &count);
    } else {
        rc = store->backend->history(store->db, &call->pub, key, &all, store_count_row, &count);
    }
    if (rc == NG_OK) {
        *ret_count = count;
    }
    return rc;
}

int store_changes(struct store *store, struct call *call, uint64_t since, uint32_t limit,
                  ng_event_fn *event, void *user)
{
    int rc = store_needs_worker(store, call);
    if (rc != NG_OK) {
        return rc;
    }
    struct abi_given given = {.backend = store->backend->name, .to.event = event, .user = user};
    rc = store->backend->changes(store->db, &call->pub, since, limit, abi_give_event, &given);
    return abi_given_end(call, &given, rc);
}

int store_answer(struct store *store, struct call *call, struct ng_str scope,
                 struct ng_answer *ret)
{
    int rc = store_needs_worker(store, call);
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret); /* how far the backend may fill it */
    if (rc != NG_OK) {
        return rc;
    }
    return store->backend->answer(store->db, &call->pub, scope, ret);
}

/* ---- watching and upkeep ---- */

int store_watch(struct store *store, const char *collection, store_watch_fn *watch, void *user)
{
    int rc = NG_ETOOLARGE;
    lock_take(&store->watch_lock);
    if (store->watcher_count < STORE_WATCHERS_MAX) {
        store->watchers[store->watcher_count++] =
            (struct store_watcher){watch, user, collection};
        rc = NG_OK;
    }
    lock_release(&store->watch_lock);
    return rc;
}

void store_unwatch(struct store *store, store_watch_fn *watch, void *user)
{
    lock_take(&store->watch_lock);
    size_t kept = 0;
    for (size_t i = 0; i < store->watcher_count; i++) {
        if (store->watchers[i].watch != watch || store->watchers[i].user != user) {
            store->watchers[kept++] = store->watchers[i];
        }
    }
    store->watcher_count = kept;
    lock_release(&store->watch_lock);
}

void store_watch_others(struct store *store, ng_watch_fn *changed, void *user)
{
    if (store->backend->watch != NULL) {
        store->backend->watch(store->db, changed, user);
    }
}

void store_saw_seq(struct store *store, uint64_t seq)
{
    store_saw(store, seq);
}

uint64_t store_look_seq(struct store *store)
{
    if (store->backend->last_seq != NULL) {
        store_saw(store, store->backend->last_seq(store->db));
    }
    return atomic_load(&store->last_seq);
}

uint64_t store_last_seq(struct store *store)
{
    return atomic_load(&store->last_seq);
}

int store_advise(struct store *store, struct call *call, ng_finding_fn *advice, void *user)
{
    if (store->backend->advise == NULL) {
        return NG_OK;
    }
    return store->backend->advise(store->db, &call->pub, advice, user);
}

int store_health(struct store *store, struct call *call)
{
    if (store->backend->health == NULL) {
        return NG_OK;
    }
    return store->backend->health(store->db, &call->pub);
}

int store_settle(struct store *store, struct call *call, uint32_t flags, int64_t wait_ms)
{
    if (store->backend->settle == NULL) {
        return NG_OK;
    }
    return store->backend->settle(store->db, &call->pub, flags, wait_ms);
}

void store_stats(struct store *store, void (*stat)(void *user, const char *name, double value),
                 void *user)
{
    lock_take(&store->table.lock);
    double bytes = (double)store->table.bytes;
    double count = (double)store->table.count;
    lock_release(&store->table.lock);
    stat(user, "cache_bytes", bytes);
    stat(user, "cache_documents", count);
    stat(user, "cache_limit_bytes", (double)STORE_CACHE_BYTES);
    stat(user, "cache_hits_total", (double)atomic_load(&store->hits));
    stat(user, "cache_misses_total", (double)atomic_load(&store->misses));
    stat(user, "batches_in_flight", (double)atomic_load(&store->in_flight));
    stat(user, "last_seq", (double)atomic_load(&store->last_seq));
    stat(user, "round_trips_total", (double)atomic_load(&store->round_trips));
    stat(user, "changes_again_total", (double)atomic_load(&store->reruns));
    if (store->backend->stats != NULL) {
        store->backend->stats(store->db, stat, user);
    }
}
