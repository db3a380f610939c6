/* SPDX-License-Identifier: MIT */
/* audit_put.c - fills entries of the audit log, and queues them for its writer. */
#include "audit_put.h"

#include <stdlib.h>

#include "core/audit/writer/audit_writer.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/call/plugin.h"
#include "core/schema/schema.h"

/* The trace-id in a traceparent: "00-", then so many digits. */
#define TRACE_AT 3
#define TRACE_DIGITS 32
/* For the check of arguments that a call was refused with. */
#define ARGUMENTS_MEMORY_MAX ((size_t)1024 * 1024)

static struct ng_str trace_id(struct ng_str traceparent)
{
    if (traceparent.len < TRACE_AT + TRACE_DIGITS) {
        return STR_NONE;
    }
    return str_make(traceparent.data + TRACE_AT, TRACE_DIGITS);
}

/* The operation as the tool's schema knows it: of a call that it does not fit, the text may be
 * anything. */
static struct ng_str known_operation(const struct call *call, struct ng_str asked)
{
    struct arena arena;
    struct violations found;
    if (asked.len == 0 || atomic_load(&call->begun)) {
        return asked;
    }
    arena_init(&arena, ARGUMENTS_MEMORY_MAX);
    int rc = schema_check(call->tool->params, call->pub.args, &arena, &found);
    arena_done(&arena);
    return rc == NG_OK ? asked : STR_NONE;
}

/* The space of the last change that was stored, else of the last one that was tried, else that
 * of the caller. */
static struct ng_str changed_space(const struct call *call)
{
    const struct call_change *at = call->changes;
    while (at != NULL && !at->is_stored) {
        at = at->next;
    }
    if (at == NULL) {
        at = call->changes;
    }
    return at != NULL ? at->space : call->caller.space;
}

/* The documents that it has changed, the first one first; to be freed. NULL: none, or out of
 * memory. */
static struct audit_doc *changed_docs(const struct call *call, size_t *ret_count)
{
    size_t count = 0;
    for (const struct call_change *at = call->changes; at != NULL; at = at->next) {
        count += at->is_stored;
    }
    struct audit_doc *docs = count > 0 ? alloc_zeroed(count, sizeof(*docs)) : NULL;
    *ret_count = docs != NULL ? count : 0;
    for (const struct call_change *at = call->changes; at != NULL && docs != NULL;
         at = at->next) {
        if (at->is_stored) {
            docs[--count] =
                (struct audit_doc){at->collection, at->id, at->revision, at->seq, at->action};
        }
    }
    return docs;
}

void audit_put_call(const struct call *call, const struct audit_outcome *end)
{
    const struct ng_caller *caller = &call->caller;
    struct audit_entry entry = {
        .time_ms = clock_unix_ms(),
        .took_ms = end->took_ns / 1000000,
        .face = call->face,
        .outcome = end->name,
        .role = key_role_name(caller->role),
        .mode = key_mode_name(caller->mode),
        .agent = caller->agent,
        .key = ng_str_of(call->key != NULL ? call->key->id : NULL),
        .space = changed_space(call),
        .remote = call->remote,
        .client = utf8_cut(caller->client, AUDIT_CLIENT_MAX),
        .tool = end->tool,
        .operation = end->tool.len > 0 ? known_operation(call, end->operation) : call->method,
        .run = caller->run_id,
        .trace = trace_id(caller->traceparent),
        .request = caller->request_id,
    };
    struct audit_doc *docs = changed_docs(call, &entry.doc_count);
    entry.docs = docs;
    if (entry.doc_count > 0 && call->changes_run.len > 0) {
        entry.run = call->changes_run;
    }
    audit_writer_put(call->gateway->audit.writer, &entry);
    free(docs);
}

void audit_put_event(const struct audit_event *event)
{
    const struct audit_doc key = {.collection = ng_str_of(KEYS_COLLECTION),
                                  .id = event->target};
    struct audit_entry entry = {
        .time_ms = clock_unix_ms(),
        .took_ms = -1,
        .face = event->face,
        .outcome = event->outcome,
        .agent = event->agent,
        .key = event->key,
        .remote = event->remote,
        .client = utf8_cut(event->client, AUDIT_CLIENT_MAX),
        .operation = ng_str_of(event->what),
        .run = event->run,
        .trace = trace_id(event->traceparent),
        .request = event->request_id,
    };
    struct audit_doc *docs =
        event->call != NULL ? changed_docs(event->call, &entry.doc_count) : NULL;
    entry.docs = docs;
    if (docs == NULL && event->is_of_keys) { /* the first key: nothing was noted before it */
        entry.docs = &key;
        entry.doc_count = 1;
    }
    audit_writer_put(event->gateway->audit.writer, &entry);
    free(docs);
}

void audit_put_background(const struct call *call)
{
    struct audit_entry entry = {
        .time_ms = clock_unix_ms(),
        .took_ms = -1,
        .outcome = "ok",
        .agent = call->caller.agent,
        .operation = ng_str_of("background"),
    };
    struct audit_doc *docs = changed_docs(call, &entry.doc_count);
    if (docs != NULL) {
        entry.docs = docs;
        entry.space = changed_space(call);
        audit_writer_put(call->gateway->audit.writer, &entry);
        free(docs);
    }
}

void audit_put_recovered(struct gateway *gateway, const struct ng_event *event)
{
    const struct audit_doc doc = {event->key.collection, event->key.id, event->revision,
                                  event->seq, event->action};
    const struct audit_entry entry = {
        .time_ms = event->time_ms,
        .took_ms = -1,
        .outcome = "recovered",
        .agent = event->agent,
        .key = event->origin.key_id,
        .space = event->key.space,
        .tool = event->tool,
        .operation = event->tool.len > 0 ? STR_NONE : event->action,
        .run = event->origin.run_id,
        .request = event->origin.request_id,
        .docs = &doc,
        .doc_count = 1,
    };
    audit_writer_put(gateway->audit.writer, &entry);
}
