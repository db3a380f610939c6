/* SPDX-License-Identifier: MIT */
/* store_collections.c - the declared collections, and which of them are held. */
#include <string.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "store_types.h"

/* With the lock held: its index, or that behind the last one. */
static size_t find(const struct store *store, struct ng_str name)
{
    size_t at = 0;
    while (at < store->collection_count && !str_is(name, store->collections[at].name)) {
        at++;
    }
    return at;
}

const struct ng_collection *store_collection(struct store *store, struct ng_str name)
{
    rwlock_read(&store->collections_lock);
    size_t at = find(store, name);
    bool there = at < store->collection_count;
    rwlock_release(&store->collections_lock);
    return there ? &store->collections[at].desc : NULL;
}

const struct ng_collection *store_collection_at(struct store *store, size_t index)
{
    rwlock_read(&store->collections_lock);
    bool there = index < store->collection_count;
    rwlock_release(&store->collections_lock);
    if (!there) {
        return NULL;
    }
    return &store->collections[index].desc;
}

static bool collection_name_valid(struct ng_str name)
{
    bool good = name.len > 0 && name.len <= NG_COLLECTION_MAX;
    for (size_t i = 0; i < name.len && good; i++) {
        char c = name.data[i];
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    }
    return good;
}

/* With the lock held: holds the referenced collections from the index `from` on. */
static void hold_from(struct store *store, size_t from)
{
    size_t at = from;
    while (at < store->collection_count &&
           (store->collections[at].desc.flags & NG_COLLECTION_REFERENCED) == 0) {
        at++;
    }
    atomic_store(&store->held, store->shared && at < store->collection_count ? at + 1 : 0);
}

int store_declare(struct store *store, struct call *call,
                  const struct ng_collection *collection)
{
    struct ng_str name = ng_str_of(collection->name);
    if (!collection_name_valid(name)) {
        return call_fail(call, NG_EINVAL,
                         "the collection name \"%s\" is not of the form [a-z0-9_]{1,%d}",
                         collection->name, NG_COLLECTION_MAX);
    }
    if (store_collection(store, name) != NULL) {
        return call_fail(call, NG_EINVAL, "the collection %s is declared twice",
                         collection->name);
    }
    int rc = store->backend->declare(store->db, &call->pub, collection);
    bool away = store->shared && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT);
    if (rc != NG_OK && !away) {
        return rc;
    }
    rc = NG_OK;
    if (away) {
        call_reset_result(call);
        atomic_store(&store->undeclared, true);
    }
    rwlock_write(&store->collections_lock);
    if (store->collection_count == STORE_COLLECTIONS_MAX) {
        rc = call_fail(call, NG_ETOOLARGE, "more than %d collections", STORE_COLLECTIONS_MAX);
    } else {
        size_t at = store->collection_count++;
        memcpy(store->collections[at].name, name.data, name.len);
        store->collections[at].desc = *collection;
        store->collections[at].desc.name = store->collections[at].name;
        store->collections[at].undeclared = away;
        if (!store_is_held(store)) {
            hold_from(store, at);
        }
    }
    rwlock_release(&store->collections_lock);
    return rc;
}

void store_release_referenced(struct store *store, size_t count)
{
    rwlock_write(&store->collections_lock);
    hold_from(store, count);
    rwlock_release(&store->collections_lock);
}

bool store_is_held(const struct store *store)
{
    return atomic_load(&store->held) > 0;
}

int store_check_held(struct store *store, struct call *call, struct ng_str name)
{
    rwlock_read(&store->collections_lock);
    size_t held = atomic_load(&store->held);
    size_t at = find(store, name);
    bool refused = held > 0 && at + 1 >= held && at < store->collection_count &&
                   (store->collections[at].desc.flags & NG_COLLECTION_REFERENCED) != 0;
    rwlock_release(&store->collections_lock);
    if (!refused) {
        return NG_OK;
    }
    return call_fail(call, NG_EUNAVAILABLE,
                     "other gateways do not know the collection %.*s yet and would skip its "
                     "events; try again in a second",
                     (int)name.len, name.data);
}

int store_declare_rest(struct store *store, struct call *call)
{
    int rc = NG_OK;
    if (!atomic_load(&store->undeclared)) {
        return NG_OK;
    }
    atomic_store(&store->undeclared, false); /* one that comes now sets it again */
    for (size_t i = 0; i < STORE_COLLECTIONS_MAX && rc == NG_OK; i++) {
        rwlock_read(&store->collections_lock);
        bool undeclared = i < store->collection_count && store->collections[i].undeclared;
        rwlock_release(&store->collections_lock);
        if (undeclared) {
            rc = store->backend->declare(store->db, &call->pub, &store->collections[i].desc);
        }
        if (undeclared && rc == NG_OK) {
            rwlock_write(&store->collections_lock);
            store->collections[i].undeclared = false;
            rwlock_release(&store->collections_lock);
        }
    }
    if (rc != NG_OK) {
        atomic_store(&store->undeclared, true);
    }
    return rc;
}

int store_check_key(struct store *store, struct call *call, const struct ng_key *key)
{
    if (store_collection(store, key->collection) == NULL) {
        return call_fail(call, NG_EINTERNAL, "no plugin has declared the collection \"%.*s\"",
                         (int)key->collection.len, key->collection.data);
    }
    if (key->space.len == 0 || key->space.len > NG_SPACE_MAX) {
        return call_fail(call, NG_EINVAL, "a space has 1 to %d bytes, this one has %zu",
                         NG_SPACE_MAX, key->space.len);
    }
    if (key->id.len > NG_ID_MAX) {
        return call_fail(call, NG_ETOOLARGE, "the name has %zu bytes, it may have %d",
                         key->id.len, NG_ID_MAX);
    }
    return NG_OK;
}
