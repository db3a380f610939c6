/* SPDX-License-Identifier: MIT */
/* purge.c - removes what a purged document was: its versions, and the data of its events. Each
 * step can be repeated, also by another gateway. */
#include "upkeep.h"

struct purged {
    struct mongo *db;
    struct ng_call *call;
    const struct db_collection *collection;
    struct bytes name;
    uint64_t revision;
};

/* NG_ENOTFOUND, without a message: no document can have this key. */
static int purged_find(struct mongo *db, struct ng_call *call, const struct ng_key *key,
                       uint64_t revision, struct purged *ret)
{
    *ret = (struct purged){.db = db, .call = call, .revision = revision};
    ret->collection = collection_find(db, key->collection);
    if (ret->collection == NULL || revision < 2) {
        return NG_ENOTFOUND;
    }
    return name_document(ret->collection, key->space, key->id, &ret->name);
}

/* The events before the deletion, by the names of their versions. */
static bson_t *purged_events(const struct purged *purged)
{
    struct bytes low = {0};
    struct bytes high = {0};
    bson_t *filter = NULL;
    struct ng_str name = bytes_str(&purged->name);
    if (name_version(purged->collection->name, name, 1, &low) == NG_OK &&
        name_version(purged->collection->name, name, purged->revision - 1, &high) == NG_OK) {
        filter = bson_of("ref:{$gte:s, $lte:s}, quiet:F", bytes_str(&low), bytes_str(&high));
    }
    bytes_done(&low);
    bytes_done(&high);
    return filter;
}

/* Events that one operation looks at. */
#define ABOUT_EVENTS 20000

/* Events with numbers up to `until` of any document of the space, whose data contain `about`.
 */
static bson_t *about_events(const struct ng_key *key, struct ng_str about, uint64_t after,
                            uint64_t until)
{
    static const char special[] = "\\^$.|?*+()[]{}/-";
    struct bytes pattern = {0};
    bson_t *filter = NULL;
    for (size_t i = 0; i < about.len; i++) {
        if (memchr(special, about.data[i], sizeof(special) - 1) != NULL) {
            (void)bytes_add_c(&pattern, "\\");
        }
        (void)bytes_add(&pattern, about.data + i, 1);
    }
    if (pattern.rc == NG_OK) {
        filter = bson_of("_id:{$gt:u, $lte:u}, quiet:F, space:s, data:{$regex:s}", after, until,
                         key->space, bytes_str(&pattern));
    }
    bytes_done(&pattern);
    return filter;
}

/* The rest of the walk over all events, in steps that end in time. */
static int about_each(struct mongo *db, struct ng_call *call, const struct ng_key *key,
                      struct ng_str about, struct docs *ret, struct fault *fault)
{
    uint64_t last = atomic_load(&db->last_seq);
    int rc = NG_OK;
    for (uint64_t after = 0; after < last && rc == NG_OK; after += ABOUT_EVENTS) {
        bson_t *filter = about_events(key, about, after, after + ABOUT_EVENTS);
        if (call->host->cancelled(call)) {
            bson_destroy(filter);
            return fault_refuse(fault, NG_ETIMEOUT,
                                "it reached its time limit; upkeep continues it");
        }
        if (filter == NULL) {
            return fault_refuse(fault, NG_EINTERNAL, "no memory for the events about it");
        }
        if (ret != NULL) {
            (void)op_find(db, NULL, OWN_EVENTS, filter, bson_of("sort:{_id:1}"), docs_keep, ret,
                          fault);
            rc = int_min(fault->rc, ret->rc);
        } else {
            (void)op_update_all(db, OWN_EVENTS, filter, bson_of("$unset:{data:E}"), fault);
            rc = fault->rc;
        }
    }
    return rc;
}

static bool events_give(const struct docs *events, const struct ng_key *key, ng_event_fn *event,
                        void *user)
{
    for (size_t i = 0; i < events->count; i++) {
        struct ng_event one;
        event_row(events->list[i], &one);
        /* Names of other documents may begin like that of a version of this one. */
        bool is_it = key == NULL ||
                     (str_equal(one.key.id, key->id) && str_equal(one.key.space, key->space));
        if (is_it && event(user, &one) != 0) {
            return false;
        }
    }
    return true;
}

int purge_events(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                 struct ng_str about, ng_event_fn *event, void *user)
{
    struct purged purged;
    struct fault fault = {0};
    struct docs events = {0};
    struct docs others = {0};
    int rc = purged_find(self, call, key, revision, &purged);
    bson_t *filter = rc == NG_OK ? purged_events(&purged) : NULL;
    if (rc == NG_OK && filter == NULL) {
        rc = fault_refuse(&fault, NG_EINTERNAL, "no memory for the events of a document");
    }
    if (rc == NG_OK) {
        (void)op_find(purged.db, NULL, OWN_EVENTS, filter, bson_of("sort:{ref:1}"), docs_keep,
                      &events, &fault);
        rc = int_min(fault.rc, events.rc);
    }
    if (rc == NG_OK) {
        rc = about_each(purged.db, call, key, about, &others, &fault);
    }
    if (rc == NG_OK && events_give(&events, key, event, user)) {
        (void)events_give(&others, NULL, event, user);
    }
    docs_done(&events);
    docs_done(&others);
    bytes_done(&purged.name);
    return rc == NG_ENOTFOUND ? NG_OK
                              : fault_end(call, rc, &fault, "reading the events of a document");
}

/* First the deletion becomes whole: it no longer follows from the version before it. */
static int purge_versions(const struct purged *purged, struct fault *fault)
{
    const char *collection = purged->collection->name;
    struct ng_str name = bytes_str(&purged->name);
    int rc = version_make_whole(purged->db, collection, name, purged->revision, fault);
    if (rc != NG_OK && rc != NG_ENOTFOUND) { /* without it nothing follows from anything */
        return rc;
    }
    bson_t *range = version_range(collection, name, 1, purged->revision - 1);
    if (range == NULL) {
        return fault_refuse(fault, NG_EINTERNAL, "no memory for a purge");
    }
    (void)op_delete(purged->db, NULL, OWN_VERSIONS, range, true, NULL, fault);
    return fault->rc;
}

int purge_run(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
              struct ng_str about)
{
    struct purged purged;
    struct fault fault = {0};
    /* Changes still in the outbox become events and versions. */
    int rc = relay_drain(self, call);
    if (rc != NG_OK) {
        return rc;
    }
    rc = purged_find(self, call, key, revision, &purged);
    bson_t *events = rc == NG_OK ? purged_events(&purged) : NULL;
    if (rc == NG_OK && events == NULL) {
        rc = fault_refuse(&fault, NG_EINTERNAL, "no memory for a purge");
    }
    if (rc == NG_OK) {
        bson_add(events, "id:s, space:s", key->id, key->space);
        (void)op_update_all(purged.db, OWN_EVENTS, events, bson_of("$unset:{data:E}"), &fault);
        rc = fault.rc;
    }
    if (rc == NG_OK) {
        rc = about_each(purged.db, call, key, about, NULL, &fault);
    }
    if (rc == NG_OK) {
        rc = purge_versions(&purged, &fault);
    }
    bytes_done(&purged.name);
    return rc == NG_ENOTFOUND ? NG_OK : fault_end(call, rc, &fault, "a purge");
}
