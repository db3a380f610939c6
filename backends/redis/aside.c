/* SPDX-License-Identifier: MIT */
/*
 * aside.c - keeps the journal that a restore replaces, however large, under keys of its own;
 * deletes checkpoints and old entries.
 *
 * Keeping renames keys and reads no values. The kept keys are those of the journal behind
 * "journal:kept:ID:"; the key "made" among them marks the kept journal as complete.
 */
#include "redis.h"
#include "snapshot.h"

#define ASIDE_MADE "made"
/* Prefix of the copy of a kept journal that is about to become the present one. */
#define ASIDE_NEXT "next:"
/* Keys removed by one run of a script. Redis serves no other client while it runs. */
#define ASIDE_PAGE "1000"
/* Attempts at a step while the server is still busy with it. */
#define ASIDE_TRIES 16

/* Lua: calls `each` with the name of every key of the journal behind a prefix. */
#define ASIDE_WALK                                                                             \
    "local function walk(base, each)\n"                                                        \
    "  for _, date in ipairs(redis.call('ZRANGE', base .. 'journal:days', 0, -1)) do\n"        \
    "    each('daily:' .. date)\n"                                                             \
    "  end\n"                                                                                  \
    "  local at = 0\n"                                                                         \
    "  repeat\n"                                                                               \
    "    local names = redis.call('ZRANGE', base .. 'journal:recent', at, at + 999)\n"         \
    "    for _, name in ipairs(names) do each(name) end\n"                                     \
    "    at = at + 1000\n"                                                                     \
    "  until #names == 0\n"                                                                    \
    "  each('journal:days')\n"                                                                 \
    "  each('journal:recent')\n"                                                               \
    "  each('summary')\n"                                                                      \
    "end\n"

/* KEYS: the mark of the kept journal. ARGV: the key prefixes of the present journal, of the
 * kept one, and of the one that takes its place ("": none). All types are checked before the
 * first write, as nothing may fail after it. */
static const char aside_script[] = ASIDE_WALK REDIS_LUA_LACKS
    "local lack = lacks({'rename', 'set'})\n"
    "if lack then return lack end\n"
    "local live, kept, from = ARGV[1], ARGV[2], ARGV[3]\n"
    "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end\n"
    "for _, name in ipairs({'journal:days', 'journal:recent'}) do\n"
    "  local kind = redis.call('TYPE', live .. name).ok\n"
    "  if kind ~= 'none' and kind ~= 'zset' then\n"
    "    return redis.error_reply('WRONGTYPE ' .. live .. name .. ' is a ' .. kind)\n"
    "  end\n"
    "end\n"
    "walk(live, function(name) redis.pcall('RENAME', live .. name, kept .. name) end)\n"
    "if from ~= '' then\n"
    "  walk(from, function(name) redis.pcall('RENAME', from .. name, live .. name) end)\n"
    "end\n"
    "redis.call('SET', KEYS[1], '1')\n"
    "return 1\n";

/* KEYS: the mark of the future kept journal. ARGV: the key prefixes of the kept journal and of
 * its copy, how many hashes are copied already, and the most for one run. Returns how many it
 * copied, or -1 if the step that needs the copy is already done. */
static const char copy_script[] =
    "local from, to, at = ARGV[1], ARGV[2], tonumber(ARGV[3])\n"
    "local function copy(name)\n"
    "  local value = redis.call('DUMP', from .. name)\n"
    "  if value then redis.call('RESTORE', to .. name, 0, value, 'REPLACE') end\n"
    "end\n"
    "if redis.call('EXISTS', KEYS[1]) == 1 then return -1 end\n"
    "if redis.call('EXISTS', from .. 'made') == 0 then\n"
    "  return redis.error_reply('NOTKEPT nothing is')\n"
    "end\n"
    "if at == 0 then\n"
    "  copy('journal:recent')\n"
    "  copy('journal:days')\n"
    "  copy('summary')\n"
    "  for _, date in ipairs(redis.call('ZRANGE', from .. 'journal:days', 0, -1)) do\n"
    "    copy('daily:' .. date)\n"
    "  end\n"
    "end\n"
    "local names = redis.call('ZRANGE', from .. 'journal:recent', at, at + ARGV[4] - 1)\n"
    "for _, name in ipairs(names) do copy(name) end\n"
    "return #names\n";

