/* SPDX-License-Identifier: MIT */
/* store_table.c - the documents in memory: cached documents by key, and which of them to
 * forget. */
#include <assert.h>
#include <stdlib.h>

#include "core/base/hash_table.h"
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
        assert(table->lru_first->in_lru && table->lru_first->lru_prev == NULL);
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
    uint64_t hash = doc_key_hash(key);
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
    uint64_t hash = doc_key_hash(key);
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
