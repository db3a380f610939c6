/* SPDX-License-Identifier: MIT */
/* keys_table.h - what the files of the keys share, and their tests. */
#ifndef NOTEGATE_CORE_KEYS_TABLE_H
#define NOTEGATE_CORE_KEYS_TABLE_H

#include "core/base/lock.h"
#include "keys.h"

/* Most bytes of a key's document. */
#define KEY_JSON_MAX ((size_t)256 * 1024)

#define KEYS_ACTION_REVOKED "revoked"
/* By which the clocks of gateways may differ, and a commit may lag behind its time. */
#define KEYS_SKEW_MS 120000
#define KEYS_BUCKETS 4096
/* Hashes that are computed at a time without an allocation. */
#define KEYS_HASHERS 8

struct key_entry {
    struct key *key; /* a reference */
    bool committed;  /* its document is on disk: it is in force */
    bool leaving;    /* revoked, and a new key is to have its room */
    struct key_entry *next;
};

struct hasher {
    atomic_flag busy;
    struct evp_md_ctx_st *context; /* initialised again before each use: no allocation */
};

struct keys {
    struct gateway *gateway;
    struct rwlock lock; /* of the table; never held across I/O */
    struct key_entry *buckets[KEYS_BUCKETS];
    size_t count;         /* entries */
    atomic_size_t active; /* in force and not revoked, expired or not; and what is unreadable */
    atomic_bool stale;    /* a change could not be read yet */
    atomic_bool not_loaded;    /* none could be read yet: the database is away */
    atomic_bool uses_unread;   /* nor could last uses */
    _Atomic int64_t looked_ms; /* Unix time of the last look at what others changed */
    size_t unreadable;         /* documents: under the lock */
    struct hasher hashers[KEYS_HASHERS];
    unsigned char nobody[KEY_HASH_BYTES]; /* what an unknown id is compared with */
};

/* The hashers, and what an unknown id is compared with. NG_EINTERNAL: out of memory. */
int keys_open_table(struct keys *keys);
/* SHA-256. */
int keys_hash(struct keys *keys, struct ng_str text, unsigned char ret[KEY_HASH_BYTES]);

/* The rest with the lock held, for writing where it changes something. Where an entry of this
 * id is, or would be. */
struct key_entry **keys_place(struct keys *keys, struct ng_str id);
/* Takes over the reference. False: out of memory, or the id is there. */
bool keys_enter(struct keys *keys, struct key *key, bool committed);
void keys_remove(struct keys *keys, struct ng_str id);
/* Its document is on disk. */
void keys_commit(struct keys *keys, struct key_entry *entry);
/* It is revoked. */
void keys_end(struct keys *keys, struct key_entry *entry, int64_t time_ms);
/* The one that makes room in a full table, and does so for no other yet; lent, NULL: none. */
struct key_entry *keys_oldest_revoked(struct keys *keys);

/* keys_record.c. A key with one reference; NULL: out of memory. */
struct key *key_new(const char *id, const struct key_spec *spec,
                    const unsigned char hash[KEY_HASH_BYTES]);
/* Its document. NG_EINVAL: it is none of ours. */
int key_read(const struct ng_doc *doc, struct key **ret);
int key_write(const struct key *key, struct buf *out);

/* A note as a key may have it: no control characters, not empty, no longer than it may be. */
bool key_note_valid(struct ng_str note);
/* "agent ada (k3j2...)" or "unix user ada (1000)": who makes a key in this call, in its memory;
 * absent: it is not known. May ask the system for the user's name. */
struct ng_str key_maker(struct call *call);

/* keys.c */
struct ng_key keys_document(struct ng_str id);
/* For who asks about keys: also those that another gateway made just now. */
void keys_look_now(struct keys *keys, struct call *call);
/* An audit line about a key. */
void keys_audit(const char *what, const struct key *key, const struct call *call);
/* A change that deletes the document where it is there. */
int keys_remove_old(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                    void *user);

/* keys_use.c: last uses have documents of their own. Those of the keys would change, and be
 * told to all who follow them, with each; and earlier versions need not know of them. */
#define KEY_USES_COLLECTION "key_uses"
/* Documents of one change: each is locked while it is made. */
#define KEY_USES_AT_ONCE 32
int keys_declare_uses(struct keys *keys, struct call *call);
struct ng_key keys_use_document(struct ng_str id);
/* The key let a request in. Any thread; no more than an atomic store a second. */
void key_use(struct key *key, int64_t now_ms);
/* Is `other_ms` what counts as the last use? The later one does, but what is ahead of the clock
 * was written by a wrong one. */
bool key_use_is_newer(int64_t known_ms, int64_t other_ms, int64_t now_ms);

#endif
