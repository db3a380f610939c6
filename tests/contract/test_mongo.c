/* SPDX-License-Identifier: MIT */
/* test_mongo.c - the suite of documents backends on MongoDB. NOTEGATE_TEST_MONGO_URI says where
 * a server is; without it the tests are skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "documents_contract.h"

#include <mongoc/mongoc.h>
#include <string.h>

/* The databases of this run's stores, dropped at its end. */
static void drop_databases(const char *uri)
{
    char ours[64];
    bson_error_t error;
    mongoc_client_t *client = mongoc_client_new(uri);
    assert_non_null(client);
    (void)snprintf(ours, sizeof(ours), "notegate_test_%ld_", (long)getpid());
    char **names = mongoc_client_get_database_names_with_opts(client, NULL, &error);
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        if (strncmp(names[i], ours, strlen(ours)) == 0) {
            mongoc_database_t *database = mongoc_client_get_database(client, names[i]);
            (void)mongoc_database_drop(database, &error);
            mongoc_database_destroy(database);
        }
    }
    bson_strfreev(names);
    mongoc_client_destroy(client);
}

/* ---- does the server show earlier states? MongoDB does; SecantusDB says so and does not. ----
 */

static int64_t first_batch(const bson_t *reply)
{
    bson_iter_t iter, batch;
    int64_t count = 0;
    assert_true(bson_iter_init(&iter, reply));
    assert_true(bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch));
    assert_true(bson_iter_recurse(&batch, &iter));
    while (bson_iter_next(&iter)) {
        count++;
    }
    return count;
}

/* The documents of the collection at this time; 0.0: now, which it becomes. */
static int64_t count_at(mongoc_database_t *database, uint32_t *inout_time,
                        uint32_t *inout_count)
{
    bson_t command = BSON_INITIALIZER;
    bson_t concern, reply;
    bson_error_t error;
    bson_iter_t iter, moment;
    BSON_APPEND_UTF8(&command, "find", "things");
    BSON_APPEND_DOCUMENT_BEGIN(&command, "readConcern", &concern);
    BSON_APPEND_UTF8(&concern, "level", "snapshot");
    if (*inout_time != 0) {
        BSON_APPEND_TIMESTAMP(&concern, "atClusterTime", *inout_time, *inout_count);
    }
    (void)bson_append_document_end(&command, &concern);
    if (!mongoc_database_command_simple(database, &command, NULL, &reply, &error)) {
        fail_msg("%s", error.message);
    }
    int64_t count = first_batch(&reply);
    assert_true(bson_iter_init(&iter, &reply));
    if (bson_iter_find_descendant(&iter, "cursor.atClusterTime", &moment)) {
        bson_iter_timestamp(&moment, inout_time, inout_count);
    }
    bson_destroy(&reply);
    bson_destroy(&command);
    return count;
}

static bool shows_moments(const char *uri)
{
    char name[64];
    bson_error_t error;
    uint32_t time = 0;
    uint32_t count = 0;
    mongoc_client_t *client = mongoc_client_new(uri);
    assert_non_null(client);
    (void)snprintf(name, sizeof(name), "notegate_test_%ld_moments", (long)getpid());
    mongoc_database_t *database = mongoc_client_get_database(client, name);
    mongoc_collection_t *things = mongoc_database_get_collection(database, "things");
    bson_t *one = BCON_NEW("x", "y");
    assert_true(mongoc_collection_insert_one(things, one, NULL, NULL, &error));
    int64_t before = count_at(database, &time, &count);
    assert_true(mongoc_collection_insert_one(things, one, NULL, NULL, &error));
    int64_t after = count_at(database, &time, &count);
    bson_destroy(one);
    mongoc_collection_destroy(things);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    return before == 1 && after == 1;
}

static const char *const parts[] = {
    [DOCUMENTS_CHANGES] = "changes",
    [DOCUMENTS_WRAPPED] = "wrapped",
    [DOCUMENTS_REST] = "rest",
};

static int run(const char *name, const char *const *sets)
{
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (strcmp(name, parts[i]) == 0) {
            return documents_contract_part("mongo", sets, (enum documents_part)i);
        }
    }
    cmocka_set_test_filter(*name != '\0' ? name : NULL);
    return documents_contract("mongo", sets);
}

/* The first argument, if any, is a part of the suite, or a pattern of test names. */
int main(int argc, char **argv)
{
    const char *uri = getenv("NOTEGATE_TEST_MONGO_URI");
    static char uri_set[512];
    if (uri == NULL || *uri == '\0') {
        printf("skipped: NOTEGATE_TEST_MONGO_URI is not set\n");
        return 77;
    }
    (void)snprintf(uri_set, sizeof(uri_set), "mongo.uri=%s", uri);
    const char *const sets[] = {uri_set, "mongo.database=notegate_test_{store}",
                                "mongo.timeout=30s", NULL};
    if (!shows_moments(uri)) {
        printf("the server shows no earlier states: the order is checked in one collection\n");
        documents_contract_without_moments();
    }
    int failed = run(argc > 1 ? argv[1] : "", sets);
    drop_databases(uri);
    return failed;
}
