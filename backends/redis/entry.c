/* SPDX-License-Identifier: MIT */
/* entry.c - converts entries of the journal to the form stored in Redis, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/utf8.h"
#include "query.h"
#include "redis.h"

#define ENTRY_AGENT "agent:"
#define ENTRY_TAGS_MAX 256

/* ---- helpers ---- */

static struct ng_str entry_agent(struct ng_call *call, const struct ng_entry *entry)
{
    if (entry->agent.len == 0) {
        return ng_str_of("");
    }
    return call->host->format(call, ENTRY_AGENT "%.*s", (int)entry->agent.len,
                              entry->agent.data);
}

/* 2026-02-16T10:30:00.250000+00:00 */
static struct ng_str entry_timestamp(struct ng_call *call, int64_t time_ms)
{
    char time[RFC3339_SIZE];
    rfc3339_write(time_ms, RFC3339_MS, time);
    return call->host->format(call, "%.*s000+00:00", (int)strcspn(time, "Z"), time);
}

/* The tags, separated by commas. */
static struct ng_str entry_tags(struct ng_call *call, const struct ng_entry *entry)
{
    struct ng_str *pieces = ng_alloc(call, 2 * (entry->tag_count + 1) * sizeof(*pieces));
    size_t count = 0;
    if (pieces == NULL) {
        return str_make(NULL, 0);
    }
    for (size_t i = 0; i < entry->tag_count; i++) {
        if (i > 0) {
            pieces[count++] = WORD(",");
        }
        pieces[count++] = str_or(entry->tags[i], WORD(""));
    }
    return redis_join(call, pieces, count);
}

static struct ng_str entry_cut(struct ng_str text)
{
    return utf8_cut_count(text, NG_SUMMARY_MAX);
}

static void write_text(struct ng_call *call, struct ng_writer *writer, const char *name,
                       struct ng_str text)
{
    call->host->json_name(writer, name);
    call->host->json_string(writer, str_or(text, WORD("")));
}

static void write_text_if(struct ng_call *call, struct ng_writer *writer, const char *name,
                          struct ng_str text)
{
    if (text.data != NULL) {
        write_text(call, writer, name, text);
    }
}

static void write_int(struct ng_call *call, struct ng_writer *writer, const char *name,
                      uint64_t number)
{
    call->host->json_name(writer, name);
    call->host->json_int(writer, (int64_t)u64_min(number, INT64_MAX));
}

static void write_tags(struct ng_call *call, struct ng_writer *writer,
                       const struct ng_entry *entry)
{
    call->host->json_name(writer, "tags");
    call->host->json_array(writer);
    for (size_t i = 0; i < entry->tag_count; i++) {
        call->host->json_string(writer, entry->tags[i]);
    }
    call->host->json_end(writer);
}

/* Leaves out data that is no JSON object, which is an error of a plugin. */
static void write_data(struct ng_call *call, struct ng_writer *writer,
                       const struct ng_entry *entry)
{
    const struct ng_value *data = NULL;
    if (entry->data.len > 0 && call->host->json_parse(call, entry->data, &data) == NG_OK &&
        call->host->json_type(data) == NG_TYPE_OBJECT) {
        call->host->json_name(writer, "data");
        call->host->json_copy(writer, data);
    }
}

/* ---- a line of a day ---- */

struct ng_str redis_line(struct ng_call *call, const struct ng_entry *entry)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str none = {NULL, 0};
    bool is_memory = entry->kind == NG_ENTRY_MEMORY;
    if (writer == NULL) {
        return none;
    }
    host->json_object(writer);
    static const char *const types[] = {"notebook_ref", "memory"};
    write_text(call, writer, "type", ng_str_of(types[is_memory]));
    write_text(call, writer, "action", entry->action);
    if (is_memory) {
        write_text(call, writer, "content", entry->content);
        write_text_if(call, writer, "notebook_id", entry->id);
        write_text_if(call, writer, "title", entry->title);
        write_text_if(call, writer, "collection", entry->collection);
    } else {
        write_text(call, writer, "notebook_id", entry->id);
        write_text(call, writer, "title", entry->title);
        write_text(call, writer, "summary", entry_cut(entry->content));
        write_text(call, writer, "collection", entry->collection);
    }
    write_text(call, writer, "timestamp", entry_timestamp(call, entry->time_ms));
    write_text(call, writer, "agent", entry_agent(call, entry));
    write_int(call, writer, "version", entry->version);
    if (!is_memory || entry->status.data != NULL) {
        write_text(call, writer, "status", entry->status);
    }
    write_text(call, writer, "event_id", entry->event_id);
    write_int(call, writer, "seq", entry->seq);
    host->json_name(writer, "time");
    host->json_int(writer, entry->time_ms);
    write_text_if(call, writer, "source", entry->source);
    write_tags(call, writer, entry);
    host->json_name(writer, "score");
    host->json_number(writer, entry->score);
    write_data(call, writer, entry);
    host->json_end(writer);
    return host->json_result(writer);
}

