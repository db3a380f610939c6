/* SPDX-License-Identifier: MIT */
/* documents.c - a backend for documents
 * that lacks its last required member. */
#include <notegate/backend.h>

static int test_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    (void)conf;
    *ret_db = NULL;
    return ng_fail(call, NG_EUNAVAILABLE, "not for use");
}

static void test_close(void *db)
{
    (void)db;
}

static int test_declare(void *db, struct ng_call *call, const struct ng_collection *collection)
{
    (void)db;
    (void)collection;
    return ng_fail(call, NG_EUNAVAILABLE, "not for use");
}

static int test_commit(void *db, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    (void)db;
    (void)batch;
    (void)done;
    (void)user;
    return NG_EBUSY;
}

static int test_get(void *db, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                    ng_row_fn *row, void *user)
{
    (void)db;
    (void)key;
    (void)revision;
    (void)row;
    (void)user;
    return ng_fail(call, NG_EUNAVAILABLE, "not for use");
}

static int test_query(void *db, struct ng_call *call, const struct ng_query *query,
                      ng_row_fn *row, void *user, uint64_t *ret_total)
{
    (void)db;
    (void)query;
    (void)row;
    (void)user;
    *ret_total = 0;
    return ng_fail(call, NG_EUNAVAILABLE, "not for use");
}

static int test_history(void *db, struct ng_call *call, const struct ng_key *key,
                        const struct ng_range *range, ng_row_fn *row, void *user)
{
    (void)db;
    (void)key;
    (void)range;
    (void)row;
    (void)user;
    return ng_fail(call, NG_EUNAVAILABLE, "not for use");
}

static int test_changes(void *db, struct ng_call *call, uint64_t since, uint32_t limit,
                        ng_event_fn *event, void *user)
{
    (void)db;
    (void)since;
    (void)limit;
    (void)event;
    (void)user;
    return ng_fail(call, NG_EUNAVAILABLE, "not for use");
}

static const struct ng_documents lacking = {
    .name = "lacking",
    .version = "1",
    .open = test_open,
    .close = test_close,
    .declare = test_declare,
    .commit = test_commit,
    .get = test_get,
    .query = test_query,
    .history = test_history,
    .changes = test_changes,
};

NG_EXPORT_DOCUMENTS(lacking);
