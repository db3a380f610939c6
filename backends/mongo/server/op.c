/* SPDX-License-Identifier: MIT */
/* op.c - single operations on the server: in a session, or each with a client of its own. */
#include "server.h"

struct op {
    struct mongo *db;
    struct session *session;
    mongoc_client_t *client;
    mongoc_collection_t *collection;
    bson_t opts, reply;
    bson_error_t error;
};

static bool op_begin(struct op *op, struct mongo *db, struct session *session,
                     const char *collection, struct fault *fault)
{
    memset(op, 0, sizeof(*op));
    memset(fault, 0, sizeof(*fault));
    op->db = db;
    op->session = session;
    if (session == NULL) {
        op->client = conn_acquire(db, fault);
        if (op->client != NULL && strcmp(collection, OWN_META) != 0 &&
            restore_refuses(db, fault)) {
            conn_release(db, op->client);
            op->client = NULL;
        }
    } else {
        op->client = session->client;
    }
    if (op->client == NULL) {
        return false;
    }
    op->collection = mongoc_client_get_collection(op->client, db->database, collection);
    bson_init(&op->opts);
    bson_init(&op->reply);
    if (session != NULL && session->session != NULL) {
        (void)mongoc_client_session_append(session->session, &op->opts, &op->error);
    }
    return true;
}

static bool op_end(struct op *op, bool good, struct fault *fault)
{
    if (good) {
        conn_good(op->db);
    } else {
        fault_set(op->db, fault, &op->error, &op->reply);
    }
    bson_destroy(&op->reply);
    bson_destroy(&op->opts);
    mongoc_collection_destroy(op->collection);
    if (op->session == NULL) {
        conn_release(op->db, op->client);
    }
    return good;
}

bool op_insert_many(struct mongo *db, struct session *session, const char *collection,
                    const bson_t **docs, size_t count, struct fault *fault)
{
    struct op op;
    memset(fault, 0, sizeof(*fault));
    if (count == 0) {
        return true;
    }
    if (!op_begin(&op, db, session, collection, fault)) {
        return false;
    }
    bson_destroy(&op.reply);
    bool good = mongoc_collection_insert_many(op.collection, docs, count, &op.opts, &op.reply,
                                              &op.error);
    return op_end(&op, good, fault);
}

bool op_insert(struct mongo *db, struct session *session, const char *collection,
               const bson_t *doc, struct fault *fault)
{
    return op_insert_many(db, session, collection, &doc, 1, fault);
}

enum update_kind { UPDATE_ONE, UPDATE_UPSERT, UPDATE_ALL };

static bool update_docs(struct mongo *db, struct session *session, const char *collection,
                        bson_t *filter, bson_t *update, enum update_kind kind, bool *ret_done,
                        struct fault *fault)
{
    struct op op;
    bool good = op_begin(&op, db, session, collection, fault);
    bool done = false;
    if (good) {
        if (kind == UPDATE_UPSERT) {
            BSON_APPEND_BOOL(&op.opts, "upsert", true);
        }
        bson_destroy(&op.reply);
        if (kind == UPDATE_ALL) {
            good = mongoc_collection_update_many(op.collection, filter, update, &op.opts,
                                                 &op.reply, &op.error);
        } else {
            good = mongoc_collection_update_one(op.collection, filter, update, &op.opts,
                                                &op.reply, &op.error);
        }
        done = good && member_i64(&op.reply, "matchedCount") > 0;
        good = op_end(&op, good, fault);
    }
    if (ret_done != NULL) {
        *ret_done = done;
    }
    bson_destroy(filter);
    bson_destroy(update);
    return good;
}

bool op_update(struct mongo *db, struct session *session, const char *collection,
               bson_t *filter, bson_t *update, bool *ret_done, struct fault *fault)
{
    return update_docs(db, session, collection, filter, update, UPDATE_ONE, ret_done, fault);
}

bool op_update_all(struct mongo *db, const char *collection, bson_t *filter, bson_t *update,
                   struct fault *fault)
{
    return update_docs(db, NULL, collection, filter, update, UPDATE_ALL, NULL, fault);
}

