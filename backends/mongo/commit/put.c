/* SPDX-License-Identifier: MIT */
/* put.c - one document's next state as an update that is conditional on its base, or as a
 * document to insert; and whether a state or an event is of a put. */
#include "put.h"

#include <stdio.h>
#include <time.h>

uint64_t stamp_next(struct mongo *db)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t stamp = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    uint64_t last = atomic_load(&db->last_stamp);
    do {
        if (stamp <= last) {
            stamp = last + 1;
        }
    } while (!atomic_compare_exchange_weak(&db->last_stamp, &last, stamp));
    return stamp;
}

void batch_id(char ret[BATCH_ID_MAX])
{
    bson_oid_t oid;
    bson_oid_init(&oid, NULL);
    bson_oid_to_string(&oid, ret);
}

/* ---- the update ---- */

/* Made of the ticket, so that the put knows by it what is based on it. */
static void put_id(const struct mongo *db, uint64_t ticket, char ret[PUT_ID_MAX])
{
    if (ticket == 0) {
        batch_id(ret);
    } else {
        (void)snprintf(ret, PUT_ID_MAX, "%s-%llu", db->gateway, (unsigned long long)ticket);
    }
}

void put_begin(struct mongo *db, struct put *put, const struct prepared *prepared,
               const struct ng_put *last)
{
    memset(put, 0, sizeof(*put));
    put->prepared = prepared;
    put_id(db, last->ticket, put->batch);
    bson_init(&put->outbox);
    bson_init(&put->change);
}

void put_add(struct mongo *db, struct put *put, const struct ng_put *next,
             const unsigned char hash[HASH_BYTES])
{
    if (put->first == NULL) {
        put->first = next;
        if (next->base_ticket != 0) {
            put_id(db, next->base_ticket, put->base);
        }
    }
    put->last = next;
    if (put_is_condition(put)) {
        return;
    }
    uint64_t stamp = stamp_next(db);
    if (put->stamp == 0 || next->created_seq == 0) {
        put->stamp = stamp;
    }
    if (next->created_seq == 0) {
        put->creator = next;
    }
    put->outbox_bytes += outbox_add(&put->outbox, put->count++, next, hash, put->batch, stamp);
}

int put_make(struct put *put, bool inserts, struct fault *fault)
{
    int rc;
    bson_destroy(&put->change);
    put->inserts = inserts;
    if (inserts) {
        rc = body_insert(NULL, put->prepared, put->last, &put->outbox, put->outbox_bytes,
                         put->batch, put->stamp, &put->change);
    } else {
        rc = body_update(put->prepared, put->last, put->creator, &put->outbox,
                         put->outbox_bytes, put->batch, put->stamp, &put->change);
    }
    if (rc == NG_ETOOLARGE) {
        (void)fault_refuse(fault, rc,
                           "the document would have %zu bytes with its history to come, more "
                           "than " DOCUMENT_LIMIT,
                           (size_t)put->change.len);
    } else if (rc != NG_OK) {
        (void)fault_refuse(fault, rc, "the document's JSON cannot be stored");
    }
    return rc;
}

void put_end(struct put *put)
{
    bson_destroy(&put->outbox);
    bson_destroy(&put->change);
}

bool put_fits(const struct put *put, const bson_t *doc)
{
    if (doc == NULL) {
        return put->first->base_revision == 0;
    }
    return member_u64(doc, "notegate.revision") == put->first->base_revision &&
           (put->base[0] == '\0' ||
            str_equal(member_str(doc, "notegate.batch"), ng_str_of(put->base)));
}

bson_t *put_filter(const struct put *put, bool of_base)
{
    bson_t *filter =
        bson_of("_id:s, space:s", bytes_str(&put->prepared->name), put->first->key.space);
    if (of_base) {
        put_u64(filter, "notegate.revision", put->first->base_revision);
    }
    if (of_base && put->base[0] != '\0') {
        bson_add(filter, "notegate.batch:t", put->base);
    }
    return filter;
}

bool doc_is_of(const bson_t *doc, const char *batch)
{
    bson_iter_t iter;
    bson_iter_t entries;
    struct ng_str mine = ng_str_of(batch);
    if (str_equal(member_str(doc, "notegate.batch"), mine)) {
        return true;
    }
    if (!bson_iter_init_find(&iter, doc, "outbox") || !bson_iter_recurse(&iter, &entries)) {
        return false;
    }
    while (bson_iter_next(&entries)) {
        bson_iter_t entry, found;
        if (bson_iter_recurse(&entries, &entry) && bson_iter_find(&entry, "batch")) {
            found = entry;
            if (str_equal(iter_str(&found), mine)) {
                return true;
            }
        }
    }
    return false;
}

/* The change may have been moved, and the document changed again since. */
int event_is_of(struct mongo *db, struct session *session, const char *collection,
                struct ng_str document, uint64_t revision, const char *batch, bool *ret,
                struct fault *fault)
{
    struct bytes ref = {0};
    bson_t *event = NULL;
    int rc = name_version(collection, document, revision, &ref);
    if (rc == NG_OK) {
        event = op_find_one(db, session, OWN_EVENTS, bson_of("ref:s", bytes_str(&ref)), NULL,
                            fault);
        rc = fault->rc;
    }
    *ret = event != NULL && str_equal(member_str(event, "batch"), ng_str_of(batch));
    bson_destroy(event);
    bytes_done(&ref);
    return rc;
}
