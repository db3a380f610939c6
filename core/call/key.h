/* SPDX-License-Identifier: MIT */
/*
 * key.h - one bearer key as a value: its holder, its rights, its rate, and its text. The
 * table of all keys is core/keys.
 */
#ifndef NOTEGATE_CORE_KEY_H
#define NOTEGATE_CORE_KEY_H

#include <stdatomic.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/text/rfc3339.h"
#include "notegate/plugin.h"

/* The collection of the documents of keys. */
#define KEYS_COLLECTION "keys"
/* Longest wait that a caller over its rate is sent. */
#define KEY_RETRY_MAX_S 3600
#define KEY_ID_LEN 12
#define KEY_HASH_BYTES 32
/* "ng_" + id + "_" + secret, and a NUL. */
#define KEY_TEXT_MAX 96
/* Characters of a secret: 43 of 62 letters and digits are more than 256 bits. */
#define KEY_SECRET_LEN 43
#define KEY_PREFIX "ng_"
#define KEY_TEXT_LEN (sizeof(KEY_PREFIX) - 1 + KEY_ID_LEN + 1 + KEY_SECRET_LEN)
/* "2027-01-31T00:00:00Z" and a NUL. */
#define KEY_TIME_SIZE RFC3339_SIZE

/* Immutable but for `revoked`, its time, the bucket and the last use; counted references. */
struct key {
    atomic_int refs;
    char id[KEY_ID_LEN + 1]; /* shown by list and revoke; not secret */
    struct ng_str agent;     /* NAME of `key add` */
    enum ng_role role;
    enum ng_mode mode;
    bool run;                    /* code; false: in what earlier versions made, too */
    const struct ng_str *spaces; /* its own ("~agent") first where it has that */
    size_t space_count;
    const struct ng_str *tools; /* the only ones it may use; count 0: all */
    size_t tool_count;
    double rate;                    /* calls a second, bursts of twice that; 0: no limit */
    int64_t created_ms, expires_ms; /* expires_ms 0: never */
    struct ng_str note, made_by;    /* absent: none; keys of an earlier version have none */
    unsigned char hash[KEY_HASH_BYTES];
    atomic_bool revoked;
    /* The token bucket: under `lock`. */
    struct lock lock;
    double tokens;
    int64_t filled_ns;
    struct arena *memory; /* the texts */
    _Atomic int64_t revoked_ms;
    /* The last use, to a second, as far as it is known here (0: never), and as it is stored. */
    _Atomic int64_t used_ms, used_stored_ms;
};

/* Both take NULL for no key. */
static inline void key_ref(struct key *key)
{
    if (key != NULL) {
        (void)atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
    }
}

/* For key_unref(): the last reference has gone. */
void key_free(struct key *key);

static inline void key_unref(struct key *key)
{
    if (key != NULL && atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) == 1) {
        key_free(key);
    }
}

/* Not revoked, not expired. NULL: true. */
static inline bool key_live_at(const struct key *key, int64_t now_ms)
{
    return key == NULL || (!atomic_load_explicit(&key->revoked, memory_order_acquire) &&
                           (key->expires_ms == 0 || now_ms < key->expires_ms));
}

static inline bool key_live(const struct key *key)
{
    return key == NULL || key_live_at(key, key->expires_ms == 0 ? 0 : clock_unix_ms());
}

/* Is the tool one of those that the key lists? */
bool key_lists_tool(const struct key *key, const char *tool);

/* NULL: true. */
static inline bool key_allows_tool(const struct key *key, const char *tool)
{
    return key == NULL || key->tool_count == 0 || key_lists_tool(key, tool);
}

bool key_has_space(const struct key *key, struct ng_str space);

/* Fills the token bucket. */
void key_fill(struct key *key, int64_t now_ns);
/* Takes one call from the bucket, at a time of CLOCK_MONOTONIC. False: *ret_retry_s is when to
 * try again. */
bool key_take_at(struct key *key, int64_t now_ns, int *ret_retry_s);

/* The same now. NULL: true. */
static inline bool key_take(struct key *key, int *ret_retry_s)
{
    return key == NULL || key->rate <= 0 || key_take_at(key, clock_monotonic_ns(), ret_retry_s);
}

const char *key_role_name(enum ng_role role);
const char *key_mode_name(enum ng_mode mode);
/* False: no such word. */
bool key_parse_role(struct ng_str text, enum ng_role *ret);
bool key_parse_mode(struct ng_str text, enum ng_mode *ret);

/* key_text.c: makes the text of a new key. NG_EUNAVAILABLE: the kernel gives no random
 * numbers. */
int key_text_make(char ret_text[KEY_TEXT_MAX]);
/* False: not of the form. ret_id: borrowed from the text. */
bool key_text_parse(struct ng_str text, struct ng_str *ret_id);

/* key_time.c: "30d" from now, "2027-01-31" (to the end of that day, UTC) or RFC 3339.
 * NG_EINVAL: none of these. */
int key_parse_expiry(struct ng_str text, int64_t now_ms, int64_t *ret_ms);

#endif