/* ---- the JSON of a dump ---- */

/* Everything except the content. */
static void entry_write_members(struct ng_call *call, struct ng_writer *writer,
                                const struct ng_entry *entry)
{
    bool is_memory = entry->kind == NG_ENTRY_MEMORY;
    write_text(call, writer, "event_id", entry->event_id);
    static const char *const kinds[] = {"reference", "memory"};
    write_text(call, writer, "kind", ng_str_of(kinds[is_memory]));
    write_int(call, writer, "seq", entry->seq);
    call->host->json_name(writer, "time");
    call->host->json_int(writer, entry->time_ms);
    write_text_if(call, writer, "agent", entry->agent);
    write_text_if(call, writer, "action", entry->action);
    write_text_if(call, writer, "collection", entry->collection);
    write_text_if(call, writer, "id", entry->id);
    write_text_if(call, writer, "title", entry->title);
    write_text_if(call, writer, "status", entry->status);
    write_int(call, writer, "version", entry->version);
    write_text_if(call, writer, "source", entry->source);
    write_tags(call, writer, entry);
    call->host->json_name(writer, "score");
    call->host->json_number(writer, entry->score);
    write_data(call, writer, entry);
}

void redis_entry_write(struct ng_call *call, struct ng_writer *writer, struct ng_str date,
                       const struct ng_entry *entry)
{
    call->host->json_object(writer);
    write_text_if(call, writer, "date", date);
    entry_write_members(call, writer, entry);
    write_text(call, writer, "content", entry->content);
    call->host->json_end(writer);
}

/* ---- a hash ---- */

static void add_member(struct redis_members *members, const char *name, struct ng_str value)
{
    members->items[members->count++] = ng_str_of(name);
    members->items[members->count++] = str_or(value, WORD(""));
}

/* The members of an entry that have no field in the hash. The content of a memory has one. */
static struct ng_str entry_rest(struct ng_call *call, const struct ng_entry *entry)
{
    struct ng_writer *writer = call->host->json_writer(call);
    struct ng_str none = {NULL, 0};
    if (writer == NULL) {
        return none;
    }
    call->host->json_object(writer);
    entry_write_members(call, writer, entry);
    if (entry->kind == NG_ENTRY_REFERENCE) {
        write_text(call, writer, "content", entry_cut(entry->content));
    }
    call->host->json_end(writer);
    return call->host->json_result(writer);
}

static void add_reference(struct ng_call *call, const struct ng_entry *entry,
                          struct redis_members *members)
{
    struct ng_str summary = entry_cut(entry->content);
    struct ng_str content = call->host->format(
        call, "[Notebook %.*s] %.*s: %.*s", (int)entry->action.len, entry->action.data,
        (int)entry->title.len, entry->title.data, (int)summary.len, summary.data);
    add_member(members, "content", content);
    add_member(members, "source", ng_str_of(REFERENCE_SOURCE));
    add_member(members, "tags", entry->collection);
    add_member(members, "score", ng_str_of(REFERENCE_SCORE));
    add_member(members, "notebook_id", entry->id);
    add_member(members, "title", entry->title);
    add_member(members, "status", entry->status);
    add_member(members, "version", redis_number(call, (int64_t)entry->version));
    add_member(members, "entry_tags", entry_tags(call, entry));
}

