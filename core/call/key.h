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

/*
 * One version of a key: a change makes another one, which takes its place in the table. Calls,
 * sessions and streams that began with an earlier version keep that.
 *
 * A version is immutable except for the part at its end. All versions share that part of the
 * first one (key_state()), so a key that is paused or revoked ends everywhere at once. Counted
 * references.
 */
struct key {
    atomic_int refs;
    char id[KEY_ID_LEN + 1]; /* shown by list and revoke; not secret */
    struct ng_str agent;     /* NAME of `key add` */
    enum ng_role role;
    enum ng_mode mode;
    bool run;     /* code; false: in what earlier versions made, too */
    bool restore; /* takes back the work of others: NG_RIGHT_RESTORE; false: as `run` */
    const struct ng_str *spaces; /* in the order in which they were given */
    size_t space_count;
    bool first_is_default; /* spaces[0] is the default of every tool; false: each has its own */
    const struct ng_str *tools; /* names and globs: the only ones it may use; count 0: all */
    size_t tool_count;
    const struct ng_str *no_tools; /* names and globs: never these */
    size_t no_tool_count;
    double rate;                   /* calls a second, bursts of twice that; 0: no limit */
    int64_t created_ms, paused_ms; /* paused_ms 0: not paused */
    struct ng_str note, made_by;   /* absent: none; keys of an earlier version have none */
    unsigned char hash[KEY_HASH_BYTES];
    uint64_t revision;    /* of the document of this version; 0: not stored yet */
    uint64_t rights;      /* the revision that last changed a right; 0: as it was made */
    struct arena *memory; /* the texts */
    struct key *first;    /* the first version, a reference; NULL: this one */

    /* The state of all versions, in the first one. */
    atomic_bool revoked, paused;
    _Atomic uint64_t present_rights; /* `rights` of the newest version */
    _Atomic int64_t expires_ms;      /* 0: never */
    /* The token bucket: under `lock`. */
    struct lock lock;
    double tokens;
    int64_t filled_ns;
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

/* The version that holds the state of all versions. */
static inline struct key *key_state(const struct key *key)
{
    return key->first != NULL ? key->first : (struct key *)(uintptr_t)key;
}

static inline bool key_is_revoked(const struct key *key)
{
    return atomic_load_explicit(&key_state(key)->revoked, memory_order_acquire);
}

static inline bool key_is_paused(const struct key *key)
{
    return atomic_load_explicit(&key_state(key)->paused, memory_order_acquire);
}

static inline int64_t key_expires_ms(const struct key *key)
{
    return atomic_load_explicit(&key_state(key)->expires_ms, memory_order_relaxed);
}

static inline bool key_has_expired(const struct key *key)
{
    int64_t expires_ms = key_expires_ms(key);
    return expires_ms != 0 && clock_unix_ms() >= expires_ms;
}

/* Not revoked, paused or expired. NULL: true. */
static inline bool key_live_at(const struct key *key, int64_t now_ms)
{
    if (key == NULL) {
        return true;
    }
    int64_t expires_ms = key_expires_ms(key);
    return !key_is_revoked(key) && !key_is_paused(key) &&
           (expires_ms == 0 || now_ms < expires_ms);
}

static inline bool key_live(const struct key *key)
{
    return key == NULL || key_live_at(key, key_expires_ms(key) == 0 ? 0 : clock_unix_ms());
}

/* Why a key is not live, for a sentence: "is paused", "was revoked", "has expired". */
const char *key_why_ended(const struct key *key);

/* Has a newer version other rights (role, mode, run, restore, spaces, tools)? NULL: false. */
static inline bool key_rights_changed(const struct key *key)
{
    return key != NULL && key->rights != atomic_load_explicit(&key_state(key)->present_rights,
                                                              memory_order_acquire);
}

/* May it use some tools only? NULL: false. */
static inline bool key_limits_tools(const struct key *key)
{
    return key != NULL && (key->tool_count > 0 || key->no_tool_count > 0);
}

/* Do `tools` name the tool, or are they none, and do `no_tools` not name it? */
bool key_lists_tool(const struct key *key, const char *tool);
/* Do `no_tools` name it? */
bool key_excludes_tool(const struct key *key, struct ng_str tool);

/* NULL: true. */
static inline bool key_allows_tool(const struct key *key, const char *tool)
{
    return !key_limits_tools(key) || key_lists_tool(key, tool);
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
