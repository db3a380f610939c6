/* SPDX-License-Identifier: MIT */
/* purge.c - removes what a purged document was: its versions, and the data of events. Each step
 * can be repeated, also by another gateway. */
#include <string.h>

#include "core/base/minmax.h"
#include "upkeep.h"

struct purged {
    struct mongo *db;
    const struct db_collection *collection;
    struct bytes name;
    uint64_t revision;
};

static int purged_find(struct mongo *db, const struct ng_key *key, uint64_t revision,
                       struct purged *ret, struct fault *fault)
{
    *ret = (struct purged){.db = db, .revision = revision};
    ret->collection = collection_find(db, key->collection);
    if (ret->collection == NULL) {
        return fault_refuse(fault, NG_EINVAL, "its collection is not declared");
    }
    int rc = name_document(ret->collection, key->space, key->id, &ret->name);
    return rc == NG_OK ? rc : fault_refuse(fault, rc, "there can be no document of that name");
}

/* ---- revisions ---- */

/* Stores the deletion whole first, because the version before it is removed. */
static int purge_versions(const struct purged *purged, struct fault *fault)
{
    const char *collection = purged->collection->name;
    struct ng_str name = bytes_str(&purged->name);
    int rc = version_make_whole(purged->db, collection, name, purged->revision, fault);
    if (rc != NG_OK && rc != NG_ENOTFOUND) { /* not kept: none depends on another */
        return rc;
    }
    bson_t *range = version_range(collection, name, 1, purged->revision - 1);
    if (range == NULL) {
        return fault_refuse(fault, NG_EINTERNAL, "no memory for a purge");
    }
    (void)op_delete(purged->db, NULL, OWN_VERSIONS, range, true, NULL, fault);
    return fault->rc;
}

/* The events of the document have the names of its versions. */
static int purge_own_data(const struct purged *purged, const struct ng_key *key,
                          struct fault *fault)
{
    struct bytes low = {0};
    struct bytes high = {0};
    bson_t *filter = NULL;
    struct ng_str name = bytes_str(&purged->name);
    if (name_version(purged->collection->name, name, 1, &low) == NG_OK &&
        name_version(purged->collection->name, name, purged->revision - 1, &high) == NG_OK) {
        filter = bson_of("ref:{$gte:s, $lte:s}, id:s, space:s", bytes_str(&low),
                         bytes_str(&high), key->id, key->space);
    }
    bytes_done(&low);
    bytes_done(&high);
    if (filter == NULL) {
        return fault_refuse(fault, NG_EINTERNAL, "no memory for a purge");
    }
    (void)op_update_all(purged->db, OWN_EVENTS, filter, bson_of("$unset:{data:E}"), fault);
    return fault->rc;
}

int purge_run(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision)
{
    struct purged purged;
    struct fault fault = {0};
    /* Changes still in the outbox become events and versions. */
    int rc = relay_drain(self, call);
    if (rc != NG_OK || revision < 2) {
        return rc;
    }
    rc = purged_find(self, key, revision, &purged, &fault);
    if (rc == NG_OK) {
        rc = purge_own_data(&purged, key, &fault);
    }
    if (rc == NG_OK) {
        rc = purge_versions(&purged, &fault);
    }
    bytes_done(&purged.name);
    return fault_end(call, rc, &fault, "a purge");
}

/* ---- events ---- */

/* A text as a regular expression that matches just it. */
static int quote_pattern(struct ng_str text, struct bytes *ret)
{
    static const char special[] = "\\^$.|?*+()[]{}/-";
    for (size_t i = 0; i < text.len; i++) {
        if (memchr(special, text.data[i], sizeof(special) - 1) != NULL) {
            (void)bytes_add_c(ret, "\\");
        }
        (void)bytes_add(ret, text.data + i, 1);
    }
    return ret->rc;
}

int purge_events(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                 struct ng_str about, uint64_t since, uint64_t until, ng_event_fn *event,
                 void *user)
{
    struct mongo *db = self;
    struct fault fault = {0};
    struct docs events = {0};
    struct bytes pattern = {0};
    int rc = quote_pattern(about, &pattern);
    if (rc == NG_OK) {
        bson_t *filter =
            bson_of("_id:{$gt:u, $lte:u}, quiet:F, space:s, $or:[{collection:s, id:s, "
                    "revision:{$lt:u}}, {data:{$regex:s}}]",
                    u64_min(since, INT64_MAX), u64_min(until, INT64_MAX), key->space,
                    key->collection, key->id, revision, bytes_str(&pattern));
        (void)op_find(db, NULL, OWN_EVENTS, filter,
                      bson_of("sort:{_id:1}, projection:{data:0}"), docs_keep, &events, &fault);
        rc = int_min(fault.rc, events.rc);
    }
    bool more = true;
    for (size_t i = 0; rc == NG_OK && more && i < events.count; i++) {
        struct ng_event one;
        event_row(events.list[i], &one);
        more = event(user, &one) == 0;
    }
    docs_done(&events);
    bytes_done(&pattern);
    return fault_end(call, rc, &fault, "reading the events about a document");
}

/* The versions of these events have the same data. */
static int purge_version_data(struct mongo *db, const bson_t *seqs, struct fault *fault)
{
    struct docs events = {0};
    bson_t refs = BSON_INITIALIZER;
    (void)op_find(db, NULL, OWN_EVENTS, bson_of("_id:{$in:A}", seqs),
                  bson_of("projection:{ref:1}"), docs_keep, &events, fault);
    for (size_t i = 0; i < events.count; i++) {
        bson_item(&refs, (uint32_t)i, member_str(events.list[i], "ref"));
    }
    int rc = int_min(fault->rc, events.rc);
    if (rc == NG_OK) {
        (void)op_update_all(db, OWN_VERSIONS, bson_of("_id:{$in:A}", &refs),
                            bson_of("$unset:{data:E}"), fault);
        rc = fault->rc;
    }
    docs_done(&events);
    bson_destroy(&refs);
    return rc;
}

int purge_data(void *self, struct ng_call *call, const uint64_t *seqs, size_t count)
{
    struct fault fault = {0};
    bson_t list = BSON_INITIALIZER;
    for (size_t i = 0; i < count; i++) {
        char index[16];
        const char *name = NULL;
        (void)bson_uint32_to_string((uint32_t)i, &name, index, sizeof(index));
        put_u64(&list, name, seqs[i]);
    }
    int rc = purge_version_data(self, &list, &fault);
    if (rc == NG_OK) {
        (void)op_update_all(self, OWN_EVENTS, bson_of("_id:{$in:A}", &list),
                            bson_of("$unset:{data:E}"), &fault);
        rc = fault.rc;
    }
    bson_destroy(&list);
    return fault_end(call, rc, &fault, "removing the data of events");
}

/* Nothing to do: the files belong to the server. */
int purge_sweep(void *self, struct ng_call *call)
{
    (void)self;
    (void)call;
    return NG_OK;
}
