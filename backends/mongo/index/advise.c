/* SPDX-License-Identifier: MIT */
/* advise.c - advice to the operator: missing rights, refused indexes, sharding. */
#include <stdio.h>

#include "indexes.h"

#define ADVICE_MAX 1024

static const char *const actions[] = {"find",      "insert",           "update",
                                      "remove",    "createCollection", "createIndex",
                                      "dropIndex", "changeStream",     "listCollections"};

/* Notes the actions that the privilege allows in every collection of the database. */
static void note_allowed(const bson_t *privilege, const char *database,
                         bool allowed[NG_COUNT(actions)])
{
    bson_iter_t iter, list;
    struct ng_str on = member_str(privilege, "resource.db");
    bool all = member(privilege, "resource.collection", &iter) && iter_str(&iter).len == 0 &&
               (on.len == 0 || str_is(on, database));
    if ((!all && !member_bool(privilege, "resource.anyResource")) ||
        !member(privilege, "actions", &iter) || !bson_iter_recurse(&iter, &list)) {
        return;
    }
    while (bson_iter_next(&list)) {
        for (size_t i = 0; i < NG_COUNT(actions); i++) {
            allowed[i] = allowed[i] || str_is(iter_str(&list), actions[i]);
        }
    }
}

/* Without access control the server reports no user. */
static void advise_rights(const struct mongo *db, const bson_t *status, ng_finding_fn *advice,
                          void *user)
{
    bool allowed[NG_COUNT(actions)] = {false};
    bson_iter_t iter, list;
    bson_t privilege;
    char missing[256] = "";
    char text[ADVICE_MAX];
    size_t len = 0;
    struct ng_str name = member_str(status, "authInfo.authenticatedUsers.0.user");
    struct ng_str home = member_str(status, "authInfo.authenticatedUsers.0.db");
    if (name.data == NULL || home.data == NULL ||
        !member(status, "authInfo.authenticatedUserPrivileges", &iter) ||
        !bson_iter_recurse(&iter, &list)) {
        return;
    }
    while (bson_iter_next(&list)) {
        if (iter_doc(&list, &privilege)) {
            note_allowed(&privilege, db->database, allowed);
        }
    }
    for (size_t i = 0; i < NG_COUNT(actions); i++) {
        if (!allowed[i]) {
            len += (size_t)snprintf(missing + len, sizeof(missing) - len, " %s", actions[i]);
        }
    }
    if (len > 0) {
        (void)snprintf(text, sizeof(text),
                       "the user of mongo.uri lacks rights on the database %s (%s): "
                       "db.getSiblingDB(\"%.*s\").grantRolesToUser(\"%.*s\", [{role: "
                       "\"readWrite\", db: \"%s\"}])",
                       db->database, missing + 1, str_clip(home, 100), home.data,
                       str_clip(name, 100), name.data, db->database);
        advice(user, text);
    }
}

/* By collStats, which `readWrite` includes: config.collections needs an administrator's rights.
 * True also where even that is not allowed, as the answer is then unknown. */
static bool is_sharded(struct mongo *db, const char *collection)
{
    struct fault fault;
    bson_t stats;
    bool sharded;
    if (op_command(db, NULL, db->database, bson_of("collStats:t", collection), &stats,
                   &fault)) {
        sharded = member_bool(&stats, "sharded");
    } else { /* a collection that is not there yet is an error of some servers */
        sharded = fault.code == SERVER_UNAUTHORIZED;
    }
    bson_destroy(&stats);
    return sharded;
}

static void advise_shard(struct mongo *db, const char *collection, const char *key,
                         ng_finding_fn *advice, void *user)
{
    char text[ADVICE_MAX];
    if (!is_sharded(db, collection)) {
        (void)snprintf(text, sizeof(text), "sh.shardCollection(\"%s.%s\", {%s})", db->database,
                       collection, key);
        advice(user, text);
    }
}

/* The documents of a space stay together, and each has its shard in its name; so have the
 * versions of a document. Events stay on one shard: their _id and their ref are unique, and a
 * sharded collection can have only one of both. */
static void advise_sharding(struct mongo *db, ng_finding_fn *advice, void *user)
{
    static const char *const own[] = {OWN_VERSIONS, OWN_ANSWERS, OWN_TOMBSTONES};
    struct db_collection *collection = NULL;
    while ((collection = collection_next(db, collection)) != NULL) {
        advise_shard(db, collection->name, "space: 1, _id: 1", advice, user);
    }
    for (size_t i = 0; i < NG_COUNT(own); i++) {
        advise_shard(db, own[i], "_id: 1", advice, user);
    }
}

int advise_run(void *self, struct ng_call *call, ng_finding_fn *advice, void *user)
{
    struct mongo *db = self;
    struct fault fault;
    bson_t status;
    if (op_command(db, NULL, "admin", bson_of("connectionStatus:1, showPrivileges:T"), &status,
                   &fault)) {
        advise_rights(db, &status, advice, user);
    }
    bson_destroy(&status);
    if (!fault.answered && fault.rc != NG_OK) {
        return fault_fail(call, &fault, "asking MongoDB for advice");
    }
    indexes_advise(db, advice, user);
    if (db->sharded) {
        advise_sharding(db, advice, user);
    }
    return NG_OK;
}
