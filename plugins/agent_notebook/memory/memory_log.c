/* SPDX-License-Identifier: MIT */
/* memory_log.c - memory_log: a memory is an event of the document of its agent. The outbox
 * delivers it to the journal, so a memory is accepted while the journal is away. */
#include "entry/entry.h"
#include "memory.h"
#include "memory_tools.h"

#include <string.h>

#define MEMORY_SCORE 0.5

struct new_memory {
    struct ng_str id, event;
    int64_t now_ms;
};

/* The event from which the entry of the journal is made. */
static int memory_log_event(struct ng_call *call, struct new_memory *memory)
{
    const struct ng_host *host = call->host;
    const struct ng_value *score = ng_arg(call, "score");
    const struct ng_value *tags = ng_arg(call, "tags");
    struct ng_str source = ng_arg_text(call, "source");
    struct ng_writer *writer = host->json_writer(call);
    if (writer == NULL) {
        return entry_no_memory(call);
    }
    if (source.data == NULL) {
        source = ng_str_of("thought");
    }
    host->json_object(writer);
    memory_put(call, writer, "kind", ng_str_of("memory"));
    memory_put(call, writer, "event_id", memory->id);
    memory_put(call, writer, "content", ng_arg_text(call, "content"));
    memory_put(call, writer, "source", source);
    host->json_name(writer, "score");
    host->json_number(writer, score == NULL ? MEMORY_SCORE : host->json_double(score));
    if (tags != NULL) {
        host->json_name(writer, "tags");
        host->json_copy(writer, tags);
    }
    host->json_end(writer);
    memory->event = host->json_result(writer);
    if (memory->event.data != NULL) {
        return NG_OK;
    }
    return entry_no_memory(call);
}

static int memory_log_change(struct ng_call *call, const struct ng_doc *present,
                             struct ng_draft *next, void *user)
{
    const struct ng_host *host = call->host;
    const struct new_memory *memory = user;
    uint64_t logged = present->deleted ? 0 : memory_int(call, present->body, "memories");
    struct ng_writer *reply = host->reply_json(call);
    struct ng_str json =
        host->format(call, "{\"memories\":%llu,\"last\":\"%.*s\"}",
                     (unsigned long long)logged + 1, (int)memory->id.len, memory->id.data);
    if (json.data == NULL) {
        return entry_no_memory(call);
    }
    host->json_object(reply);
    memory_put(call, reply, "memory_id", memory->id);
    memory_put(call, reply, "status", ng_str_of("logged"));
    memory_put(call, reply, "timestamp", entry_time(call, memory->now_ms));
    host->json_end(reply);
    host->draft_event(next, memory->event);
    return host->draft_json(next, json);
}

#define MEMORY_TAG_EXPECTED "tags without a comma (it parts tags; give two tags)"

static int memory_log_check(struct ng_call *call)
{
    const struct ng_host *host = call->host;
    struct ng_str content = ng_arg_text(call, "content");
    if (content.len > MEMORY_CONTENT_MAX) {
        return ng_fail(call, NG_ETOOLARGE,
                       "`content` has %zu bytes, a memory holds at most %zu; save the text as "
                       "a notebook entry and log a summary of it",
                       content.len, MEMORY_CONTENT_MAX);
    }
    for (const struct ng_value *tag = host->json_first(ng_arg(call, "tags")); tag != NULL;
         tag = host->json_next(tag)) {
        struct ng_str text = host->json_text(tag);
        if (memchr(text.data, ',', text.len) != NULL) {
            return entry_invalid(call, "/tags", ng_str_of(MEMORY_TAG_EXPECTED), text);
        }
    }
    return NG_OK;
}

int memory_log_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct new_memory *memory = ng_alloc(call, sizeof(*memory));
    int rc = memory_log_check(call);
    (void)self;
    (void)args;
    if (rc != NG_OK) {
        return rc;
    }
    if (memory == NULL) {
        return entry_no_memory(call);
    }
    memory->now_ms = call->host->now_ms();
    memory->id = memory_id(call);
    if (memory->id.data == NULL) {
        rc = NG_EINTERNAL;
    } else {
        rc = memory_log_event(call, memory);
    }
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(MEMORY_COLLECTION), call->caller->space, call->caller->agent},
        .fn = memory_log_change,
        .user = memory,
        .action = "logged",
    };
    if (rc != NG_OK) {
        return rc;
    }
    return ng_change_one(call, &change);
}
