/* SPDX-License-Identifier: MIT */
/* audit_shown.c - reads entries, and prints them. */
#include "audit_shown.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/json/json.h"

#define ENTRY_DEPTH 4
/* Documents of an entry that a line names. */
#define LINE_DOCS_MAX 3

/* In the order of an entry. */
static const struct member {
    const char *name;
    size_t at;
    bool is_named; /* by a keyed hash */
} members[] = {
    {"time", offsetof(struct audit_shown, time), false},
    {"face", offsetof(struct audit_shown, face), false},
    {"agent", offsetof(struct audit_shown, agent), true},
    {"key", offsetof(struct audit_shown, key), false},
    {"role", offsetof(struct audit_shown, role), false},
    {"mode", offsetof(struct audit_shown, mode), false},
    {"space", offsetof(struct audit_shown, space), true},
    {"remote", offsetof(struct audit_shown, remote), true},
    {"client", offsetof(struct audit_shown, client), true},
    {"tool", offsetof(struct audit_shown, tool), false},
    {"operation", offsetof(struct audit_shown, operation), false},
    {"outcome", offsetof(struct audit_shown, outcome), false},
    {"run", offsetof(struct audit_shown, run), false},
    {"trace", offsetof(struct audit_shown, trace), false},
    {"request", offsetof(struct audit_shown, request), false},
};
/* Those behind `docs`. */
#define MEMBERS_LAST 3

static struct ng_str *member_of(struct audit_shown *shown, const struct member *member)
{
    return (struct ng_str *)(void *)((char *)shown + member->at);
}

static struct ng_str member_text(const struct audit_shown *shown, const struct member *member)
{
    return *(const struct ng_str *)(const void *)((const char *)shown + member->at);
}

struct shown_reader {
    struct arena *arena;
    struct audit_values *values;
    struct ng_str time;
    struct buf *error;
    int rc;
};

/* The value behind a name; of a redacted one, the name. */
static struct ng_str reader_value(struct shown_reader *reader, struct ng_str name)
{
    struct ng_str value = STR_NONE;
    if (name.len == 0 || name.data[0] != '~' || reader->rc != NG_OK) {
        return name;
    }
    reader->rc = audit_values_get(reader->values, reader->time, name, &value, reader->error);
    if (value.data == NULL) {
        return name;
    }
    /* The table may go with the next entry. */
    struct ng_str copy = arena_copy(reader->arena, value);
    if (copy.data == NULL) {
        reader->rc = NG_EINTERNAL;
    }
    return copy;
}

static void reader_docs(struct shown_reader *reader, const struct ng_value *list,
                        struct audit_shown *ret)
{
    if (!json_is(list, NG_TYPE_ARRAY) || list->count == 0) {
        return;
    }
    struct audit_doc *docs = arena_zalloc(reader->arena, list->count * sizeof(*docs));
    if (docs == NULL) {
        reader->rc = NG_EINTERNAL;
        return;
    }
    ret->docs = docs;
    for (const struct ng_value *one = json_first(list); one != NULL; one = one->next) {
        struct audit_doc *doc = &docs[ret->doc_count++];
        doc->collection = json_get_text(one, "collection");
        doc->id = reader_value(reader, json_get_text(one, "id"));
        doc->revision = (uint64_t)json_get_integer(one, "revision");
        doc->seq = (uint64_t)json_get_integer(one, "seq");
        doc->action = json_get_text(one, "action");
    }
}

