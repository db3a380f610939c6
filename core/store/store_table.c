/* SPDX-License-Identifier: MIT */
/* store_table.c - the declared collections, and the documents in memory: cached documents by
 * key, and which of them to forget. */
#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "store_types.h"

void table_init(struct store_table *table)
{
    memset(table, 0, sizeof(*table));
    lock_init(&table->lock, LOCK_STORE_TABLE);
}

static void cached_doc_free(struct cached_doc *cached)
{
    version_unref(cached->committed);
    version_unref(cached->newest);
    blob_unref(cached->key);
    lock_done(&cached->lock);
    free(cached);
}

void table_done(struct store_table *table)
{
    for (size_t i = 0; i < STORE_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            struct cached_doc *cached = table->buckets[i];
            table->buckets[i] = cached->bucket_next;
            cached_doc_free(cached);
        }
    }
    lock_done(&table->lock);
}

static uint64_t key_hash(const struct ng_key *key)
{
    return str_hash(key->id) ^ (str_hash(key->space) * 31) ^ (str_hash(key->collection) * 131);
}

static bool cached_doc_is(const struct cached_doc *cached, const struct ng_key *key)
{
    const char *at = cached->key->data;
    return cached->collection_len == key->collection.len &&
           cached->space_len == key->space.len &&
           cached->key->len == key->collection.len + key->space.len + key->id.len &&
           str_equal(str_make(at, cached->collection_len), key->collection) &&
           str_equal(str_make(at + cached->collection_len, cached->space_len), key->space) &&
           str_equal(str_make(at + cached->collection_len + cached->space_len, key->id.len),
                     key->id);
}

static struct cached_doc *table_find(struct store_table *table, const struct ng_key *key,
                                     uint64_t hash)
{
    struct cached_doc *cached = table->buckets[hash % STORE_BUCKETS];
    while (cached != NULL && !(cached->hash == hash && cached_doc_is(cached, key))) {
        cached = cached->bucket_next;
    }
    return cached;
}

static void lru_remove(struct store_table *table, struct cached_doc *cached)
{
    if (!cached->in_lru) {
        return;
    }
    *(cached->lru_prev == NULL ? &table->lru_first : &cached->lru_prev->lru_next) =
        cached->lru_next;
    *(cached->lru_next == NULL ? &table->lru_last : &cached->lru_next->lru_prev) =
        cached->lru_prev;
    cached->in_lru = false;
}

static void lru_append(struct store_table *table, struct cached_doc *cached)
{
    cached->lru_prev = table->lru_last;
    cached->lru_next = NULL;
    *(table->lru_last == NULL ? &table->lru_first : &table->lru_last->lru_next) = cached;
    table->lru_last = cached;
    cached->in_lru = true;
}

static void table_remove(struct store_table *table, struct cached_doc *cached)
{
    struct cached_doc **at = &table->buckets[cached->hash % STORE_BUCKETS];
    while (*at != cached) {
        at = &(*at)->bucket_next;
    }
    *at = cached->bucket_next;
    lru_remove(table, cached);
    if (cached->committed != NULL) {
        table->bytes -= version_bytes(cached->committed);
    }
    table->count--;
    cached_doc_free(cached);
}

static void table_trim(struct store_table *table)
{
    while (table->bytes > STORE_CACHE_BYTES && table->lru_first != NULL) {
        table_remove(table, table->lru_first);
    }
}

static struct cached_doc *cached_doc_new(const struct ng_key *key, uint64_t hash)
{
    struct cached_doc *cached = alloc_zeroed(1, sizeof(*cached));
    struct blob *blob = blob_new(key->collection.len + key->space.len + key->id.len);
    if (cached == NULL || blob == NULL) {
        free(cached);
        blob_unref(blob);
        return NULL;
    }
    memcpy(blob->data, key->collection.data, key->collection.len);
    if (key->space.len > 0) {
        memcpy(blob->data + key->collection.len, key->space.data, key->space.len);
    }
    if (key->id.len > 0) {
        memcpy(blob->data + key->collection.len + key->space.len, key->id.data, key->id.len);
    }
    cached->key = blob;
    cached->collection_len = key->collection.len;
    cached->space_len = key->space.len;
    cached->hash = hash;
    lock_init(&cached->lock, LOCK_STORE_DOCUMENT);
    return cached;
}

