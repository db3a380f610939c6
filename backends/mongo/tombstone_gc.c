/* SPDX-License-Identifier: MIT */
/* tombstone_gc.c - deletes the tombstones of entries from their collection once their events
 * were moved. */
#include <time.h>

#include "relay.h"

#define GC_BATCH 100
/* A tombstone stays in its collection for at least this many times mongo.timeout, so that a
 * look-up there remains valid (see LOOKED_UP_MS in put.c). */
#define GC_TIMEOUTS 4

struct tombstone_page {
    bson_t *list[GC_BATCH];
    size_t count;
};

static int keep_tombstone(void *user, const bson_t *doc)
{
    struct tombstone_page *page = user;
    page->list[page->count++] = bson_copy(doc);
    return page->count == GC_BATCH;
}

static bool move_tombstone(struct mongo *db, const struct db_collection *collection,
                           const bson_t *doc)
{
    struct fault fault;
    struct bytes name = {0};
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    bson_t part, own;
    uint64_t revision = member_u64(doc, "notegate.revision");
    int rc = name_tombstone(collection->name, member_str(doc, "_id"), &name);
    put_str(&filter, "_id", bytes_str(&name));
    nest_u64(&filter, "notegate.revision", "$lt", revision);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &part);
    BSON_APPEND_UTF8(&part, "collection", collection->name);
    put_str(&part, "document", member_str(doc, "_id"));
    put_str(&part, "space", member_str(doc, "space"));
    if (member_doc(doc, "notegate", &own)) {
        BSON_APPEND_DOCUMENT(&part, "notegate", &own);
    }
    (void)bson_append_document_end(&update, &part);
    bool good = rc == NG_OK &&
                (op_upsert(db, OWN_TOMBSTONES, &filter, &update, &fault) || fault.duplicate);
    bson_destroy(&filter);
    bson_destroy(&update);
    bytes_done(&name);
    if (good) {
        bson_init(&filter);
        put_str(&filter, "_id", member_str(doc, "_id"));
        put_u64(&filter, "notegate.revision", revision);
        BSON_APPEND_BOOL(&filter, "notegate.deleted", true);
        nest_bool(&filter, "notegate.waiting", "$exists", false);
        nest_bool(&filter, "notegate.intent", "$exists", false);
        good = op_delete(db, collection->name, &filter, false, NULL, &fault);
        bson_destroy(&filter);
    }
    return good;
}

static void gc_collection(struct mongo *db, const struct db_collection *collection)
{
    struct fault fault;
    struct tombstone_page page = {.count = 0};
    bson_t filter = BSON_INITIALIZER;
    int64_t least = GC_TIMEOUTS * db->timeout_ms;
    int64_t hold = i64_max(db->tombstones_ms, least);
    BSON_APPEND_BOOL(&filter, "notegate.deleted", true);
    nest_date(&filter, "notegate.moved", "$lt", clock_unix_ms() - hold);
    nest_bool(&filter, "notegate.waiting", "$exists", false);
    (void)op_find(db, collection->name, &filter, NULL, keep_tombstone, &page, &fault);
    for (size_t i = 0; i < page.count; i++) {
        (void)move_tombstone(db, collection, page.list[i]);
        bson_destroy(page.list[i]);
    }
    bson_destroy(&filter);
}

void tombstone_gc(struct mongo *db)
{
    size_t count = 0;
    struct db_collection **list = collections_list(db, &count);
    for (size_t i = 0; i < count && list != NULL; i++) {
        if (list[i]->is_entry) {
            gc_collection(db, list[i]);
        }
    }
    free(list);
}