bool op_upsert(struct mongo *db, struct session *session, const char *collection,
               bson_t *filter, bson_t *update, bool *ret_found, struct fault *fault)
{
    return update_docs(db, session, collection, filter, update, UPDATE_UPSERT, ret_found,
                       fault);
}

bool op_delete(struct mongo *db, struct session *session, const char *collection,
               bson_t *filter, bool many, int64_t *ret_deleted, struct fault *fault)
{
    struct op op;
    bool good = op_begin(&op, db, session, collection, fault);
    if (good) {
        bson_destroy(&op.reply);
        if (many) {
            good = mongoc_collection_delete_many(op.collection, filter, &op.opts, &op.reply,
                                                 &op.error);
        } else {
            good = mongoc_collection_delete_one(op.collection, filter, &op.opts, &op.reply,
                                                &op.error);
        }
        if (ret_deleted != NULL) {
            *ret_deleted = member_i64(&op.reply, "deletedCount");
        }
        good = op_end(&op, good, fault);
    }
    bson_destroy(filter);
    return good;
}

/* Destroys the cursor. */
static bool rows_of_cursor(struct op *op, mongoc_cursor_t *cursor, op_each_fn *each, void *user)
{
    const bson_t *doc = NULL;
    const bson_t *reply = NULL;
    bool more = true;
    while (more && mongoc_cursor_next(cursor, &doc)) {
        more = each(user, doc) == 0;
    }
    bool good = !mongoc_cursor_error_document(cursor, &op->error, &reply);
    if (!good && reply != NULL) {
        (void)bson_concat(&op->reply, reply);
    }
    mongoc_cursor_destroy(cursor);
    return good;
}

static bool find(struct op *op, const bson_t *filter, op_each_fn *each, void *user)
{
    if (!bson_has_field(&op->opts, "maxTimeMS")) {
        BSON_APPEND_INT64(&op->opts, "maxTimeMS", op->db->timeout_ms);
    }
    return rows_of_cursor(
        op, mongoc_collection_find_with_opts(op->collection, filter, &op->opts, NULL), each,
        user);
}

/* ---- reads of one moment ---- */

static bool op_is_snapshot(const struct op *op)
{
    return op->session != NULL && op->session->kind == SESSION_SNAPSHOT;
}

static void moment_append(const struct session *session, bson_t *command)
{
    bson_t concern;
    BSON_APPEND_DOCUMENT_BEGIN(command, "readConcern", &concern);
    BSON_APPEND_UTF8(&concern, "level", "snapshot");
    if (session->moment != 0) {
        BSON_APPEND_TIMESTAMP(&concern, "atClusterTime", (uint32_t)(session->moment >> 32),
                              (uint32_t)session->moment);
    }
    (void)bson_append_document_end(command, &concern);
}

static void moment_take(struct session *session, const bson_t *reply)
{
    bson_iter_t iter;
    if (session->moment == 0 && member(reply, "cursor.atClusterTime", &iter) &&
        BSON_ITER_HOLDS_TIMESTAMP(&iter)) {
        uint32_t seconds = 0;
        uint32_t count = 0;
        bson_iter_timestamp(&iter, &seconds, &count);
        session->moment = (uint64_t)seconds << 32 | count;
    }
}

/* Sends a command that answers with a cursor. The server goes into the options: the rest of the
 * rows is there. The driver's snapshot sessions cannot be used: they do not tell their moment,
 * so another client could not read it. */
static bool snapshot_ask(struct op *op, const bson_t *command, bson_t *opts, bson_t *ret_reply)
{
    mongoc_server_description_t *server =
        mongoc_client_select_server(op->client, true, NULL, &op->error);
    if (server == NULL) {
        return false;
    }
    (void)bson_concat(opts, &op->opts);
    BSON_APPEND_INT32(opts, "serverId", (int32_t)mongoc_server_description_id(server));
    mongoc_server_description_destroy(server);
    bson_destroy(ret_reply);
    return mongoc_client_command_with_opts(op->client, op->db->database, command, NULL, opts,
                                           ret_reply, &op->error);
}

