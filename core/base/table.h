/* SPDX-License-Identifier: MIT */
/*
 * table.h - an intrusive hash table: items hold their link, so adding one allocates nothing but
 * the buckets. Not for use by two threads at a time.
 */
#ifndef NOTEGATE_CORE_TABLE_H
#define NOTEGATE_CORE_TABLE_H

#include "notegate/abi.h"

/* In each item; TABLE_ITEM(link, struct item, member) is the item again. */
struct table_link {
    struct table_link *next;
    uint64_t hash;
};

#define TABLE_ITEM(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

struct table {
    struct table_link **buckets; /* NULL while empty */
    size_t size;                 /* a power of two, or 0 */
    size_t count;
};

/* Is it the item with this key? Called for links of an equal hash only. */
typedef bool table_is_fn(const struct table_link *link, const void *key);

/* Frees the buckets; the items are the caller's. {0} is an empty table. */
void table_done(struct table *table);
/* NULL: there is none. */
struct table_link *table_find(const struct table *table, uint64_t hash, table_is_fn *is,
                              const void *key);
/* Adds an item that is not in it. NG_EINTERNAL: out of memory (for the first buckets only; a
 * table that cannot grow goes on with longer chains). */
int table_add(struct table *table, struct table_link *link, uint64_t hash);
/* Takes out an item that is in it. */
void table_remove(struct table *table, struct table_link *link);
/* The first item, and the one behind `link`; NULL: no more. In no order. Take the next one
 * before `link` is removed. */
struct table_link *table_first(const struct table *table);
struct table_link *table_next(const struct table *table, const struct table_link *link);

#endif