int redis_members(struct ng_call *call, const struct ng_entry *entry, struct redis_members *ret)
{
    ret->count = 0;
    struct ng_str rest = entry_rest(call, entry);
    if (entry->kind == NG_ENTRY_MEMORY) {
        add_member(ret, "content", entry->content);
        add_member(ret, "source", entry->source);
        add_member(ret, "tags", entry_tags(call, entry));
        add_member(ret, "score", call->host->format(call, "%.15g", entry->score));
    } else {
        add_reference(call, entry, ret);
    }
    add_member(ret, "agent", entry_agent(call, entry));
    add_member(ret, "timestamp", entry_timestamp(call, entry->time_ms));
    add_member(ret, "time", redis_number(call, entry->time_ms));
    add_member(ret, "seq", redis_number(call, (int64_t)entry->seq));
    add_member(ret, "event", rest);
    /* The first item is "content". */
    struct ng_str words = redis_words(call, ret->items[1]);
    add_member(ret, "words", words);
    if (rest.data == NULL || words.data == NULL) {
        return redis_no_memory(call);
    }
    return NG_OK;
}

struct ng_str redis_member(struct ng_call *call, const struct ng_entry *entry)
{
    if (entry->kind == NG_ENTRY_MEMORY) {
        return REDIS_JOIN(call, WORD(REDIS_MEMORY), str_or(entry->event_id, WORD("")));
    }
    return REDIS_JOIN(call, WORD(REDIS_REFERENCE), str_or(entry->id, WORD("")));
}

/* ---- reading ---- */

static struct ng_str read_text(struct ng_call *call, const struct ng_value *body,
                               const char *name)
{
    const struct ng_value *value = call->host->json_get(body, name);
    struct ng_str none = {NULL, 0};
    if (call->host->json_type(value) != NG_TYPE_STRING) {
        return none;
    }
    return call->host->json_text(value);
}

static int64_t read_int(struct ng_call *call, const struct ng_value *body, const char *name)
{
    int64_t number = 0;
    const struct ng_value *value = call->host->json_get(body, name);
    if (value != NULL && call->host->json_integer(value, &number) == NG_OK) {
        return number;
    }
    return 0;
}

static struct ng_str without_agent(struct ng_str agent)
{
    if (str_begins(agent, ENTRY_AGENT)) {
        agent.data += sizeof(ENTRY_AGENT) - 1;
        agent.len -= sizeof(ENTRY_AGENT) - 1;
    }
    return agent;
}

static int read_tags(struct ng_call *call, const struct ng_value *body, struct ng_entry *entry)
{
    const struct ng_value *array = call->host->json_get(body, "tags");
    size_t count = call->host->json_count(array);
    if (call->host->json_type(array) != NG_TYPE_ARRAY || count == 0) {
        return NG_OK;
    }
    count = size_min(count, ENTRY_TAGS_MAX);
    struct ng_str *tags = ng_alloc(call, count * sizeof(*tags));
    if (tags == NULL) {
        return redis_no_memory(call);
    }
    const struct ng_value *item = call->host->json_first(array);
    for (; item != NULL && entry->tag_count < count; item = call->host->json_next(item)) {
        if (call->host->json_type(item) == NG_TYPE_STRING) {
            tags[entry->tag_count++] = call->host->json_text(item);
        }
    }
    entry->tags = tags;
    return NG_OK;
}

/* Reads the members shared by a line and the JSON of a dump. */
static int read_common(struct ng_call *call, const struct ng_value *body,
                       struct ng_entry *entry)
{
    const struct ng_host *host = call->host;
    entry->event_id = read_text(call, body, "event_id");
    entry->seq = (uint64_t)read_int(call, body, "seq");
    entry->time_ms = read_int(call, body, "time");
    entry->agent = without_agent(read_text(call, body, "agent"));
    entry->action = read_text(call, body, "action");
    entry->collection = read_text(call, body, "collection");
    entry->title = read_text(call, body, "title");
    entry->status = read_text(call, body, "status");
    int64_t version = read_int(call, body, "version");
    entry->version = (uint64_t)i64_max(version, 0);
    entry->source = read_text(call, body, "source");
    entry->content = read_text(call, body, "content");
    entry->score = host->json_double(host->json_get(body, "score"));
    const struct ng_value *data = host->json_get(body, "data");
    if (host->json_type(data) == NG_TYPE_OBJECT) {
        struct ng_writer *writer = host->json_writer(call);
        if (writer == NULL) {
            return redis_no_memory(call);
        }
        host->json_copy(writer, data);
        entry->data = host->json_result(writer);
    }
    return read_tags(call, body, entry);
}