/* Destroys the command. A read that failed is sent once more, as the driver does with its own.
 */
static bool snapshot_rows(struct op *op, bson_t *command, op_each_fn *each, void *user)
{
    bson_t reply = BSON_INITIALIZER;
    bool good = false;
    moment_append(op->session, command);
    for (unsigned sent = 0; sent < 2 && !good && op->error.code != SERVER_TIME_LIMIT; sent++) {
        bson_t opts = BSON_INITIALIZER;
        good = snapshot_ask(op, command, &opts, &reply);
        if (good) {
            moment_take(op->session, &reply);
            good = rows_of_cursor(
                op, mongoc_cursor_new_from_command_reply_with_opts(op->client, &reply, &opts),
                each, user);
            sent = 1; /* rows may have been given */
            bson_init(&reply);
        }
        bson_destroy(&opts);
    }
    (void)bson_concat(&op->reply, &reply);
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

bool op_find(struct mongo *db, struct session *session, const char *collection, bson_t *filter,
             bson_t *opts, op_each_fn *each, void *user, struct fault *fault)
{
    struct op op;
    bool good = op_begin(&op, db, session, collection, fault);
    if (good && op_is_snapshot(&op)) {
        bson_t *command = bson_of("find:t, filter:D", collection, filter);
        if (opts != NULL) {
            (void)bson_concat(command, opts);
        }
        good = op_end(&op, snapshot_rows(&op, command, each, user), fault);
    } else if (good) {
        if (opts != NULL) {
            (void)bson_concat(&op.opts, opts);
        }
        good = op_end(&op, find(&op, filter, each, user), fault);
    }
    bson_destroy(filter);
    bson_destroy(opts);
    return good;
}

static int keep_first(void *user, const bson_t *doc)
{
    bson_t **found = user;
    *found = bson_copy(doc);
    return 1;
}

bson_t *op_find_one(struct mongo *db, struct session *session, const char *collection,
                    bson_t *filter, bson_t *opts, struct fault *fault)
{
    bson_t *found = NULL;
    uint64_t doubts = atomic_load(&db->doubts);
    if (opts == NULL) {
        opts = bson_new();
    }
    bson_add(opts, "limit:1, singleBatch:T");
    do {
        bson_destroy(found);
        found = NULL;
        (void)op_find(db, session, collection, bson_copy(filter), bson_copy(opts), keep_first,
                      &found, fault);
    } while (session == NULL && fault->rc == NG_OK && doubts_grew(db, &doubts));
    bson_destroy(filter);
    bson_destroy(opts);
    return found;
}

static int take_count(void *user, const bson_t *doc)
{
    uint64_t *count = user;
    *count = member_u64(doc, "count");
    return 0;
}

/* In a snapshot. An aggregation: the command count has no place there. */
bool op_count(struct mongo *db, struct session *session, const char *collection,
              const bson_t *filter, uint64_t *ret, struct fault *fault)
{
    struct op op;
    *ret = 0;
    if (!op_begin(&op, db, session, collection, fault)) {
        return false;
    }
    bson_t *command =
        bson_of("aggregate:t, pipeline:[{$match:D}, {$group:{_id:1, count:{$sum:1}}}], "
                "cursor:{}, maxTimeMS:l",
                collection, filter, db->timeout_ms);
    return op_end(&op, snapshot_rows(&op, command, take_count, ret), fault);
}

bool op_command(struct mongo *db, struct session *session, const char *database,
                bson_t *command, bson_t *ret_reply, struct fault *fault)
{
    struct op op;
    bool good = op_begin(&op, db, session, OWN_META, fault);
    if (ret_reply != NULL) {
        bson_init(ret_reply);
    }
    if (good) {
        bson_destroy(&op.reply);
        good = mongoc_client_command_with_opts(op.client, database, command, NULL, &op.opts,
                                               &op.reply, &op.error);
        if (ret_reply != NULL) {
            (void)bson_concat(ret_reply, &op.reply);
        }
        good = op_end(&op, good, fault);
    }
    bson_destroy(command);
    return good;
}
