/* SPDX-License-Identifier: MIT */
/* op.c - single operations on the server, each with a client of its own. */
#include "db.h"

struct op {
    mongoc_client_t *client;
    mongoc_collection_t *collection;
    bson_t reply;
    bson_error_t error;
    bool replied;
};

static bool op_begin(struct op *op, struct mongo *db, const char *collection,
                     struct fault *fault)
{
    memset(op, 0, sizeof(*op));
    op->client = conn_acquire(db, fault);
    if (op->client == NULL) {
        return false;
    }
    op->collection = mongoc_client_get_collection(op->client, db->database, collection);
    return true;
}

static bool op_end(struct op *op, struct mongo *db, bool good, struct fault *fault)
{
    if (good) {
        conn_good(db);
    } else {
        fault_set(db, fault, &op->error, op->replied ? &op->reply : NULL);
    }
    if (op->replied) {
        bson_destroy(&op->reply);
    }
    mongoc_collection_destroy(op->collection);
    conn_release(db, op->client);
    return good;
}

bool op_insert(struct mongo *db, const char *collection, const bson_t *doc, struct fault *fault)
{
    struct op op;
    collection_prepare(db, collection);
    if (!op_begin(&op, db, collection, fault)) {
        return false;
    }
    op.replied = true;
    bool good = mongoc_collection_insert_one(op.collection, doc, NULL, &op.reply, &op.error);
    return op_end(&op, db, good, fault);
}

bool op_insert_many(struct mongo *db, const char *collection, const bson_t **docs, size_t count,
                    bool ordered, struct fault *fault)
{
    struct op op;
    if (count == 0) {
        memset(fault, 0, sizeof(*fault));
        return true;
    }
    collection_prepare(db, collection);
    if (!op_begin(&op, db, collection, fault)) {
        return false;
    }
    bson_t opts = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&opts, "ordered", ordered);
    op.replied = true;
    bool good =
        mongoc_collection_insert_many(op.collection, docs, count, &opts, &op.reply, &op.error);
    bson_destroy(&opts);
    return op_end(&op, db, good, fault);
}

bool op_update(struct mongo *db, const char *collection, const bson_t *filter,
               const bson_t *update, int64_t *ret_matched, struct fault *fault)
{
    struct op op;
    *ret_matched = 0;
    /* An update may create the collection even if it matches nothing. */
    collection_prepare(db, collection);
    if (!op_begin(&op, db, collection, fault)) {
        return false;
    }
    op.replied = true;
    bool good =
        mongoc_collection_update_one(op.collection, filter, update, NULL, &op.reply, &op.error);
    if (good) {
        *ret_matched = member_i64(&op.reply, "matchedCount");
    }
    return op_end(&op, db, good, fault);
}

bool op_upsert(struct mongo *db, const char *collection, const bson_t *filter,
               const bson_t *update, struct fault *fault)
{
    struct op op;
    collection_prepare(db, collection);
    if (!op_begin(&op, db, collection, fault)) {
        return false;
    }
    bson_t opts = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&opts, "upsert", true);
    op.replied = true;
    bool good = mongoc_collection_update_one(op.collection, filter, update, &opts, &op.reply,
                                             &op.error);
    bson_destroy(&opts);
    return op_end(&op, db, good, fault);
}

bool op_delete(struct mongo *db, const char *collection, const bson_t *filter, bool many,
               int64_t *ret_deleted, struct fault *fault)
{
    struct op op;
    if (!op_begin(&op, db, collection, fault)) {
        return false;
    }
    op.replied = true;
    bool good;
    if (many) {
        good = mongoc_collection_delete_many(op.collection, filter, NULL, &op.reply, &op.error);
    } else {
        good = mongoc_collection_delete_one(op.collection, filter, NULL, &op.reply, &op.error);
    }
    if (good && ret_deleted != NULL) {
        *ret_deleted = member_i64(&op.reply, "deletedCount");
    }
    return op_end(&op, db, good, fault);
}

bool op_find(struct mongo *db, const char *collection, const bson_t *filter, const bson_t *opts,
             op_each_fn *each, void *user, struct fault *fault)
{
    struct op op;
    const bson_t *doc = NULL;
    if (!op_begin(&op, db, collection, fault)) {
        return false;
    }
    bson_t limited;
    if (opts != NULL) {
        bson_copy_to(opts, &limited);
    } else {
        bson_init(&limited);
    }
    if (!bson_has_field(&limited, "maxTimeMS")) {
        BSON_APPEND_INT64(&limited, "maxTimeMS", db->timeout_ms);
    }
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(op.collection, filter, &limited, NULL);
    bool more = true;
    while (more && mongoc_cursor_next(cursor, &doc)) {
        more = each(user, doc) == 0;
    }
    bool good = !mongoc_cursor_error(cursor, &op.error);
    mongoc_cursor_destroy(cursor);
    bson_destroy(&limited);
    return op_end(&op, db, good, fault);
}

static int keep_first(void *user, const bson_t *doc)
{
    bson_t **found = user;
    *found = bson_copy(doc);
    return 1;
}

bson_t *op_find_one(struct mongo *db, const char *collection, const bson_t *filter,
                    const bson_t *opts, struct fault *fault)
{
    bson_t *found = NULL;
    bson_t limited;
    if (opts != NULL) {
        bson_copy_to(opts, &limited);
    } else {
        bson_init(&limited);
    }
    BSON_APPEND_INT64(&limited, "limit", 1);
    BSON_APPEND_BOOL(&limited, "singleBatch", true);
    (void)op_find(db, collection, filter, &limited, keep_first, &found, fault);
    bson_destroy(&limited);
    return found;
}

bool op_count(struct mongo *db, const char *collection, const bson_t *filter, uint64_t *ret,
              struct fault *fault)
{
    struct op op;
    bson_t command = BSON_INITIALIZER;
    *ret = 0;
    if (!op_begin(&op, db, collection, fault)) {
        bson_destroy(&command);
        return false;
    }
    BSON_APPEND_UTF8(&command, "count", collection);
    BSON_APPEND_DOCUMENT(&command, "query", filter);
    BSON_APPEND_INT64(&command, "maxTimeMS", db->timeout_ms);
    op.replied = true;
    bool good = mongoc_client_read_command_with_opts(op.client, db->database, &command, NULL,
                                                     NULL, &op.reply, &op.error);
    if (good) {
        *ret = member_u64(&op.reply, "n");
    }
    bson_destroy(&command);
    return op_end(&op, db, good, fault);
}
