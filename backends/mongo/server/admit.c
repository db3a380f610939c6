/* SPDX-License-Identifier: MIT */
/* admit.c - before the first operation: is the server one that has what the backend needs? */
#include "server.h"

#include <stdio.h>

/* Of MongoDB 5.0, the first with snapshots outside of transactions. */
#define WIRE_VERSION_MIN 13

/* A replica set names itself, a mongos says "isdbgrid". A server that reports no topology at
 * all is not MongoDB itself: it is taken at its word when it has sessions. */
static bool has_transactions(const bson_t *hello)
{
    bson_iter_t iter;
    return member_str(hello, "setName").data != NULL ||
           str_equal(member_str(hello, "msg"), ng_str_of("isdbgrid")) ||
           (!member(hello, "topologyVersion", &iter) &&
            member(hello, "logicalSessionTimeoutMinutes", &iter));
}

/* Whether the server is one that is used. */
static bool is_fit(const struct mongo *db, const bson_t *hello, struct fault *fault)
{
    if (!has_transactions(hello)) {
        (void)fault_refuse(fault, NG_EUNAVAILABLE,
                           "mongo: %s is a standalone server; notegate needs a replica set "
                           "(start mongod with --replSet rs0 and run rs.initiate())",
                           db->where);
    } else if (member_i64(hello, "maxWireVersion") < WIRE_VERSION_MIN) {
        (void)fault_refuse(fault, NG_EUNAVAILABLE,
                           "mongo: %s is MongoDB older than 5.0; notegate needs 5.0 or newer, "
                           "for snapshots",
                           db->where);
    } else {
        return true;
    }
    fault->code = FAULT_UNFIT;
    return false;
}

static bool admit(struct session *session, struct fault *fault)
{
    struct mongo *db = session->db;
    bson_t reply;
    bool good = op_command(db, session, "admin", bson_of("hello:1"), &reply, fault) &&
                is_fit(db, &reply, fault);
    db->sharded = str_equal(member_str(&reply, "msg"), ng_str_of("isdbgrid"));
    bson_destroy(&reply);
    return good && db->finish_former(session, fault) && restore_look(db, session, fault);
}

bool server_admit(struct mongo *db, mongoc_client_t *client, struct fault *fault)
{
    enum admission seen = ADMIT_PENDING;
    struct session session = {.db = db, .client = client};
    if (!atomic_compare_exchange_strong(&db->admission, &seen, ADMIT_RUNNING)) {
        return seen == ADMIT_DONE ||
               fault_refuse(fault, NG_EUNAVAILABLE,
                            "the database is being prepared; try again in a moment") == NG_OK;
    }
    bool good = admit(&session, fault);
    atomic_store(&db->admission, good ? ADMIT_DONE : ADMIT_PENDING);
    return good;
}
