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
    *ret_old = old;
    *ret_count = count;
    return NG_OK;
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

/* How the entries of one part of the dump are written. */
enum restore_form {
    RESTORE_LINE,
    RESTORE_DAY,
    RESTORE_SEEN, /* so that they are not delivered again */
    RESTORE_HASH,
    RESTORE_RECENT
};

static int restore_entry(struct restore_state *restore, enum restore_form form,
                         struct ng_str date, const struct ng_entry *entry)
{
    struct ng_call *call = restore->call;
    struct redis_members members;
    struct ng_str pair[2] = {WORD("0"), date};
    switch (form) {
    case RESTORE_LINE:
        if (!rfc3339_is_day(date)) {
            return restore_damaged(call, "a line of it has no date");
        }
        pair[0] = redis_line(call, entry);
        restore_grow(restore, WORD("RPUSH"), restore_key(restore, REDIS_DAY, date), pair, 1);
        return NG_OK;
    case RESTORE_DAY:
        restore_grow(restore, WORD("ZADD"), restore->days, pair, 2);
        return NG_OK;
    case RESTORE_SEEN:
        pair[0] = restore->now;
        pair[1] = entry->event_id;
        restore_grow(restore, WORD("ZADD"), restore->seen, pair, 2);
        return NG_OK;
    case RESTORE_RECENT:
        pair[0] = redis_number(call, entry->time_ms);
        pair[1] = redis_member(call, entry);
        restore_grow(restore, WORD("ZADD"), restore->recent, pair, 2);
        return NG_OK;
    case RESTORE_HASH:
        break;
    }
    struct ng_str name = redis_member(call, entry);
    if (name.data == NULL) {
        return redis_no_memory(call);
    }
    int rc = redis_members(call, entry, &members);
    if (rc == NG_OK) {
        restore_grow(restore, WORD("HSET"), restore_key(restore, "", name), members.items,
                     members.count);
    }
    return rc;
}

/* Writes the entries of one part of the dump in one form. */
static int restore_part(struct restore_state *restore, const char *part, enum restore_form form)
{
    const struct ng_host *host = restore->call->host;
    const struct ng_value *item = host->json_first(host->json_get(restore->dump, part));
    int rc = NG_OK;
    for (; rc == NG_OK && item != NULL; item = host->json_next(item)) {
        struct ng_entry entry;
        rc = redis_entry_read(restore->call, item, restore->space, &entry);
        if (rc == NG_EINVAL) {
            rc = restore_damaged(restore->call, "one of its entries has an invalid form");
        }
        if (rc == NG_OK) {
            rc = restore_entry(restore, form, host->json_text(host->json_get(item, "date")),
                               &entry);
        }
    }
    restore_flush(restore);
    return rc;
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
        const struct ng_str seen[] = {restore->now,
                                      str_or(call->host->json_text(item), WORD(""))};
        restore_grow(restore, WORD("ZADD"), restore->seen, seen, 2);
    }
    restore_flush(restore);
}

static int restore_add(struct restore_state *restore)
{
    static const struct {
        const char *part;
        enum restore_form form;
    } steps[] = {
        {"days", RESTORE_LINE},         {"days", RESTORE_DAY},
        {"days", RESTORE_SEEN},         {"references", RESTORE_HASH},
        {"references", RESTORE_RECENT}, {"memories", RESTORE_HASH},
        {"memories", RESTORE_RECENT},
    };
    struct ng_call *call = restore->call;
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < NG_COUNT(steps); i++) {
        rc = restore_part(restore, steps[i].part, steps[i].form);
    }
    restore_passed(restore);
    const struct ng_value *summary = call->host->json_get(restore->dump, "summary");
    if (rc == NG_OK && call->host->json_type(summary) == NG_TYPE_STRING) {
        PIPELINE_ADD(&restore->pipeline, WORD("SET"), restore->summary,
                     str_or(call->host->json_text(summary), WORD("")));
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

/* As restore_once, but repeated while the server changes. */
static int restore_attempt(struct restore_state *restore, bool *ret_done)
{
    struct redis_pool *pool = restore->redis->pool;
    struct pool_retry retry = pool_retry_begin(pool);
    bool again;
    int rc;
    do {
        pipeline_init(&restore->pipeline, pool, restore->call);
        restore->pipeline.keeps_connection = true;
        rc = restore_once(restore, ret_done);
        again = rc != NG_OK && restore->pipeline.again;
        pipeline_done(&restore->pipeline);
    } while (again && pool_retry_wait(&retry, restore->call));
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
    bool done = false;
    for (int i = 0; rc == NG_OK && !done && i < RESTORE_TRIES; i++) {
        rc = restore_attempt(restore, &done);
    }
    if (rc == NG_OK && !done) {
        rc =
            ng_fail(call, NG_EBUSY,
                    "other gateways kept writing to the journal; restore it again in a moment");
    }
    return rc;
}
