/* SPDX-License-Identifier: MIT */
/* keys.c - the documents of the keys: reads them, follows their events, and adds new ones. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/dispatch/audit.h"
#include "core/dispatch/dispatch.h"
#include "core/store/store.h"
#include "keys_table.h"

#define KEYS_ID_TRIES 8
#define ACTION_DELETED "deleted"

static const struct ng_collection keys_collection = {
    .name = KEYS_COLLECTION,
    .flags = NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

struct ng_key keys_document(struct ng_str id)
{
    struct ng_key key = {ng_str_of(KEYS_COLLECTION), ng_str_of(KEYS_SPACE), id};
    return key;
}

/* ---- reading documents ---- */

/* Puts a document into the table: its key is new, or was revoked. */
static void keys_apply(struct keys *keys, const struct ng_doc *doc)
{
    struct key *key = NULL;
    int rc = key_read(doc, &key);
    rwlock_write(&keys->lock);
    struct key_entry *entry = *keys_place(keys, doc->key.id);
    if (rc != NG_OK) {
        /* It counts as active: if it is the only key, the gateway must not be open to all. */
        keys->unreadable++;
        atomic_fetch_add(&keys->active, 1);
        if (rc == NG_EINTERNAL) {
            atomic_store(&keys->stale, true); /* try again when there is memory */
        }
    } else if (entry != NULL) {
        keys_commit(keys, entry);
        if (atomic_load(&key->revoked)) {
            keys_end(keys, entry, atomic_load(&key->revoked_ms));
        }
    } else if (keys_enter(keys, key, true)) {
        key = NULL;
    } else {
        atomic_store(&keys->stale, true);
    }
    rwlock_release(&keys->lock);
    key_unref(key);
    if (rc != NG_OK) {
        log_write(NG_LOG_ERROR, "keys", "the key %.*s cannot be read%s, and does not work",
                  (int)utf8_cut(doc->key.id, KEY_ID_LEN).len, doc->key.id.data,
                  rc == NG_EINTERNAL ? " just now: out of memory" : "");
    }
}

static int apply_row(void *user, const struct ng_doc *row)
{
    keys_apply(user, row);
    return 0;
}

static int keys_read_all(struct keys *keys, struct call *call)
{
    atomic_store(&keys->stale, false);
    rwlock_write(&keys->lock);
    size_t before = keys->unreadable;
    keys->unreadable = 0;
    rwlock_release(&keys->lock);
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(KEYS_COLLECTION),
        .space = ng_str_of(KEYS_SPACE),
        .limit = 2 * KEYS_MAX,
    };
    int rc = store_query(keys->gateway->store, call, &query, apply_row, keys, NULL);
    rwlock_write(&keys->lock);
    if (rc == NG_OK) {
        /* Only after the ones found now were counted: `active` must not be 0 in between. */
        atomic_fetch_sub(&keys->active, before);
    } else {
        keys->unreadable += before;
        atomic_store(&keys->stale, true);
    }
    rwlock_release(&keys->lock);
    return rc;
}

static int follow_step(struct ng_call *pub, void *user)
{
    return keys_read_all(user, call_of(pub));
}

static void follow_done(struct call *call, void *user)
{
    (void)user;
    if (call->final.rc != NG_OK) {
        log_write(NG_LOG_WARNING, "keys", "the keys that changed were not read: %.*s",
                  (int)call->final.message.len, call->final.message.data);
    }
    call_unref(call);
}

/* Reads a key that another gateway on the same documents made. */
static void keys_follow(struct keys *keys)
{
    if (atomic_exchange(&keys->stale, true)) {
        return; /* under way, or the upkeep will read it */
    }
    struct call *call = call_new(keys->gateway);
    if (call == NULL) {
        return;
    }
    call->lane = ng_str_of("/"); /* not an agent's lane: it waits for no agent's calls */
    call->done = follow_done;
    if (dispatch_step(call, follow_step, keys) == NG_OK) {
        follow_done(call, NULL);
    }
}

/* ---- other gateways ---- */

bool keys_not_loaded(const struct keys *keys)
{
    return keys != NULL && atomic_load_explicit(&keys->not_loaded, memory_order_acquire);
}

static int keys_read_first(struct keys *keys, struct call *call)
{
    int rc = keys_read_all(keys, call);
    if (rc == NG_OK && atomic_exchange(&keys->not_loaded, false)) {
        atomic_fetch_sub(&keys->active, 1);
        log_write(NG_LOG_INFO, "keys", "%zu keys were read", keys_count(keys));
    }
    return rc;
}

