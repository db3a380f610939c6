/* SPDX-License-Identifier: MIT */
/* redis.h - shared by all files of this backend: the journal's handle and its parts. */
#ifndef NOTEGATE_REDIS_H
#define NOTEGATE_REDIS_H

#include <stdatomic.h>

#include <notegate/journal.h>

#include "core/base/str.h"
#include "core/base/text/rfc3339.h"

#include "connection/pipeline.h"
#include "connection/pool.h"

/* Most rows of one answer; also the default limit. */
#define REDIS_ROWS_MAX 1000
#define REDIS_ROWS_DEFAULT 100
/* How long a delivered event is remembered. */
#define REDIS_SEEN_MS INT64_C(86400000)
/* Rows fetched in one round. */
#define REDIS_PAGE 256

struct redis {
    struct redis_pool *pool;
    struct ng_str prefix; /* malloc'd */
    /* fill.c: the walk through all hashes, by one thread at a time. */
    atomic_flag filling;
    atomic_bool filled;
    atomic_bool fill_failed; /* the log says so */
    uint64_t fill_at;        /* the cursor of SCAN */
    uint64_t fill_turn;      /* pool_turn() of the server that gave it */
};

/* ---- keys.c ---- */

/* Texts that cannot be made are absent (data NULL), and the call has failed: for lack of
 * memory, or (their length is not 0) because the name of a space is too long. They need no
 * check: joined they stay absent, and a command with one is never sent. */

/* PREFIX[space:NAME:]name[tail], in call memory. */
struct ng_str redis_key(const struct redis *redis, struct ng_call *call, struct ng_str space,
                        const char *name, struct ng_str tail);
/* A decimal number in call memory. */
struct ng_str redis_number(struct ng_call *call, int64_t number);
/* The pieces as one text in call memory, NUL-terminated. */
struct ng_str redis_join(struct ng_call *call, const struct ng_str *pieces, size_t count);
#define REDIS_JOIN(call, ...)                                                                  \
    redis_join((call), (const struct ng_str[]){__VA_ARGS__},                                   \
               NG_COUNT(((const struct ng_str[]){__VA_ARGS__})))
uint32_t redis_limit(uint32_t limit);
int redis_no_memory(struct ng_call *call);
/* Runs one command; any error reply fails the call. *ret_number: the reply, if it is a number;
 * NULL: not wanted. */
int redis_do(struct redis *redis, struct ng_call *call, const struct ng_str *words,
             size_t count, int64_t *ret_number);
#define REDIS_DO(redis, call, ret_number, ...)                                                 \
    redis_do((redis), (call), (const struct ng_str[]){__VA_ARGS__},                            \
             NG_COUNT(((const struct ng_str[]){__VA_ARGS__})), (ret_number))
/* The string at a key in call memory; {NULL, 0} if there is none. */
int redis_get(struct redis *redis, struct ng_call *call, struct ng_str key, struct ng_str *ret);

/* The keys of a space that are not in the first table of backends/redis/README.md ... */
#define REDIS_DAYS "journal:days"
#define REDIS_RECENT "journal:recent"
#define REDIS_SEEN "journal:seen"
#define REDIS_CHECKPOINTS "journal:checkpoints"
#define REDIS_HEADS "journal:heads"
#define REDIS_KEPT "journal:kept:"
#define REDIS_MARK "journal:marks"  /* one for all spaces */
#define REDIS_WORDS "journal:words" /* all hashes of all spaces have words of this version: */
#define REDIS_WORDS_VERSION "1"
/* ... and those that are. */
#define REDIS_DAY "daily:"
#define REDIS_REFERENCE "notebook:ref:"
#define REDIS_MEMORY "memory:"
#define REDIS_INDEX "memory:idx"
#define REDIS_SUMMARY "summary"
#define REDIS_CHECKPOINT "checkpoint:"

/* Lua: the error of the first of these commands that the user has no right to (Redis 7). A
 * script asks before its first write, as it is not undone where it ends. */
#define REDIS_LUA_LACKS                                                                        \
    "local function lacks(verbs)\n"                                                            \
    "  for _, verb in ipairs(redis.acl_check_cmd and verbs or {}) do\n"                        \
    "    if not redis.acl_check_cmd(verb, KEYS[1], KEYS[1]) then\n"                            \
    "      return redis.error_reply(\"NOPERM this user has no permissions to run the '\" ..\n" \
    "        verb .. \"' command\")\n"                                                         \
    "    end\n"                                                                                \
    "  end\n"                                                                                  \
    "end\n"

