/* SPDX-License-Identifier: MIT */
/*
 * body.c - converts a put to members of a stored document, and a stored document to a row.
 *
 * Documents keep their JSON as text, because BSON preserves neither the spelling of numbers nor
 * every name. Entries have the members that agents see instead. Their JSON is rebuilt from
 * these, and is also stored only if that does not give the same text.
 */
#include "db.h"

#include <stdio.h>

/* A change without a sequence number yet sorts after all that have one. */
#define SEQ_PENDING (UINT64_C(1) << 62)

/* Optional members of an entry. */
static const char *const entry_members[] = {
    "title",      "summary",      "status",     "tags",         "metadata",
    "sections",   "history",      "language",   "description",  "related_page",
    "source_url", "key_findings", "confidence", "related_pages"};

/* The members a put writes: `top` at the top of the document, `own` below "notegate"; `gone`
 * are removed. */
struct shape {
    bson_t top, own, gone;
};

static void shape_done(struct shape *shape)
{
    bson_destroy(&shape->top);
    bson_destroy(&shape->own);
    bson_destroy(&shape->gone);
}

static void add_names(bson_t *own, const bson_t *members)
{
    bson_t list;
    bson_iter_t iter;
    uint32_t at = 0;
    char digits[16];
    BSON_APPEND_ARRAY_BEGIN(own, "members", &list);
    if (bson_iter_init(&iter, members)) {
        while (bson_iter_next(&iter)) {
            const char *key = NULL;
            (void)bson_uint32_to_string(at++, &key, digits, sizeof(digits));
            BSON_APPEND_UTF8(&list, key, bson_iter_key(&iter));
        }
    }
    (void)bson_append_array_end(own, &list);
}

static int shape_entry(struct shape *shape, const struct prepared *prepared,
                       const struct ng_put *put)
{
    bool whole = true;
    struct bytes again = {0};
    bson_t names;
    int rc = json_members(put->json, &shape->top, &whole);
    add_names(&shape->own, &shape->top);
    if (rc == NG_OK && member_doc(&shape->own, "members", &names)) {
        rc = json_of(&shape->top, &names, &again);
    }
    if (!whole || !str_equal(bytes_str(&again), put->json)) {
        put_str(&shape->own, "json", put->json);
    } else {
        BSON_APPEND_UTF8(&shape->gone, "notegate.json", "");
    }
    bytes_done(&again);
    for (size_t i = 0; i < NG_COUNT(entry_members); i++) {
        if (!bson_has_field(&shape->top, entry_members[i])) {
            BSON_APPEND_UTF8(&shape->gone, entry_members[i], "");
        }
    }
    if (put->deleted) {
        BSON_APPEND_UTF8(&shape->gone, prepared->collection->text_member, "");
    } else {
        put_str(&shape->top, prepared->collection->text_member, put->text);
    }
    return rc;
}

static void add_field(bson_t *fields, const struct db_field *field, const struct ng_put *put)
{
    const char *key = field->path + sizeof("notegate.fields.") - 1;
    bson_t list;
    uint32_t at = 0;
    char digits[16];
    bool listed = field->use == NG_FIELD_TAG;
    struct ng_str name = ng_str_of(field->name);
    for (size_t i = 0; i < put->field_count; i++) {
        const struct ng_field_value *value = &put->fields[i];
        if (value->use != field->use || !str_equal(value->name, name)) {
            continue;
        }
        if (listed) {
            const char *index = NULL;
            if (at == 0) {
                BSON_APPEND_ARRAY_BEGIN(fields, key, &list);
            }
            (void)bson_uint32_to_string(at, &index, digits, sizeof(digits));
            put_str(&list, index, value->text);
        } else if (at > 0) {
            continue;
        } else if (field->use == NG_FIELD_NUMBER) {
            BSON_APPEND_DOUBLE(fields, key, value->number);
        } else {
            put_str(fields, key, value->text);
        }
        at++;
    }
    if (listed && at > 0) {
        (void)bson_append_array_end(fields, &list);
    }
}

