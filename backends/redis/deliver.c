/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - writes entries to the day's list and to their hashes.
 *
 * One script takes a group of entries whole or not at all, and skips each event seen within
 * REDIS_SEEN_MS. So no line appears twice, even when a connection breaks in the middle or
 * another gateway delivers the same event. The same script compares and moves the mark, so
 * nothing is appended behind a gap of lost data.
 */
#include <openssl/evp.h>
#include <string.h>

#include "connection/find.h"
#include "core/base/minmax.h"
#include "core/base/text/hex.h"
#include "redis.h"

/* Entries, and roughly the bytes, that one run of the script takes. Redis serves no other
 * client while it runs. */
#define DELIVER_ENTRIES 64
#define DELIVER_BYTES ((size_t)1024 * 1024)
#define DELIVER_KEYS 5
#define DELIVER_HEAD 8 /* arguments of an entry before the members of its hash */
/* EVALSHA, sha, number of keys; the key of the mark; arguments for all entries. */
#define DELIVER_FIRST 4
#define DELIVER_COMMON 5
#define DELIVER_WORDS_MAX                                                                      \
    (DELIVER_FIRST + DELIVER_COMMON +                                                          \
     DELIVER_ENTRIES * (DELIVER_KEYS + DELIVER_HEAD + REDIS_MEMBERS_MAX))
#define DELIVER_SHA_SIZE 41

/*
 * KEYS: the marks; for each entry: seen, list of the day, hash, recent, days. ARGV: now, the
 * time before which "seen" marks have expired, the mark ("": any), the least number in it, the
 * one that it gets; for each entry: event id, line, date, name in recent, time, version ("": a
 * memory), seq, number of hash arguments, those arguments. Returns the number of new lines, or
 * -1 if the mark is gone or has
 * a lower number.
 *
 * An event older than the "seen" marks comes again if another journal was in use meanwhile, or
 * if Redis lost data: then the script looks for it in the list (Redis before 6.0.6 cannot),
 * unless the last line there is an earlier event. All types are checked before the first write,
 * as nothing may fail after it.
 *
 * All entries of a run share one list. RPUSH comes last but for the mark: a Redis killed while
 * it wrote the script's effects to its file may keep only the first of them and apply them at
 * its next start, after the repeated delivery. Everything but RPUSH can be repeated without
 * harm.
 */
static const char deliver_script[] = REDIS_LUA_LACKS
    "local lack = lacks({'zadd', 'hset', 'rpush', 'zremrangebyscore'})\n"
    "if lack then return lack end\n"
    "local kinds = {'zset', 'list', 'hash', 'zset', 'zset'}\n"
    "for i = 1, #KEYS do\n"
    "  local kind = redis.call('TYPE', KEYS[i]).ok\n"
    "  local want = i == 1 and 'hash' or kinds[(i - 2) % 5 + 1]\n"
    "  if kind ~= 'none' and kind ~= want then\n"
    "    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. kind ..\n"
    "      ' where a ' .. want .. ' belongs')\n"
    "  end\n"
    "end\n"
    "local number\n"
    "if ARGV[3] ~= '' then\n"
    "  number = tonumber(redis.call('HGET', KEYS[1], ARGV[3]) or '')\n"
    "  if not number or number < tonumber(ARGV[4]) then return -1 end\n"
    "end\n"
    "local at, lines, list, last = 6, {}, KEYS[3], -1\n"
    "local line = redis.call('LINDEX', list, -1)\n"
    "if line then\n"
    "  local good, event = pcall(cjson.decode, line)\n"
    "  last = good and type(event) == 'table' and tonumber(event.seq) or math.huge\n"
    "end\n"
    "for i = 2, #KEYS, 5 do\n"
    "  local seen, hash, recent, days = KEYS[i], KEYS[i + 2], KEYS[i + 3], KEYS[i + 4]\n"
    "  local id, version, seq = ARGV[at], tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])\n"
    "  local first = at + 8\n"
    "  local final = first + tonumber(ARGV[at + 7]) - 1\n"
    "  local there = redis.call('ZSCORE', seen, id)\n"
    "  if not there and seq <= last and tonumber(ARGV[at + 4]) < tonumber(ARGV[2]) then\n"
    "    there = type(redis.pcall('LPOS', list, ARGV[at + 1])) == 'number'\n"
    "  end\n"
    "  if not there then\n"
    "    lines[#lines + 1] = ARGV[at + 1]\n"
    "    redis.call('ZADD', days, 0, ARGV[at + 2])\n"
    "    local newer = true\n"
    "    if version then\n"
    "      local old = redis.call('HMGET', hash, 'version', 'seq')\n"
    "      local v, s = tonumber(old[1] or ''), tonumber(old[2] or '')\n"
    "      newer = not v or version > v or (version == v and seq > (s or -1))\n"
    "    end\n"
    "    if newer then\n"
    "      redis.call('HSET', hash, unpack(ARGV, first, final))\n"
    "      redis.call('ZADD', recent, ARGV[at + 4], ARGV[at + 3])\n"
    "    end\n"
    "    redis.call('ZREMRANGEBYSCORE', seen, '-inf', ARGV[2])\n"
    "    redis.call('ZADD', seen, ARGV[1], id)\n"
    "  end\n"
    "  at = final + 1\n"
    "end\n"
    "if #lines > 0 then redis.call('RPUSH', list, unpack(lines)) end\n"
    "if number and number < tonumber(ARGV[5]) then\n"
    "  redis.call('HSET', KEYS[1], ARGV[3], ARGV[5])\n"
    "end\n"
    "return #lines\n";

