/* SPDX-License-Identifier: MIT */
/* journal_generation.c - layout of the journal in documents: collections, ids, generations, and
 * reading and writing one entry. */
#include "journal_documents.h"

#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "journal_entry.h"

#define JOURNAL_POINTER "generation"
/* Largest JSON of one entry. */
#define JOURNAL_ENTRY_MAX ((size_t)2 * 1024 * 1024)

static const struct ng_field journal_day_fields[] = {
    {"gen", NG_FIELD_NUMBER, 0},
    {"date", NG_FIELD_STRING, 0},
    {"agent", NG_FIELD_STRING, 0},
    {"seq", NG_FIELD_NUMBER, 0},
};

static const struct ng_field journal_recall_fields[] = {
    {"gen", NG_FIELD_NUMBER, 0},   {"time", NG_FIELD_NUMBER, 0}, {"source", NG_FIELD_STRING, 0},
    {"agent", NG_FIELD_STRING, 0}, {"tags", NG_FIELD_TAG, 0},    {"title", NG_FIELD_TEXT, 2.0},
};

static const struct ng_field journal_summary_fields[] = {
    {"gen", NG_FIELD_NUMBER, 0},
};

#define JOURNAL_KEPT (NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY)

#define JOURNAL_FIELDS(fields_of)                                                              \
    .fields = (fields_of), .field_count = NG_COUNT(fields_of),                                 \
    .field_size = sizeof(struct ng_field)

static const struct ng_collection journal_collections[] = {
    {.name = JOURNAL_DAYS, .flags = JOURNAL_KEPT, JOURNAL_FIELDS(journal_day_fields)},
    {.name = JOURNAL_REFERENCES,
     .flags = JOURNAL_KEPT | NG_COLLECTION_TEXT_SEARCH,
     JOURNAL_FIELDS(journal_recall_fields)},
    {.name = JOURNAL_MEMORY,
     .flags = JOURNAL_KEPT | NG_COLLECTION_TEXT_SEARCH,
     JOURNAL_FIELDS(journal_recall_fields)},
    {.name = JOURNAL_SUMMARIES, .flags = JOURNAL_KEPT, JOURNAL_FIELDS(journal_summary_fields)},
    {.name = JOURNAL_CHECKPOINTS, .flags = JOURNAL_KEPT},
    {.name = JOURNAL_STATE, .flags = JOURNAL_KEPT},
    {.name = JOURNAL_PINS, .flags = JOURNAL_KEPT},
    {.name = JOURNAL_SPACES, .flags = JOURNAL_KEPT},
};

int journal_declare(struct store *store, struct call *call)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < NG_COUNT(journal_collections); i++) {
        /* A second journal on the same store finds them declared. */
        if (store_collection(store, ng_str_of(journal_collections[i].name)) == NULL) {
            rc = store_declare(store, call, &journal_collections[i]);
        }
    }
    return rc;
}

struct ng_key journal_key(const char *collection, struct ng_str space, struct ng_str id)
{
    struct ng_key key = {ng_str_of(collection), space, id};
    return key;
}

struct ng_str journal_id(struct call *call, uint64_t generation, struct ng_str name)
{
    struct buf id;
    buf_init(&id, SIZE_MAX / 2);
    (void)buf_printf(&id, "%llu/", (unsigned long long)generation);
    (void)buf_add_str(&id, name);
    struct ng_str ret = {NULL, 0};
    (void)journal_take_buf(&call->arena, &id, &ret);
    return ret;
}

int journal_take_buf(struct arena *arena, struct buf *buf, struct ng_str *ret)
{
    int rc = buf->rc;
    if (rc == NG_OK) {
        *ret = arena_copy(arena, buf_str(buf));
    }
    if (rc == NG_OK && ret->data == NULL) {
        rc = NG_EINTERNAL;
    }
    buf_done(buf);
    return rc;
}

/* ---- steps ---- */

bool journal_try_again(struct call *call, int rc, int *tries)
{
    if (rc != NG_ECONFLICT || ++*tries >= JOURNAL_TRIES) {
        return false;
    }
    call_reset_result(call);
    return true;
}

struct call *journal_step(struct call *call)
{
    struct call *step = call_new(call->gateway);
    if (step == NULL) {
        call_fail(call, NG_EINTERNAL, "out of memory for the journal");
        return NULL;
    }
    step->may_block = true;
    step->deadline_ns = call->deadline_ns;
    return step;
}

int journal_step_end(struct call *call, struct call *step, int rc)
{
    if (rc != NG_OK) {
        struct ng_str text = step->staged.message;
        call_fail(call, rc, "%.*s", (int)text.len, text.data == NULL ? "" : text.data);
    }
    call_unref(step);
    return rc;
}