static int shape_make(struct shape *shape, const struct prepared *prepared,
                      const struct ng_put *put, const struct ng_doc *placed, const char *batch,
                      uint64_t stamp)
{
    const struct db_collection *collection = prepared->collection;
    bson_t fields;
    int rc = NG_OK;
    bson_init(&shape->top);
    bson_init(&shape->own);
    bson_init(&shape->gone);
    put_str(&shape->own, "id", put->key.id);
    if (collection->is_entry) {
        rc = shape_entry(shape, prepared, put);
    } else {
        put_str(&shape->top, "json", put->json);
        put_str(&shape->top, "text", put->text);
    }
    put_str(&shape->top, "space", put->key.space);
    put_u64(&shape->own, "revision", put->revision);
    BSON_APPEND_BOOL(&shape->own, "deleted", put->deleted);
    BSON_APPEND_DATE_TIME(&shape->own, "updated", put->time_ms);
    put_u64(&shape->own, "seq", placed != NULL ? placed->seq : SEQ_PENDING | stamp);
    put_str(&shape->own, "author", put->agent);
    put_str(&shape->own, "action", put->action);
    put_hash(&shape->own, "hash", prepared->hash);
    put_u64(&shape->own, "text_size", put->text.len);
    BSON_APPEND_UTF8(&shape->own, "batch", batch);
    BSON_APPEND_DOCUMENT_BEGIN(&shape->own, "fields", &fields);
    for (size_t i = 0; i < collection->field_count && !put->deleted; i++) {
        add_field(&fields, &collection->fields[i], put);
    }
    (void)bson_append_document_end(&shape->own, &fields);
    return rc;
}

static void add_created(bson_t *own, const struct ng_put *put, uint64_t stamp)
{
    BSON_APPEND_DATE_TIME(own, "created", put->created_ms);
    put_u64(own, "created_seq", stamp);
    put_u64(own, "created_event", 0);
}

static int check_size(size_t bytes)
{
    if (bytes > DOCUMENT_BYTES_MAX) {
        return NG_ETOOLARGE;
    }
    return NG_OK;
}

int body_insert(const struct ng_doc *placed, const struct prepared *prepared,
                const struct ng_put *put, bson_t *outbox, uint64_t outbox_bytes,
                const char *batch, uint64_t stamp, bson_t *ret)
{
    struct shape shape;
    int rc = shape_make(&shape, prepared, put, placed, batch, stamp);
    if (placed != NULL) {
        BSON_APPEND_DATE_TIME(&shape.own, "created", placed->created_ms);
        put_u64(&shape.own, "created_seq", placed->created_seq);
        put_u64(&shape.own, "created_event", placed->created_seq);
        BSON_APPEND_DATE_TIME(&shape.own, "moved", placed->updated_ms);
    } else {
        add_created(&shape.own, put, stamp);
        put_u64(&shape.own, "waiting", stamp);
    }
    put_u64(&shape.own, "outbox_bytes", outbox_bytes);
    bson_init(ret);
    put_str(ret, "_id", bytes_str(&prepared->name));
    if (rc == NG_OK && !bson_concat(ret, &shape.top)) {
        rc = NG_ETOOLARGE;
    }
    BSON_APPEND_ARRAY(ret, "outbox", outbox);
    BSON_APPEND_DOCUMENT(ret, "notegate", &shape.own);
    shape_done(&shape);
    if (rc != NG_OK) {
        return rc;
    }
    return check_size(ret->len);
}

int body_update(const struct prepared *prepared, const struct ng_put *put,
                const struct ng_put *creator, bson_t *outbox, uint64_t outbox_bytes,
                const char *batch, uint64_t stamp, bson_t *ret)
{
    struct shape shape;
    bson_t set, push, each;
    bson_iter_t iter;
    int rc = shape_make(&shape, prepared, put, NULL, batch, stamp);
    if (creator != NULL) {
        add_created(&shape.own, creator, stamp);
    }
    bson_init(ret);
    BSON_APPEND_DOCUMENT_BEGIN(ret, "$set", &set);
    if (rc == NG_OK && !bson_concat(&set, &shape.top)) {
        rc = NG_ETOOLARGE;
    }
    if (bson_iter_init(&iter, &shape.own)) {
        while (bson_iter_next(&iter)) {
            char key[64];
            (void)snprintf(key, sizeof(key), "notegate.%s", bson_iter_key(&iter));
            (void)bson_append_iter(&set, key, -1, &iter);
        }
    }
    (void)bson_append_document_end(ret, &set);
    BSON_APPEND_DOCUMENT_BEGIN(ret, "$push", &push);
    BSON_APPEND_DOCUMENT_BEGIN(&push, "outbox", &each);
    BSON_APPEND_ARRAY(&each, "$each", outbox);
    (void)bson_append_document_end(&push, &each);
    (void)bson_append_document_end(ret, &push);
    nest_u64(ret, "$min", "notegate.waiting", stamp);
    nest_u64(ret, "$inc", "notegate.outbox_bytes", outbox_bytes);
    BSON_APPEND_UTF8(&shape.gone, "notegate.intent", "");
    BSON_APPEND_DOCUMENT(ret, "$unset", &shape.gone);
    shape_done(&shape);
    if (rc != NG_OK) {
        return rc;
    }
    return check_size(ret->len);
}

