/* SPDX-License-Identifier: MIT */
/* redis.h - what the files of this backend share: the journal's handle and its parts. */
#ifndef NOTEGATE_REDIS_H
#define NOTEGATE_REDIS_H

#include <notegate/journal.h>

#include "pipeline.h"
#include "pool.h"

/* Rows of one answer at most, and where the caller names no limit. */
#define REDIS_ROWS_MAX 1000
#define REDIS_ROWS_DEFAULT 100
/* A delivered event is known this long. */
#define REDIS_SEEN_MS INT64_C(86400000)
/* Rows fetched in one round. */
#define REDIS_PAGE 256

struct redis {
    struct redis_pool *pool;
    struct ng_str prefix; /* malloc'd */
};

/* ---- keys.c ---- */

/* PREFIX[space:NAME:]name[tail], in call memory; data NULL: out of memory (the call says so).
 */
struct ng_str redis_key(const struct redis *redis, struct ng_call *call, struct ng_str space,
                        const char *name, struct ng_str tail);
/* A decimal number in call memory. */
struct ng_str redis_number(struct ng_call *call, int64_t number);
bool redis_is(struct ng_str text, const char *want);
bool redis_equal(struct ng_str one, struct ng_str other);
/* A copy in call memory, with a NUL behind it. */
struct ng_str redis_copy(struct ng_call *call, struct ng_str text);
/* Is it YYYY-MM-DD, and a day that exists? */
bool redis_date_valid(struct ng_str date);
uint32_t redis_limit(uint32_t limit);
int redis_no_memory(struct ng_call *call);

/* The keys of a space that are not of the table in backends/redis/README.md's first half. */
#define REDIS_DAYS "journal:days"
#define REDIS_RECENT "journal:recent"
#define REDIS_SEEN "journal:seen"
#define REDIS_CHECKPOINTS "journal:checkpoints"
#define REDIS_HEADS "journal:heads"
#define REDIS_KEPT "journal:kept:"
/* And those that are. */
#define REDIS_DAY "daily:"
#define REDIS_REFERENCE "notebook:ref:"
#define REDIS_MEMORY "memory:"
#define REDIS_INDEX "memory:idx"
#define REDIS_SUMMARY "summary"
#define REDIS_CHECKPOINT "checkpoint:"

/* ---- entry.c: an entry as a line of a day, as a hash, and as the dump's JSON ---- */

/* Members of a hash, name and value in turn. */
#define REDIS_MEMBERS_MAX 36

struct redis_members {
    struct ng_str items[REDIS_MEMBERS_MAX];
    size_t count;
};

/* data NULL: out of memory. */
struct ng_str redis_line(struct ng_call *call, const struct ng_entry *entry);
int redis_members(struct ng_call *call, const struct ng_entry *entry,
                  struct redis_members *ret);
/* The key without prefix and space: "memory:<event id>" or "notebook:ref:<id>". */
struct ng_str redis_member(struct ng_call *call, const struct ng_entry *entry);
/* Texts are lent from `line`'s parsed copy and from the reply. What other programs wrote is
 * read as far as it goes. NG_EINVAL: it is no entry at all. */
int redis_line_read(struct ng_call *call, struct ng_str line, struct ng_str space,
                    struct ng_entry *ret);
/* A field of the answer to HGETALL; {NULL, 0}: it is not there. */
struct ng_str redis_hash_text(const redisReply *hash, const char *name);
int redis_hash_read(struct ng_call *call, const redisReply *hash, struct ng_str space,
                    struct ng_entry *ret);
/* As in a dump: `date` first, where there is one. */
void redis_entry_write(struct ng_call *call, struct ng_writer *writer, struct ng_str date,
                       const struct ng_entry *entry);
int redis_entry_read(struct ng_call *call, const struct ng_value *body, struct ng_str space,
                     struct ng_entry *ret);

/* Each new connection makes the index of the space that all share: a search module may have
 * come with a restart of the server. Those of other spaces are made by their first recall. */
int redis_greet(struct redis *redis, struct ng_call *call);

/* ---- the functions of the journal, each in its file ---- */

int redis_deliver(void *journal, struct ng_call *call, const struct ng_entry *const *entries,
                  size_t count);
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
