/* SPDX-License-Identifier: MIT */
/* txn.h - one transaction of the writing connection and the documents that it changes. */
#ifndef NOTEGATE_SQLITE_TXN_H
#define NOTEGATE_SQLITE_TXN_H

#include "db.h"

/* Buckets of the hash table of documents. */
#define TOUCHED_BUCKETS 256
/* Longer authors are not compared with the one before; the name of any agent fits. */
#define AUTHOR_MAX 128

/* A document of the transaction. */
struct touched {
    struct touched *next;  /* next in its bucket */
    struct touched *later; /* next in the order of first use */
    struct ng_key key;     /* borrowed from the first put */
    int64_t doc, shelf;
    bool exists;      /* it has a row */
    bool was_deleted; /* according to that row */
    uint64_t old_created_seq;
    struct bytes old_fields;
    char old_author[AUTHOR_MAX];
    size_t old_author_len; /* SIZE_MAX: not known */
    uint64_t revision;
    bool deleted;
    uint64_t created_seq;
    uint64_t json_size, text_size, chain_count, chain_bytes;
    uint64_t seq;
    const struct ng_put *put; /* the newest one; NULL: only read */
    const struct prepared *prepared;
};

struct txn {
    struct db *db;
    struct touched *buckets[TOUCHED_BUCKETS];
    struct touched *first, *last;
};

/* A change of the trail. Borrowed. */
struct trail {
    uint64_t seq;
    int64_t doc;
    struct ng_str agent, gateway;
    const struct ng_origin *origin;
};

/* Finds or loads the document. NULL: failed. */
struct touched *txn_touch(struct txn *txn, const struct ng_key *key);
/* origins.c */
/* Adds the row of a change; its origin is written by origins_flush(). */
int origins_add(struct db *db, int64_t shelf, const struct trail *row);
/* Writes the origins that the transaction has changed. */
int origins_flush(struct db *db);

/* Stores a number in `meta`. */
int txn_meta(struct conn *conn, const char *name, uint64_t number);

#endif