/* KEYS: days, recent. ARGV: the prefix of all keys, the first day that stays or "", the first
 * time that stays or "+inf", and the most keys for one run. Returns how many it removed. */
static const char trim_script[] =
    "for _, date in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do\n"
    "  if ARGV[2] == '' or date < ARGV[2] then\n"
    "    redis.call('UNLINK', ARGV[1] .. 'daily:' .. date)\n"
    "    redis.call('ZREM', KEYS[1], date)\n"
    "  end\n"
    "end\n"
    "local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[3], 'LIMIT', 0,\n"
    "  ARGV[4])\n"
    "for _, name in ipairs(names) do\n"
    "  redis.call('UNLINK', ARGV[1] .. name)\n"
    "  redis.call('ZREM', KEYS[2], name)\n"
    "end\n"
    "return #names\n";

static struct ng_str aside_prefix(struct redis *redis, struct ng_call *call,
                                  struct ng_str space, struct ng_str id)
{
    return REDIS_JOIN(call, redis_key(redis, call, space, REDIS_KEPT, id), WORD(":"));
}

struct aside redis_aside(struct redis *redis, struct ng_call *call, struct ng_str space,
                         struct ng_str id, bool with_copy)
{
    struct ng_str kept = aside_prefix(redis, call, space, id);
    struct aside aside = {
        .live = redis_key(redis, call, space, "", str_make(NULL, 0)),
        .kept = kept,
        .from = WORD(""),
        .mark = REDIS_JOIN(call, kept, WORD(ASIDE_MADE)),
    };
    if (with_copy) {
        aside.from = REDIS_JOIN(call, kept, WORD(ASIDE_NEXT));
    }
    return aside;
}

void redis_aside_add(struct pipeline *pipeline, const struct aside *aside)
{
    PIPELINE_ADD(pipeline, WORD("EVAL"), WORD(aside_script), WORD("1"), aside->mark,
                 aside->live, aside->kept, aside->from);
}

/* ---- restoring a kept journal ---- */

/* Copies the journal kept under `from`, a page at a time; the kept one stays unchanged. */
static int aside_copy(struct redis *redis, struct ng_call *call, struct ng_str kept,
                      const struct aside *aside, struct ng_str from)
{
    long long count = 1;
    int rc = NG_OK;
    for (int64_t at = 0; rc == NG_OK && count > 0; at += count) {
        struct pipeline pipeline;
        pipeline_init(&pipeline, redis->pool, call);
        PIPELINE_ADD(&pipeline, WORD("EVAL"), WORD(copy_script), WORD("1"), aside->mark, kept,
                     aside->from, redis_number(call, at), WORD(ASIDE_PAGE));
        rc = pipeline_run(&pipeline);
        const redisReply *reply = NULL;
        if (rc == NG_OK) {
            reply = pipeline_reply(&pipeline, 0);
        }
        if (reply != NULL && redis_error_is(reply, "NOTKEPT")) {
            rc = ng_fail(call, NG_ENOTFOUND, "no journal is kept under '%.*s'", (int)from.len,
                         from.data);
        } else if (reply != NULL && reply->type != REDIS_REPLY_INTEGER) {
            rc = pool_fail_reply(redis->pool, call, reply);
        } else if (reply != NULL) {
            count = reply->integer;
        }
        pipeline_done(&pipeline);
        if (rc == NG_OK && call->host->cancelled(call)) {
            rc = ng_fail(call, NG_ECANCELLED, "the call was cancelled");
        }
    }
    return rc;
}

/* One step: renames the present journal, and the copy into its place. */
static int aside_back(struct redis *redis, struct ng_call *call, struct ng_str space,
                      const struct aside *aside, struct ng_str from)
{
    struct ng_str kept = aside_prefix(redis, call, space, from);
    int rc = aside_copy(redis, call, kept, aside, from);
    if (rc != NG_OK) {
        return rc;
    }
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    redis_aside_add(&pipeline, aside);
    rc = pipeline_run_all(&pipeline);
    pipeline_done(&pipeline);
    return rc;
}