/* ---- generations ---- */

int journal_generation_get(struct journal_documents *journal, struct call *call,
                           struct ng_str space, struct journal_generation *ret)
{
    struct ng_key key = journal_key(JOURNAL_STATE, space, ng_str_of(JOURNAL_POINTER));
    const struct ng_doc *doc = NULL;
    int rc = store_get(journal->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    int64_t number = 0;
    int64_t last = 0;
    *ret = (struct journal_generation){.pointer_revision = doc->revision};
    if (doc->revision > 0 && !doc->deleted) {
        rc = json_integer(json_get(doc->body, "generation"), &number);
        if (rc != NG_OK || number < 0) {
            return call_fail(call, NG_EINTERNAL,
                             "the journal of space '%.*s' is damaged: its pointer says %.*s",
                             (int)space.len, space.data, (int)doc->json.len, doc->json.data);
        }
        if (json_integer(json_get(doc->body, "last"), &last) != NG_OK) {
            last = 0; /* written by a version without `last` */
        }
        ret->kept = json_get(doc->body, "kept");
    }
    ret->number = (uint64_t)number;
    ret->last = (uint64_t)i64_max(last, number);
    return NG_OK;
}

bool journal_generation_kept(const struct journal_generation *generation, struct ng_str id,
                             uint64_t *ret)
{
    const struct ng_value *item = NULL;
    if (generation->kept != NULL) {
        item = json_get_str(generation->kept, id);
    }
    int64_t number = 0;
    if (item == NULL || json_integer(item, &number) != NG_OK) {
        return false;
    }
    *ret = (uint64_t)number;
    return true;
}

static int journal_touch_nothing(struct ng_call *call, const struct ng_doc *present,
                                 struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    (void)next;
    (void)user;
    return NG_OK;
}

void journal_generation_hold(struct ng_str space, const struct journal_generation *generation,
                             struct ng_change *ret)
{
    *ret = (struct ng_change){
        .size = sizeof(*ret),
        .key = journal_key(JOURNAL_STATE, space, ng_str_of(JOURNAL_POINTER)),
        .fn = journal_touch_nothing,
        .has_expected = true,
        .expected_revision = generation->pointer_revision,
    };
}

static int journal_write_pointer(struct ng_call *call, const struct ng_doc *present,
                                 struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    const struct ng_str *json = user;
    return store_draft_json(next, *json);
}

static void journal_pointer_json(struct ng_writer *writer,
                                 const struct journal_generation *generation,
                                 const struct journal_move *move)
{
    uint64_t last = u64_max(generation->last, move->number);
    const struct ng_value *item = NULL;
    if (generation->kept != NULL) {
        item = generation->kept->first;
    }
    json_object(writer);
    json_name(writer, "generation");
    json_int(writer, (int64_t)move->number);
    json_name(writer, "last");
    json_int(writer, (int64_t)last);
    json_name(writer, "kept");
    json_object(writer);
    for (; item != NULL; item = item->next) {
        if (!str_equal(item->key, move->drop)) {
            json_name_str(writer, item->key);
            json_copy(writer, item);
        }
    }
    if (move->keep.len > 0) {
        json_name_str(writer, move->keep);
        json_int(writer, (int64_t)generation->number);
    }
    json_end(writer);
    json_end(writer);
}

int journal_generation_change(struct call *call, struct ng_str space,
                              const struct journal_generation *generation,
                              const struct journal_move *move, struct ng_change *ret)
{
    struct buf buf;
    struct ng_writer writer;
    struct ng_str *json = arena_alloc(&call->arena, sizeof(*json));
    buf_init(&buf, JOURNAL_ENTRY_MAX);
    json_writer_init(&writer, &buf);
    journal_pointer_json(&writer, generation, move);
    struct ng_str text = {NULL, 0};
    int rc = journal_take_buf(&call->arena, &buf, &text);
    if (rc == NG_ETOOLARGE) {
        return call_fail(
            call, rc,
            "too many saved states of the journal exist; remove some with checkpoint_delete");
    }
    if (rc != NG_OK || json == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    *json = text;
    journal_generation_hold(space, generation, ret);
    ret->fn = journal_write_pointer;
    ret->user = json;
    return NG_OK;
}

int journal_generation_move(struct journal_documents *journal, struct call *call,
                            struct ng_str space, const struct journal_generation *generation,
                            const struct journal_move *move)
{
    struct ng_change change;
    int rc = journal_generation_change(call, space, generation, move, &change);
    return rc != NG_OK ? rc : store_write_wait(journal->store, call, &change, 1);
}

/* ---- entries ---- */

struct journal_entry_put {
    enum journal_place place;
    const struct ng_entry *entry;
    struct ng_str json;
};

/* True if the stored entry is as new as this one, or newer. */
static bool journal_is_stored(const struct journal_entry_put *put, const struct ng_doc *present)
{
    if (present->revision == 0 || present->deleted) {
        return false;
    }
    if (put->place != JOURNAL_IN_REFERENCES) {
        return true;
    }
    int64_t version = 0;
    int64_t seq = 0;
    (void)json_integer(json_get(present->body, "version"), &version);
    (void)json_integer(json_get(present->body, "seq"), &seq);
    return !journal_entry_later(put->entry, (uint64_t)version, (uint64_t)seq);
}

static int journal_put_entry(struct ng_call *call, const struct ng_doc *present,
                             struct ng_draft *next, void *user)
{
    (void)call;
    const struct journal_entry_put *put = user;
    if (journal_is_stored(put, present)) {
        return NG_OK;
    }
    int rc = store_draft_json(next, put->json);
    return rc != NG_OK ? rc : store_draft_text(next, &put->entry->content, 1);
}

static int journal_entry_json(struct call *call, uint64_t generation, struct ng_str date,
                              const struct ng_entry *entry, struct ng_str *ret)
{
    struct buf buf;
    struct ng_writer writer;
    buf_init(&buf, JOURNAL_ENTRY_MAX);
    json_writer_init(&writer, &buf);
    json_object(&writer);
    json_name(&writer, "gen");
    json_int(&writer, (int64_t)generation);
    if (date.data != NULL) {
        json_name(&writer, "date");
        json_string(&writer, date);
    }
    journal_entry_write(&writer, entry);
    json_end(&writer);
    int rc = journal_take_buf(&call->arena, &buf, ret);
    if (rc != NG_OK) {
        return call_fail(call, rc, "the journal entry '%.*s' is too large",
                         (int)entry->event_id.len, entry->event_id.data);
    }
    return NG_OK;
}

/* Unique: the name of a collection contains no '/'. */
static struct ng_str journal_reference_name(struct call *call, const struct ng_entry *entry)
{
    struct buf name;
    struct ng_str ret = {NULL, 0};
    buf_init(&name, SIZE_MAX / 2);
    (void)buf_add_str(&name, entry->collection);
    (void)buf_add_char(&name, '/');
    (void)buf_add_str(&name, entry->id);
    (void)journal_take_buf(&call->arena, &name, &ret);
    return ret;
}

int journal_put(struct call *call, enum journal_place place, uint64_t generation,
                struct ng_str date, const struct ng_entry *entry, struct ng_change *ret)
{
    static const char *const collections[] = {JOURNAL_DAYS, JOURNAL_REFERENCES, JOURNAL_MEMORY};
    struct journal_entry_put *put = arena_alloc(&call->arena, sizeof(*put));
    struct ng_str name = entry->event_id;
    if (place == JOURNAL_IN_REFERENCES) {
        name = journal_reference_name(call, entry);
    }
    struct ng_str id = journal_id(call, generation, name);
    if (put == NULL || name.data == NULL || id.data == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory for a journal entry");
    }
    *put = (struct journal_entry_put){.place = place, .entry = entry};
    int rc = journal_entry_json(call, generation, date, entry, &put->json);
    struct ng_change change = {
        .size = sizeof(change),
        .key = journal_key(collections[place], entry->space, id),
        .fn = journal_put_entry,
        .user = put,
    };
    *ret = change;
    return rc;
}

int journal_row(struct call *call, const struct ng_doc *row, struct ng_entry *ret,
                struct ng_str *ret_date)
{
    struct arena *arena = &call->arena;
    const struct ng_value *body = row->body;
    struct ng_str space = row->key.space;
    struct ng_str content = row->text;
    int rc = NG_OK;
    if (body == NULL) { /* else the row lives as long as the call */
        struct ng_str json = arena_copy(arena, row->json);
        space = arena_copy(arena, row->key.space);
        content = arena_copy(arena, row->text);
        if (json.data == NULL || (row->text.data != NULL && content.data == NULL)) {
            return call_fail(call, NG_EINTERNAL, "out of memory for a journal entry");
        }
        rc = json_parse(arena, json, JSON_DEPTH_DEFAULT, &body, NULL);
    }
    if (rc == NG_OK) {
        rc = journal_entry_read(arena, body, space, ret);
    }
    if (rc != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "the journal entry '%.*s' is damaged",
                         (int)row->key.id.len, row->key.id.data);
    }
    ret->content = content;
    if (ret_date != NULL) {
        const struct ng_value *date = json_get(body, "date");
        *ret_date = date == NULL ? str_make(NULL, 0) : date->text;
    }
    return NG_OK;
}
