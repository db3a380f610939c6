/* SPDX-License-Identifier: MIT */
/* audit_entry.c - members in a fixed order; five of them by the names of audit_names.h. */
#include "audit_entry.h"

#include "core/base/str.h"
#include "core/base/text/json_writer.h"
#include "core/base/text/rfc3339.h"

struct entry_writer {
    const struct audit_entry *entry;
    struct audit_names *names;
    struct ng_writer json;
    struct buf *error;
    int rc;
};

static void entry_text(struct entry_writer *writer, const char *name, struct ng_str value)
{
    if (value.data != NULL) {
        json_member_string(&writer->json, name, json_cut(value, AUDIT_ENTRY_VALUE_MAX));
    }
}

static void entry_word(struct entry_writer *writer, const char *name, const char *value)
{
    if (value != NULL) {
        json_member_cstring(&writer->json, name, value);
    }
}

/* A value that the entry does not show. */
static void entry_named(struct entry_writer *writer, const char *name, struct ng_str value)
{
    char text[AUDIT_NAME_SIZE];
    if (value.data == NULL || writer->rc != NG_OK) {
        return;
    }
    writer->rc =
        audit_names_get(writer->names, writer->entry->time_ms, value, text, writer->error);
    if (writer->rc == NG_OK) {
        json_member_cstring(&writer->json, name, text);
    }
}

static void entry_doc(struct entry_writer *writer, const struct audit_doc *doc)
{
    json_object(&writer->json);
    json_member_string(&writer->json, "collection",
                       json_cut(doc->collection, AUDIT_ENTRY_COLLECTION_MAX));
    entry_named(writer, "id", doc->id);
    if (doc->revision > 0) {
        json_member_int(&writer->json, "revision", (int64_t)doc->revision);
    }
    if (doc->seq > 0) {
        json_member_int(&writer->json, "seq", (int64_t)doc->seq);
    }
    if (doc->action.len > 0) {
        json_member_string(&writer->json, "action",
                           json_cut(doc->action, AUDIT_ENTRY_ACTION_MAX));
    }
    json_end(&writer->json);
}

int audit_entry_write(const struct audit_entry *entry, size_t first, struct audit_names *names,
                      struct buf *out, size_t *ret_next, struct buf *error)
{
    struct entry_writer writer = {.entry = entry, .names = names, .error = error};
    char time[RFC3339_SIZE];
    size_t end = first + size_min(entry->doc_count - first, AUDIT_ENTRY_DOCS_MAX);
    rfc3339_write(entry->time_ms, RFC3339_MS, time);
    json_writer_init(&writer.json, out);
    json_object(&writer.json);
    json_member_int(&writer.json, "v", AUDIT_ENTRY_VERSION);
    json_member_cstring(&writer.json, "time", time);
    entry_word(&writer, "face", entry->face);
    entry_named(&writer, "agent", entry->agent);
    entry_text(&writer, "key", entry->key);
    entry_word(&writer, "role", entry->role);
    entry_word(&writer, "mode", entry->mode);
    entry_named(&writer, "space", entry->space);
    entry_named(&writer, "remote", entry->remote);
    entry_named(&writer, "client", entry->client);
    entry_text(&writer, "tool", entry->tool);
    entry_text(&writer, "operation", entry->operation);
    entry_word(&writer, "outcome", entry->outcome);
    if (end > first) {
        json_name(&writer.json, "docs");
        json_array(&writer.json);
        for (size_t i = first; i < end; i++) {
            entry_doc(&writer, &entry->docs[i]);
        }
        json_end(&writer.json);
    }
    entry_text(&writer, "run", entry->run);
    entry_text(&writer, "trace", entry->trace);
    entry_text(&writer, "request", entry->request);
    if (entry->took_ms >= 0) {
        json_member_int(&writer.json, "ms", entry->took_ms);
    }
    json_end(&writer.json);
    *ret_next = end;
    if (writer.rc == NG_OK && out->rc != NG_OK) {
        (void)buf_add_c(error, "the audit log: an entry cannot be printed");
        return NG_EINTERNAL;
    }
    return writer.rc;
}

size_t audit_entry_bytes(const struct audit_entry *entry)
{
    const struct ng_str texts[] = {
        entry->agent, entry->key,       entry->space, entry->remote, entry->client,
        entry->tool,  entry->operation, entry->run,   entry->trace,  entry->request};
    size_t bytes = entry->doc_count * sizeof(*entry->docs);
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        bytes += texts[i].len;
    }
    for (size_t i = 0; i < entry->doc_count; i++) {
        const struct audit_doc *doc = &entry->docs[i];
        bytes += doc->collection.len + doc->id.len + doc->action.len;
    }
    return bytes;
}

void audit_entry_copy(const struct audit_entry *entry, void *room, struct audit_entry *ret)
{
    struct audit_doc *docs = room;
    char *at = (char *)(docs + entry->doc_count);
    *ret = *entry;
    struct ng_str *texts[] = {&ret->agent,  &ret->key,    &ret->space,     &ret->remote,
                              &ret->client, &ret->tool,   &ret->operation, &ret->run,
                              &ret->trace,  &ret->request};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        *texts[i] = str_move_in(&at, *texts[i]);
    }
    for (size_t i = 0; i < entry->doc_count; i++) {
        docs[i] = entry->docs[i];
        docs[i].collection = str_move_in(&at, docs[i].collection);
        docs[i].id = str_move_in(&at, docs[i].id);
        docs[i].action = str_move_in(&at, docs[i].action);
    }
    ret->docs = docs;
}