int redis_restore_aside(void *journal, struct ng_call *call, struct ng_str space,
                        struct ng_str id, struct ng_str json)
{
    const struct ng_host *host = call->host;
    const struct ng_value *body = NULL;
    struct ng_str from = {NULL, 0};
    /* The text of a kept journal is a short reference; a dump is never that short. */
    if (json.len < REDIS_KEPT_JSON_MAX && host->json_parse(call, json, &body) == NG_OK &&
        str_is(host->json_text(host->json_get(body, "format")), REDIS_KEPT_FORMAT)) {
        from = host->json_text(host->json_get(body, "id"));
    }
    struct aside aside = redis_aside(journal, call, space, id, from.len > 0);
    int rc = NG_OK;
    for (int i = 0; i < ASIDE_TRIES; i++) {
        if (from.len > 0) {
            rc = aside_back(journal, call, space, &aside, from);
        } else {
            rc = redis_restore_beside(journal, call, space, json, &aside);
        }
        bool again = (rc == NG_ETIMEOUT || rc == NG_EUNAVAILABLE) && i + 1 < ASIDE_TRIES &&
                     !host->cancelled(call);
        if (!again) {
            break;
        }
    }
    return rc;
}

/* ---- deleting ---- */

/* Removes entries behind a prefix, a page at a time. */
static int trim_pages(struct redis *redis, struct ng_call *call, struct ng_str prefix,
                      struct ng_str day, struct ng_str until)
{
    struct ng_str days = REDIS_JOIN(call, prefix, WORD(REDIS_DAYS));
    struct ng_str recent = REDIS_JOIN(call, prefix, WORD(REDIS_RECENT));
    int64_t removed = 1;
    int rc = NG_OK;
    while (rc == NG_OK && removed > 0) {
        rc = REDIS_DO(redis, call, &removed, WORD("EVAL"), WORD(trim_script), WORD("2"), days,
                      recent, prefix, day, until, WORD(ASIDE_PAGE));
        if (rc == NG_OK && call->host->cancelled(call)) {
            rc = ng_fail(call, NG_ECANCELLED, "the call was cancelled");
        }
    }
    return rc;
}

int redis_trim(void *journal, struct ng_call *call, struct ng_str space, int64_t before_ms)
{
    return trim_pages(journal, call, redis_key(journal, call, space, "", str_make(NULL, 0)),
                      call->host->day(call, before_ms), redis_number(call, before_ms - 1));
}

int redis_checkpoint_delete(void *journal, struct ng_call *call, struct ng_str space,
                            struct ng_str id)
{
    struct redis *redis = journal;
    struct ng_str none = {NULL, 0};
    struct ng_str key = redis_key(redis, call, space, REDIS_CHECKPOINT, id);
    struct aside aside = redis_aside(redis, call, space, id, true);
    int64_t is_there = 0;
    int rc = REDIS_DO(redis, call, &is_there, WORD("EXISTS"), key);
    if (rc == NG_OK && is_there != 1) {
        return ng_fail(call, NG_ENOTFOUND, "there is no checkpoint '%.*s'", (int)id.len,
                       id.data);
    }
    /* The kept journal goes before its checkpoint, so an interrupted delete can be repeated. */
    if (rc == NG_OK) {
        rc = REDIS_DO(redis, call, NULL, WORD("DEL"), aside.mark,
                      REDIS_JOIN(call, aside.kept, WORD(REDIS_SUMMARY)));
    }
    if (rc == NG_OK) {
        rc = trim_pages(redis, call, aside.kept, WORD(""), WORD("+inf"));
    }
    if (rc == NG_OK) {
        rc = trim_pages(redis, call, aside.from, WORD(""), WORD("+inf"));
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("HDEL"), redis_key(redis, call, space, REDIS_HEADS, none), id);
    PIPELINE_ADD(&pipeline, WORD("ZREM"),
                 redis_key(redis, call, space, REDIS_CHECKPOINTS, none), id);
    PIPELINE_ADD(&pipeline, WORD("UNLINK"), key);
    rc = pipeline_run_all(&pipeline);
    pipeline_done(&pipeline);
    return rc;
}
