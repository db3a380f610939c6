/* SPDX-License-Identifier: MIT */
/*
 * restore.c - replaces a space's journal with a dump, in one step.
 *
 * The whole restore is one transaction, sent in pieces: Redis queues the commands until EXEC
 * and runs them at once. The keys to remove are looked up first, under WATCH: a delivery in
 * between voids the transaction, and it is tried again.
 */
#include "redis.h"
#include "snapshot.h"

#define RESTORE_TRIES 16
/* Values of one command. */
#define RESTORE_CHUNK 128

struct restore_state {
    struct redis *redis;
    struct ng_call *call;
    struct ng_str space;
    const struct ng_value *dump;
    const struct aside *aside; /* keys of the kept present journal; NULL: it is deleted */
    struct pipeline pipeline;
    struct ng_str days, recent, seen, summary;
    struct ng_str now;
    struct ng_str words[2 * RESTORE_CHUNK + 2]; /* the command being built */
    size_t count;
};

static int restore_damaged(struct ng_call *call, const char *what)
{
    return ng_fail(call, NG_EINVAL, "this is not a dump of a journal: %s", what);
}

static struct ng_str restore_key(struct restore_state *restore, const char *name,
                                 struct ng_str tail)
{
    return redis_key(restore->redis, restore->call, restore->space, name, tail);
}

/* Sends the command being built, if it has values. */
static void restore_flush(struct restore_state *restore)
{
    if (restore->count > 2) {
        pipeline_add(&restore->pipeline, restore->words, restore->count);
    }
    restore->count = 0;
}

/* Adds a value or a pair to the command `verb key ...`. */
static void restore_grow(struct restore_state *restore, struct ng_str verb, struct ng_str key,
                         const struct ng_str *values, size_t count)
{
    bool same = restore->count >= 2 && str_equal(restore->words[0], verb) &&
                str_equal(restore->words[1], key);
    if (!same || restore->count + count > NG_COUNT(restore->words)) {
        restore_flush(restore);
        restore->words[restore->count++] = verb;
        restore->words[restore->count++] = key;
    }
    for (size_t i = 0; i < count; i++) {
        restore->words[restore->count++] = values[i];
    }
}

/* ---- removing the present journal ---- */

/* Under WATCH: collects the names of all keys of the space's journal. */
static int restore_collect_keys(struct restore_state *restore, struct ng_str **ret_old,
                                size_t *ret_count)
{
    struct ng_call *call = restore->call;
    struct pipeline *pipeline = &restore->pipeline;
    PIPELINE_ADD(pipeline, WORD("WATCH"), restore->days, restore->recent, restore->seen,
                 restore->summary);
    PIPELINE_ADD(pipeline, WORD("ZRANGE"), restore->days, WORD("0"), WORD("-1"));
    PIPELINE_ADD(pipeline, WORD("ZRANGE"), restore->recent, WORD("0"), WORD("-1"));
    int rc = pipeline_run_all(pipeline);
    if (rc != NG_OK) {
        return rc;
    }
    const redisReply *days = pipeline_reply(pipeline, 1);
    const redisReply *names = pipeline_reply(pipeline, 2);
    struct ng_str *old = ng_alloc(call, (days->elements + names->elements + 1) * sizeof(*old));
    size_t count = 0;
    if (old == NULL) {
        return redis_no_memory(call);
    }
    for (size_t i = 0; i < days->elements; i++) {
        old[count++] = restore_key(restore, REDIS_DAY, redis_text(days->element[i]));
    }
    for (size_t i = 0; i < names->elements; i++) {
        old[count++] = restore_key(restore, "", redis_text(names->element[i]));
    }
    for (size_t i = 0; i < count; i++) {
        if (old[i].data == NULL) {
            rc = NG_EINTERNAL;
        }
    }
    *ret_old = old;
    *ret_count = count;
    return rc;
}

static void restore_remove(struct restore_state *restore, const struct ng_str *old,
                           size_t count)
{
    const struct ng_str own[] = {restore->days, restore->recent, restore->seen,
                                 restore->summary};
    for (size_t i = 0; i < count; i++) {
        restore_grow(restore, WORD("UNLINK"), old[0], &old[i], 1);
    }
    restore_flush(restore);
    restore_grow(restore, WORD("DEL"), own[0], own + 1, NG_COUNT(own) - 1);
    restore_flush(restore);
}

/* ---- writing the dump ---- */

static int restore_line(struct restore_state *restore, const struct ng_value *item,
                        const struct ng_entry *entry)
{
    struct ng_call *call = restore->call;
    struct ng_str date = call->host->json_text(call->host->json_get(item, "date"));
    if (!rfc3339_is_day(date)) {
        return restore_damaged(call, "a line of it has no date");
    }
    struct ng_str line = redis_line(call, entry);
    struct ng_str key = restore_key(restore, REDIS_DAY, date);
    if (line.data == NULL || key.data == NULL) {
        return redis_no_memory(call);
    }
    restore_grow(restore, WORD("RPUSH"), key, &line, 1);
    return NG_OK;
}