static int look_row(void *user, const struct ng_doc *row)
{
    struct keys *keys = user;
    rwlock_read(&keys->lock);
    bool known = *keys_place(keys, row->key.id) != NULL;
    rwlock_release(&keys->lock);
    if (!known) {
        atomic_store(&keys->stale, true);
        return 0;
    }
    struct key *key = NULL;
    int rc = key_read(row, &key);
    if (rc == NG_EINTERNAL) {
        atomic_store(&keys->stale, true);
    } else if (rc == NG_OK && atomic_load(&key->revoked)) {
        keys_apply(keys, row);
    }
    key_unref(key);
    return 0;
}

int keys_look(struct keys *keys, struct call *call)
{
    if (keys == NULL) {
        return NG_OK;
    }
    int64_t now = clock_unix_ms();
    if (keys_not_loaded(keys)) {
        return keys_read_first(keys, call);
    }
    /* By time, not by the feed of changes, which may be waiting for a gateway that died. */
    struct ng_term since = {
        .field = ng_str_of("updated"),
        .op = NG_TERM_GE,
        .number = (double)(atomic_load(&keys->looked_ms) - KEYS_SKEW_MS),
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(KEYS_COLLECTION),
        .space = ng_str_of(KEYS_SPACE),
        .terms = &since,
        .term_count = 1,
        .limit = 2 * KEYS_MAX,
    };
    int rc = store_query(keys->gateway->store, call, &query, look_row, keys, NULL);
    if (rc == NG_OK) {
        atomic_store(&keys->looked_ms, now);
        rc = keys_read_again(keys, call);
    }
    return rc;
}

void keys_look_now(struct keys *keys, struct call *call)
{
    struct result before = call->staged;
    int rc;
    if (store_is_shared(keys->gateway->store)) {
        rc = keys_look(keys, call);
    } else {
        rc = keys_read_again(keys, call);
    }
    if (rc != NG_OK) {
        call->staged = before; /* the known keys count */
    }
}

int keys_read_again(struct keys *keys, struct call *call)
{
    if (keys == NULL || !atomic_load(&keys->stale)) {
        return NG_OK;
    }
    return keys_read_all(keys, call);
}

/* On the committing thread, before the change is answered. */
static void keys_watch(void *user, const struct ng_event *events, size_t count)
{
    struct keys *keys = user;
    bool unknown = false;
    for (size_t i = 0; i < count; i++) {
        const struct ng_event *event = &events[i];
        if (!str_is(event->key.collection, KEYS_COLLECTION)) {
            continue;
        }
        rwlock_write(&keys->lock);
        struct key_entry *entry = *keys_place(keys, event->key.id);
        if (str_is(event->action, ACTION_DELETED)) {
            unknown = unknown || (entry == NULL && keys->unreadable > 0);
            keys_remove(keys, event->key.id);
        } else if (entry == NULL) {
            unknown = true;
        } else {
            keys_commit(keys, entry);
            if (str_is(event->action, KEYS_ACTION_REVOKED)) {
                keys_end(keys, entry, event->time_ms);
            }
        }
        rwlock_release(&keys->lock);
    }
    if (unknown) {
        keys_follow(keys);
    }
}

/* ---- opening and closing ---- */

int keys_open(struct gateway *gateway, struct call *call, struct keys **ret)
{
    struct keys *keys = alloc_zeroed(1, sizeof(*keys));
    if (keys == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    keys->gateway = gateway;
    rwlock_init(&keys->lock, LOCK_KEYS);
    int rc = keys_open_table(keys);
    if (rc != NG_OK) {
        call_fail(call, rc, "the keys' hashes cannot be computed: out of memory");
    }
    if (rc == NG_OK) {
        rc = store_declare(gateway->store, call, &keys_collection);
    }
    if (rc == NG_OK) {
        rc = keys_declare_uses(keys, call);
    }
    if (rc == NG_OK) {
        keys->looked_ms = clock_unix_ms();
        rc = keys_read_all(keys, call);
    }
    if (store_is_shared(gateway->store) && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT)) {
        call_reset_result(call);
        atomic_store(&keys->not_loaded, true);
        atomic_fetch_add(&keys->active, 1); /* not open to all */
        log_write(NG_LOG_WARNING, "keys",
                  "the keys cannot be read because the database does not answer; until then "
                  "callers that need a key are refused");
        rc = NG_OK;
    }
    if (rc == NG_OK && !keys_not_loaded(keys)) {
        keys_refresh_uses(keys, call);
    }
    /* Last, as a watcher cannot be removed from the store. */
    if (rc == NG_OK) {
        rc = store_watch(gateway->store, KEYS_COLLECTION, keys_watch, keys);
    }
    if (rc != NG_OK) {
        keys_close(keys);
        return rc;
    }
    gateway->active_keys = &keys->active;
    *ret = keys;
    return NG_OK;
}

/* ---- changing ---- */

