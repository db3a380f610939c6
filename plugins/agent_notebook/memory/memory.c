/* SPDX-License-Identifier: MIT */
/* memory.c - ids, agents, and entries of the journal as JSON. */
#include "memory.h"

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/random.h"
#include "core/base/text/rfc3339.h"
#include "entry/entry.h"

#define MEMORY_ID_BYTES 12

const struct ng_journal *memory_journal(struct ng_call *call, void **ret_handle)
{
    return call->host->journal(call, ret_handle);
}

/* ---- names ---- */

static struct ng_str memory_no_id(struct ng_call *call)
{
    (void)ng_fail(call, NG_EINTERNAL, "no id could be made");
    return str_make(NULL, 0);
}

struct ng_str memory_id(struct ng_call *call)
{
    char *text = ng_alloc(call, 2 * MEMORY_ID_BYTES + 1);
    if (text == NULL || !random_hex(MEMORY_ID_BYTES, text)) {
        return memory_no_id(call);
    }
    return ng_str_of(text);
}

static struct ng_str memory_uuid_of(struct ng_call *call, const unsigned char bytes[16])
{
    char *text = ng_alloc(call, UUID_SIZE);
    if (text == NULL) {
        return memory_no_id(call);
    }
    uuid_write(bytes, text);
    return ng_str_of(text);
}

struct ng_str memory_uuid(struct ng_call *call)
{
    unsigned char bytes[16];
    if (!random_bytes(bytes, sizeof(bytes))) {
        return memory_no_id(call);
    }
    return memory_uuid_of(call, bytes);
}

struct ng_str memory_uuid_once(struct ng_call *call)
{
    unsigned char bytes[32];
    struct ng_str token = call->host->idempotency_token(call);
    if (token.len != 2 * sizeof(bytes) || !hex_read(token, bytes)) {
        return str_make(NULL, 0);
    }
    return memory_uuid_of(call, bytes);
}

bool memory_time_read(struct ng_str text, int64_t *ret_ms)
{
    struct rfc3339 time;
    if (!rfc3339_read(text, &time)) {
        return false;
    }
    *ret_ms = rfc3339_local_ms(&time);
    if (*ret_ms < 0 && time.year >= 1970) {
        *ret_ms = 0; /* 1970-01-01 east of UTC */
    }
    /* An offset of hours and minutes has a colon between them. */
    bool colon =
        !time.has_offset || text.data[text.len - 1] == 'Z' || text.data[text.len - 3] == ':';
    return colon && *ret_ms >= 0;
}

/* ---- JSON ---- */

void memory_put(struct ng_call *call, struct ng_writer *writer, const char *name,
                struct ng_str text)
{
    if (text.data != NULL) {
        call->host->json_name(writer, name);
        call->host->json_string(writer, text);
    }
}

struct ng_str memory_text(struct ng_call *call, const struct ng_value *body, const char *name)
{
    return call->host->json_text(call->host->json_get(body, name));
}

uint64_t memory_int(struct ng_call *call, const struct ng_value *body, const char *name)
{
    int64_t number = 0;
    (void)call->host->json_integer(call->host->json_get(body, name), &number);
    if (number < 0) {
        return 0;
    }
    return (uint64_t)number;
}

static void memory_write_reference(struct ng_call *call, struct ng_writer *writer,
                                   const struct ng_entry *entry)
{
    const struct ng_value *data = NULL;
    memory_put(call, writer, "type", ng_str_of("notebook_ref"));
    memory_put(call, writer, "action", entry->action);
    memory_put(call, writer, "notebook_id", entry->id);
    memory_put(call, writer, "title", entry->title);
    memory_put(call, writer, "summary", entry->content);
    memory_put(call, writer, "collection", entry->collection);
    memory_put(call, writer, "status", entry->status);
    entry_put_int(call, writer, "version", entry->version);
    if (entry->data.len > 0 && call->host->json_parse(call, entry->data, &data) == NG_OK) {
        call->host->json_name(writer, "data");
        call->host->json_copy(writer, data);
    }
}

void memory_write_entry(struct ng_call *call, struct ng_writer *writer,
                        const struct ng_entry *entry)
{
    const struct ng_host *host = call->host;
    host->json_object(writer);
    if (entry->kind == NG_ENTRY_MEMORY) {
        memory_put(call, writer, "type", ng_str_of("memory"));
        memory_put(call, writer, "id", entry->event_id);
        memory_put(call, writer, "memory_id", entry->event_id);
        memory_put(call, writer, "content", entry->content);
        memory_put(call, writer, "source", entry->source);
        host->json_name(writer, "score");
        host->json_number(writer, entry->score);
    } else {
        memory_write_reference(call, writer, entry);
    }
    host->json_name(writer, "tags");
    host->json_array(writer);
    for (size_t i = 0; i < entry->tag_count; i++) {
        host->json_string(writer, entry->tags[i]);
    }
    host->json_end(writer);
    memory_put(call, writer, "timestamp", entry_time(call, entry->time_ms));
    memory_put(call, writer, "agent", entry_agent_of(call, entry->agent));
    memory_put(call, writer, "event_id", entry->event_id);
    host->json_end(writer);
}

/* ---- waiting ---- */

int memory_flush(struct ng_call *call, uint64_t *ret_backlog)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    *ret_backlog = 0;
    return journal->flush(handle, call, MEMORY_FLUSH_MS, ret_backlog);
}
