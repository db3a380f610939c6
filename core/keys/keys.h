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

#include "core/base/lock.h"
#include "core/base/text/rfc3339.h"
#include "core/call/call.h"
#include "core/call/key.h"

/* Their space: no agent can name it, so only who sees all spaces sees its events. */
#define KEYS_SPACE "~:gateway"
/* Keys of one gateway; spaces and tools of one key. */
#define KEYS_MAX 10000
#define KEY_SPACES_MAX 64
#define KEY_TOOLS_MAX 256
/* Characters of a note. */
#define KEY_NOTE_CHARS 200

struct keys;

/* What a new key is to be. Texts are lent. */
struct key_spec {
    struct ng_str agent;
    enum ng_role role;
    enum ng_mode mode;
    bool run;
    const struct ng_str *spaces;
    size_t space_count;
    const struct ng_str *tools;
    size_t tool_count;
    double rate;
    int64_t created_ms, expires_ms;
    struct ng_str note, made_by; /* or absent */
};

/* The keys that remain after one is revoked. */
enum keys_left {
    KEYS_LEFT_SOME = 0, /* another one is in force */
    KEYS_LEFT_UNUSABLE, /* others that have expired, or cannot be read: all calls are refused */
    KEYS_LEFT_NONE /* no key: a gateway on loopback is open, one on another address closed */
};

/* Reads all keys. call: of the start. A database that other gateways share may be away: then
 * there are keys, and nobody has one (keys_not_loaded). */
int keys_open(struct gateway *gateway, struct call *call, struct keys **ret);
/* After the store is closed. NULL is a no-op. */
void keys_close(struct keys *keys);
/* Live ones. NULL: 0. */
size_t keys_count(struct keys *keys);
/* Those that were not revoked, also if expired: while there is one the gateway is not open. One
 * that cannot be read counts. NULL: 0. Takes no lock. */
size_t keys_active(const struct keys *keys);
/* The key with this text ("ng_..."), with a reference; NULL: none, revoked or expired
 * (*ret_why: static sentence). Compares in constant time. Never blocks. keys NULL: none. */
struct key *keys_find(struct keys *keys, struct ng_str text, const char **ret_why);
/* A new key, durable and in force when it returns. Only on workers and in commands. *ret: a
 * reference. text: the only time that its secret is seen. */
int keys_add(struct keys *keys, struct call *call, const struct key_spec *spec,
             char ret_text[KEY_TEXT_MAX], struct key **ret);
/* Ends a key for good; ended already: NG_OK. NG_ENOTFOUND. *ret: a reference. Only on workers
 * and in commands. ret_left NULL: whatever is left. Else only while another key is in force,
 * also where two are revoked at once, here or in another gateway: else NG_ECONFLICT, *ret is
 * the key, and *ret_left what would be left. */
int keys_revoke(struct keys *keys, struct call *call, struct ng_str id,
                enum keys_left *ret_left, struct key **ret);
/* By id, whatever its state, with a reference; or NULL. */
struct key *keys_get(struct keys *keys, struct ng_str id);
/* All of them, oldest first; they and the array live as long as the call. */
int keys_list(struct keys *keys, struct call *call, struct key ***ret, size_t *ret_count);
/* True: they could not be read yet, as the database is away; keys_active() is not 0 then. NULL:
 * false. Takes no lock. */
bool keys_not_loaded(const struct keys *keys);
/* What other gateways changed. On a worker, again and again (shared documents). */
int keys_look(struct keys *keys, struct call *call);
/* Reads again what could not be read when it changed. On workers. */
int keys_read_again(struct keys *keys, struct call *call);

/* keys_use.c: the same, and stores last uses. On a worker, each minute. */
int keys_upkeep(struct keys *keys, struct call *call);
/* Stores the last uses at a stop, after the last call. A failure does not prevent the stop.
 * NULL is a no-op. */
void keys_store_last(struct keys *keys);
/* Reads the last uses that other gateways stored. A failure keeps the known ones. On workers
 * and in commands. */
void keys_refresh_uses(struct keys *keys, struct call *call);

/* keys_spec.c: a request for a key {"agent","role"?,"mode"?,"spaces"?,"tools"?,"rate"?,
 * "expires"?,"run"?,"note"?} checked, defaults filled in, tools by their own names. Memory of
 * the call. NG_OK or NG_EINVAL. */
int keys_read_spec(struct call *call, const struct ng_value *object, struct key_spec *ret);
/* What may be known of a key, as members of a JSON object: never the hash. */
void key_print(const struct key *key, struct ng_writer *writer);
/* keys_run.c: is there a tool here that runs code? */
bool keys_run_matters(const struct gateway *gateway);
/* "ada (k3j2...), bob (...) may run code, as user 1000": the live keys that may. */
int keys_runners(struct keys *keys, struct call *call, struct buf *out);
/* The same of a list of keys as GET /v1/keys?all=true has it. */
int keys_listed_runners(struct arena *arena, const struct ng_value *list, struct buf *out);

#endif
