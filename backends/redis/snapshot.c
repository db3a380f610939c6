/* SPDX-License-Identifier: MIT */
/* snapshot.c - dumps a space's journal as one JSON text. */
#include <string.h>

#include "redis.h"
#include "snapshot.h"

/* Most bytes of a dump, and most entries in one. */
#define DUMP_BYTES_MAX "67108864"
#define DUMP_ENTRIES_MAX "200000"
/* If the call can still allocate this much, it had memory for one more entry. */
#define DUMP_ENTRY_ROOM ((size_t)16 * 1024 * 1024)

/* KEYS: days, recent, summary. ARGV: the prefix of all keys of the space, most bytes, most
 * entries. One script, so the dump shows a single moment: {{date, line...}...}, {hash...},
 * summary. Of a hash only the fields that redis_hash_read() needs of our own entries: those of
 * other programs have no event to restore. */
static const char dump_script[] =
    "local left, entries = tonumber(ARGV[2]), tonumber(ARGV[3])\n"
    "local function take(bytes, count)\n"
    "  left, entries = left - bytes, entries - count\n"
    "  return left >= 0 and entries >= 0\n"
    "end\n"
    "local big = redis.error_reply('TOOLARGE the journal of the space has more than ' ..\n"
    "  ARGV[2] .. ' bytes or ' .. ARGV[3] .. ' entries, more than a checkpoint can hold; ' ..\n"
    "  'journal.keep makes it forget what is older than some days')\n"
    "local days, hashes = {}, {}\n"
    "for _, date in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do\n"
    "  local list = ARGV[1] .. 'daily:' .. date\n"
    "  if not take(0, redis.call('LLEN', list)) then return big end\n"
    "  local lines = redis.call('LRANGE', list, 0, -1)\n"
    "  for _, line in ipairs(lines) do\n"
    "    if not take(#line, 0) then return big end\n"
    "  end\n"
    "  table.insert(lines, 1, date)\n"
    "  days[#days + 1] = lines\n"
    "end\n"
    "if not take(0, redis.call('ZCARD', KEYS[2])) then return big end\n"
    "for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do\n"
    "  local got = redis.call('HMGET', ARGV[1] .. name, 'event', 'content')\n"
    "  if got[1] then\n"
    "    local content = got[2] or ''\n"
    "    if not take(#got[1] + #content, 0) then return big end\n"
    "    hashes[#hashes + 1] = {'event', got[1], 'content', content}\n"
    "  end\n"
    "end\n"
    "return {days, hashes, redis.call('GET', KEYS[3])}\n";

static int dump_days(struct ng_call *call, struct ng_writer *writer, const redisReply *days,
                     struct ng_str space)
{
    int rc = NG_OK;
    call->host->json_name(writer, "days");
    call->host->json_array(writer);
    for (size_t i = 0; rc != NG_EINTERNAL && i < days->elements; i++) {
        const redisReply *lines = days->element[i];
        for (size_t k = 1; rc != NG_EINTERNAL && k < lines->elements; k++) {
            struct ng_entry entry;
            rc = redis_line_read(call, redis_text(lines->element[k]), space, &entry);
            /* A line of another program has no event to restore. */
            if (rc == NG_OK && entry.event_id.len > 0) {
                redis_entry_write(call, writer, redis_text(lines->element[0]), &entry);
            }
        }
    }
    call->host->json_end(writer);
    if (rc == NG_EINTERNAL) {
        return rc;
    }
    return NG_OK;
}

static int dump_hashes(struct ng_call *call, struct ng_writer *writer, const redisReply *hashes,
                       struct ng_str space, enum ng_entry_kind kind)
{
    int rc = NG_OK;
    struct ng_str none = {NULL, 0};
    call->host->json_name(writer, kind == NG_ENTRY_MEMORY ? "memories" : "references");
    call->host->json_array(writer);
    for (size_t i = 0; rc != NG_EINTERNAL && i < hashes->elements; i++) {
        struct ng_entry entry;
        rc = redis_hash_read(call, hashes->element[i], space, &entry);
        if (rc == NG_OK && entry.kind == kind && entry.event_id.len > 0) {
            redis_entry_write(call, writer, none, &entry);
        }
    }
    call->host->json_end(writer);
    if (rc == NG_EINTERNAL) {
        return rc;
    }
    return NG_OK;
}

static int dump_print(struct ng_call *call, const redisReply *reply, struct ng_str space,
                      struct ng_str *ret_json)
{
    struct ng_writer *writer = call->host->json_writer(call);
    if (writer == NULL) {
        return redis_no_memory(call);
    }
    struct ng_str summary = redis_text(reply->element[2]);
    call->host->json_object(writer);
    call->host->json_name(writer, "format");
    call->host->json_string(writer, ng_str_of(REDIS_DUMP_FORMAT));
    int rc = dump_days(call, writer, reply->element[0], space);
    if (rc == NG_OK) {
        rc = dump_hashes(call, writer, reply->element[1], space, NG_ENTRY_REFERENCE);
    }
    if (rc == NG_OK) {
        rc = dump_hashes(call, writer, reply->element[1], space, NG_ENTRY_MEMORY);
    }
    call->host->json_name(writer, "summary");
    if (summary.data == NULL) {
        call->host->json_null(writer);
    } else {
        call->host->json_string(writer, summary);
    }
    call->host->json_end(writer);
    struct ng_str json = call->host->json_result(writer);
    if (rc == NG_OK && json.data == NULL) {
        rc = ng_fail(call, NG_ETOOLARGE,
                     "the journal of the space is too large for one dump; set journal.keep to "
                     "remove old entries");
    }
    if (rc == NG_OK) {
        *ret_json = json;
    }
    return rc;
}

int redis_dump(void *journal, struct ng_call *call, struct ng_str space,
               struct ng_str *ret_json)
{
    struct redis *redis = journal;
    struct ng_str none = {NULL, 0};
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("EVAL"), WORD(dump_script), WORD("3"),
                 redis_key(redis, call, space, REDIS_DAYS, none),
                 redis_key(redis, call, space, REDIS_RECENT, none),
                 redis_key(redis, call, space, REDIS_SUMMARY, none),
                 redis_key(redis, call, space, "", none), WORD(DUMP_BYTES_MAX),
                 WORD(DUMP_ENTRIES_MAX));
    int rc = pipeline_run_all(&pipeline);
    const redisReply *reply = pipeline_reply(&pipeline, 0);
    if (rc == NG_OK && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)) {
        rc = pool_fail_reply(redis->pool, call, reply);
    }
    if (rc == NG_OK) {
        rc = dump_print(call, reply, space, ret_json);
        /* Either the entries used up the call's memory, or the failure is temporary. */
        if (rc == NG_EINTERNAL && ng_alloc(call, DUMP_ENTRY_ROOM) != NULL) {
            rc = redis_no_memory(call);
        } else if (rc == NG_EINTERNAL) {
            rc = ng_fail(call, NG_ETOOLARGE,
                         "the journal of the space has more entries than a call can hold; set "
                         "journal.keep to remove old entries");
        }
    }
    pipeline_done(&pipeline);
    return rc;
}