struct cached_doc *table_use(struct store_table *table, const struct ng_key *key)
{
    uint64_t hash = key_hash(key);
    lock_take(&table->lock);
    struct cached_doc *cached = table_find(table, key, hash);
    if (cached == NULL) {
        cached = cached_doc_new(key, hash);
        if (cached != NULL) {
            cached->bucket_next = table->buckets[hash % STORE_BUCKETS];
            table->buckets[hash % STORE_BUCKETS] = cached;
            table->count++;
        }
    }
    if (cached != NULL) {
        cached->users++;
        lru_remove(table, cached);
    }
    lock_release(&table->lock);
    return cached;
}

void table_leave(struct store_table *table, struct cached_doc *cached)
{
    lock_take(&table->lock);
    cached->users--;
    if (cached->users == 0 && cached->queued == 0) {
        if (cached->committed == NULL) {
            table_remove(table, cached);
        } else {
            lru_append(table, cached);
            if (table->bytes > STORE_CACHE_BYTES) {
                table_trim(table);
            }
        }
    }
    lock_release(&table->lock);
}

struct version *table_committed(struct store_table *table, const struct ng_key *key)
{
    struct version *version = NULL;
    uint64_t hash = key_hash(key);
    lock_take(&table->lock);
    struct cached_doc *cached = table_find(table, key, hash);
    if (cached != NULL && cached->committed != NULL) {
        version = version_ref(cached->committed);
        if (cached->in_lru && table->lru_last != cached) {
            lru_remove(table, cached);
            lru_append(table, cached);
        }
    }
    lock_release(&table->lock);
    return version;
}

void table_set_committed(struct store_table *table, struct cached_doc *cached,
                         struct version *version)
{
    if (cached->committed != NULL) {
        table->bytes -= version_bytes(cached->committed);
        version_unref(cached->committed);
    }
    cached->committed = version;
    if (version != NULL) {
        table->bytes += version_bytes(version);
    }
}

/* ---- collections ---- */

const struct ng_collection *store_collection(struct store *store, struct ng_str name)
{
    const struct ng_collection *found = NULL;
    rwlock_read(&store->collections_lock);
    for (size_t i = 0; i < store->collection_count && found == NULL; i++) {
        if (str_is(name, store->collections[i].name)) {
            found = &store->collections[i].desc;
        }
    }
    rwlock_release(&store->collections_lock);
    return found;
}

const struct ng_collection *store_collection_at(struct store *store, size_t index)
{
    rwlock_read(&store->collections_lock);
    bool there = index < store->collection_count;
    rwlock_release(&store->collections_lock);
    if (!there) {
        return NULL;
    }
    return &store->collections[index].desc;
}

static bool collection_name_valid(struct ng_str name)
{
    bool good = name.len > 0 && name.len <= NG_COLLECTION_MAX;
    for (size_t i = 0; i < name.len && good; i++) {
        char c = name.data[i];
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    }
    return good;
}

/* With the lock held: the first collection from `from` on that is to be held. */
static void find_held(struct store *store, size_t from)
{
    size_t at = from;
    while (at < store->collection_count &&
           (store->collections[at].desc.flags & NG_COLLECTION_REFERENCED) == 0) {
        at++;
    }
    atomic_store(&store->held, store->shared && at < store->collection_count ? at + 1 : 0);
}