static int restore_hash(struct restore_state *restore, const struct ng_entry *entry)
{
    struct ng_call *call = restore->call;
    struct redis_members members;
    struct ng_str name = redis_member(call, entry);
    int rc = redis_members(call, entry, &members);
    struct ng_str key = {NULL, 0};
    if (rc == NG_OK && name.data != NULL) {
        key = restore_key(restore, "", name);
    }
    if (rc != NG_OK || key.data == NULL) {
        if (rc != NG_OK) {
            return rc;
        }
        return NG_EINTERNAL;
    }
    restore_grow(restore, WORD("HSET"), key, members.items, members.count);
    return NG_OK;
}

/* Calls `each` for the entries of one part of the dump. */
static int restore_part(struct restore_state *restore, const char *part,
                        int (*each)(struct restore_state *restore, const struct ng_value *item,
                                    const struct ng_entry *entry))
{
    struct ng_call *call = restore->call;
    const struct ng_value *array = call->host->json_get(restore->dump, part);
    if (call->host->json_type(array) != NG_TYPE_ARRAY) {
        return restore_damaged(call, "a part of it is missing");
    }
    int rc = NG_OK;
    const struct ng_value *item = call->host->json_first(array);
    for (; rc == NG_OK && item != NULL; item = call->host->json_next(item)) {
        struct ng_entry entry;
        rc = redis_entry_read(call, item, restore->space, &entry);
        if (rc == NG_EINVAL) {
            rc = restore_damaged(call, "one of its entries has an invalid form");
        }
        if (rc == NG_OK) {
            rc = each(restore, item, &entry);
        }
    }
    restore_flush(restore);
    return rc;
}

static int restore_as_line(struct restore_state *restore, const struct ng_value *item,
                           const struct ng_entry *entry)
{
    return restore_line(restore, item, entry);
}

static int restore_as_day(struct restore_state *restore, const struct ng_value *item,
                          const struct ng_entry *entry)
{
    struct ng_call *call = restore->call;
    struct ng_str date = call->host->json_text(call->host->json_get(item, "date"));
    const struct ng_str day[] = {WORD("0"), date};
    (void)entry;
    restore_grow(restore, WORD("ZADD"), restore->days, day, 2);
    return NG_OK;
}

/* Marks the dump's entries as seen, so they are not delivered again. */
static int restore_as_seen(struct restore_state *restore, const struct ng_value *item,
                           const struct ng_entry *entry)
{
    const struct ng_str seen[] = {restore->now, entry->event_id};
    (void)item;
    restore_grow(restore, WORD("ZADD"), restore->seen, seen, 2);
    return NG_OK;
}

/* Marks events that were delivered before and are not in the dump as seen. */
static void restore_passed(struct restore_state *restore)
{
    struct ng_call *call = restore->call;
    const struct ng_value *passed = call->host->json_get(restore->dump, "passed");
    const struct ng_value *item = NULL;
    if (call->host->json_type(passed) == NG_TYPE_ARRAY) {
        item = call->host->json_first(passed);
    }
    for (; item != NULL; item = call->host->json_next(item)) {
        const struct ng_str seen[] = {restore->now, call->host->json_text(item)};
        restore_grow(restore, WORD("ZADD"), restore->seen, seen, 2);
    }
    restore_flush(restore);
}

static int restore_as_hash(struct restore_state *restore, const struct ng_value *item,
                           const struct ng_entry *entry)
{
    (void)item;
    return restore_hash(restore, entry);
}

static int restore_as_recent(struct restore_state *restore, const struct ng_value *item,
                             const struct ng_entry *entry)
{
    const struct ng_str recent[] = {redis_number(restore->call, entry->time_ms),
                                    redis_member(restore->call, entry)};
    (void)item;
    if (recent[0].data == NULL || recent[1].data == NULL) {
        return redis_no_memory(restore->call);
    }
    restore_grow(restore, WORD("ZADD"), restore->recent, recent, 2);
    return NG_OK;
}

static int restore_add(struct restore_state *restore)
{
    static const struct {
        const char *part;
        int (*each)(struct restore_state *restore, const struct ng_value *item,
                    const struct ng_entry *entry);
    } steps[] = {
        {"days", restore_as_line},         {"days", restore_as_day},
        {"days", restore_as_seen},         {"references", restore_as_hash},
        {"references", restore_as_recent}, {"memories", restore_as_hash},
        {"memories", restore_as_recent},
    };
    struct ng_call *call = restore->call;
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < NG_COUNT(steps); i++) {
        rc = restore_part(restore, steps[i].part, steps[i].each);
    }
    restore_passed(restore);
    const struct ng_value *summary = call->host->json_get(restore->dump, "summary");
    if (rc == NG_OK && call->host->json_type(summary) == NG_TYPE_STRING) {
        PIPELINE_ADD(&restore->pipeline, WORD("SET"), restore->summary,
                     call->host->json_text(summary));
    }
    return rc;
}

