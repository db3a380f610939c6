/* SPDX-License-Identifier: MIT */
/*
 * restore.c - puts a dump in the place of a space's journal, in one step.
 *
 * All of it is one transaction, sent in pieces: Redis keeps the commands until EXEC and runs
 * them at once. What is to go is looked up first, under WATCH: a delivery in between makes the
 * transaction void, and it is tried again.
 */
#include "redis.h"
#include "snapshot.h"

#define RESTORE_TRIES 16
/* Values of one command. */
#define RESTORE_CHUNK 128

struct restoring {
    struct redis *redis;
    struct ng_call *call;
    struct ng_str space;
    const struct ng_value *dump;
    const struct aside *aside; /* where what is there is kept; NULL: it goes */
    struct ask ask;
    struct ng_str days, recent, seen, summary;
    struct ng_str now;
    struct ng_str words[2 * RESTORE_CHUNK + 2]; /* a command that grows */
    size_t count;
};

static int restore_damaged(struct ng_call *call, const char *what)
{
    return ng_fail(call, NG_EINVAL, "this is not a journal that was dumped: %s", what);
}

static struct ng_str restore_key(struct restoring *restoring, const char *name,
                                 struct ng_str tail)
{
    return redis_key(restoring->redis, restoring->call, restoring->space, name, tail);
}

/* Sends the growing command, if it has values. */
static void restore_flush(struct restoring *restoring)
{
    if (restoring->count > 2) {
        ask_add(&restoring->ask, restoring->words, restoring->count);
    }
    restoring->count = 0;
}

/* Adds a value or a pair to the command `verb key ...`. */
static void restore_grow(struct restoring *restoring, struct ng_str verb, struct ng_str key,
                         const struct ng_str *values, size_t count)
{
    bool same = restoring->count >= 2 && redis_equal(restoring->words[0], verb) &&
                redis_equal(restoring->words[1], key);
    if (!same || restoring->count + count > NG_COUNT(restoring->words)) {
        restore_flush(restoring);
        restoring->words[restoring->count++] = verb;
        restoring->words[restoring->count++] = key;
    }
    for (size_t i = 0; i < count; i++) {
        restoring->words[restoring->count++] = values[i];
    }
}

/* ---- what is there goes ---- */

/* Under WATCH: the names of all that the journal of the space is made of now. */
static int restore_look(struct restoring *restoring, struct ng_str **ret_old, size_t *ret_count)
{
    struct ng_call *call = restoring->call;
    struct ask *ask = &restoring->ask;
    ASK(ask, ASK_WORD("WATCH"), restoring->days, restoring->recent, restoring->seen,
        restoring->summary);
    ASK(ask, ASK_WORD("ZRANGE"), restoring->days, ASK_WORD("0"), ASK_WORD("-1"));
    ASK(ask, ASK_WORD("ZRANGE"), restoring->recent, ASK_WORD("0"), ASK_WORD("-1"));
    int rc = ask_run_all(ask);
    if (rc != NG_OK) {
        return rc;
    }
    const redisReply *days = ask_reply(ask, 1);
    const redisReply *names = ask_reply(ask, 2);
    struct ng_str *old = ng_alloc(call, (days->elements + names->elements + 1) * sizeof(*old));
    size_t count = 0;
    if (old == NULL) {
        return redis_no_memory(call);
    }
    for (size_t i = 0; i < days->elements; i++) {
        old[count++] = restore_key(restoring, REDIS_DAY, redis_text(days->element[i]));
    }
    for (size_t i = 0; i < names->elements; i++) {
        old[count++] = restore_key(restoring, "", redis_text(names->element[i]));
    }
    for (size_t i = 0; i < count; i++) {
        rc = old[i].data == NULL ? NG_EINTERNAL : rc;
    }
    *ret_old = old;
    *ret_count = count;
    return rc;
}

static void restore_remove(struct restoring *restoring, const struct ng_str *old, size_t count)
{
    const struct ng_str own[] = {restoring->days, restoring->recent, restoring->seen,
                                 restoring->summary};
    for (size_t i = 0; i < count; i++) {
        restore_grow(restoring, ASK_WORD("UNLINK"), old[0], &old[i], 1);
    }
    restore_flush(restoring);
    restore_grow(restoring, ASK_WORD("DEL"), own[0], own + 1, NG_COUNT(own) - 1);
    restore_flush(restoring);
}

/* ---- what was comes back ---- */