int redis_entry_read(struct ng_call *call, const struct ng_value *body, struct ng_str space,
                     struct ng_entry *ret)
{
    struct ng_entry entry = {.size = sizeof(entry), .space = space};
    if (call->host->json_type(body) != NG_TYPE_OBJECT) {
        return NG_EINVAL;
    }
    int rc = read_common(call, body, &entry);
    entry.kind = NG_ENTRY_REFERENCE;
    if (str_is(read_text(call, body, "kind"), "memory")) {
        entry.kind = NG_ENTRY_MEMORY;
    }
    entry.id = read_text(call, body, "id");
    if (rc == NG_OK && entry.event_id.len == 0) {
        return NG_EINVAL;
    }
    if (rc == NG_OK) {
        *ret = entry;
    }
    return rc;
}

#define READ_TIME_LEN (sizeof("2026-02-16T10:30:00") - 1)

/* Reads "2026-02-16T10:30:00...", written by a program that writes no `time`; 0 if it is
 * none. */
static int64_t read_timestamp(struct ng_str text)
{
    struct rfc3339 time;
    struct ng_str seconds = {text.data, size_min(text.len, READ_TIME_LEN)};
    if (seconds.len < READ_TIME_LEN || !rfc3339_read(seconds, &time)) {
        return 0;
    }
    return rfc3339_ms(&time);
}

/* NG_EINTERNAL: no memory, which says nothing about the text. NG_EINVAL: not JSON. */
static int read_json(struct ng_call *call, struct ng_str text, const struct ng_value **ret)
{
    int rc = call->host->json_parse(call, text, ret);
    if (rc == NG_ETOOLARGE) {
        return NG_EINTERNAL;
    }
    if (rc != NG_OK && rc != NG_EINTERNAL) {
        return NG_EINVAL;
    }
    return rc;
}

int redis_line_read(struct ng_call *call, struct ng_str line, struct ng_str space,
                    struct ng_entry *ret)
{
    const struct ng_value *body = NULL;
    struct ng_entry entry = {.size = sizeof(entry), .space = space};
    int rc = read_json(call, line, &body);
    if (rc == NG_OK && call->host->json_type(body) != NG_TYPE_OBJECT) {
        rc = NG_EINVAL;
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = read_common(call, body, &entry);
    entry.id = read_text(call, body, "notebook_id");
    if (str_is(read_text(call, body, "type"), "notebook_ref")) {
        entry.kind = NG_ENTRY_REFERENCE;
        entry.content = read_text(call, body, "summary");
    } else {
        entry.kind = NG_ENTRY_MEMORY;
    }
    if (entry.time_ms == 0) {
        entry.time_ms = read_timestamp(read_text(call, body, "timestamp"));
    }
    if (rc == NG_OK) {
        *ret = entry;
    }
    return rc;
}

/* A member of an HGETALL reply. */
struct ng_str redis_hash_text(const redisReply *hash, const char *name)
{
    struct ng_str none = {NULL, 0};
    for (size_t i = 0; i + 1 < hash->elements; i += 2) {
        if (str_is(redis_text(hash->element[i]), name)) {
            return redis_text(hash->element[i + 1]);
        }
    }
    return none;
}

int redis_hash_read(struct ng_call *call, const redisReply *hash, struct ng_str space,
                    struct ng_entry *ret)
{
    const struct ng_value *body = NULL;
    if (hash == NULL || hash->type != REDIS_REPLY_ARRAY || hash->elements == 0) {
        return NG_EINVAL;
    }
    struct ng_str event = redis_hash_text(hash, "event");
    struct ng_str content = redis_hash_text(hash, "content");
    int rc = NG_EINVAL;
    if (event.len != 0) {
        rc = read_json(call, event, &body);
    }
    if (rc == NG_EINTERNAL) {
        return rc;
    }
    if (rc == NG_OK) {
        rc = redis_entry_read(call, body, space, ret);
        if (rc == NG_OK && ret->kind == NG_ENTRY_MEMORY) {
            ret->content = content;
        }
        return rc;
    }
    /* A memory written by another program: it has only the members common to all. */
    struct ng_entry entry = {
        .size = sizeof(entry),
        .kind = NG_ENTRY_MEMORY,
        .space = space,
        .agent = without_agent(redis_hash_text(hash, "agent")),
        .content = content,
        .source = redis_hash_text(hash, "source"),
        .time_ms = read_timestamp(redis_hash_text(hash, "timestamp")),
    };
    struct ng_str score = redis_hash_text(hash, "score");
    if (score.len > 0) {
        entry.score = strtod(score.data, NULL);
    }
    *ret = entry;
    return NG_OK;
}
