/* SPDX-License-Identifier: MIT */
/* tombstone_gc.c - deletes the tombstones of entries from their collection once their events
 * were moved. */
#include <time.h>

#include "relay.h"

/* An entry that is created again in between does not match any more; what was kept of it is
 * replaced when it leaves another time, never by an older state. */
static int move_doc(void *user, const bson_t *doc, struct fault *fault)
{
    const struct walk *walk = user;
    struct ng_str document = member_str(doc, "_id");
    struct bytes name = {0};
    bson_t own;
    fault->rc = name_tombstone(walk->collection, document, &name);
    bson_t *tombstone = bson_of("collection:t, document:s, space:s", walk->collection, document,
                                member_str(doc, "space"));
    if (member_doc(doc, "notegate", &own)) {
        BSON_APPEND_DOCUMENT(tombstone, "notegate", &own);
    }
    if (fault->rc == NG_OK &&
        op_upsert(walk->db, NULL, OWN_TOMBSTONES,
                  bson_of("_id:s, notegate.revision:{$lte:u}", bytes_str(&name),
                          member_u64(doc, "notegate.revision")),
                  bson_of("$set:D", tombstone), NULL, fault)) {
        bson_t *from = name_filter(doc, true);
        bson_add(from, "notegate.waiting:{$exists:F}");
        (void)op_delete(walk->db, NULL, walk->collection, from, false, NULL, fault);
    }
    bson_destroy(tombstone);
    bytes_done(&name);
    return fault->duplicate ? NG_OK : fault->rc;
}

void tombstone_gc(struct mongo *db)
{
    struct fault fault;
    const struct db_collection *collection = NULL;
    int64_t before = clock_unix_ms() - db->tombstones_ms;
    while ((collection = collection_next(db, collection)) != NULL) {
        struct walk walk = {
            .db = db, .collection = collection->name, .each = move_doc, .user = &walk};
        if (collection->is_entry) {
            walk.filter = bson_of("notegate.deleted:T, notegate.moved:{$lt:d}, "
                                  "notegate.waiting:{$exists:F}",
                                  before);
            (void)walk_documents(&walk, &fault); /* the next sweep goes on */
        }
    }
}
