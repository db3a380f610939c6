/* SPDX-License-Identifier: MIT */
/*
 * presence.c - which gateways are at work, and the sessions of their transactions.
 *
 * A gateway that dies in a transaction, or loses its line in one, leaves the documents locked
 * until the server ends the transaction by itself (transactionLifetimeLimitSeconds, a minute).
 * So a gateway ends such sessions of its own with the next heartbeat. And each gateway lists
 * its sessions beside a heartbeat: the others end the sessions of one whose heartbeat stands
 * still by their own clocks. A gateway that was only slow runs its transactions again. By the
 * same heartbeats the relay sees whether the owner of its lease is there, and all see whether a
 * restore is complete.
 */
#include "server.h"

#include <limits.h>
#include <stdio.h>

#define PRESENCE_PREFIX "gateway:"
#define PRESENCE_END "gateway;" /* after all names with it */
#define HEARTBEAT_MS 1000
/* A gateway is gone after so many of our heartbeats without one of its own. */
#define GONE_HEARTBEATS 4
#define FORGOTTEN_HEARTBEATS (2 * GONE_HEARTBEATS)

static bson_t *self(const struct mongo *db)
{
    char name[sizeof(PRESENCE_PREFIX) + BATCH_ID_MAX];
    (void)snprintf(name, sizeof(name), PRESENCE_PREFIX "%s", db->gateway);
    return bson_of("_id:t", name);
}

bool presence_note(struct session *session, struct fault *fault)
{
    struct mongo *db = session->db;
    struct presence *presence = &db->presence;
    struct session plain = {.db = db, .client = session->client};
    bool known = false;
    const bson_t *lsid = mongoc_client_session_get_lsid(session->session);
    struct ng_str id = member_str(lsid, "id");
    if (id.len != SESSION_ID_BYTES) {
        return true;
    }
    lock_take(&presence->lock);
    size_t count = size_min(presence->noted, SESSIONS_MAX);
    for (size_t i = 0; i < count && !known; i++) {
        known = memcmp(presence->ids[i], id.data, SESSION_ID_BYTES) == 0;
    }
    lock_release(&presence->lock);
    if (known) {
        return true;
    }
    bool good = op_upsert(
        db, &plain, OWN_META, self(db),
        bson_of("$push:{sessions:{$each:[D], $slice:i}}", lsid, -SESSIONS_MAX), NULL, fault);
    lock_take(&presence->lock);
    if (good) {
        memcpy(presence->ids[presence->noted++ % SESSIONS_MAX], id.data, SESSION_ID_BYTES);
    }
    lock_release(&presence->lock);
    return good;
}

/* The server ends the transactions of sessions beyond the limit by itself. */
void presence_lost(struct session *session)
{
    struct presence *presence = &session->db->presence;
    struct ng_str id = member_str(mongoc_client_session_get_lsid(session->session), "id");
    lock_take(&presence->lock);
    if (id.len == SESSION_ID_BYTES && presence->lost_count < SESSIONS_MAX) {
        memcpy(presence->lost[presence->lost_count++], id.data, SESSION_ID_BYTES);
    }
    lock_release(&presence->lock);
}

/* Ends the lost sessions of this gateway. They stay in the list until the server confirms. */
static void end_lost(struct mongo *db)
{
    struct presence *presence = &db->presence;
    struct fault fault;
    bson_t list = BSON_INITIALIZER;
    lock_take(&presence->lock);
    size_t count = presence->lost_count;
    for (size_t i = 0; i < count; i++) {
        char digits[16];
        const char *key = NULL;
        bson_t lsid;
        (void)bson_uint32_to_string((uint32_t)i, &key, digits, sizeof(digits));
        BSON_APPEND_DOCUMENT_BEGIN(&list, key, &lsid);
        BSON_APPEND_BINARY(&lsid, "id", BSON_SUBTYPE_UUID, presence->lost[i], SESSION_ID_BYTES);
        (void)bson_append_document_end(&list, &lsid);
    }
    lock_release(&presence->lock);
    if (count > 0 &&
        op_command(db, NULL, "admin", bson_of("killSessions:A", &list), NULL, &fault)) {
        lock_take(&presence->lock);
        presence->lost_count -= count;
        memmove(presence->lost, presence->lost[count], presence->lost_count * SESSION_ID_BYTES);
        lock_release(&presence->lock);
    }
    bson_destroy(&list);
}

/* Of a gateway that was taken for gone the others have removed the list: its sessions are
 * listed anew when they are used next. */