/* ---- the transaction ---- */

/* Under WATCH. *ret_done: the present journal was kept by an earlier attempt, and the restore
 * is complete. */
static int restore_is_done(struct restore_state *restore, bool *ret_done)
{
    struct pipeline *pipeline = &restore->pipeline;
    PIPELINE_ADD(pipeline, WORD("WATCH"), restore->aside->mark);
    PIPELINE_ADD(pipeline, WORD("EXISTS"), restore->aside->mark);
    int rc = pipeline_run_all(pipeline);
    *ret_done = rc == NG_OK && pipeline_reply(pipeline, 1)->integer == 1;
    return rc;
}

/* *ret_done: the transaction was applied. */
static int restore_once(struct restore_state *restore, bool *ret_done)
{
    struct ng_call *call = restore->call;
    struct pipeline *pipeline = &restore->pipeline;
    struct ng_str *old = NULL;
    size_t old_count = 0;
    int rc;
    if (restore->aside != NULL) {
        rc = restore_is_done(restore, ret_done);
    } else {
        rc = restore_collect_keys(restore, &old, &old_count);
    }
    if (rc != NG_OK || *ret_done) {
        return rc;
    }
    PIPELINE_ADD(pipeline, WORD("MULTI"));
    if (restore->aside != NULL) {
        redis_aside_add(pipeline, restore->aside);
    } else {
        restore_remove(restore, old, old_count);
    }
    rc = restore_add(restore);
    if (rc != NG_OK) {
        return rc;
    }
    PIPELINE_ADD(pipeline, WORD("EXEC"));
    rc = pipeline_run_all(pipeline);
    const redisReply *done = NULL;
    if (rc == NG_OK) {
        done = pipeline_reply(pipeline, pipeline->count - 1);
    }
    if (done == NULL || done->type == REDIS_REPLY_NIL) {
        return rc;
    }
    for (size_t i = 0; rc == NG_OK && i < done->elements; i++) {
        if (done->element[i]->type == REDIS_REPLY_ERROR) {
            rc = pool_fail_reply(restore->redis->pool, call, done->element[i]);
        }
    }
    *ret_done = rc == NG_OK;
    return rc;
}

/* Reads the whole dump once before anything of it is sent. */
static int restore_check(struct restore_state *restore)
{
    static const char *const parts[] = {"days", "references", "memories"};
    struct ng_call *call = restore->call;
    struct ng_str format = call->host->json_text(call->host->json_get(restore->dump, "format"));
    if (!str_is(format, REDIS_DUMP_FORMAT)) {
        return restore_damaged(call, "its format is not " REDIS_DUMP_FORMAT);
    }
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (call->host->json_type(call->host->json_get(restore->dump, parts[i])) !=
            NG_TYPE_ARRAY) {
            return restore_damaged(call, "a part of it is missing");
        }
    }
    return NG_OK;
}

int redis_restore(void *journal, struct ng_call *call, struct ng_str space, struct ng_str json)
{
    return redis_restore_beside(journal, call, space, json, NULL);
}

int redis_restore_beside(struct redis *redis, struct ng_call *call, struct ng_str space,
                         struct ng_str json, const struct aside *aside)
{
    struct ng_str none = {NULL, 0};
    struct restore_state *restore = ng_alloc(call, sizeof(*restore));
    if (restore == NULL) {
        return redis_no_memory(call);
    }
    *restore =
        (struct restore_state){.redis = redis, .call = call, .space = space, .aside = aside};
    int rc = call->host->json_parse(call, json, &restore->dump);
    if (rc != NG_OK) {
        if (rc == NG_EINTERNAL) {
            return rc;
        }
        return restore_damaged(call, "it is not JSON");
    }
    rc = restore_check(restore);
    restore->days = restore_key(restore, REDIS_DAYS, none);
    restore->recent = restore_key(restore, REDIS_RECENT, none);
    restore->seen = restore_key(restore, REDIS_SEEN, none);
    restore->summary = restore_key(restore, REDIS_SUMMARY, none);
    restore->now = redis_number(call, call->host->now_ms());
    if (rc == NG_OK && (restore->days.data == NULL || restore->recent.data == NULL ||
                        restore->seen.data == NULL || restore->summary.data == NULL ||
                        restore->now.data == NULL)) {
        rc = redis_no_memory(call);
    }
    bool done = false;
    for (int i = 0; rc == NG_OK && !done && i < RESTORE_TRIES; i++) {
        pipeline_init(&restore->pipeline, restore->redis->pool, call);
        restore->pipeline.keeps_connection = true;
        rc = restore_once(restore, &done);
        pipeline_done(&restore->pipeline);
    }
    if (rc == NG_OK && !done) {
        rc =
            ng_fail(call, NG_EBUSY,
                    "other gateways kept writing to the journal; restore it again in a moment");
    }
    return rc;
}