/* ---- the outbox ---- */

static void add_splice(bson_t *entry, const char *name, const struct ng_splice *splice)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "%s_at", name);
    put_u64(entry, key, splice->at);
    (void)snprintf(key, sizeof(key), "%s_removed", name);
    put_u64(entry, key, splice->removed);
    put_str(entry, name, splice->inserted);
}

static void add_body(bson_t *entry, const struct ng_put *put)
{
    size_t spliced = put->json_splice.inserted.len + put->text_splice.inserted.len;
    bool whole = put->base_revision == 0 || put->created_seq == 0 || put->deleted ||
                 put->revision % WHOLE_EVERY == 0 ||
                 spliced >= (put->json.len + put->text.len) / 4 * 3;
    if (put->no_history) {
        BSON_APPEND_INT32(entry, "kept", KEPT_NONE);
        return;
    }
    BSON_APPEND_INT32(entry, "kept", whole ? KEPT_WHOLE : KEPT_SPLICE);
    if (whole) {
        put_str(entry, "json", put->json);
        put_str(entry, "text", put->text);
    } else {
        add_splice(entry, "json", &put->json_splice);
        add_splice(entry, "text", &put->text_splice);
    }
}

uint64_t outbox_add(bson_t *outbox, uint32_t at, const struct ng_put *put,
                    const unsigned char hash[HASH_BYTES], const char *batch, uint64_t stamp)
{
    char digits[16];
    const char *key = NULL;
    bson_t entry;
    uint32_t before = outbox->len;
    (void)bson_uint32_to_string(at, &key, digits, sizeof(digits));
    BSON_APPEND_DOCUMENT_BEGIN(outbox, key, &entry);
    put_u64(&entry, "revision", put->revision);
    BSON_APPEND_UTF8(&entry, "batch", batch);
    put_u64(&entry, "stamp", stamp);
    BSON_APPEND_DATE_TIME(&entry, "time", put->time_ms);
    BSON_APPEND_DATE_TIME(&entry, "created", put->created_ms);
    BSON_APPEND_BOOL(&entry, "creates", put->created_seq == 0);
    BSON_APPEND_BOOL(&entry, "deleted", put->deleted);
    BSON_APPEND_BOOL(&entry, "quiet", put->quiet);
    put_hash(&entry, "hash", hash);
    put_u64(&entry, "text_size", put->text.len);
    put_str(&entry, "agent", put->agent);
    put_str(&entry, "tool", put->tool);
    put_str(&entry, "action", put->action);
    if (put->event_data.data != NULL) {
        put_str(&entry, "data", put->event_data);
    }
    add_body(&entry, put);
    (void)bson_append_document_end(outbox, &entry);
    return outbox->len - before;
}

/* ---- rows ---- */

static uint64_t known_seq(uint64_t seq)
{
    if (seq >= SEQ_PENDING) {
        return 0;
    }
    return seq;
}

int body_row(const struct db_collection *collection, const bson_t *doc, bool with_text,
             struct bytes *json, struct ng_doc *ret)
{
    bson_t names;
    int rc = NG_OK;
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret);
    ret->key.collection = ng_str_of(collection->name);
    ret->key.space = member_str(doc, "space");
    ret->key.id = member_str(doc, "notegate.id");
    ret->revision = member_u64(doc, "notegate.revision");
    ret->deleted = member_bool(doc, "notegate.deleted");
    ret->json = member_str(doc, collection->is_entry ? "notegate.json" : "json");
    if (ret->json.data == NULL) {
        rc = json_of(doc, member_doc(doc, "notegate.members", &names) ? &names : NULL, json);
        ret->json = bytes_str(json);
    }
    if (with_text) {
        ret->text = member_str(doc, collection->text_member);
        if (ret->text.data == NULL) {
            ret->text.data = "";
        }
    }
    ret->text_size = member_u64(doc, "notegate.text_size");
    ret->seq = known_seq(member_u64(doc, "notegate.seq"));
    ret->created_seq = member_u64(doc, "notegate.created_seq");
    ret->created_ms = member_i64(doc, "notegate.created");
    ret->updated_ms = member_i64(doc, "notegate.updated");
    ret->author = member_str(doc, "notegate.author");
    ret->action = member_str(doc, "notegate.action");
    return rc;
}
