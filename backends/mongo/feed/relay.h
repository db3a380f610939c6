/* SPDX-License-Identifier: MIT */
/* relay.h - shared by the files of this folder. */
#ifndef NOTEGATE_MONGO_RELAY_H
#define NOTEGATE_MONGO_RELAY_H

#include "feed.h"

struct relay {
    pthread_t thread;
    bool started; /* written while the thread runs: apart from what it reads */
    struct lock lock;
    pthread_cond_t moved;
    bool kicked; /* this gateway committed something */
    bool poll;   /* the lease or its kicks have changed */
    bool closing;
    atomic_bool owner;          /* this gateway holds the lease */
    atomic_uint_fast64_t dirty; /* relay_mark() of the collections to look at */
    int64_t polled_ms;          /* monotonic: last look at the lease */
    int64_t kick_seen;          /* number of kicks by other gateways, as last seen */
    int64_t scanned_ms;         /* monotonic: last scan without a kick */
    int64_t swept_ms;           /* monotonic: last look for tombstones to move */
    int64_t counted_ms;         /* monotonic: last look for events; 0: no change stream then */
    uint64_t left;              /* marks of collections of which the last scan left some */
    /* 0: not known, to be looked up, and some of the entries may have been moved already. */
    uint64_t next_seq;
};

struct watch {
    pthread_t thread;
    bool started; /* as in struct relay */
    struct lock lock;
    ng_watch_fn *changed;
    void *user;
    struct bytes notices; /* for the log, once `changed` is there; each ends in NUL */
    bson_t *token;        /* resume token; NULL: from now */
    bool absent_told;     /* the log says that the server has no such streams */
    bool refusal_told;    /* the log says that the server is refused */
    atomic_bool live;
};

void *watch_main(void *user);
/* Moves the oldest entries of the outboxes of the collections marked in `dirty`. false: it
 * failed. *ret_more: some are left. */
bool relay_move(struct mongo *db, uint64_t dirty, bool *ret_more);
uint64_t relay_mark(const struct db_collection *collection);
/* Tells the relay that another gateway wrote into the lease. */
void relay_poll(struct mongo *db);
/* Deletes the tombstones of entries from their collections once their events were moved. */
void tombstone_gc(struct mongo *db);

#endif
