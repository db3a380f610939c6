/* SPDX-License-Identifier: MIT */
/*
 * keys.h - bearer keys: the name of an agent, and its rights.
 *
 * A key is "ng_" and an id and a secret; of the secret only a hash is kept, in a document of
 * the collection "keys". All keys are in memory too, so that checking one costs a look-up and
 * one hash, and never blocks.
 *
 * A key changes (keys_change): its document gets the next revision, and each gateway puts a new
 * version of the key in the place of the known one, as it does with a revocation. Documents
 * stay readable for gateways of earlier versions, and give a key there no right that it does
 * not have here (keys_record.c). But a gateway of an earlier version that has read a key before
 * sees no change of it except a revocation until it starts again.
 */
#ifndef NOTEGATE_CORE_KEYS_H
#define NOTEGATE_CORE_KEYS_H

#include <stdatomic.h>

#include "core/base/lock.h"
#include "core/base/text/rfc3339.h"
#include "core/call/call.h"
#include "core/call/key.h"

/* The space of their documents. No agent can name it, so its events go only to subscribers that
 * see all spaces. */
#define KEYS_SPACE "~:gateway"
/* Keys of one gateway; spaces and tools of one key. */
#define KEYS_MAX 10000
#define KEY_SPACES_MAX 64
#define KEY_TOOLS_MAX 256
/* Characters of a note. */
#define KEY_NOTE_CHARS 200

struct keys;

/* The properties of a new key. The texts are borrowed. */
struct key_spec {
    struct ng_str agent;
    enum ng_role role;
    enum ng_mode mode;
    bool run, restore;
    const struct ng_str *spaces;
    size_t space_count;
    bool first_is_default;      /* of all tools; false: in what earlier versions made, too */
    const struct ng_str *tools; /* names and globs; count 0: all */
    size_t tool_count;
    const struct ng_str *no_tools; /* names and globs */
    size_t no_tool_count;
    double rate;
    int64_t created_ms, expires_ms;
    int64_t paused_ms;           /* when it was paused; 0: it is not */
    struct ng_str note, made_by; /* or absent */
};

/* The members of a key that can change. */
enum key_member {
    KEY_ROLE = 1 << 0,
    KEY_MODE = 1 << 1,
    KEY_RUN = 1 << 2,
    KEY_RESTORE = 1 << 3,
    KEY_SPACES = 1 << 4,
    KEY_TOOLS = 1 << 5,
    KEY_NO_TOOLS = 1 << 6,
    KEY_RATE = 1 << 7,
    KEY_EXPIRES = 1 << 8,
    KEY_NOTE = 1 << 9,
    KEY_PAUSED = 1 << 10,
    /* Those that decide what a call may do. */
    KEY_RIGHTS =
        KEY_ROLE | KEY_MODE | KEY_RUN | KEY_RESTORE | KEY_SPACES | KEY_TOOLS | KEY_NO_TOOLS
};

/* A change of a key: the members that it has, and their new values. */
struct key_patch {
    unsigned members; /* enum key_member, or-ed */
    struct key_spec spec;
};

/* The keys that remain after one is revoked. */
enum keys_left {
    KEYS_LEFT_SOME = 0, /* another one is in force */
    KEYS_LEFT_UNUSABLE, /* others that are paused, have expired or cannot be read: all calls are
                         * refused */
    KEYS_LEFT_NONE /* no key: a gateway on loopback is open, one on another address closed */
};

/* Reads all keys, in the call of the start. If a shared database cannot be reached, the gateway
 * starts without them and refuses every key until they are read (keys_not_loaded). */
int keys_open(struct gateway *gateway, struct call *call, struct keys **ret);
/* After the store is closed. NULL is a no-op. */
void keys_close(struct keys *keys);
/* The number of keys that are neither revoked nor expired. NULL: 0. */
size_t keys_count(struct keys *keys);
/* The number of keys that were not revoked, including expired and unreadable ones: the gateway
 * is open to all only while it is 0. NULL: 0. Takes no lock. */
size_t keys_active(const struct keys *keys);
/* The key with this text ("ng_..."), with a reference; NULL: unknown, revoked, paused or
 * expired, and *ret_why is a static sentence. Compares in constant time. Never blocks. keys
 * NULL: none. */
