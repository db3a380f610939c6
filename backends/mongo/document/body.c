/* SPDX-License-Identifier: MIT */
/*
 * body.c - converts a put to members of a stored document, and a stored document to a row.
 *
 * Documents keep their JSON as text, because BSON preserves neither the spelling of numbers nor
 * every name. Entries have the members that agents see instead. Their JSON is rebuilt from
 * these, and is also stored only if that does not give the same text.
 */
#include "document.h"

#include <stdio.h>

/* A change without a sequence number yet sorts after all that have one. */
#define SEQ_PENDING (UINT64_C(1) << 62)

/* More than a document has beside its shape and its outbox: its name. */
#define REST_BYTES_MAX ((size_t)2 * NG_ID_MAX)

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
    BSON_APPEND_ARRAY_BEGIN(own, "members", &list);
    if (bson_iter_init(&iter, members)) {
        while (bson_iter_next(&iter)) {
            bson_item(&list, at++, ng_str_of(bson_iter_key(&iter)));
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
    BSON_APPEND_UTF8(&shape->gone, "notegate.fields", ""); /* of an older version */
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

static int shape_make(struct shape *shape, const struct prepared *prepared,
                      const struct ng_put *put, const char *batch, uint64_t seq)
{
    const struct db_collection *collection = prepared->collection;
    size_t field_count = put->field_count;
    int rc = NG_OK;
    bson_init(&shape->top);
    bson_init(&shape->own);
    bson_init(&shape->gone);
    if (put->deleted) {
        field_count = 0;
    }
    if (collection->is_entry) {
        rc = shape_entry(shape, prepared, put);
    } else {
        bson_add(&shape->top, "json:s, text:s", put->json, put->text);
        fields_append(&shape->own, collection, put, field_count);
    }
    bson_add(&shape->own,
             "id:s, revision:u, deleted:b, updated:d, seq:u, author:s, action:s, text_size:u, "
             "batch:t",
             put->key.id, put->revision, put->deleted, put->time_ms, seq, put->agent,
             put->action, (uint64_t)put->text.len, batch);
    put_hash(&shape->own, "hash", prepared->hash);
    if (rc == NG_OK && is_searchable(collection)) {
        rc = words_append(&shape->own, collection, put->revision, put->text, put->fields,
                          field_count);
    }
    return rc;
}

/* Searches rank a document that has no room for its terms by its texts. */
static void shape_fit(struct shape *shape, const bson_t *outbox)
{
    bson_t own;
    if ((size_t)shape->top.len + shape->own.len + outbox->len + REST_BYTES_MAX <=
        DOCUMENT_BYTES_MAX) {
        return;
    }
    bson_init(&own);
    bson_copy_to_excluding_noinit(&shape->own, &own, "terms", NULL);
    bson_destroy(&shape->own);
    bson_steal(&shape->own, &own);
    BSON_APPEND_UTF8(&shape->gone, TERMS, "");
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
    static const char created[] = "created:d, created_seq:u, created_event:u, outbox_bytes:u";
    struct shape shape;
    uint64_t seq = SEQ_PENDING | stamp;
    if (placed != NULL) {
        seq = placed->seq;
    }
    int rc = shape_make(&shape, prepared, put, batch, seq);
    if (placed != NULL) {
        bson_add(&shape.own, created, placed->created_ms, placed->created_seq,
                 placed->created_seq, outbox_bytes);
        bson_add(&shape.own, "moved:d", placed->updated_ms);
    } else {
        bson_add(&shape.own, created, put->created_ms, stamp, UINT64_C(0), outbox_bytes);
        bson_add(&shape.own, "waiting:u", stamp);
    }
    shape_fit(&shape, outbox);
    bson_init(ret);
    bson_add(ret, "_id:s, space:s", bytes_str(&prepared->name), put->key.space);
    if (rc == NG_OK && !bson_concat(ret, &shape.top)) {
        rc = NG_ETOOLARGE;
    }
    bson_add(ret, "outbox:A, notegate:D", outbox, &shape.own);
    shape_done(&shape);
    if (rc != NG_OK) {
        return rc;
    }
    return check_size(ret->len);
}

void own_append(bson_t *set, const bson_t *own)
{
    bson_iter_t iter;
    if (bson_iter_init(&iter, own)) {
        while (bson_iter_next(&iter)) {
            char key[64];
            (void)snprintf(key, sizeof(key), "notegate.%s", bson_iter_key(&iter));
            (void)bson_append_iter(set, key, -1, &iter);
        }
    }
}

int body_update(const struct prepared *prepared, const struct ng_put *put,
                const struct ng_put *creator, bson_t *outbox, uint64_t outbox_bytes,
                const char *batch, uint64_t stamp, bson_t *ret)
{
    struct shape shape;
    bson_t set;
    int rc = shape_make(&shape, prepared, put, batch, SEQ_PENDING | stamp);
    if (creator != NULL) {
        bson_add(&shape.own, "created:d, created_seq:u, created_event:0", creator->created_ms,
                 stamp);
    }
    if (prepared->adopts) {
        int64_t version = member_i64(&shape.top, "metadata.version");
        bson_reinit(&shape.top);
        bson_reinit(&shape.gone);
        if (version > 0) {
            BSON_APPEND_INT64(&shape.top, "metadata.version", version);
        }
    }
    shape_fit(&shape, outbox);
    bson_init(ret);
    BSON_APPEND_DOCUMENT_BEGIN(ret, "$set", &set);
    if (rc == NG_OK && !bson_concat(&set, &shape.top)) {
        rc = NG_ETOOLARGE;
    }
    own_append(&set, &shape.own);
    (void)bson_append_document_end(ret, &set);
    bson_add(ret,
             "$push:{outbox:{$each:A}}, $min:{notegate.waiting:u}, "
             "$inc:{notegate.outbox_bytes:u}, $unset:D",
             outbox, stamp, outbox_bytes, &shape.gone);
    shape_done(&shape);
    if (rc != NG_OK) {
        return rc;
    }
    return check_size(ret->len);
}

/* ---- the outbox ---- */

static void add_body(bson_t *entry, const struct ng_put *put)
{
    const struct ng_splice *json = &put->json_splice;
    const struct ng_splice *text = &put->text_splice;
    bool whole =
        put->base_revision == 0 || put->created_seq == 0 || put->deleted ||
        put->revision % WHOLE_EVERY == 0 ||
        json->inserted.len + text->inserted.len >= (put->json.len + put->text.len) / 4 * 3;
    if (put->no_history) {
        bson_add(entry, "kept:i", KEPT_NONE);
    } else if (whole) {
        bson_add(entry, "kept:i, json:s, text:s", KEPT_WHOLE, put->json, put->text);
    } else {
        bson_add(entry,
                 "kept:i, json_at:u, json_removed:u, json:s, text_at:u, text_removed:u, text:s",
                 KEPT_SPLICE, json->at, json->removed, json->inserted, text->at, text->removed,
                 text->inserted);
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
    bson_add(&entry,
             "revision:u, batch:t, stamp:u, time:d, created:d, creates:b, deleted:b, quiet:b, "
             "text_size:u, agent:s, tool:s, action:s",
             put->revision, batch, stamp, put->time_ms, put->created_ms, put->created_seq == 0,
             put->deleted, put->quiet, (uint64_t)put->text.len, put->agent, put->tool,
             put->action);
    put_hash(&entry, "hash", hash);
    origin_append(&entry, &put->origin);
    if (put->gateway.len > 0) {
        put_str(&entry, "gateway", put->gateway);
    }
    if (put->event_data.data != NULL) {
        put_str(&entry, "data", put->event_data);
    }
    add_body(&entry, put);
    (void)bson_append_document_end(outbox, &entry);
    return outbox->len - before;
}

bson_t *event_bson(const struct ng_event *event, struct ng_str ref, struct ng_str document)
{
    bson_t *doc = bson_of("_id:u, ref:s, collection:s, document:s, space:s, id:s, revision:u, "
                          "time:d, agent:s, tool:s, action:s",
                          event->seq, ref, event->key.collection, document, event->key.space,
                          event->key.id, event->revision, event->time_ms, event->agent,
                          event->tool, event->action);
    if (event->data.data != NULL) {
        put_str(doc, "data", event->data);
    }
    origin_append(doc, &event->origin);
    return doc;
}

bson_t *version_bson(const char *collection, struct ng_str document, struct ng_str ref,
                     uint64_t seq, uint64_t created_seq, const bson_t *entry)
{
    return bson_of("_id:s, collection:t, document:s, seq:u, created_seq:u, *", ref, collection,
                   document, seq, created_seq, entry);
}

/* ---- rows ---- */

uint64_t body_seq(const bson_t *doc)
{
    uint64_t seq = member_u64(doc, "notegate.seq");
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
    ret->seq = body_seq(doc);
    ret->created_seq = member_u64(doc, "notegate.created_seq");
    ret->created_ms = member_i64(doc, "notegate.created");
    ret->updated_ms = member_i64(doc, "notegate.updated");
    ret->author = member_str(doc, "notegate.author");
    ret->action = member_str(doc, "notegate.action");
    return rc;
}

bool hash_is(const bson_t *from, const char *path, struct ng_str json, struct ng_str text,
             bool deleted)
{
    unsigned char hash[HASH_BYTES];
    content_hash(CONTENT_HASH_ROTATED, json, text, deleted, hash);
    return str_equal(member_str(from, path), str_of((const char *)hash, HASH_BYTES));
}

int tombstone_load(struct mongo *db, struct session *session,
                   const struct db_collection *collection, struct ng_str document, bson_t **ret,
                   struct fault *fault)
{
    struct bytes name = {0};
    *ret = NULL;
    fault->rc = NG_OK;
    if (collection->is_entry) {
        fault->rc = name_tombstone(collection->name, document, &name);
    }
    if (name.len > 0 && fault->rc == NG_OK) {
        *ret = op_find_one(db, session, OWN_TOMBSTONES, bson_of("_id:s", bytes_str(&name)),
                           NULL, fault);
    }
    bytes_done(&name);
    return fault->rc;
}