static int write_new(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    struct buf json;
    (void)present;
    (void)pub;
    buf_init(&json, KEY_JSON_MAX);
    int rc = key_write(user, &json);
    if (rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}

int keys_remove_old(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    (void)pub;
    (void)user;
    if (present->revision != 0 && !present->deleted) {
        store_draft_delete(next);
    }
    return NG_OK;
}

/* Enters the key into the table, not in force yet. ret_old: the revoked key that it replaces
 * once it is stored (a reference), or NULL. */
static int keys_reserve(struct keys *keys, struct call *call, struct key *key,
                        struct key **ret_old)
{
    bool added = false;
    rwlock_write(&keys->lock);
    bool full = keys->count >= KEYS_MAX;
    struct key_entry *old = full ? keys_oldest_revoked(keys) : NULL;
    if (!full || old != NULL) {
        key_ref(key);
        added = keys_enter(keys, key, false);
    }
    if (added && old != NULL) {
        old->leaving = true;
        key_ref(old->key);
        *ret_old = old->key;
    }
    rwlock_release(&keys->lock);
    if (full && old == NULL) {
        return call_fail(call, NG_ETOOLARGE,
                         "there are %d keys, which is the maximum; revoke some", KEYS_MAX);
    }
    if (!added) {
        key_unref(key);
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    return NG_OK;
}

/* Ends what keys_reserve() began; rc: whether the key was stored. */
static void keys_end_reserve(struct keys *keys, const struct key *key, const struct key *old,
                             int rc)
{
    rwlock_write(&keys->lock);
    if (rc != NG_OK) {
        keys_remove(keys, ng_str_of(key->id));
    }
    struct key_entry *entry = old != NULL ? *keys_place(keys, ng_str_of(old->id)) : NULL;
    if (entry != NULL && rc == NG_OK) {
        keys_remove(keys, ng_str_of(old->id));
    } else if (entry != NULL) {
        entry->leaving = false;
    }
    rwlock_release(&keys->lock);
}

static int keys_store(struct keys *keys, struct call *call, struct key *key)
{
    struct key *old = NULL;
    int rc = keys_reserve(keys, call, key, &old);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str old_id = ng_str_of(old != NULL ? old->id : NULL);
    const struct ng_change changes[] = {
        {.size = sizeof(changes[0]),
         .key = keys_document(ng_str_of(key->id)),
         .fn = write_new,
         .user = key,
         .has_expected = true},
        {.size = sizeof(changes[0]), .key = keys_document(old_id), .fn = keys_remove_old},
        {.size = sizeof(changes[0]), .key = keys_use_document(old_id), .fn = keys_remove_old},
    };
    size_t count = old != NULL ? NG_COUNT(changes) : 1;
    rc = store_write_wait(keys->gateway->store, call, changes, count);
    keys_end_reserve(keys, key, old, rc);
    key_unref(old);
    return rc;
}

void keys_audit(const char *what, const struct key *key, const struct call *call)
{
    audit_event(&(struct audit_event){
        .gateway = call->gateway,
        .what = what,
        .outcome = "ok",
        .is_of_keys = true,
        .agent = call->caller.agent,
        .key = call->key != NULL ? ng_str_of(call->key->id) : str_make(NULL, 0),
        .remote = call->remote,
        .client = call->client,
        .target = ng_str_of(key->id),
        .request_id = call->caller.request_id,
        .traceparent = call->caller.traceparent,
    });
}

int keys_add(struct keys *keys, struct call *call, const struct key_spec *spec,
             char ret_text[KEY_TEXT_MAX], struct key **ret)
{
    unsigned char hash[KEY_HASH_BYTES];
    struct ng_str id = {NULL, 0};
    struct key *taken = NULL;
    int rc;
    for (int i = 0; i < KEYS_ID_TRIES; i++) {
        rc = key_text_make(ret_text);
        if (rc != NG_OK) {
            return call_fail(call, rc, "the system gives no random numbers");
        }
        (void)key_text_parse(ng_str_of(ret_text), &id);
        taken = keys_get(keys, id);
        key_unref(taken);
        if (taken == NULL) {
            break;
        }
    }
    struct key_spec made = *spec;
    made.made_by = key_maker(call);
    rc = keys_hash(keys, ng_str_of(ret_text), hash);
    struct key *key = NULL;
    if (rc == NG_OK) {
        key = key_new(id.data, &made, hash);
    }
    if (key == NULL) {
        rc = call_fail(call, NG_EINTERNAL, "out of memory");
    } else {
        rc = keys_store(keys, call, key);
    }
    if (rc != NG_OK) {
        explicit_bzero(ret_text, KEY_TEXT_MAX);
        key_unref(key);
        return rc;
    }
    keys_audit("key_add", key, call);
    log_write(NG_LOG_INFO, "keys", "key %s added for %.*s (%s) by %.*s", key->id,
              (int)key->agent.len, key->agent.data, key_role_name(key->role),
              (int)call->caller.agent.len, call->caller.agent.data);
    *ret = key;
    return NG_OK;
}