struct key *keys_find(struct keys *keys, struct ng_str text, const char **ret_why);
/* The sentence about a paused key. */
extern const char keys_why_paused[];
/* Makes a key, which is durable and in force when this returns. Only on workers and in
 * commands. *ret: a reference. ret_text: the only copy of its secret. */
int keys_add(struct keys *keys, struct call *call, const struct key_spec *spec,
             char ret_text[KEY_TEXT_MAX], struct key **ret);
/* Ends a key for good. NG_OK also if it was revoked before; NG_ENOTFOUND: no such key. *ret: a
 * reference. Only on workers and in commands. With ret_left, the last key in force is not
 * revoked, even where two are revoked at once, here or in another gateway: NG_ECONFLICT then,
 * *ret is the key, and *ret_left tells which keys would be left. With NULL, any key is. */
int keys_revoke(struct keys *keys, struct call *call, struct ng_str id,
                enum keys_left *ret_left, struct key **ret);
/* Changes the members of the patch, and no others: of changes at the same time, here or in
 * another gateway, each keeps its members, and the last one of a member counts. In force here
 * when this returns. NG_OK also if nothing differs; NG_ENOTFOUND: no such key; NG_ECONFLICT: it
 * is revoked; NG_EINVAL: its members do not fit together. *ret: a reference. Only on workers
 * and in commands. */
int keys_change(struct keys *keys, struct call *call, struct ng_str id,
                const struct key_patch *patch, struct key **ret);
/* The newest version of the key with this id, in any state, with a reference; or NULL. */
struct key *keys_get(struct keys *keys, struct ng_str id);
/* All keys, oldest first; they and the array live as long as the call. */
int keys_list(struct keys *keys, struct call *call, struct key ***ret, size_t *ret_count);
/* The keys could not be read yet, because the database cannot be reached; keys_active() is not
 * 0 then. NULL: false. Takes no lock. */
bool keys_not_loaded(const struct keys *keys);
/* Reads the changes that gateways made to the keys, if there are any. Runs on a worker,
 * repeatedly. */
int keys_look(struct keys *keys, struct call *call);
/* The same for a call that needs the newest keys; if that fails, the known ones count.
 * Documents that are not shared: keys_read_again(). */
void keys_look_now(struct keys *keys, struct call *call);
/* Retries the changes that could not be read. On workers. */
int keys_read_again(struct keys *keys, struct call *call);

/* keys_use.c: keys_read_again(), and stores the times of last use. On a worker, each minute. */
int keys_upkeep(struct keys *keys, struct call *call);
/* Stores the times of last use at a stop, after the last call. A failure does not prevent the
 * stop. NULL is a no-op. */
void keys_store_last(struct keys *keys);
/* Reads the times of last use that other gateways stored. A failure keeps the known ones. On
 * workers and in commands. */
void keys_refresh_uses(struct keys *keys, struct call *call);

/* keys_spec.c: checks a request for a key {"agent","role"?,"mode"?,"spaces"?,"tools"?,
 * "no_tools"?,"rate"?,"expires"?,"run"?,"restore"?,"note"?}, fills in defaults, and replaces
 * aliases of tools by their names. Memory of the call. NG_OK or NG_EINVAL. */
int keys_read_spec(struct call *call, const struct ng_value *object, struct key_spec *ret);
/* The same for a change of the key of this agent: any of these members, or "paused"; null: the
 * default of a new key. `agent` must be the same. */
int keys_read_patch(struct call *call, struct ng_str agent, const struct ng_value *object,
                    struct key_patch *ret);
/* Writes the public properties of a key as members of a JSON object: all but the hash. */
void key_print(const struct key *key, struct ng_writer *writer);
/* keys_run.c: does this gateway have a tool that runs code? */
bool keys_run_matters(const struct gateway *gateway);
/* "ada (k3j2...), bob (...) may run code, as user 1000": the live keys with that permission. */
int keys_runners(struct keys *keys, struct call *call, struct buf *out);
/* The same sentence about the list of keys that GET /v1/keys?all=true returns, for a gateway
 * that runs as `user`. */
int keys_listed_runners(struct arena *arena, const struct ng_value *list, uid_t user,
                        struct buf *out);

#endif
