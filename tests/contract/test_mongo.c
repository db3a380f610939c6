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
    int failed = run(argc > 1 ? argv[1] : "", sets);
    drop_databases(uri);
    return failed;
}