static int restore_line(struct restoring *restoring, const struct ng_value *item,
                        const struct ng_entry *entry)
{
    struct ng_call *call = restoring->call;
    struct ng_str date = call->host->json_text(call->host->json_get(item, "date"));
    if (!redis_date_valid(date)) {
        return restore_damaged(call, "a line of it has no date");
    }
    struct ng_str line = redis_line(call, entry);
    struct ng_str key = restore_key(restoring, REDIS_DAY, date);
    if (line.data == NULL || key.data == NULL) {
        return redis_no_memory(call);
    }
    restore_grow(restoring, ASK_WORD("RPUSH"), key, &line, 1);
    return NG_OK;
}

static int restore_hash(struct restoring *restoring, const struct ng_entry *entry)
{
    struct ng_call *call = restoring->call;
    struct redis_members members;
    struct ng_str name = redis_member(call, entry);
    int rc = redis_members(call, entry, &members);
    struct ng_str key = {NULL, 0};
    if (rc == NG_OK && name.data != NULL) {
        key = restore_key(restoring, "", name);
    }
    if (rc != NG_OK || key.data == NULL) {
        return rc != NG_OK ? rc : NG_EINTERNAL;
    }
    restore_grow(restoring, ASK_WORD("HSET"), key, members.items, members.count);
    return NG_OK;
}

/* Calls `each` for the entries of one part of the dump. */
static int restore_part(struct restoring *restoring, const char *part,
                        int (*each)(struct restoring *restoring, const struct ng_value *item,
                                    const struct ng_entry *entry))
{
    struct ng_call *call = restoring->call;
    const struct ng_value *array = call->host->json_get(restoring->dump, part);
    if (call->host->json_type(array) != NG_TYPE_ARRAY) {
        return restore_damaged(call, "a part of it is missing");
    }
    int rc = NG_OK;
    const struct ng_value *item = call->host->json_first(array);
    for (; rc == NG_OK && item != NULL; item = call->host->json_next(item)) {
        struct ng_entry entry;
        rc = redis_entry_read(call, item, restoring->space, &entry);
        rc = rc == NG_EINVAL ? restore_damaged(call, "an entry of it is of another form") : rc;
        rc = rc == NG_OK ? each(restoring, item, &entry) : rc;
    }
    restore_flush(restoring);
    return rc;
}

static int restore_as_line(struct restoring *restoring, const struct ng_value *item,
                           const struct ng_entry *entry)
{
    return restore_line(restoring, item, entry);
}

static int restore_as_day(struct restoring *restoring, const struct ng_value *item,
                          const struct ng_entry *entry)
{
    struct ng_call *call = restoring->call;
    struct ng_str date = call->host->json_text(call->host->json_get(item, "date"));
    const struct ng_str day[] = {ASK_WORD("0"), date};
    (void)entry;
    restore_grow(restoring, ASK_WORD("ZADD"), restoring->days, day, 2);
    return NG_OK;
}

/* What the dump has is not delivered again. */
static int restore_as_seen(struct restoring *restoring, const struct ng_value *item,
                           const struct ng_entry *entry)
{
    const struct ng_str seen[] = {restoring->now, entry->event_id};
    (void)item;
    restore_grow(restoring, ASK_WORD("ZADD"), restoring->seen, seen, 2);
    return NG_OK;
}

/* Nor what was delivered before and does not come back. */
static void restore_passed(struct restoring *restoring)
{
    struct ng_call *call = restoring->call;
    const struct ng_value *passed = call->host->json_get(restoring->dump, "passed");
    const struct ng_value *item =
        call->host->json_type(passed) == NG_TYPE_ARRAY ? call->host->json_first(passed) : NULL;
    for (; item != NULL; item = call->host->json_next(item)) {
        const struct ng_str seen[] = {restoring->now, call->host->json_text(item)};
        restore_grow(restoring, ASK_WORD("ZADD"), restoring->seen, seen, 2);
    }
    restore_flush(restoring);
}

static int restore_as_hash(struct restoring *restoring, const struct ng_value *item,
                           const struct ng_entry *entry)
{
    (void)item;
    return restore_hash(restoring, entry);
}

static int restore_as_recent(struct restoring *restoring, const struct ng_value *item,
                             const struct ng_entry *entry)
{
    const struct ng_str recent[] = {redis_number(restoring->call, entry->time_ms),
                                    redis_member(restoring->call, entry)};
    (void)item;
    if (recent[0].data == NULL || recent[1].data == NULL) {
        return redis_no_memory(restoring->call);
    }
    restore_grow(restoring, ASK_WORD("ZADD"), restoring->recent, recent, 2);
    return NG_OK;
}

