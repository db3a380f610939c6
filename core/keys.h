/* SPDX-License-Identifier: MIT */
/*
 * keys.h - bearer keys: who an agent is and what it may do.
 *
 * A key is "ng_" and an id and a secret; of the secret only a hash is kept, in a document of
 * the collection "keys". All keys are in memory too, so that checking one costs a look-up and
 * one hash, and never blocks.
 */
#ifndef NOTEGATE_CORE_KEYS_H
#define NOTEGATE_CORE_KEYS_H

#include <stdatomic.h>

#include "call.h"

#define KEYS_COLLECTION "keys"
/* Keys of one gateway; spaces and tools of one key. */
#define KEYS_MAX 10000
#define KEY_SPACES_MAX 64
#define KEY_TOOLS_MAX 256
/* "ng_" + id + "_" + secret, and a NUL. */
#define KEY_TEXT_MAX 96
#define KEY_ID_LEN 12
#define KEY_HASH_BYTES 32

struct keys;

/* Immutable but for `revoked` and the bucket; counted references. */
struct key {
    atomic_int refs;
    char id[KEY_ID_LEN + 1]; /* what list and revoke show; not secret */
    struct ng_str agent;     /* NAME of `key add` */
    enum ng_role role;
    enum ng_mode mode;
    const struct ng_str *spaces; /* its own ("~agent") first where it has that */
    size_t space_count;
    const struct ng_str *tools; /* the only ones it may use; count 0: all */
    size_t tool_count;
    double rate;                    /* calls a second, bursts of twice that; 0: no limit */
    int64_t created_ms, expires_ms; /* expires_ms 0: never */
    unsigned char hash[KEY_HASH_BYTES];
    atomic_bool revoked;
    /* The bucket: under `lock`. */
    pthread_mutex_t lock;
    double tokens;
    int64_t filled_ns;
    struct arena *memory; /* the texts */
};

/* Reads all keys. call: of the start. */
int keys_open(struct gateway *gateway, struct call *call, struct keys **ret);
void keys_close(struct keys *keys);
/* Live ones. */
size_t keys_count(struct keys *keys);
/* The key with this text ("ng_..."), with a reference; NULL: none, revoked or expired
 * (*ret_why: static sentence). Compares in constant time. Never blocks. */
struct key *keys_find(struct keys *keys, struct ng_str text, const char **ret_why);
void key_ref(struct key *key);
void key_unref(struct key *key); /* NULL is a no-op */
/* Not revoked, not expired. NULL: true. */
bool key_live(const struct key *key);
bool key_allows_tool(const struct key *key, const char *tool); /* NULL: true */
/* Takes one call from the bucket. False: *ret_retry_s is when to try again. */
bool key_take(struct key *key, int *ret_retry_s);

#endif
