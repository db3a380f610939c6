/* SPDX-License-Identifier: MIT */
/* store_table.c - the documents in memory: entries by key, and which of them to forget. */
#include <stdlib.h>

#include "core/base/str.h"
#include "store_types.h"

void table_init(struct store_table *table)
{
    memset(table, 0, sizeof(*table));
    pthread_mutex_init(&table->lock, NULL);
}

static void entry_free(struct entry *entry)
{
    version_unref(entry->committed);
    version_unref(entry->newest);
    blob_unref(entry->key);
    pthread_mutex_destroy(&entry->lock);
    free(entry);
}

void table_done(struct store_table *table)
{
    for (size_t i = 0; i < STORE_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            struct entry *entry = table->buckets[i];
            table->buckets[i] = entry->bucket_next;
            entry_free(entry);
        }
    }
    pthread_mutex_destroy(&table->lock);
}

static uint64_t key_hash(const struct ng_key *key)
{
    return str_hash(key->id) ^ (str_hash(key->space) * 31) ^ (str_hash(key->collection) * 131);
}

static bool entry_is(const struct entry *entry, const struct ng_key *key)
{
    const char *at = entry->key->data;
    return entry->collection_len == key->collection.len && entry->space_len == key->space.len &&
           entry->key->len == key->collection.len + key->space.len + key->id.len &&
           str_equal(str_make(at, entry->collection_len), key->collection) &&
           str_equal(str_make(at + entry->collection_len, entry->space_len), key->space) &&
           str_equal(str_make(at + entry->collection_len + entry->space_len, key->id.len),
                     key->id);
}

static struct entry *table_find(struct store_table *table, const struct ng_key *key,
                                uint64_t hash)
{
    struct entry *entry = table->buckets[hash % STORE_BUCKETS];
    while (entry != NULL && !(entry->hash == hash && entry_is(entry, key))) {
        entry = entry->bucket_next;
    }
    return entry;
}

static void lru_remove(struct store_table *table, struct entry *entry)
{
    if (!entry->in_lru) {
        return;
    }
    *(entry->lru_prev == NULL ? &table->lru_first : &entry->lru_prev->lru_next) =
        entry->lru_next;
    *(entry->lru_next == NULL ? &table->lru_last : &entry->lru_next->lru_prev) =
        entry->lru_prev;
    entry->in_lru = false;
}

static void lru_append(struct store_table *table, struct entry *entry)
{
    entry->lru_prev = table->lru_last;
    entry->lru_next = NULL;
    *(table->lru_last == NULL ? &table->lru_first : &table->lru_last->lru_next) = entry;
    table->lru_last = entry;
    entry->in_lru = true;
}

static void table_remove(struct store_table *table, struct entry *entry)
{
    struct entry **at = &table->buckets[entry->hash % STORE_BUCKETS];
    while (*at != entry) {
        at = &(*at)->bucket_next;
    }
    *at = entry->bucket_next;
    lru_remove(table, entry);
    if (entry->committed != NULL) {
        table->bytes -= version_bytes(entry->committed);
    }
    table->count--;
    entry_free(entry);
}

static void table_trim(struct store_table *table)
{
    while (table->bytes > STORE_CACHE_BYTES && table->lru_first != NULL) {
        table_remove(table, table->lru_first);
    }
}

static struct entry *entry_new(const struct ng_key *key, uint64_t hash)
{
    struct entry *entry = alloc_zeroed(1, sizeof(*entry));
    struct blob *blob = blob_new(key->collection.len + key->space.len + key->id.len);
    if (entry == NULL || blob == NULL) {
        free(entry);
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
    entry->key = blob;
    entry->collection_len = key->collection.len;
    entry->space_len = key->space.len;
    entry->hash = hash;
    pthread_mutex_init(&entry->lock, NULL);
    return entry;
}

struct entry *table_use(struct store_table *table, const struct ng_key *key)
{
    uint64_t hash = key_hash(key);
    pthread_mutex_lock(&table->lock);
    struct entry *entry = table_find(table, key, hash);
    if (entry == NULL) {
        entry = entry_new(key, hash);
        if (entry != NULL) {
            entry->bucket_next = table->buckets[hash % STORE_BUCKETS];
            table->buckets[hash % STORE_BUCKETS] = entry;
            table->count++;
        }
    }
    if (entry != NULL) {
        entry->users++;
        lru_remove(table, entry);
    }
    pthread_mutex_unlock(&table->lock);
    return entry;
}

void table_leave(struct store_table *table, struct entry *entry)
{
    pthread_mutex_lock(&table->lock);
    entry->users--;
    if (entry->users == 0 && entry->queued == 0) {
        if (entry->committed == NULL) {
            table_remove(table, entry);
        } else {
            lru_append(table, entry);
            table_trim(table);
        }
    }
    pthread_mutex_unlock(&table->lock);
}

struct version *table_committed(struct store_table *table, const struct ng_key *key)
{
    struct version *version = NULL;
    uint64_t hash = key_hash(key);
    pthread_mutex_lock(&table->lock);
    struct entry *entry = table_find(table, key, hash);
    if (entry != NULL && entry->committed != NULL) {
        version = version_ref(entry->committed);
        if (entry->in_lru && table->lru_last != entry) {
            lru_remove(table, entry);
            lru_append(table, entry);
        }
    }
    pthread_mutex_unlock(&table->lock);
    return version;
}

void table_set_committed(struct store_table *table, struct entry *entry,
                         struct version *version)
{
    if (entry->committed != NULL) {
        table->bytes -= version_bytes(entry->committed);
        version_unref(entry->committed);
    }
    entry->committed = version;
    if (version != NULL) {
        table->bytes += version_bytes(version);
    }
}