int audit_shown_read(struct arena *arena, uint64_t number, struct ng_str entry,
                     struct audit_values *values, struct audit_shown *ret, struct buf *error)
{
    const struct ng_value *value = NULL;
    struct shown_reader reader = {.arena = arena, .values = values, .error = error};
    *ret = (struct audit_shown){.number = number, .ms = -1};
    if (json_parse(arena, entry, ENTRY_DEPTH, &value, NULL) != NG_OK ||
        !json_is(value, NG_TYPE_OBJECT)) {
        (void)buf_printf(error, "entry %" PRIu64 " of the audit log is no JSON object", number);
        return arena->oom ? NG_EINTERNAL : NG_EFAILED;
    }
    reader.time = json_get_text(value, "time");
    for (size_t i = 0; i < NG_COUNT(members); i++) {
        struct ng_str text = json_get_text(value, members[i].name);
        *member_of(ret, &members[i]) = members[i].is_named ? reader_value(&reader, text) : text;
    }
    if (json_get(value, "ms") != NULL) {
        ret->ms = json_get_integer(value, "ms");
    }
    reader_docs(&reader, json_get(value, "docs"), ret);
    if (reader.rc == NG_EINTERNAL && error->len == 0) {
        (void)buf_add_c(error, "the audit log: out of memory");
    }
    return reader.rc;
}

/* ---- printing ---- */

static void json_docs(struct ng_writer *writer, const struct audit_shown *shown)
{
    json_name(writer, "docs");
    json_array(writer);
    for (size_t i = 0; i < shown->doc_count; i++) {
        const struct audit_doc *doc = &shown->docs[i];
        json_object(writer);
        json_member_string(writer, "collection", doc->collection);
        json_member_string(writer, "id", doc->id);
        if (doc->revision > 0) {
            json_member_int(writer, "revision", (int64_t)doc->revision);
        }
        if (doc->seq > 0) {
            json_member_int(writer, "seq", (int64_t)doc->seq);
        }
        if (doc->action.data != NULL) {
            json_member_string(writer, "action", doc->action);
        }
        json_end(writer);
    }
    json_end(writer);
}

int audit_shown_json(const struct audit_shown *shown, struct buf *out)
{
    struct ng_writer writer;
    json_writer_init(&writer, out);
    json_object(&writer);
    json_member_int(&writer, "number", (int64_t)shown->number);
    for (size_t i = 0; i < NG_COUNT(members); i++) {
        if (i == NG_COUNT(members) - MEMBERS_LAST && shown->doc_count > 0) {
            json_docs(&writer, shown);
        }
        struct ng_str text = member_text(shown, &members[i]);
        if (text.data != NULL) {
            json_member_string(&writer, members[i].name, text);
        }
    }
    if (shown->ms >= 0) {
        json_member_int(&writer, "ms", shown->ms);
    }
    json_end(&writer);
    return out->rc;
}

/* As in lines of the gateway's log: nothing in it breaks the line or commands the terminal. */
static void line_text(struct buf *out, struct ng_str text)
{
    char escaped[LOG_ESCAPE_MAX];
    size_t at = 0;
    while (at < text.len) {
        size_t len = log_escape(text, &at, false, escaped);
        (void)buf_add(out, escaped, len);
    }
}

static void line_word(struct buf *out, struct ng_str word)
{
    if (word.len > 0) {
        (void)buf_add_c(out, out->len > 0 ? " " : "");
        line_text(out, word);
    }
}

int audit_shown_line(const struct audit_shown *shown, struct buf *out)
{
    char text[64];
    line_word(out, shown->time);
    line_word(out, shown->outcome);
    line_word(out, shown->face);
    line_word(out, shown->agent);
    line_word(out, shown->tool);
    line_word(out, shown->operation);
    for (size_t i = 0; i < shown->doc_count && i < LINE_DOCS_MAX; i++) {
        const struct audit_doc *doc = &shown->docs[i];
        line_word(out, doc->collection);
        (void)buf_add_char(out, '/');
        line_text(out, doc->id);
        if (doc->revision > 0) {
            (void)buf_printf(out, "@%" PRIu64, doc->revision);
        }
    }
    if (shown->doc_count > LINE_DOCS_MAX) {
        (void)buf_printf(out, " and %zu more", shown->doc_count - LINE_DOCS_MAX);
    }
    (void)snprintf(text, sizeof(text), "#%" PRIu64, shown->number);
    line_word(out, ng_str_of(text));
    return out->rc;
}
