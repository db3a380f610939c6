/* SPDX-License-Identifier: MIT */
/* keys_table.h - the table of keys; included by the files of this folder and their tests. */
#ifndef NOTEGATE_CORE_KEYS_TABLE_H
#define NOTEGATE_CORE_KEYS_TABLE_H

#include "core/base/lock.h"
#include "keys.h"

/* Most bytes of a key's document. */
#define KEY_JSON_MAX ((size_t)256 * 1024)

#define KEYS_ACTION_REVOKED "revoked"
/* Tolerated difference between the clocks of gateways plus the delay of a commit. */
#define KEYS_SKEW_MS 120000
#define KEYS_BUCKETS 4096
/* Hashes that can be computed at the same time without an allocation. */
#define KEYS_HASHERS 8

struct key_entry {
    struct key *key; /* a reference */
    bool committed;  /* its document is on disk: it is in force */
    bool leaving;    /* revoked, and about to be replaced by a new key in a full table */
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
    atomic_size_t active; /* committed and not revoked, expired or not, plus unreadable ones */
    atomic_bool stale;    /* a change could not be read yet */
    atomic_bool not_loaded;      /* no key was read yet: the database cannot be reached */
    atomic_bool uses_not_loaded; /* no time of last use was read yet */
    _Atomic int64_t looked_ms;   /* Unix time of the last keys_look() */
    size_t unreadable;           /* documents; under the lock */
    struct hasher hashers[KEYS_HASHERS];
    unsigned char unknown_hash[KEY_HASH_BYTES]; /* random; compared for an unknown id */
};

/* Makes the hashers and the unknown_hash. NG_EINTERNAL: out of memory. */
int keys_open_table(struct keys *keys);
/* SHA-256. */
int keys_hash(struct keys *keys, struct ng_str text, unsigned char ret[KEY_HASH_BYTES]);

/* The rest needs the lock, for writing in the functions that change the table. The pointer to
 * the entry with this id, or to the NULL at the end of its bucket. */
struct key_entry **keys_place(struct keys *keys, struct ng_str id);
/* Takes over the reference. False: out of memory, or the id is there. */
bool keys_enter(struct keys *keys, struct key *key, bool committed);
void keys_remove(struct keys *keys, struct ng_str id);
/* Puts the key in force: its document is on disk. */
void keys_commit(struct keys *keys, struct key_entry *entry);
/* Marks the key as revoked. */
void keys_end(struct keys *keys, struct key_entry *entry, int64_t time_ms);
/* The revoked key that a new one may replace in a full table; borrowed, NULL: none. */
struct key_entry *keys_oldest_revoked(struct keys *keys);

/* keys_record.c: a key with one reference; NULL: out of memory. */
struct key *key_new(const char *id, const struct key_spec *spec,
                    const unsigned char hash[KEY_HASH_BYTES]);
/* Reads a key from its document. NG_EINVAL: the document has another form. */
int key_read(const struct ng_doc *doc, struct key **ret);
int key_write(const struct key *key, struct buf *out);

/* keys_spec.c: not empty, no control characters, at most KEY_NOTE_CHARS. */
bool key_note_valid(struct ng_str note);
/* "agent ada (k3j2...)" or "unix user ada (1000)": the maker of a key in this call, in its
 * memory; absent: unknown. May ask the system for the user's name. */
struct ng_str key_maker(struct call *call);

/* keys.c */
struct ng_key keys_document(struct ng_str id);
/* keys_look() on shared documents, keys_read_again() on others; a failure is ignored. */
void keys_look_now(struct keys *keys, struct call *call);
/* An audit line about a key. */
void keys_audit(const char *what, const struct key *key, const struct call *call);
/* A change function: deletes the document if it exists. */
int keys_remove_old(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                    void *user);

/* keys_use.c: times of last use have documents of their own. In the documents of the keys, each
 * would be a change and an event; and earlier versions would have to know the member. */
#define KEY_USES_COLLECTION "key_uses"
/* Documents in one change: all of them are locked while it runs. */
#define KEY_USES_AT_ONCE 32
int keys_declare_uses(struct keys *keys, struct call *call);
struct ng_key keys_use_document(struct ng_str id);
/* Notes that a request used the key. Any thread; at most one atomic store a second. */
void key_use(struct key *key, int64_t now_ms);
/* Does `other_ms` replace `known_ms`? The later time does, but a time ahead of the clock counts
 * as wrong. */
bool key_use_is_newer(int64_t known_ms, int64_t other_ms, int64_t now_ms);

#endif
