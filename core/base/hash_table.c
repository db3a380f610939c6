/* SPDX-License-Identifier: MIT */
/* hash_table.c - an intrusive hash table with chains, doubled when it has as many items as
 * buckets.
 */
#include "hash_table.h"

#include <stdlib.h>

#include "arena.h"

#define HASH_TABLE_FIRST ((size_t)16)

static size_t bucket_of(const struct hash_table *table, uint64_t hash)
{
    return (size_t)(hash & (table->size - 1));
}

void hash_table_done(struct hash_table *table)
{
    free(table->buckets);
    *table = (struct hash_table){0};
}

struct hash_link *hash_table_find(const struct hash_table *table, uint64_t hash,
                                  hash_table_is_fn *is, const void *key)
{
    if (table->count == 0) {
        return NULL;
    }
    struct hash_link *link = table->buckets[bucket_of(table, hash)];
    while (link != NULL && (link->hash != hash || !is(link, key))) {
        link = link->next;
    }
    return link;
}

static void hash_table_link_in(struct hash_table *table, struct hash_link *link)
{
    struct hash_link **bucket = &table->buckets[bucket_of(table, link->hash)];
    link->next = *bucket;
    *bucket = link;
}

static int hash_table_grow(struct hash_table *table)
{
    struct hash_table old = *table;
    size_t size = HASH_TABLE_FIRST;
    if (old.size != 0) {
        size = old.size * 2;
    }
    struct hash_link **buckets = alloc_zeroed(size, sizeof(struct hash_link *));
    if (buckets == NULL) {
        return NG_EINTERNAL;
    }
    table->buckets = buckets;
    table->size = size;
    for (size_t i = 0; i < old.size; i++) {
        struct hash_link *link = old.buckets[i];
        while (link != NULL) {
            struct hash_link *next = link->next;
            hash_table_link_in(table, link);
            link = next;
        }
    }
    free(old.buckets);
    return NG_OK;
}

int hash_table_add(struct hash_table *table, struct hash_link *link, uint64_t hash)
{
    if (table->count >= table->size && hash_table_grow(table) != NG_OK && table->size == 0) {
        return NG_EINTERNAL;
    }
    link->hash = hash;
    hash_table_link_in(table, link);
    table->count++;
    return NG_OK;
}

void hash_table_remove(struct hash_table *table, struct hash_link *link)
{
    struct hash_link **at = &table->buckets[bucket_of(table, link->hash)];
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    link->next = NULL;
    table->count--;
}

static struct hash_link *first_from(const struct hash_table *table, size_t bucket)
{
    while (bucket < table->size && table->buckets[bucket] == NULL) {
        bucket++;
    }
    if (bucket == table->size) {
        return NULL;
    }
    return table->buckets[bucket];
}

struct hash_link *hash_table_first(const struct hash_table *table)
{
    return first_from(table, 0);
}

struct hash_link *hash_table_next(const struct hash_table *table, const struct hash_link *link)
{
    if (link->next != NULL) {
        return link->next;
    }
    return first_from(table, bucket_of(table, link->hash) + 1);
}
