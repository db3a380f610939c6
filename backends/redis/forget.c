/* SPDX-License-Identifier: MIT */
/* forget.c - one memory: reading it, and removing it from its day and from recall; also the
 * line of a reference from its day. */
#include <stdio.h>
#include <string.h>

#include "core/base/minmax.h"
#include "redis.h"

#define FORGET_DAY_MS ((int64_t)24 * 60 * 60 * 1000)
/* The day of the memory, and those beside it: `timezone` may have been another one. */
#define FORGET_DAYS 3
/* EVAL, script, number of keys, keys, arguments. */
#define FORGET_KEYS (3 + FORGET_DAYS)
#define FORGET_ARGS 6
#define FORGET_WORDS (3 + FORGET_KEYS + FORGET_ARGS)

/*
 * KEYS: the marks, the hash, recent, lists of days. ARGV: the mark ("": any), the least number
 * in it, the one that it gets, name in recent, event id, "ref" if it is a reference. Returns -1
 * if the mark is gone or has a lower number.
 *
 * The line is found from the newest one on, by its event id. A Redis killed while it wrote the
 * effects to its file may keep the first ones only: the hash, which tells the day, goes last,
 * and a line that was replaced is removed by the repeated delivery.
 */
static const char forget_script[] = REDIS_LUA_LACKS
    "local lack = lacks({'lset', 'lrem', 'zrem', 'del', 'hset'})\n"
    "if lack then return lack end\n"
    "local number\n"
    "if ARGV[1] ~= '' then\n"
    "  number = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '')\n"
    "  if not number or number < tonumber(ARGV[2]) then return -1 end\n"
    "end\n"
    "local gone = 'deleted memory ' .. ARGV[5]\n"
    "local function is_it(line)\n"
    "  if line == gone then return true end\n"
    "  if not string.find(line, ARGV[5], 1, true) then return false end\n"
    "  local good, event = pcall(cjson.decode, line)\n"
    "  return good and type(event) == 'table' and event.event_id == ARGV[5] and\n"
    "    (event.type == 'notebook_ref') == (ARGV[6] == 'ref')\n"
    "end\n"
    "local function remove(list)\n"
    "  if redis.call('TYPE', list).ok ~= 'list' then return end\n"
    "  local last = redis.call('LLEN', list) - 1\n"
    "  while last >= 0 do\n"
    "    local first = math.max(last - 255, 0)\n"
    "    local lines = redis.call('LRANGE', list, first, last)\n"
    "    for i = #lines, 1, -1 do\n"
    "      if is_it(lines[i]) then\n"
    "        redis.call('LSET', list, first + i - 1, gone)\n"
    "        redis.call('LREM', list, 0, gone)\n"
    "        return true\n"
    "      end\n"
    "    end\n"
    "    last = first - 1\n"
    "  end\n"
    "end\n"
    "for i = 4, #KEYS do\n"
    "  if remove(KEYS[i]) then break end\n"
    "end\n"
    "redis.call('ZREM', KEYS[3], ARGV[4])\n"
    "redis.call('DEL', KEYS[2])\n"
    "if number and number < tonumber(ARGV[3]) then\n"
    "  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])\n"
    "end\n"
    "return 0\n";

/* The memory with this event id. NG_ENOTFOUND, without a message: there is none. */
static int forget_read(struct redis *redis, struct ng_call *call, struct ng_str space,
                       struct ng_str event_id, ng_entry_row_fn *row, void *user)
{
    struct pipeline pipeline;
    struct ng_entry entry;
    pipeline_init(&pipeline, redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("HGETALL"),
                 redis_key(redis, call, space, REDIS_MEMORY, event_id));
    int rc = pipeline_run_all(&pipeline);
    if (rc == NG_OK) {
        rc = redis_hash_read(call, pipeline_reply(&pipeline, 0), space, &entry);
    }
    if (rc == NG_EINVAL || (rc == NG_OK && entry.kind != NG_ENTRY_MEMORY)) {
        rc = NG_ENOTFOUND;
    }
    if (rc == NG_OK) {
        entry.event_id = event_id; /* of another program's memory it is not in the hash */
        (void)row(user, &entry);
    }
    pipeline_done(&pipeline);
    return rc;
}

int redis_memory(void *journal, struct ng_call *call, struct ng_str space,
                 struct ng_str event_id, ng_entry_row_fn *row, void *user)
{
    int rc = forget_read(journal, call, space, event_id, row, user);
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    return ng_fail(call, rc, "the journal has no such memory");
}

static int forget_take_time(void *user, const struct ng_entry *entry)
{
    int64_t *time_ms = user;
    *time_ms = entry->time_ms;
    return 0;
}

int redis_forget(void *journal, struct ng_call *call, struct ng_str mark, uint64_t seq,
                 const struct ng_entry *entry)
{
    struct redis *redis = journal;
    int64_t time_ms = entry->time_ms; /* if the hash is gone: of its deletion */
    struct ng_str none = {NULL, 0};
    struct ng_str words[FORGET_WORDS];
    size_t count = 0;
    int rc = forget_read(redis, call, entry->space, entry->id, forget_take_time, &time_ms);
    if (rc != NG_OK && rc != NG_ENOTFOUND) {
        return rc;
    }
    words[count++] = WORD("EVAL");
    words[count++] = WORD(forget_script);
    words[count++] = redis_number(call, FORGET_KEYS);
    words[count++] = redis_key(redis, call, WORD("shared"), REDIS_MARK, none);
    words[count++] = redis_key(redis, call, entry->space, REDIS_MEMORY, entry->id);
    words[count++] = redis_key(redis, call, entry->space, REDIS_RECENT, none);
    static const int64_t days[FORGET_DAYS] = {0, -FORGET_DAY_MS, FORGET_DAY_MS};
    for (size_t i = 0; i < FORGET_DAYS; i++) {
        int64_t at = i64_max(time_ms + days[i], 0);
        words[count++] =
            redis_key(redis, call, entry->space, REDIS_DAY, call->host->day(call, at));
    }
    words[count++] = mark;
    words[count++] = redis_number(call, (int64_t)seq);
    words[count++] = redis_number(call, (int64_t)entry->seq);
    words[count++] = REDIS_JOIN(call, WORD(REDIS_MEMORY), entry->id);
    words[count++] = entry->id;
    words[count++] = entry->version > 0 ? WORD("ref") : WORD("");
    int64_t reply = 0;
    rc = redis_do(redis, call, words, count, &reply);
    if (rc == NG_OK && reply < 0) {
        return ng_fail(call, NG_ECONFLICT, "Redis lost entries of the journal");
    }
    return rc;
}
