/* SPDX-License-Identifier: MIT */
/* mongo.c - documents in MongoDB, shared by any number of gateways. */
#include "core/base/lock.h"
#include "upkeep/upkeep.h"

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
     .help =
         "Time limit of one operation, and of the wait for a primary: 100ms to 60s. A change "
         "is tried again until shortly before the end of its call."},
    {.name = "writers",
     .type = NG_OPTION_INT,
     .fallback = "16",
     .min = 1,
     .max = WRITERS_MAX,
     .help = "Threads that write, each with a connection of its own."},
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
    lock_done(&db->down_lock);
    lock_done(&db->presence.lock);
    free(db);
}

static void mongo_close(void *self)
{
    struct mongo *db = self;
    if (db == NULL) {
        return;
    }
    atomic_store(&db->closing, true);
    indexes_close(db);
    queue_close(db);
    feed_close(db);
    presence_close(db);
    import_drop(db);
    mongo_free(db);
}

/* The server may be unreachable: calls fail until it answers. */
static int mongo_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    struct fault fault;
    struct mongo *db = calloc(1, sizeof(*db));
    if (db == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the connection to MongoDB");
    }
    lock_init(&db->collections_lock, LOCK_MONGO_COLLECTIONS);
    lock_init(&db->down_lock, LOCK_MONGO_DOWN);
    lock_init(&db->presence.lock, LOCK_MONGO_PRESENCE);
    int rc = conn_open(db, call, conf);
    if (rc != NG_OK) {
        mongo_free(db);
        return rc;
    }
    batch_id(db->gateway);
    db->finish_former = former_finish;
    db->shed = queue_shed;
    if (!last_seq_read(db, &fault) && fault.code == FAULT_UNFIT) {
        rc = ng_fail(call, NG_EINVAL, "%s", fault.text);
        mongo_free(db);
        return rc;
    }
    if (feed_open(db) != NG_OK || indexes_open(db) != NG_OK || queue_open(db) != NG_OK ||
        presence_open(db) != NG_OK) {
        mongo_close(db);
        return ng_fail(call, NG_EINTERNAL, "the threads that use MongoDB cannot be started");
    }
    *ret_db = db;
    return NG_OK;
}

static int mongo_health(void *self, struct ng_call *call)
{
    struct mongo *db = self;
    struct fault fault;
    if (!op_command(db, NULL, db->database, bson_of("ping:1"), NULL, &fault) ||
        restore_refuses(db, &fault)) {
        return ng_fail(call, fault.rc, "%s", fault.text);
    }
    if (atomic_load(&db->ref_index) == REF_REFUSED) {
        return ng_fail(call, NG_EUNAVAILABLE,
                       "MongoDB at %s refuses the unique index ref of " OWN_EVENTS
                       ", so that events wait: `notegate check` says why",
                       db->where);
    }
    return NG_OK;
}

static void mongo_stats(void *self, void (*stat)(void *user, const char *name, double value),
                        void *user)
{
    struct mongo *db = self;
    queue_stats(db, stat, user);
    stat(user, "batches_total", (double)atomic_load(&db->stat_batches));
    stat(user, "puts_total", (double)atomic_load(&db->stat_puts));
    stat(user, "updates_total", (double)atomic_load(&db->stat_updates));
    stat(user, "update_retries_total", (double)atomic_load(&db->stat_retries));
    stat(user, "failures_total", (double)atomic_load(&db->stat_failures));
    stat(user, "outbox_documents", (double)atomic_load(&db->backlog));
    stat(user, "outbox_relayed_total", (double)atomic_load(&db->stat_relayed));
    stat(user, "outbox_owner", relay_is_owner(db));
    stat(user, "indexes_missing", (double)indexes_missing(db));
}

static uint64_t mongo_last_seq(void *self)
{
    struct mongo *db = self;
    return atomic_load(&db->last_seq);
}

static const struct ng_documents mongo_documents = {
    .name = "mongo",
    .version = NOTEGATE_VERSION,
    .flags = NG_DOCUMENTS_SHARED | NG_DOCUMENTS_ONLY_DELETED,
    .options = mongo_options,
    .option_count = NG_COUNT(mongo_options),
    .open = mongo_open,
    .close = mongo_close,
    .declare = collection_declare,
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
    .watch = watch_set,
    .advise = advise_run,
    .confirm = read_confirm,
    .purge = purge_run,
    .purge_events = purge_events,
    .purge_data = purge_data,
    .purge_sweep = purge_sweep,
    .revision_at = read_revision_at,
};

NG_EXPORT_DOCUMENTS(mongo_documents);
