/* SPDX-License-Identifier: MIT */
/* keys_table.h - the table of keys; included by the files of this folder and their tests. */
#ifndef NOTEGATE_CORE_KEYS_TABLE_H
#define NOTEGATE_CORE_KEYS_TABLE_H

#include "core/base/lock.h"
#include "keys.h"

/* Most bytes of a key's document. */
#define KEY_JSON_MAX ((size_t)256 * 1024)

#define KEYS_ACTION_REVOKED "revoked"
/* Of the tools of a key in its document, where no name may stay: no tool has this name, and an
 * empty list would mean all. */
#define KEY_NO_TOOL "-"
/* Keys in the log of changes. */
#define KEY_LOG_MAX 64
/* So often the keys are read once more if they do not show a change of the log: a transaction
 * on several shards of a database does not become visible on all of them at once. */
#define KEYS_UNSEEN_MAX 16
#define KEYS_BUCKETS 4096
/* Hashes that can be computed at the same time without an allocation. */
#define KEYS_HASHERS 8

struct key_entry {
    struct key *key; /* a reference */
    bool committed;  /* its document is on disk: it is in force */
    bool leaving;    /* revoked, and about to be replaced by a new key in a full table */
    /* Numbers of keys->reads: the latest one that had begun when it came into force, and the
     * latest one that found its document. */
    uint64_t committed_read, found_read;
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
    _Atomic uint64_t seen_log;   /* revision of the log up to which all keys were read */
    atomic_uint unseen_reads;    /* in a row, without all that the log names */
    size_t unreadable;           /* documents; under the lock */
    uint64_t reads;              /* of all documents, that have begun; under the lock */
    struct hasher hashers[KEYS_HASHERS];
    unsigned char unknown_hash[KEY_HASH_BYTES]; /* random; compared for an unknown id */
};

struct key_log;

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
/* The number of those removed whose document the complete read of this number did not find,
 * though they were in force before it began. log: as it was before. A new key that it names,
 * and no read has found, stays for some more of them. */
size_t keys_remove_missing(struct keys *keys, const struct key_log *log, uint64_t read);
/* Puts the key in force: its document is on disk. */
void keys_commit(struct keys *keys, struct key_entry *entry);
/* Puts a new version of the same key in the place of the present one, and takes over the
 * reference. True: a right changed. */
bool keys_replace(struct key_entry *entry, struct key *key);
/* keys_change.c: the members that differ; enum key_member, or-ed. */
unsigned key_differences(const struct key *a, const struct key *b);
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
/* The document of another version of the key: members of `present` that no change has, and
 * those of `key`. */
int key_write_over(const struct ng_value *present, const struct key *key, struct buf *out);
/* The properties of a key; borrowed from it. */
void key_spec_of(const struct key *key, struct key_spec *ret);

struct registry;

/* keys_tools.c: is the text among them? */
bool key_names_have(const struct ng_str *texts, size_t count, struct ng_str text);
/* Names of tools and globs, each once; aliases are replaced. member: for messages. NG_EINVAL:
 * no tool has the name, or none matches the glob. */
int key_names_read(struct call *call, const char *member, const struct ng_value *array,
                   const struct ng_str **ret, size_t *ret_count);
/* May a key with these lists use a tool of this gateway? Also true if it has no tool. */
bool key_spec_allows_tool(const struct registry *registry, const struct key_spec *spec);

/* keys_spec.c: do the members fit together? `members`: those that are new. NG_EINVAL and a
 * sentence, if not. */
int key_spec_check(struct call *call, const struct key_spec *spec, unsigned members);
/* Not empty, no control characters, at most KEY_NOTE_CHARS. */
bool key_note_valid(struct ng_str note);
/* "agent ada (k3j2...)" or "unix user ada (1000)": the maker of a key in this call, in its
 * memory; absent: unknown. May ask the system for the user's name. */
struct ng_str key_maker(struct call *call);

/* keys.c */
struct ng_key keys_document(struct ng_str id);

/* keys_log.c: one change of a key, as the log has it: one document for all gateways, whose
 * revision grows with each change of a key. */
struct key_log_entry {
    char id[KEY_ID_LEN + 1];
    uint64_t revision; /* of the key's document, after the change; 0: no change */
    bool gone;         /* it was deleted */
    bool seen;         /* the keys that were read contain it */
};

struct key_log {
    struct key_log_entry items[KEY_LOG_MAX];
    size_t count;
};

int keys_declare_log(struct keys *keys, struct call *call);
/* For change functions: the document changes from `present`. */
void key_log_set(struct key_log_entry *entry, const struct ng_doc *present, bool gone);
/* The change of the log: follows those of the keys in the same array, whose
 * functions fill `log`. */
struct ng_change keys_log_change(struct key_log *log);
/* *ret_revision: grows with each change of a key by any gateway. */
int keys_read_log(struct keys *keys, struct call *call, uint64_t *ret_revision,
                  struct key_log *ret);
void key_log_read(const struct ng_doc *doc, struct key_log *ret);
/* A row of the keys' documents was read. */
void key_log_saw(struct key_log *log, const struct ng_doc *row);
bool key_log_all_seen(const struct key_log *log);
/* Does the log name a change of this key that no row has shown? */
bool key_log_waits_for(const struct key_log *log, const char *id);

/* keys.c */
/* Puts a key that is stored into the table: it is new, has changed, or was revoked. Takes over
 * the reference. `read`: the number of the read that found it; 0: none. True: a right of a
 * known key changed; keys_tell_changed() is due, without a lock. */
bool keys_put(struct keys *keys, struct key *key, uint64_t read);
/* Clients of the keys with other rights are told that their lists changed. */
void keys_tell_changed(struct keys *keys);
/* An audit line about a key. members: the changed ones, separated by spaces, or absent. */
void keys_audit(const char *what, const struct key *key, struct ng_str members,
                const struct call *call);
/* A change function: deletes the document if it exists. user: a struct key_log_entry, or NULL.
 */
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