struct delivery_batch {
    struct redis *redis;
    struct ng_call *call;
    struct ng_str *words;
    size_t keys, args; /* arguments used in each half */
    size_t bytes, entries;
    struct ng_str list; /* the list of all entries of this run */
    struct ng_str now, forget;
    struct ng_str mark;       /* "": any */
    uint64_t least;           /* the least number in the mark */
    uint64_t last;            /* of the entries */
    struct ng_str *arguments; /* the second half, until all keys are known */
};

static int deliver_sha(struct ng_call *call, char sha[DELIVER_SHA_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    if (EVP_Digest(deliver_script, sizeof(deliver_script) - 1, digest, &len, EVP_sha1(),
                   NULL) != 1) {
        return ng_fail(call, NG_EINTERNAL, "SHA-1, which names scripts in Redis, is missing");
    }
    hex_write(digest, size_min(len, (DELIVER_SHA_SIZE - 1) / 2), sha);
    return NG_OK;
}

static int deliver_send(struct delivery_batch *batch);

static struct ng_str mark_key(const struct redis *redis, struct ng_call *call)
{
    return redis_key(redis, call, WORD("shared"), REDIS_MARK, str_make(NULL, 0));
}

static int deliver_check(struct ng_call *call, const struct ng_entry *entry)
{
    if (entry->event_id.len == 0) {
        return ng_fail(call, NG_EINVAL, "an entry of the journal has no event_id");
    }
    if (entry->space.len > NG_SPACE_MAX) {
        return ng_fail(call, NG_EINVAL, "the name of the space is longer than %d bytes",
                       NG_SPACE_MAX);
    }
    return NG_OK;
}

/* Adds one entry to the current run, or to a new one if it belongs to another list. */
static int deliver_add(struct delivery_batch *batch, const struct ng_entry *entry)
{
    struct ng_call *call = batch->call;
    struct redis_members members;
    struct ng_str none = {NULL, 0};
    struct ng_str date = call->host->day(call, entry->time_ms);
    struct ng_str line = redis_line(call, entry);
    struct ng_str member = redis_member(call, entry);
    int rc = redis_members(call, entry, &members);
    const struct ng_str keys[DELIVER_KEYS] = {
        redis_key(batch->redis, call, entry->space, REDIS_SEEN, none),
        redis_key(batch->redis, call, entry->space, REDIS_DAY, date),
        redis_key(batch->redis, call, entry->space, "", member),
        redis_key(batch->redis, call, entry->space, REDIS_RECENT, none),
        redis_key(batch->redis, call, entry->space, REDIS_DAYS, none),
    };
    if (rc == NG_OK && batch->entries > 0 && !str_equal(batch->list, keys[1])) {
        rc = deliver_send(batch);
    }
    if (rc != NG_OK) {
        return rc;
    }
    batch->list = keys[1];
    memcpy(batch->words + DELIVER_FIRST + batch->keys, keys, sizeof(keys));
    bool is_memory = entry->kind == NG_ENTRY_MEMORY;
    struct ng_str *out = batch->arguments + batch->args;
    struct ng_str version = ng_str_of("");
    if (!is_memory) {
        version = redis_number(call, (int64_t)entry->version);
    }
    const struct ng_str head[DELIVER_HEAD] = {
        entry->event_id,
        line,
        date,
        member,
        redis_number(call, entry->time_ms),
        version,
        redis_number(call, (int64_t)entry->seq),
        redis_number(call, (int64_t)members.count),
    };
    for (size_t i = 0; i < DELIVER_HEAD; i++) {
        out[i] = head[i];
        batch->bytes += head[i].len;
    }
    for (size_t i = 0; i < members.count; i++) {
        out[DELIVER_HEAD + i] = members.items[i];
        batch->bytes += members.items[i].len;
    }
    batch->keys += DELIVER_KEYS;
    batch->args += DELIVER_HEAD + members.count;
    batch->entries++;
    batch->last = u64_max(batch->last, entry->seq);
    return NG_OK;
}

/* Runs the script for the entries added. Its text is sent along, as Redis may have forgotten
 * it. */
static int deliver_send(struct delivery_batch *batch)
{
    struct ng_call *call = batch->call;
    char sha[DELIVER_SHA_SIZE] = "";
    struct pipeline pipeline;
    if (batch->entries == 0) {
        return NG_OK;
    }
    int rc = deliver_sha(call, sha);
    if (rc != NG_OK) {
        return rc;
    }
    size_t count = DELIVER_FIRST + batch->keys;
    batch->words[0] = WORD("EVALSHA");
    batch->words[1] = ng_str_of(sha);
    batch->words[2] = redis_number(call, (int64_t)batch->keys + 1);
    batch->words[3] = mark_key(batch->redis, call);
    batch->words[count++] = batch->now;
    batch->words[count++] = batch->forget;
    batch->words[count++] = batch->mark;
    batch->words[count++] = redis_number(call, (int64_t)batch->least);
    batch->words[count++] = redis_number(call, (int64_t)batch->last);
    for (size_t i = 0; i < batch->args; i++) {
        batch->words[count++] = batch->arguments[i];
    }
    pipeline_init(&pipeline, batch->redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("SCRIPT"), WORD("LOAD"), WORD(deliver_script));
    pipeline_add(&pipeline, batch->words, count);
    rc = pipeline_run_all(&pipeline);
    if (rc == NG_OK && pipeline_reply(&pipeline, 1)->integer < 0) {
        rc = ng_fail(call, NG_ECONFLICT, "Redis lost entries of the journal");
    }
    pipeline_done(&pipeline);
    batch->least = u64_max(batch->least, batch->last);
    batch->keys = 0;
    batch->args = 0;
    batch->bytes = 0;
    batch->entries = 0;
    return rc;
}

static int deliver_all(struct redis *redis, struct ng_call *call, struct ng_str mark,
                       uint64_t seq, const struct ng_entry *const *entries, size_t count)
{
    int64_t now = call->host->now_ms();
    struct delivery_batch batch = {
        .redis = redis,
        .call = call,
        .mark = mark,
        .least = seq,
        .now = redis_number(call, now),
        .forget = redis_number(call, now - REDIS_SEEN_MS),
        .words = ng_alloc(call, DELIVER_WORDS_MAX * sizeof(struct ng_str)),
        .arguments = ng_alloc(call, DELIVER_WORDS_MAX * sizeof(struct ng_str)),
    };
    if (batch.words == NULL || batch.arguments == NULL) {
        return redis_no_memory(call);
    }
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        rc = deliver_check(call, entries[i]);
        if (rc == NG_OK) {
            rc = deliver_add(&batch, entries[i]);
        }
        if (rc == NG_OK && (batch.entries == DELIVER_ENTRIES || batch.bytes >= DELIVER_BYTES ||
                            i + 1 == count)) {
            rc = deliver_send(&batch);
        }
    }
    return rc;
}

