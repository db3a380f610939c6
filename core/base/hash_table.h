/* SPDX-License-Identifier: MIT */
/*
 * hash_table.h - an intrusive hash table: items hold their link, so adding one allocates
 * nothing but the buckets. Not for use by two threads at a time.
 */
#ifndef NOTEGATE_CORE_HASH_TABLE_H
#define NOTEGATE_CORE_HASH_TABLE_H

#include <stddef.h>

#include "notegate/documents.h"
#include "str.h"

/* In each item; HASH_ITEM(link, struct item, member) is the item again. */
struct hash_link {
    struct hash_link *next;
    uint64_t hash;
};

#define HASH_ITEM(link, type, member) ((type *)((uintptr_t)(link)-offsetof(type, member)))

struct hash_table {
    struct hash_link **buckets; /* NULL while empty */
    size_t size;                /* a power of two, or 0 */
    size_t count;
};

/* Is it the item with this key? Called for links of an equal hash only. */
typedef bool hash_table_is_fn(const struct hash_link *link, const void *key);

/* For tables of documents; ids are texts of callers, so the hash is str_hash(). */
static inline uint64_t doc_key_hash(const struct ng_key *key)
{
    return str_hash(key->id) ^ (str_hash(key->space) * 31) ^ (str_hash(key->collection) * 131);
}

static inline bool doc_key_equal(const struct ng_key *a, const struct ng_key *b)
{
    return str_equal(a->id, b->id) && str_equal(a->space, b->space) &&
           str_equal(a->collection, b->collection);
}

/* Frees the buckets; the items are the caller's. {0} is an empty table. */
void hash_table_done(struct hash_table *table);
/* NULL: there is none. */
struct hash_link *hash_table_find(const struct hash_table *table, uint64_t hash,
                                  hash_table_is_fn *is, const void *key);
/* Adds an item that is not in it. NG_EINTERNAL: out of memory (for the first buckets only; a
 * table that cannot grow goes on with longer chains). */
int hash_table_add(struct hash_table *table, struct hash_link *link, uint64_t hash);
/* Takes out an item that is in it. */
void hash_table_remove(struct hash_table *table, struct hash_link *link);
/* The first item, and the one behind `link`; NULL: no more. In no order. Take the next one
 * before `link` is removed. */
struct hash_link *hash_table_first(const struct hash_table *table);
struct hash_link *hash_table_next(const struct hash_table *table, const struct hash_link *link);

#endif
