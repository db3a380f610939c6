/* SPDX-License-Identifier: MIT */
/* drain.c - waits until every change committed so far has left its outbox. All documents that
 * wait are listed first and waited for together, as the relay moves them together: while one
 * waited for each in turn, an agent that never pauses added new ones ahead. */
#include <stdio.h>

#include "core/base/array.h"
#include "feed.h"

/* Pause between two looks at the outboxes: doubled from the first to the last. */
#define DRAIN_NAP_MS 10
#define DRAIN_NAP_LAST_MS 160
/* Documents that are listed at a time, and those that one query asks for. */
#define DRAIN_LIST 10000
#define DRAIN_ASKED 100

struct waiting {
    const struct db_collection *collection;
    bson_t *doc; /* _id, space and revision */
};

struct drain {
    struct mongo *db;
    struct ng_call *call;
    const struct db_collection *collection;
    int64_t end_ms; /* monotonic; 0: as long as the call lasts */
    struct waiting *list;
    size_t count, cap;
};

/* Those of which such a revision is in the outbox: a document that is written all the time has
 * newer ones there, never older ones. */
static bson_t *unmoved(const struct waiting *list, size_t count)
{
    bson_t ids = BSON_INITIALIZER;
    bson_t any = BSON_INITIALIZER;
    for (size_t i = 0; i < count; i++) {
        char at[16];
        struct ng_str id = member_str(list[i].doc, "_id");
        bson_t *one = name_filter(list[i].doc, false);
        bson_add(one, "outbox.revision:{$lte:u}", member_u64(list[i].doc, "notegate.revision"));
        (void)snprintf(at, sizeof(at), "%u", (unsigned)i);
        bson_item(&ids, (uint32_t)i, id);
        BSON_APPEND_DOCUMENT(&any, at, one);
        bson_destroy(one);
    }
    bson_t *filter = bson_of("_id:{$in:A}, $or:A", &ids, &any);
    bson_destroy(&ids);
    bson_destroy(&any);
    return filter;
}

/* Of one collection. */
static int wait_until_moved(const struct drain *drain, const struct waiting *list, size_t count,
                            struct fault *fault)
{
    int rc = NG_PENDING;
    int64_t nap_ms = DRAIN_NAP_MS;
    while (rc == NG_PENDING) {
        bson_t *found = op_find_one(drain->db, NULL, list->collection->name,
                                    unmoved(list, count), bson_of("projection:{_id:1}"), fault);
        bson_destroy(found);
        if (found == NULL) {
            rc = fault->rc;
        } else if (drain->call->host->cancelled(drain->call)) {
            rc = NG_ECANCELLED;
        } else if (drain->end_ms != 0 && monotonic_ms() >= drain->end_ms) {
            rc = NG_ETIMEOUT;
        } else {
            relay_kick(drain->db, list->collection);
            sleep_ms(nap_ms);
            nap_ms = i64_min(nap_ms * 2, DRAIN_NAP_LAST_MS);
        }
    }
    return rc;
}

static void forget_list(struct drain *drain)
{
    while (drain->count > 0) {
        bson_destroy(drain->list[--drain->count].doc);
    }
}

static int wait_for_list(struct drain *drain, struct fault *fault)
{
    int rc = NG_OK;
    size_t end = 0;
    for (size_t at = 0; at < drain->count && rc == NG_OK; at = end) {
        while (end < drain->count && end - at < DRAIN_ASKED &&
               drain->list[end].collection == drain->list[at].collection) {
            end++;
        }
        rc = wait_until_moved(drain, &drain->list[at], end - at, fault);
    }
    forget_list(drain);
    return rc;
}

static int list_doc(void *user, const bson_t *doc, struct fault *fault)
{
    struct drain *drain = user;
    if (array_reserve((void **)&drain->list, &drain->cap, drain->count + 1,
                      sizeof(*drain->list), DRAIN_LIST) != NG_OK) {
        return fault_refuse(fault, NG_EINTERNAL, "no memory");
    }
    drain->list[drain->count++] = (struct waiting){drain->collection, bson_copy(doc)};
    return drain->count == DRAIN_LIST ? wait_for_list(drain, fault) : NG_OK;
}

static int list_collection(struct drain *drain, struct fault *fault)
{
    struct walk walk = {.db = drain->db,
                        .collection = drain->collection->name,
                        .filter = bson_of("notegate.waiting:{$gt:0}"),
                        .fields = bson_of("space:1, notegate.revision:1"),
                        .each = list_doc,
                        .user = drain};
    return walk_documents(&walk, fault);
}

static int drain(struct mongo *db, struct ng_call *call, uint32_t flags, int64_t end_ms)
{
    int rc = NG_OK;
    struct fault fault = {0};
    struct drain drain = {.db = db, .call = call, .end_ms = end_ms};
    while (rc == NG_OK && (drain.collection = collection_next(db, drain.collection)) != NULL) {
        if (flags == 0 || (drain.collection->flags & flags) != 0) {
            rc = list_collection(&drain, &fault);
        }
    }
    if (rc == NG_OK) {
        rc = wait_for_list(&drain, &fault);
    }
    forget_list(&drain);
    free(drain.list);
    if (rc == NG_ECANCELLED) {
        return ng_fail(call, rc, "waiting for the outboxes was cancelled");
    }
    if (rc == NG_ETIMEOUT && fault.rc == NG_OK) {
        return ng_fail(call, rc, "the outboxes are not empty yet; try again");
    }
    return fault_end(call, rc, &fault, "waiting for the outboxes");
}

int relay_drain(struct mongo *db, struct ng_call *call)
{
    return drain(db, call, 0, 0);
}

int relay_settle(void *self, struct ng_call *call, uint32_t flags, int64_t wait_ms)
{
    return drain(self, call, flags, monotonic_ms() + wait_ms);
}