int redis_deliver(void *journal, struct ng_call *call, const struct ng_entry *const *entries,
                  size_t count)
{
    return deliver_all(journal, call, WORD(""), 0, entries, count);
}

/* ---- the mark ---- */

int redis_mark(void *journal, struct ng_call *call, struct ng_str mark, uint64_t *ret_seq)
{
    struct redis *redis = journal;
    struct pipeline pipeline;
    find_look(redis->pool, call);
    pipeline_init(&pipeline, redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("HGET"), mark_key(redis, call), mark);
    int rc = pipeline_run_all(&pipeline);
    if (rc == NG_OK &&
        !str_number(redis_text(pipeline_reply(&pipeline, 0)), INT64_MAX, ret_seq)) {
        rc = ng_fail(call, NG_ENOTFOUND, "Redis does not have the mark of the journal");
    }
    pipeline_done(&pipeline);
    if (rc == NG_OK) {
        (void)redis_fill(redis, call); /* its failure does not concern the mark */
    }
    return rc;
}

int redis_deliver_marked(void *journal, struct ng_call *call, struct ng_str mark, uint64_t seq,
                         const struct ng_entry *const *entries, size_t count)
{
    if (count > 0) {
        return deliver_all(journal, call, mark, seq, entries, count);
    }
    return REDIS_DO((struct redis *)journal, call, NULL, WORD("HSETNX"),
                    mark_key(journal, call), mark, redis_number(call, (int64_t)seq));
}
