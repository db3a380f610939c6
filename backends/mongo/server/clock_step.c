/* SPDX-License-Identifier: MIT */
/*
 * clock_step.c - the driver waits until times of the wall clock. Where that is set back, its
 * waits last as much longer: those for the next look at the servers, and those of operations
 * for what it sees. A selection that begins afterwards wakes the monitors of the servers, and
 * their result wakes all that wait.
 */
#include "server.h"

#define LOOK_MS 500
/* Smaller steps are left alone. */
#define STEP_MS 200

static int64_t wall_ahead_ms(void)
{
    return clock_unix_ms() - monotonic_ms();
}

/* false: all clients are in use. */
static bool wake_driver(struct mongo *db)
{
    mongoc_client_t *client = mongoc_client_pool_try_pop(db->pool);
    bson_error_t error;
    if (client == NULL) {
        return false;
    }
    mongoc_server_description_destroy(mongoc_client_select_server(client, true, NULL, &error));
    mongoc_client_pool_push(db->pool, client);
    return true;
}

void *clock_step_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-clock");
    struct mongo *db = user;
    int64_t known = wall_ahead_ms();
    while (pause_unless(&db->closing, LOOK_MS)) {
        int64_t now = wall_ahead_ms();
        if (now >= known - STEP_MS || wake_driver(db)) {
            known = now;
        }
    }
    return NULL;
}
