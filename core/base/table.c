/* SPDX-License-Identifier: MIT */
/* table.c - an intrusive hash table with chains, doubled when it has as many items as buckets.
 */
#include "table.h"

#include <stdlib.h>

#include "arena.h"

#define TABLE_FIRST ((size_t)16)

static size_t bucket_of(const struct table *table, uint64_t hash)
{
    return (size_t)(hash & (table->size - 1));
}

void table_done(struct table *table)
{
    free(table->buckets);
    *table = (struct table){0};
}

struct table_link *table_find(const struct table *table, uint64_t hash, table_is_fn *is,
                              const void *key)
{
    if (table->count == 0) {
        return NULL;
    }
    struct table_link *link = table->buckets[bucket_of(table, hash)];
    while (link != NULL && (link->hash != hash || !is(link, key))) {
        link = link->next;
    }
    return link;
}

static void table_link_in(struct table *table, struct table_link *link)
{
    struct table_link **bucket = &table->buckets[bucket_of(table, link->hash)];
    link->next = *bucket;
    *bucket = link;
}

static int table_grow(struct table *table)
{
    struct table old = *table;
    size_t size = old.size == 0 ? TABLE_FIRST : old.size * 2;
    struct table_link **buckets = alloc_zeroed(size, sizeof(struct table_link *));
    if (buckets == NULL) {
        return NG_EINTERNAL;
    }
    table->buckets = buckets;
    table->size = size;
    for (size_t i = 0; i < old.size; i++) {
        struct table_link *link = old.buckets[i];
        while (link != NULL) {
            struct table_link *next = link->next;
            table_link_in(table, link);
            link = next;
        }
    }
    free(old.buckets);
    return NG_OK;
}

int table_add(struct table *table, struct table_link *link, uint64_t hash)
{
    if (table->count >= table->size && table_grow(table) != NG_OK && table->size == 0) {
        return NG_EINTERNAL;
    }
    link->hash = hash;
    table_link_in(table, link);
    table->count++;
    return NG_OK;
}

void table_remove(struct table *table, struct table_link *link)
{
    struct table_link **at = &table->buckets[bucket_of(table, link->hash)];
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    link->next = NULL;
    table->count--;
}

static struct table_link *first_from(const struct table *table, size_t bucket)
{
    while (bucket < table->size && table->buckets[bucket] == NULL) {
        bucket++;
    }
    if (bucket == table->size) {
        return NULL;
    }
    return table->buckets[bucket];
}

struct table_link *table_first(const struct table *table)
{
    return first_from(table, 0);
}

struct table_link *table_next(const struct table *table, const struct table_link *link)
{
    if (link->next != NULL) {
        return link->next;
    }
    return first_from(table, bucket_of(table, link->hash) + 1);
}
