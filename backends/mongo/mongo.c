/* SPDX-License-Identifier: MIT */
/* mongo.c - documents in MongoDB, shared by any number of gateways. */
#include "core/base/lock.h"
#include "db.h"

#include <stdio.h>

static const struct ng_option mongo_options[] = {
    {.name = "uri",
     .type = NG_OPTION_TEXT,
     .secret = true,
     .env = "MONGODB_URL",
     .help = "Address of MongoDB: mongodb://[user:password@]host[:port]/[?options], also with "
             "several hosts, replicaSet and tls."},
    {.name = "database",
     .type = NG_OPTION_TEXT,
     .fallback = "aether_notebook",
     .env = "MONGODB_DB_NAME",
     .help = "Database of the documents."},
    {.name = "timeout",
     .type = NG_OPTION_DURATION,
     .fallback = "5s",
     .min = 100,
     .max = 600000,
     .help = "Time limit of one operation."},
    {.name = "tombstones",
     .type = NG_OPTION_DURATION,
     .fallback = "20s",
     .min = 3000,
     .max = 86400000,
     .help = "How long the tombstone of a deleted entry stays in its collection, at least four "
             "times `timeout`."},
};

static void mongo_free(struct mongo *db)
{
    conn_close(db);
    collections_free(db);
    lock_done(&db->collections_lock);
    staleness_close(&db->staleness);
    lock_done(&db->down_lock);
    free(db);
}

/* The server may be unreachable: calls fail until it answers. */
static int mongo_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    struct mongo *db = calloc(1, sizeof(*db));
    if (db == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the connection to MongoDB");
    }
    lock_init(&db->collections_lock, LOCK_MONGO_COLLECTIONS);
    staleness_open(&db->staleness);
    lock_init(&db->down_lock, LOCK_MONGO_DOWN);
    int rc = conn_open(db, call, conf);
    if (rc != NG_OK) {
        mongo_free(db);
        return rc;
    }
    batch_id(db, db->gateway);
    rc = queue_open(db);
    if (rc != NG_OK) {
        mongo_free(db);
        return ng_fail(call, rc, "the threads that write to MongoDB cannot be started");
    }
    relay_begin(db);
    if (relay_open(db) != NG_OK) {
        relay_close(db);
        queue_close(db);
        mongo_free(db);
        return ng_fail(call, NG_EINTERNAL, "the thread that moves changes cannot be started");
    }
    *ret_db = db;
    return NG_OK;
}

static void mongo_close(void *self)
{
    struct mongo *db = self;
    if (db == NULL) {
        return;
    }
    queue_close(db);
    relay_close(db);
    import_drop(db);
    mongo_free(db);
}

static int mongo_declare(void *self, struct ng_call *call,
                         const struct ng_collection *collection)
{
    return collection_declare(self, call, collection);
}

static int mongo_health(void *self, struct ng_call *call)
{
    struct mongo *db = self;
    struct fault fault;
    bson_t command = BSON_INITIALIZER;
    bson_t reply;
    bson_error_t error;
    mongoc_client_t *client = conn_acquire(db, &fault);
    if (client != NULL) {
        BSON_APPEND_INT32(&command, "ping", 1);
        if (mongoc_client_command_simple(client, db->database, &command, NULL, &reply,
                                         &error)) {
            conn_good(db);
        } else {
            fault_set(db, &fault, &error, &reply);
        }
        bson_destroy(&reply);
        conn_release(db, client);
    }
    bson_destroy(&command);
    if (fault.rc == NG_OK) {
        return NG_OK;
    }
    return ng_fail(call, fault.rc, "%s", fault.text);
}

static void mongo_stats(void *self, void (*stat)(void *user, const char *name, double value),
                        void *user)
{
    struct mongo *db = self;
    lock_take(&db->queue.lock);
    double waiting = (double)db->queue.batches;
    double bytes = (double)db->queue.bytes;
    lock_release(&db->queue.lock);
    stat(user, "queue_batches", waiting);
    stat(user, "queue_bytes", bytes);
    stat(user, "batches_total", (double)atomic_load(&db->stat_batches));
    stat(user, "puts_total", (double)atomic_load(&db->stat_puts));
    stat(user, "updates_total", (double)atomic_load(&db->stat_updates));
    stat(user, "update_retries_total", (double)atomic_load(&db->stat_retries));
    stat(user, "failures_total", (double)atomic_load(&db->stat_failures));
    stat(user, "outbox_documents", (double)atomic_load(&db->backlog));
    stat(user, "outbox_relayed_total", (double)atomic_load(&db->stat_relayed));
    stat(user, "outbox_owner", atomic_load(&db->relay.owner) ? 1 : 0);
}

static uint64_t mongo_last_seq(void *self)
{
    struct mongo *db = self;
    return atomic_load(&db->last_seq);
}

static const struct ng_documents mongo_documents = {
    .name = "mongo",
    .version = NOTEGATE_VERSION,
    .flags = NG_DOCUMENTS_SHARED,
    .options = mongo_options,
    .option_count = NG_COUNT(mongo_options),
    .open = mongo_open,
    .close = mongo_close,
    .declare = mongo_declare,
    .commit = queue_commit,
    .get = read_get,
    .query = query_run,
    .history = read_history,
    .changes = read_changes,
    .answer = answer_get,
    .search = search_run,
    .health = mongo_health,
    .stats = mongo_stats,
    .maintain = maintain_run,
    .export_all = export_run,
    .import_begin = import_begin,
    .import_record = import_record,
    .import_end = import_end,
    .verify = verify_run,
    .last_seq = mongo_last_seq,
    .engine = search_engine,
    .settle = relay_settle,
};

NG_EXPORT_DOCUMENTS(mongo_documents);