int store_declare(struct store *store, struct call *call,
                  const struct ng_collection *collection)
{
    struct ng_str name = ng_str_of(collection->name);
    if (!collection_name_valid(name)) {
        return call_fail(call, NG_EINVAL,
                         "the collection name \"%s\" is not of the form [a-z0-9_]{1,%d}",
                         collection->name, NG_COLLECTION_MAX);
    }
    if (store_collection(store, name) != NULL) {
        return call_fail(call, NG_EINVAL, "the collection %s is declared twice",
                         collection->name);
    }
    int rc = store->backend->declare(store->db, &call->pub, collection);
    bool away = store->shared && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT);
    if (rc != NG_OK && !away) {
        return rc;
    }
    rc = NG_OK;
    if (away) {
        call_reset_result(call);
        atomic_store(&store->undeclared, true);
    }
    rwlock_write(&store->collections_lock);
    if (store->collection_count == STORE_COLLECTIONS_MAX) {
        rc = call_fail(call, NG_ETOOLARGE, "more than %d collections", STORE_COLLECTIONS_MAX);
    } else {
        size_t at = store->collection_count++;
        memcpy(store->collections[at].name, name.data, name.len);
        store->collections[at].desc = *collection;
        store->collections[at].desc.name = store->collections[at].name;
        store->collections[at].undeclared = away;
        find_held(store, atomic_load(&store->held) > 0 ? atomic_load(&store->held) - 1 : at);
    }
    rwlock_release(&store->collections_lock);
    return rc;
}

void store_release_referenced(struct store *store, size_t count)
{
    rwlock_write(&store->collections_lock);
    find_held(store, count);
    rwlock_release(&store->collections_lock);
}

bool store_is_held(const struct store *store)
{
    return atomic_load(&store->held) > 0;
}

int store_check_held(const struct store *store, struct call *call,
                     const struct ng_collection *collection)
{
    size_t held = atomic_load(&store->held);
    size_t at = (size_t)((const char *)collection - (const char *)store->collections) /
                sizeof(store->collections[0]);
    if (held == 0 || at + 1 < held || (collection->flags & NG_COLLECTION_REFERENCED) == 0) {
        return NG_OK;
    }
    return call_fail(call, NG_EUNAVAILABLE,
                     "other gateways do not know the collection %s yet and would skip its "
                     "events; try again in a second",
                     collection->name);
}

int store_declare_rest(struct store *store, struct call *call)
{
    int rc = NG_OK;
    if (!atomic_load(&store->undeclared)) {
        return NG_OK;
    }
    atomic_store(&store->undeclared, false); /* one that comes now sets it again */
    for (size_t i = 0; i < STORE_COLLECTIONS_MAX && rc == NG_OK; i++) {
        rwlock_read(&store->collections_lock);
        bool undeclared = i < store->collection_count && store->collections[i].undeclared;
        rwlock_release(&store->collections_lock);
        if (undeclared) {
            rc = store->backend->declare(store->db, &call->pub, &store->collections[i].desc);
        }
        if (undeclared && rc == NG_OK) {
            rwlock_write(&store->collections_lock);
            store->collections[i].undeclared = false;
            rwlock_release(&store->collections_lock);
        }
    }
    if (rc != NG_OK) {
        atomic_store(&store->undeclared, true);
    }
    return rc;
}

int store_check_key(struct store *store, struct call *call, const struct ng_key *key)
{
    if (store_collection(store, key->collection) == NULL) {
        return call_fail(call, NG_EINTERNAL, "no plugin has declared the collection \"%.*s\"",
                         (int)key->collection.len, key->collection.data);
    }
    if (key->space.len == 0 || key->space.len > NG_SPACE_MAX) {
        return call_fail(call, NG_EINVAL, "a space has 1 to %d bytes, this one has %zu",
                         NG_SPACE_MAX, key->space.len);
    }
    if (key->id.len > NG_ID_MAX) {
        return call_fail(call, NG_ETOOLARGE, "the name has %zu bytes, it may have %d",
                         key->id.len, NG_ID_MAX);
    }
    return NG_OK;
}