/* ---- entry.c: an entry as a line of a day, as a hash, and as the JSON of a dump ---- */

/* Members of a hash, name and value in turn. */
#define REDIS_MEMBERS_MAX 38

struct redis_members {
    struct ng_str items[REDIS_MEMBERS_MAX];
    size_t count;
};

struct ng_str redis_line(struct ng_call *call, const struct ng_entry *entry);
int redis_members(struct ng_call *call, const struct ng_entry *entry,
                  struct redis_members *ret);
/* The key without prefix and space: "memory:<event id>" or "notebook:ref:<id>". */
struct ng_str redis_member(struct ng_call *call, const struct ng_entry *entry);
/* Texts point into `line`'s parsed copy or the reply. Lines of other programs are read as far
 * as possible. NG_EINVAL: not an entry. */
int redis_line_read(struct ng_call *call, struct ng_str line, struct ng_str space,
                    struct ng_entry *ret);
/* A field of an HGETALL reply; {NULL, 0} if missing. */
struct ng_str redis_hash_text(const redisReply *hash, const char *name);
int redis_hash_read(struct ng_call *call, const redisReply *hash, struct ng_str space,
                    struct ng_entry *ret);
/* The form of a dump: `date` first, if there is one. */
void redis_entry_write(struct ng_call *call, struct ng_writer *writer, struct ng_str date,
                       const struct ng_entry *entry);
int redis_entry_read(struct ng_call *call, const struct ng_value *body, struct ng_str space,
                     struct ng_entry *ret);

/* ---- fill.c ---- */

/* The words of a text as the index holds them: folded, then their stems. */
struct ng_str redis_words(struct ng_call *call, struct ng_str text);
/* Gives hashes of earlier versions their words, for a moment; the next call goes on. */
int redis_fill(struct redis *redis, struct ng_call *call);

/* Makes each new connection create the index of the shared space, as RediSearch may have been
 * added by a restart of the server. The index of any other space is created by its first
 * recall. */
int redis_greet(struct redis *redis, struct ng_call *call);

/* ---- the functions of the journal, each in its own file ---- */

int redis_deliver(void *journal, struct ng_call *call, const struct ng_entry *const *entries,
                  size_t count);
int redis_mark(void *journal, struct ng_call *call, struct ng_str mark, uint64_t *ret_seq);
int redis_deliver_marked(void *journal, struct ng_call *call, struct ng_str mark, uint64_t seq,
                         const struct ng_entry *const *entries, size_t count);
int redis_memory(void *journal, struct ng_call *call, struct ng_str space,
                 struct ng_str event_id, ng_entry_row_fn *row, void *user);
int redis_forget(void *journal, struct ng_call *call, struct ng_str mark, uint64_t seq,
                 const struct ng_entry *entry);
int redis_timeline(void *journal, struct ng_call *call, const struct ng_timeline *timeline,
                   ng_entry_row_fn *row, void *user);
int redis_recall(void *journal, struct ng_call *call, const struct ng_recall *recall,
                 ng_entry_row_fn *row, void *user, const char **ret_engine);
int redis_scan(struct redis *redis, struct ng_call *call, const struct ng_recall *recall,
               ng_entry_row_fn *row, void *user);
int redis_summary(void *journal, struct ng_call *call, struct ng_str space,
                  struct ng_str *ret_text);
int redis_set_summary(void *journal, struct ng_call *call, struct ng_str space,
                      struct ng_str text);
int redis_dump(void *journal, struct ng_call *call, struct ng_str space,
               struct ng_str *ret_json);
int redis_restore(void *journal, struct ng_call *call, struct ng_str space, struct ng_str json);
int redis_checkpoint_put(void *journal, struct ng_call *call, struct ng_str space,
                         struct ng_str id, struct ng_str json);
int redis_checkpoint_get(void *journal, struct ng_call *call, struct ng_str space,
                         struct ng_str id, struct ng_str *ret_json);
int redis_checkpoint_list(void *journal, struct ng_call *call, struct ng_str space,
                          ng_row_fn *row, void *user);
int redis_restore_aside(void *journal, struct ng_call *call, struct ng_str space,
                        struct ng_str id, struct ng_str json);
int redis_checkpoint_delete(void *journal, struct ng_call *call, struct ng_str space,
                            struct ng_str id);
int redis_trim(void *journal, struct ng_call *call, struct ng_str space, int64_t before_ms);
int redis_health(void *journal, struct ng_call *call);

#endif
