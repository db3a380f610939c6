/* SPDX-License-Identifier: MIT */
/*
 * plant.c - one fault planted in a gateway, to prove that tests/torture/check finds it. Linked
 * in front of the store with --wrap, so that the product has no trace of it (CMakeLists.txt).
 *
 *   lost    an acknowledged commit is not stored
 *   double  a change is made twice
 *   torn    of a change of several documents only the first half is stored
 *   stale   a read answers with an old revision
 */
#include "core/base/str.h"
#include "core/store/store_txn.h"

enum plant { PLANT_LOST, PLANT_DOUBLE, PLANT_TORN, PLANT_STALE };

/* One fault for so many commits (stale: reads) of the tests' documents, at the next that fits.
 */
#define PLANT_EVERY 10000

static atomic_uint plant_counted, plant_owed;
static int (*plant_real_commit)(void *db, struct ng_batch *batch, ng_done_fn *done, void *user);

int __real_store_open(struct call *call, const struct ng_documents *backend,
                      const struct ng_conf *conf, struct store **ret);
int __wrap_store_open(struct call *call, const struct ng_documents *backend,
                      const struct ng_conf *conf, struct store **ret);
int __real_store_change(struct store *store, struct call *call, const struct ng_change *changes,
                        size_t count);
int __wrap_store_change(struct store *store, struct call *call, const struct ng_change *changes,
                        size_t count);
int __real_store_get(struct store *store, struct call *call, const struct ng_key *key,
                     uint64_t revision, const struct ng_doc **ret_doc);
int __wrap_store_get(struct store *store, struct call *call, const struct ng_key *key,
                     uint64_t revision, const struct ng_doc **ret_doc);

static bool plant_is_test(struct ng_str collection)
{
    return str_is(collection, "notebooks") || str_is(collection, "together");
}

/* Counts a call; true: the fault is due, and this call fits. */
static bool plant_due(enum plant plant, bool fits)
{
    if (plant != NOTEGATE_PLANT) {
        return false;
    }
    if ((atomic_fetch_add(&plant_counted, 1) + 1) % PLANT_EVERY == 0) {
        atomic_fetch_add(&plant_owed, 1);
    }
    unsigned owed = atomic_load(&plant_owed);
    return fits && owed > 0 && atomic_compare_exchange_strong(&plant_owed, &owed, owed - 1);
}

static void plant_again(void)
{
    atomic_fetch_add(&plant_owed, 1);
}

/* ---- lost, torn ---- */

/* A batch of which only the first puts are stored. */
struct plant_part {
    struct ng_batch part;
    struct ng_batch *whole;
    ng_done_fn *done;
    void *user;
};

/* The store shall read the documents that were not stored again. */
static void plant_forget(struct store *store, struct cached_doc *cached)
{
    lock_take(&store->table.lock);
    table_set_committed(&store->table, cached, NULL);
    if (cached->queued == 0) {
        version_unref(cached->newest);
        cached->newest = NULL;
    }
    lock_release(&store->table.lock);
    table_leave(&store->table, cached);
}

static void plant_part_done(void *user, struct ng_batch *part, int rc)
{
    struct plant_part *held = user;
    const struct store_txn *txn = held->user;
    struct store *store = txn->store;
    struct cached_doc *left[NG_CHANGES_MAX];
    size_t count = 0;
    for (size_t i = part->put_count; i < held->whole->put_count; i++) {
        left[count] = table_use(&store->table, &held->whole->puts[i]->key);
        held->whole->puts[i]->quiet = true;
        count += left[count] != NULL ? 1 : 0;
    }
    held->done(held->user, held->whole, rc);
    for (size_t i = 0; i < count; i++) {
        plant_forget(store, left[i]);
    }
    free(held);
}

static int plant_commit(void *db, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    bool counts = batch->put_count > 0 && plant_is_test(batch->puts[0]->key.collection);
    bool lost = counts && plant_due(PLANT_LOST, batch->put_count == 1);
    bool torn = counts && plant_due(PLANT_TORN, batch->put_count > 1);
    if (!lost && !torn) {
        return plant_real_commit(db, batch, done, user);
    }
    struct plant_part *held = calloc(1, sizeof(*held));
    if (held == NULL) {
        return NG_EBUSY;
    }
    held->part = *batch;
    held->part.put_count = batch->put_count / 2;
    held->part.answer = NULL;
    held->whole = batch;
    held->done = done;
    held->user = user;
    int rc = plant_real_commit(db, &held->part, plant_part_done, held);
    if (rc != NG_OK) {
        free(held);
    }
    return rc;
}

int __wrap_store_open(struct call *call, const struct ng_documents *backend,
                      const struct ng_conf *conf, struct store **ret)
{
    static struct ng_documents planted;
    planted = *backend;
    plant_real_commit = backend->commit;
    planted.commit = plant_commit;
    return __real_store_open(call, &planted, conf, ret);
}

/* ---- double ---- */

static void plant_nothing(void *user, int rc)
{
    (void)user;
    (void)rc;
}

int __wrap_store_change(struct store *store, struct call *call, const struct ng_change *changes,
                        size_t count)
{
    if (!plant_is_test(changes->key.collection) ||
        !plant_due(PLANT_DOUBLE, count == 1 && !changes->has_expected)) {
        return __real_store_change(store, call, changes, count);
    }
    struct reply_snapshot before;
    reply_snapshot_take(&before, call);
    int rc = store_write(store, call, changes, count, plant_nothing, NULL);
    if (rc != NG_OK) {
        plant_again();
        return rc;
    }
    reply_snapshot_restore(&before, call);
    return __real_store_change(store, call, changes, count);
}

/* ---- stale ---- */

int __wrap_store_get(struct store *store, struct call *call, const struct ng_key *key,
                     uint64_t revision, const struct ng_doc **ret_doc)
{
    int rc = __real_store_get(store, call, key, revision, ret_doc);
    if (rc != NG_OK || !plant_is_test(key->collection) ||
        !plant_due(PLANT_STALE, (*ret_doc)->revision > 3)) {
        return rc;
    }
    rc = __real_store_get(store, call, key, (*ret_doc)->revision / 2, ret_doc);
    if (rc != NG_OK) {
        plant_again(); /* on a worker, where it may read */
    }
    return rc;
}