static int restore_add(struct restoring *restoring)
{
    static const struct {
        const char *part;
        int (*each)(struct restoring *restoring, const struct ng_value *item,
                    const struct ng_entry *entry);
    } steps[] = {
        {"days", restore_as_line},         {"days", restore_as_day},
        {"days", restore_as_seen},         {"references", restore_as_hash},
        {"references", restore_as_recent}, {"memories", restore_as_hash},
        {"memories", restore_as_recent},
    };
    struct ng_call *call = restoring->call;
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < NG_COUNT(steps); i++) {
        rc = restore_part(restoring, steps[i].part, steps[i].each);
    }
    restore_passed(restoring);
    const struct ng_value *summary = call->host->json_get(restoring->dump, "summary");
    if (rc == NG_OK && call->host->json_type(summary) == NG_TYPE_STRING) {
        ASK(&restoring->ask, ASK_WORD("SET"), restoring->summary,
            call->host->json_text(summary));
    }
    return rc;
}

/* ---- the transaction ---- */

/* Under WATCH: *ret_done: what is there was kept before, and all is as it is to be. */
static int restore_is_done(struct restoring *restoring, bool *ret_done)
{
    struct ask *ask = &restoring->ask;
    ASK(ask, ASK_WORD("WATCH"), restoring->aside->mark);
    ASK(ask, ASK_WORD("EXISTS"), restoring->aside->mark);
    int rc = ask_run_all(ask);
    *ret_done = rc == NG_OK && ask_reply(ask, 1)->integer == 1;
    return rc;
}

/* *ret_done: it holds. */
static int restore_once(struct restoring *restoring, bool *ret_done)
{
    struct ng_call *call = restoring->call;
    struct ask *ask = &restoring->ask;
    struct ng_str *old = NULL;
    size_t old_count = 0;
    int rc = restoring->aside != NULL ? restore_is_done(restoring, ret_done)
                                      : restore_look(restoring, &old, &old_count);
    if (rc != NG_OK || *ret_done) {
        return rc;
    }
    ASK(ask, ASK_WORD("MULTI"));
    if (restoring->aside != NULL) {
        redis_aside_ask(ask, restoring->aside);
    } else {
        restore_remove(restoring, old, old_count);
    }
    rc = restore_add(restoring);
    if (rc != NG_OK) {
        return rc;
    }
    ASK(ask, ASK_WORD("EXEC"));
    rc = ask_run_all(ask);
    const redisReply *done = rc == NG_OK ? ask_reply(ask, ask->count - 1) : NULL;
    if (done == NULL || done->type == REDIS_REPLY_NIL) {
        return rc;
    }
    for (size_t i = 0; rc == NG_OK && i < done->elements; i++) {
        if (done->element[i]->type == REDIS_REPLY_ERROR) {
            rc = link_fail_reply(restoring->redis->link, call, done->element[i]);
        }
    }
    *ret_done = rc == NG_OK;
    return rc;
}

/* Nothing of it is sent before all of it has been read once. */
static int restore_check(struct restoring *restoring)
{
    static const char *const parts[] = {"days", "references", "memories"};
    struct ng_call *call = restoring->call;
    struct ng_str format =
        call->host->json_text(call->host->json_get(restoring->dump, "format"));
    if (!redis_is(format, REDIS_DUMP_FORMAT)) {
        return restore_damaged(call, "its format is not " REDIS_DUMP_FORMAT);
    }
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (call->host->json_type(call->host->json_get(restoring->dump, parts[i])) !=
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
    struct restoring *restoring = ng_alloc(call, sizeof(*restoring));
    if (restoring == NULL) {
        return redis_no_memory(call);
    }
    *restoring =
        (struct restoring){.redis = redis, .call = call, .space = space, .aside = aside};
    int rc = call->host->json_parse(call, json, &restoring->dump);
    if (rc != NG_OK) {
        return rc == NG_EINTERNAL ? rc : restore_damaged(call, "it is not JSON");
    }
    rc = restore_check(restoring);
    restoring->days = restore_key(restoring, REDIS_DAYS, none);
    restoring->recent = restore_key(restoring, REDIS_RECENT, none);
    restoring->seen = restore_key(restoring, REDIS_SEEN, none);
    restoring->summary = restore_key(restoring, REDIS_SUMMARY, none);
    restoring->now = redis_number(call, call->host->now_ms());
    if (rc == NG_OK && (restoring->days.data == NULL || restoring->recent.data == NULL ||
                        restoring->seen.data == NULL || restoring->summary.data == NULL ||
                        restoring->now.data == NULL)) {
        rc = redis_no_memory(call);
    }
    bool done = false;
    for (int i = 0; rc == NG_OK && !done && i < RESTORE_TRIES; i++) {
        ask_init(&restoring->ask, restoring->redis->link, call);
        restoring->ask.hold = true;
        rc = restore_once(restoring, &done);
        ask_done(&restoring->ask);
    }
    if (rc == NG_OK && !done) {
        rc = ng_fail(call, NG_EBUSY,
                     "others wrote to the journal all the time; restore it again in a moment");
    }
    return rc;
}
