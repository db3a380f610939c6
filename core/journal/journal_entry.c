/* SPDX-License-Identifier: MIT */
/* journal_entry.c - makes entries of the journal from events; writes and reads them as JSON. */
#include "journal_entry.h"

#include <string.h>

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "journal_documents.h"

/* Longest data of one entry, as JSON. */
#define JOURNAL_DATA_MAX ((size_t)1024 * 1024)

bool journal_entry_later(const struct ng_entry *entry, uint64_t version, uint64_t seq)
{
    if (entry->version != version) {
        return entry->version > version;
    }
    return entry->seq > seq;
}

static void journal_write_text(struct ng_writer *writer, const char *name, struct ng_str text)
{
    if (text.data != NULL) {
        json_name(writer, name);
        json_string(writer, text);
    }
}

static void journal_write_number(struct ng_writer *writer, const char *name, uint64_t number)
{
    json_name(writer, name);
    json_int(writer, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

void journal_entry_write(struct ng_writer *writer, const struct ng_entry *entry)
{
    bool is_memory = entry->kind == NG_ENTRY_MEMORY;
    journal_write_text(writer, "event_id", entry->event_id);
    journal_write_text(writer, "kind", ng_str_of(is_memory ? "memory" : "reference"));
    journal_write_number(writer, "seq", entry->seq);
    json_name(writer, "time");
    json_int(writer, entry->time_ms);
    journal_write_text(writer, "agent", entry->agent);
    journal_write_text(writer, "action", entry->action);
    journal_write_text(writer, "collection", entry->collection);
    journal_write_text(writer, "id", entry->id);
    journal_write_text(writer, "title", entry->title);
    journal_write_text(writer, "status", entry->status);
    journal_write_number(writer, "version", entry->version);
    journal_write_text(writer, "source", entry->source);
    json_member_strings(writer, "tags", entry->tags, entry->tag_count);
    json_name(writer, "score");
    json_number(writer, entry->score);
    if (entry->data.data != NULL) {
        json_name(writer, "data");
        json_raw(writer, entry->data);
    }
}

static int64_t journal_integer(const struct ng_value *body, const char *name, int64_t fallback)
{
    int64_t number = fallback;
    (void)json_integer(json_get(body, name), &number);
    return number;
}

static int journal_read_tags(struct arena *arena, const struct ng_value *body,
                             struct ng_entry *entry)
{
    const struct ng_value *array = json_get(body, "tags");
    if (array == NULL || array->type != NG_TYPE_ARRAY || array->count == 0) {
        return NG_OK;
    }
    struct ng_str *tags = arena_alloc(arena, JOURNAL_TAGS_MAX * sizeof(*tags));
    if (tags == NULL) {
        return NG_EINTERNAL;
    }
    for (const struct ng_value *tag = array->first; tag != NULL; tag = tag->next) {
        if (tag->type == NG_TYPE_STRING && entry->tag_count < JOURNAL_TAGS_MAX) {
            tags[entry->tag_count++] = tag->text;
        }
    }
    entry->tags = tags;
    return NG_OK;
}

/* The members that stored entries and the data of events have in common. */
static int journal_read_members(struct arena *arena, const struct ng_value *body,
                                struct ng_entry *entry)
{
    struct ng_str event_id = json_get_text(body, "event_id");
    if (event_id.len > 0) {
        entry->event_id = event_id;
    }
    bool is_memory = str_is(json_get_text(body, "kind"), "memory");
    entry->kind = is_memory ? NG_ENTRY_MEMORY : NG_ENTRY_REFERENCE;
    entry->title = json_get_text(body, "title");
    entry->status = json_get_text(body, "status");
    entry->source = json_get_text(body, "source");
    int64_t version = journal_integer(body, "version", -1);
    if (version >= 0) {
        entry->version = (uint64_t)version;
    }
    const struct ng_value *score = json_get(body, "score");
    entry->score = score == NULL ? 0 : json_double(score);
    return journal_read_tags(arena, body, entry);
}

/* JSON of a value, in the arena. */
static int journal_print(struct arena *arena, const struct ng_value *value, struct ng_str *ret)
{
    struct buf buf;
    buf_init(&buf, JOURNAL_DATA_MAX);
    (void)json_print(&buf, value);
    return journal_take_buf(arena, &buf, ret);
}

int journal_entry_read(struct arena *arena, const struct ng_value *body, struct ng_str space,
                       struct ng_entry *ret)
{
    struct ng_entry entry = {.size = sizeof(entry), .space = space};
    if (body == NULL || body->type != NG_TYPE_OBJECT ||
        json_get_text(body, "event_id").len == 0) {
        return NG_EINVAL;
    }
    int rc = journal_read_members(arena, body, &entry);
    entry.seq = (uint64_t)journal_integer(body, "seq", 0);
    entry.time_ms = journal_integer(body, "time", 0);
    entry.agent = json_get_text(body, "agent");
    entry.action = json_get_text(body, "action");
    entry.collection = json_get_text(body, "collection");
    entry.id = json_get_text(body, "id");
    const struct ng_value *data = json_get(body, "data");
    if (rc == NG_OK && data != NULL && data->type == NG_TYPE_OBJECT) {
        rc = journal_print(arena, data, &entry.data);
    }
    if (rc == NG_OK) {
        *ret = entry;
    }
    return rc;
}

/* The members of the data of an event that are no members of the entry, as one object. */
static int journal_rest(struct arena *arena, const struct ng_value *body, struct ng_str *ret)
{
    static const char known[] =
        "kind title status summary content source tags score version event_id about";
    struct ng_value *rest = arena_zalloc(arena, sizeof(*rest));
    if (rest == NULL) {
        return NG_EINTERNAL;
    }
    rest->type = NG_TYPE_OBJECT;
    struct ng_value **link = &rest->first;
    for (const struct ng_value *member = body->first; member != NULL; member = member->next) {
        if (str_in_words(member->key, known)) {
            continue;
        }
        struct ng_value *copy = arena_alloc(arena, sizeof(*copy));
        if (copy == NULL) {
            return NG_EINTERNAL;
        }
        *copy = *member;
        copy->next = NULL;
        *link = copy;
        link = &copy->next;
        rest->count++;
    }
    if (rest->count == 0) {
        return NG_OK;
    }
    return journal_print(arena, rest, ret);
}

/* The data may name another document than the changed one. */
static void journal_read_about(const struct ng_value *body, struct ng_entry *entry)
{
    const struct ng_value *about = json_get(body, "about");
    struct ng_str collection = {NULL, 0};
    struct ng_str id = {NULL, 0};
    if (about != NULL && about->type == NG_TYPE_OBJECT) {
        collection = json_get_text(about, "collection");
        id = json_get_text(about, "id");
    }
    if (collection.len > 0 && id.data != NULL) {
        entry->collection = collection;
        entry->id = id;
    }
}

bool journal_copy_texts(struct arena *arena, struct ng_str *const *texts, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        bool absent = texts[i]->data == NULL;
        *texts[i] = arena_copy(arena, *texts[i]);
        good = good && (absent || texts[i]->data != NULL);
    }
    return good;
}

/* Copies the texts of an entry: the event is borrowed, and the tree of its data is freed. */
static int journal_entry_keep(struct arena *arena, struct ng_entry *entry)
{
    struct ng_str *const texts[] = {
        &entry->event_id,   &entry->space,  &entry->agent, &entry->action,
        &entry->collection, &entry->id,     &entry->title, &entry->status,
        &entry->content,    &entry->source, &entry->data,
    };
    bool good = journal_copy_texts(arena, texts, NG_COUNT(texts));
    struct ng_str *tags = arena_alloc(arena, entry->tag_count * sizeof(*tags));
    for (size_t i = 0; good && tags != NULL && i < entry->tag_count; i++) {
        tags[i] = arena_copy(arena, entry->tags[i]);
        good = tags[i].data != NULL;
    }
    entry->tags = tags;
    return good && tags != NULL ? NG_OK : NG_EINTERNAL;
}

static int journal_read_data(struct arena *arena, const struct ng_value *body,
                             struct ng_entry *entry)
{
    int rc = journal_read_members(arena, body, entry);
    journal_read_about(body, entry);
    if (str_is(json_get_text(body, "kind"), "forget")) {
        entry->kind = NG_ENTRY_FORGET;
        entry->version = 0; /* it is about a memory */
    }
    if (entry->kind == NG_ENTRY_MEMORY) {
        entry->content = json_get_text(body, "content");
    } else {
        entry->content = utf8_cut_count(json_get_text(body, "summary"), NG_SUMMARY_MAX);
    }
    if (rc == NG_OK) {
        rc = journal_rest(arena, body, &entry->data);
    }
    if (rc == NG_ETOOLARGE) {
        log_write(NG_LOG_WARNING, "journal",
                  "event %.*s is stored without its data, which have over %zu bytes",
                  (int)entry->event_id.len, entry->event_id.data, JOURNAL_DATA_MAX);
        rc = NG_OK;
    }
    return rc;
}

struct ng_str journal_event_id(struct arena *arena, const struct ng_event *event)
{
    return arena_printf(arena, "%lld-%llu", (long long)event->time_ms,
                        (unsigned long long)event->seq);
}

int journal_entry_of_event(struct arena *arena, const struct ng_event *event,
                           struct ng_entry *ret)
{
    const struct ng_value *body = NULL;
    struct arena tree;
    int rc = NG_OK;
    arena_init(&tree, JOURNAL_TREE_MAX);
    struct ng_entry entry = {
        .size = sizeof(entry),
        .kind = NG_ENTRY_REFERENCE,
        .event_id = journal_event_id(&tree, event),
        .seq = event->seq,
        .space = event->key.space,
        .time_ms = event->time_ms,
        .agent = event->agent,
        .action = event->action,
        .collection = event->key.collection,
        .id = event->key.id,
        .version = event->revision,
    };
    if (entry.event_id.data == NULL) {
        rc = NG_EINTERNAL;
    } else if (event->data.len > 0) {
        rc = json_parse(&tree, event->data, JSON_DEPTH_DEFAULT, &body, NULL);
    }
    if (rc == NG_EJSON) {
        rc = NG_OK; /* a bug of a plugin, but the event must not be lost */
    } else if (rc == NG_OK && json_is(body, NG_TYPE_OBJECT)) {
        rc = journal_read_data(&tree, body, &entry);
    }
    if (rc == NG_OK) {
        rc = journal_entry_keep(arena, &entry);
    }
    arena_done(&tree);
    if (rc == NG_OK) {
        *ret = entry;
    }
    return rc;
}
