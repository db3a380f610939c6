/* SPDX-License-Identifier: MIT */
/* adopt.c - an entry that another program changed in the database no longer fits its hash. What
 * it is now becomes its next revision, kept whole, with an event. */
#include "../commit/put.h"
#include "read.h"

/* The hash does not fit again, as the other program goes on. */
#define TRIES_MAX 4

/* Stores the content as the next revision, unless another gateway was faster. */
static int store(struct mongo *db, const bson_t *doc, const struct ng_doc *row,
                 struct prepared *prepared, struct fault *fault)
{
    const struct db_collection *collection = prepared->collection;
    struct texts texts;
    struct put put;
    bson_iter_t hash;
    bool done = false;
    texts_of(doc, collection, &texts);
    struct ng_put next = {.size = sizeof(next),
                          .key = row->key,
                          .base_revision = row->revision,
                          .revision = row->revision + 1,
                          .quiet = (collection->flags & NG_COLLECTION_QUIET) != 0,
                          .no_history = (collection->flags & NG_COLLECTION_NO_HISTORY) != 0,
                          .json = row->json,
                          .text = row->text,
                          .json_splice = {.inserted = row->json},
                          .text_splice = {.inserted = row->text},
                          .fields = texts.list,
                          .field_count = texts.count,
                          .time_ms = clock_unix_ms(),
                          .created_ms = row->created_ms,
                          .created_seq = NG_SEQ_KEEP,
                          .agent = ng_str_of(""),
                          .tool = ng_str_of(""),
                          .action = ng_str_of("external")};
    put_begin(db, &put, prepared, &next);
    put_add(db, &put, &next, prepared->hash);
    int rc = put_make(&put, false, fault);
    if (rc == NG_OK && member(doc, "notegate.hash", &hash)) {
        bson_t *filter = name_filter(doc, true);
        (void)bson_append_iter(filter, "notegate.hash", -1, &hash);
        bson_add(filter, "notegate.outbox_bytes:{$lte:l}",
                 (int64_t)(DOCUMENT_BYTES_MAX - put.change.len));
        (void)op_update(db, NULL, collection->name, filter, bson_copy(&put.change), &done,
                        fault);
        rc = fault->rc;
    }
    put_end(&put);
    if (rc == NG_OK) {
        relay_kick(db, collection);
    }
    return rc;
}

/* Agents know the revision by metadata.version. */
static bson_t *with_version(const bson_t *doc, int64_t version)
{
    bson_t *ret = bson_copy(doc);
    bson_iter_t iter;
    if (member(ret, "metadata.version", &iter) && BSON_ITER_HOLDS_INT64(&iter)) {
        bson_iter_overwrite_int64(&iter, version);
    }
    return ret;
}

static bool fits(const struct db_collection *collection, const bson_t *doc)
{
    struct bytes json = {0};
    struct ng_doc row;
    bool ret = member_str(doc, "notegate.hash").len != HASH_BYTES ||
               body_row(collection, doc, true, &json, &row) != NG_OK || row.deleted ||
               hash_is(doc, "notegate.hash", row.json, row.text, false);
    bytes_done(&json);
    return ret;
}

static int adopt(struct mongo *db, const struct db_collection *collection, const bson_t *doc,
                 struct fault *fault)
{
    struct prepared prepared = {.collection = collection, .adopts = true};
    struct bytes json = {0};
    struct ng_doc row;
    bson_t *next = with_version(doc, member_i64(doc, REVISION) + 1);
    int rc = int_min(bytes_set(&prepared.name, member_str(doc, "_id")),
                     body_row(collection, next, true, &json, &row));
    if (rc == NG_OK) {
        content_hash(CONTENT_HASH_ROTATED, row.json, row.text, false, prepared.hash);
        rc = store(db, next, &row, &prepared, fault);
    }
    bytes_done(&prepared.name);
    bytes_done(&json);
    bson_destroy(next);
    return rc;
}

int entry_load(struct mongo *db, const struct db_collection *collection, struct ng_str space,
               struct ng_str name, bool confirmed, bson_t **ret, struct fault *fault)
{
    int rc = NG_PENDING;
    *ret = NULL;
    for (unsigned tried = 0; tried < TRIES_MAX && rc == NG_PENDING; tried++) {
        bson_destroy(*ret);
        rc = doc_load(db, collection, space, name, confirmed, ret, fault);
        if (rc == NG_OK && collection->is_entry && !fits(collection, *ret)) {
            rc = adopt(db, collection, *ret, fault);
            if (rc == NG_OK) {
                rc = NG_PENDING; /* read it again */
            } else if (rc == NG_ETOOLARGE) {
                rc = NG_OK; /* shown as it is */
            }
        }
    }
    return int_min(rc, NG_OK);
}
