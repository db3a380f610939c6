/* SPDX-License-Identifier: MIT */
/*
 * former.c - finishes what an older version of the gateway left in the database.
 *
 * Versions before 0.2 made a change of several documents in steps: an intent, its puts, a lock
 * in each document (notegate.intent), then "done". A change that was done is applied here, any
 * other is undone, and the two collections are dropped. An answer that was only claimed is kept
 * if its change was made.
 */
#include <stdio.h>

#include "put.h"

#define OLD_INTENTS "notegate_intents"
#define OLD_PUTS "notegate_intent_puts"

/* A copy, as the driver wants a terminated text. */
static bool name_of(const bson_t *doc, const char *path, char ret[NG_COLLECTION_MAX + 1])
{
    struct ng_str name = member_str(doc, path);
    (void)snprintf(ret, NG_COLLECTION_MAX + 1, "%.*s", (int)name.len, name.data);
    return name.data != NULL && name.len <= NG_COLLECTION_MAX;
}

/* ---- changes of several documents ---- */

struct intent {
    struct session *session;
    bool done;
};

/* Applies the put if its change was done and it changes something, else removes its lock. Both
 * are conditional on the lock, so a repetition after a crash does no harm. */
static int finish_put(void *user, const bson_t *put, struct fault *fault)
{
    const struct intent *intent = user;
    struct session *session = intent->session;
    bool done = intent->done;
    char collection[NG_COLLECTION_MAX + 1];
    bson_t change;
    struct ng_str stored = member_str(put, "change");
    struct ng_str itself = member_str(put, "intent");
    bson_t *filter = bson_of("_id:s, notegate.intent:s", member_str(put, "document"), itself);
    bson_t *place = bson_of("*, notegate.place_of:s", filter, itself);
    bool named = name_of(put, "collection", collection);
    if (named && done && stored.data != NULL &&
        bson_init_static(&change, (const uint8_t *)stored.data, stored.len)) {
        (void)op_update(session->db, session, collection, bson_copy(filter), &change, NULL,
                        fault);
    } else if (named && op_delete(session->db, session, collection, bson_copy(place), false,
                                  NULL, fault)) {
        (void)op_update(session->db, session, collection, bson_copy(filter),
                        bson_of("$unset:{notegate.intent:E}"), NULL, fault);
    }
    bson_destroy(filter);
    bson_destroy(place);
    return fault->rc;
}

static int finish_intent(void *user, const bson_t *doc, struct fault *fault)
{
    struct session *session = user;
    struct ng_str itself = member_str(doc, "_id");
    struct intent intent = {.session = session,
                            .done = str_equal(member_str(doc, "state"), ng_str_of("done"))};
    struct walk walk = {.db = session->db,
                        .session = session,
                        .collection = OLD_PUTS,
                        .filter = bson_of("intent:s", itself),
                        .each = finish_put,
                        .user = &intent};
    int rc = walk_documents(&walk, fault);
    if (rc == NG_OK && op_delete(session->db, session, OLD_PUTS, bson_of("intent:s", itself),
                                 true, NULL, fault)) {
        (void)op_delete(session->db, session, OLD_INTENTS, bson_of("_id:s", itself), false,
                        NULL, fault);
    }
    return int_min(rc, fault->rc);
}

/* ---- answers ---- */

static int settle_claim(void *user, const bson_t *claim, struct fault *fault)
{
    struct session *session = user;
    struct mongo *db = session->db;
    char collection[NG_COLLECTION_MAX + 1], batch[NG_COLLECTION_MAX + 1];
    bson_iter_t id;
    bool landed = false;
    struct ng_str document = member_str(claim, "document");
    if (name_of(claim, "collection", collection) && name_of(claim, "batch", batch)) {
        bson_t *doc =
            op_find_one(db, session, collection, bson_of("_id:s", document), NULL, fault);
        landed = doc != NULL && doc_is_of(doc, batch);
        bson_destroy(doc);
        if (fault->rc == NG_OK && !landed) {
            (void)event_is_of(db, session, collection, document, member_u64(claim, "revision"),
                              batch, &landed, fault);
        }
        if (fault->rc != NG_OK) {
            return fault->rc;
        }
    }
    bson_t *claimed = bson_of("state:t", "claimed");
    if (bson_iter_init_find(&id, claim, "_id")) {
        (void)bson_append_iter(claimed, "_id", -1, &id); /* binary */
    }
    if (landed) {
        (void)op_update(db, session, OWN_ANSWERS, claimed, bson_of("$set:{state:t}", "kept"),
                        NULL, fault);
    } else {
        (void)op_delete(db, session, OWN_ANSWERS, claimed, false, NULL, fault);
    }
    return fault->rc;
}

/* ---- both ---- */

/* Without the right to drop it the collection stays, empty. */
static bool drop(struct session *session, const char *collection, struct fault *fault)
{
    bool good = op_command(session->db, session, session->db->database,
                           bson_of("drop:t", collection), NULL, fault);
    if (!good && fault->answered &&
        (fault->code == SERVER_NO_COLLECTION || fault->code == SERVER_UNAUTHORIZED)) {
        memset(fault, 0, sizeof(*fault));
        good = true;
    }
    return good;
}

bool former_finish(struct session *session, struct fault *fault)
{
    struct walk intents = {.db = session->db,
                           .session = session,
                           .collection = OLD_INTENTS,
                           .each = finish_intent,
                           .user = session};
    struct walk claims = {.db = session->db,
                          .session = session,
                          .collection = OWN_ANSWERS,
                          .filter = bson_of("state:t", "claimed"),
                          .each = settle_claim,
                          .user = session};
    int rc = walk_documents(&intents, fault);
    if (rc == NG_OK) {
        rc = walk_documents(&claims, fault);
    } else {
        bson_destroy(claims.filter);
    }
    return rc == NG_OK && drop(session, OLD_INTENTS, fault) && drop(session, OLD_PUTS, fault);
}
