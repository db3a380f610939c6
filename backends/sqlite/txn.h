/* SPDX-License-Identifier: MIT */
/* txn.h - one transaction of the writing connection, as its parts see it: the documents that it
 * touches. */
#ifndef NOTEGATE_SQLITE_TXN_H
#define NOTEGATE_SQLITE_TXN_H

#include "db.h"

/* Buckets of the documents that a transaction touches. */
#define TOUCHED_BUCKETS 256
/* Authors up to this long are compared with the one before; any agent's name fits. */
#define AUTHOR_MAX 128

/* A document inside the transaction. */
struct touched {
    struct touched *next;  /* in its bucket */
    struct touched *later; /* in the order of touching */
    struct ng_key key;     /* lent by the first put */
    int64_t doc, shelf;
    bool exists;      /* has a row */
    bool was_deleted; /* that row says so */
    uint64_t old_created_seq;
    struct bytes old_fields;
    char old_author[AUTHOR_MAX];
    size_t old_author_len; /* SIZE_MAX: not known */
    uint64_t revision;
    bool deleted;
    uint64_t created_seq;
    uint64_t json_size, text_size, chain_count, chain_bytes;
    uint64_t seq;
    const struct ng_put *put; /* the newest, or NULL: only looked at */
    const struct prepared *prepared;
};

struct txn {
    struct db *db;
    struct touched *buckets[TOUCHED_BUCKETS];
    struct touched *first, *last;
};

/* The document as this transaction sees it. NULL: failed. */
struct touched *txn_touch(struct txn *txn, const struct ng_key *key);
/* A number that is kept beside the documents. */
int txn_meta(struct conn *conn, const char *name, uint64_t number);

#endif