static bool beat(struct mongo *db)
{
    struct presence *presence = &db->presence;
    struct fault fault;
    bool found = false;
    if (!op_upsert(db, NULL, OWN_META, self(db), bson_of("$inc:{beat:l}", (int64_t)1), &found,
                   &fault)) {
        return false;
    }
    lock_take(&presence->lock);
    for (size_t i = 0; i < NG_COUNT(presence->seen); i++) {
        presence->seen[i].still++;
    }
    presence->noted *= found;
    lock_release(&presence->lock);
    atomic_store(&presence->listed, true);
    return true;
}

/* ---- restores ---- */

bson_t *restore_mark(void)
{
    return bson_of("_id:t", "import");
}

bool restore_look(struct mongo *db, struct session *session, struct fault *fault)
{
    bson_t *mark = op_find_one(db, session, OWN_META, restore_mark(), NULL, fault);
    if (fault->rc == NG_OK) {
        atomic_store(&db->half_restored,
                     mark != NULL && !str_is(member_str(mark, "gateway"), db->gateway));
    }
    bson_destroy(mark);
    return fault->rc == NG_OK;
}

bool restore_refuses(struct mongo *db, struct fault *fault)
{
    if (!atomic_load(&db->half_restored) || atomic_load(&db->importing)) {
        return false;
    }
    (void)fault_refuse(
        fault, NG_EUNAVAILABLE,
        "the database %s on MongoDB at %s holds a part of a backup: a restore is "
        "under way, or was interrupted and has to be repeated",
        db->database, db->where);
    return true;
}

/* ---- those of other gateways ---- */

/* How well the place of a gateway serves another one: a free one first, then that of one whose
 * end was dealt with, then that of the one that has beaten last. The others count on. */
static unsigned room_of(const struct seen_gateway *seen)
{
    if (seen->id[0] == '\0') {
        return UINT_MAX;
    }
    if (seen->still > FORGOTTEN_HEARTBEATS) {
        return UINT_MAX - 1;
    }
    return FORGOTTEN_HEARTBEATS - seen->still;
}

/* The entry of a gateway. With the lock held. */
static struct seen_gateway *seen_of(struct presence *presence, struct ng_str id)
{
    struct seen_gateway *best = &presence->seen[0];
    for (size_t i = 0; i < NG_COUNT(presence->seen); i++) {
        struct seen_gateway *seen = &presence->seen[i];
        if (str_equal(ng_str_of(seen->id), id)) {
            return seen;
        }
        if (room_of(seen) > room_of(best)) {
            best = seen;
        }
    }
    *best = (struct seen_gateway){.beat = -1};
    (void)snprintf(best->id, sizeof(best->id), "%.*s", (int)id.len, id.data);
    return best;
}

unsigned presence_still(struct mongo *db, struct ng_str gateway)
{
    lock_take(&db->presence.lock);
    unsigned still = seen_of(&db->presence, gateway)->still;
    lock_release(&db->presence.lock);
    return still;
}

/* Of one that is gone, ends the sessions and removes the list. */
static int look(void *user, const bson_t *gateway, struct fault *fault)
{
    struct mongo *db = user;
    struct ng_str name = member_str(gateway, "_id");
    struct ng_str id = str_of(name.data + sizeof(PRESENCE_PREFIX) - 1,
                              name.len - (sizeof(PRESENCE_PREFIX) - 1));
    int64_t beats = member_i64(gateway, "beat");
    bson_t sessions;
    lock_take(&db->presence.lock);
    struct seen_gateway *seen = seen_of(&db->presence, id);
    if (seen->beat != beats) {
        seen->still = 0;
    }
    seen->beat = beats;
    bool gone = seen->still >= GONE_HEARTBEATS;
    lock_release(&db->presence.lock);
    if (gone &&
        (!member_doc(gateway, "sessions", &sessions) ||
         op_command(db, NULL, "admin", bson_of("killSessions:A", &sessions), NULL, fault))) {
        (void)op_delete(db, NULL, OWN_META, bson_of("_id:s", name), false, NULL, fault);
    }
    return NG_OK;
}

static void *presence_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-presence");
    struct mongo *db = user;
    struct fault fault;
    do {
        struct walk walk = {.db = db, .collection = OWN_META, .each = look, .user = db};
        end_lost(db);
        if (beat(db) && restore_look(db, NULL, &fault)) {
            walk.filter = bson_of("_id:{$gte:t, $lt:t}", PRESENCE_PREFIX, PRESENCE_END);
            (void)walk_documents(&walk, &fault);
        }
    } while (pause_unless(&db->closing, HEARTBEAT_MS));
    return NULL;
}

int presence_open(struct mongo *db)
{
    return thread_open(&db->presence.thread, presence_main, db, &db->presence.started);
}

/* After the last transaction. */
void presence_close(struct mongo *db)
{
    struct fault fault;
    if (db->presence.started) {
        (void)pthread_join(db->presence.thread, NULL);
        end_lost(db);
        (void)op_delete(db, NULL, OWN_META, self(db), false, NULL, &fault);
    }
}
