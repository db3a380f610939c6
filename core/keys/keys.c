/* SPDX-License-Identifier: MIT */
/* keys.c - the documents of the keys: reads them, follows their events, and adds new ones. */
#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
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

/* With the lock held. True: a right of a known key changed. */
static bool keys_put_known(struct keys *keys, struct key_entry *entry, struct key *key)
{
    bool changed = false;
    keys_commit(keys, entry);
    if (key_is_revoked(key)) {
        keys_end(keys, entry, atomic_load(&key->revoked_ms));
    } else if (key->revision > entry->key->revision) {
        key_ref(key);
        changed = keys_replace(entry, key);
    }
    return changed;
}

bool keys_put(struct keys *keys, struct key *key, uint64_t read)
{
    struct ng_str id = ng_str_of(key->id);
    bool changed = false;
    rwlock_write(&keys->lock);
    struct key_entry *entry = *keys_place(keys, id);
    key_ref(key);
    if (entry != NULL) {
        changed = keys_put_known(keys, entry, key);
        key_unref(key);
    } else if (!keys_enter(keys, key, true)) {
        atomic_store(&keys->stale, true);
        key_unref(key);
    }
    entry = *keys_place(keys, id);
    if (entry != NULL) {
        entry->found_read = u64_max(entry->found_read, read);
    }
    rwlock_release(&keys->lock);
    key_unref(key);
    return changed;
}

void keys_tell_changed(struct keys *keys)
{
    struct gateway *gateway = keys->gateway;
    if (gateway->lists_changed != NULL) {
        gateway->lists_changed(gateway, 0, gateway->lists_user);
    }
}

/* As keys_put(). */
static bool keys_apply(struct keys *keys, const struct ng_doc *doc, uint64_t read)
{
    struct key *key = NULL;
    int rc = key_read(doc, &key);
    if (rc == NG_OK) {
        return keys_put(keys, key, read);
    }
    rwlock_write(&keys->lock);
    /* It counts as active: if it is the only key, the gateway must not be open to all. */
    keys->unreadable++;
    atomic_fetch_add(&keys->active, 1);
    if (rc == NG_EINTERNAL) {
        atomic_store(&keys->stale, true); /* try again when there is memory */
    }
    struct key_entry *entry = *keys_place(keys, doc->key.id);
    if (entry != NULL) {
        entry->found_read = u64_max(entry->found_read, read);
    }
    rwlock_release(&keys->lock);
    log_write(NG_LOG_ERROR, "keys", "the key %.*s cannot be read%s, and does not work",
              (int)utf8_cut(doc->key.id, KEY_ID_LEN).len, doc->key.id.data,
              rc == NG_EINTERNAL ? " just now: out of memory" : "");
    return false;
}

struct keys_read {
    struct keys *keys;
    struct key_log *log; /* changes to look for */
    uint64_t number;     /* of keys->reads */
    uint32_t rows;
    bool changed; /* a right of a known key */
};

static int apply_row(void *user, const struct ng_doc *row)
{
    struct keys_read *read = user;
    read->rows++;
    read->changed = keys_apply(read->keys, row, read->number) || read->changed;
    key_log_saw(read->log, row);
    return 0;
}

/* log: as it was before; the rows mark the changes that they show. A key in force whose
 * document is gone does not work any more. */
static int keys_read_all(struct keys *keys, struct call *call, struct key_log *log)
{
    struct keys_read read = {.keys = keys, .log = log};
    size_t removed = 0;
    atomic_store(&keys->stale, false);
    rwlock_write(&keys->lock);
    size_t before = keys->unreadable;
    keys->unreadable = 0;
    read.number = ++keys->reads;
    rwlock_release(&keys->lock);
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(KEYS_COLLECTION),
        .space = ng_str_of(KEYS_SPACE),
        .limit = 2 * KEYS_MAX,
    };
    int rc = store_query(keys->gateway->store, call, &query, apply_row, &read, NULL);
    rwlock_write(&keys->lock);
    if (rc == NG_OK) {
        /* Only after the ones found now were counted: `active` must not be 0 in between. */
        atomic_fetch_sub(&keys->active, before);
    } else {
        keys->unreadable += before;
        atomic_store(&keys->stale, true);
    }
    if (rc == NG_OK && read.rows < query.limit) {
        removed = keys_remove_missing(keys, log, read.number);
    }
    rwlock_release(&keys->lock);
    if (read.changed) {
        keys_tell_changed(keys);
    }
    if (removed > 0) {
        log_write(NG_LOG_WARNING, "keys",
                  "%zu keys do not work any more: their documents are gone", removed);
    }
    return rc;
}

static int follow_step(struct ng_call *pub, void *user)
{
    return keys_look(user, call_of(pub));
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

/* Reads a key whose document this process wrote and the table does not have. */
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

/* Reads all keys, and remembers up to which change. */
static int keys_load(struct keys *keys, struct call *call, uint64_t changes,
                     struct key_log *log)
{
    int rc = keys_read_all(keys, call, log);
    if (rc != NG_OK) {
        return rc;
    }
    if (key_log_all_seen(log) || atomic_fetch_add(&keys->unseen_reads, 1) >= KEYS_UNSEEN_MAX) {
        atomic_store(&keys->seen_log, changes);
        atomic_store(&keys->unseen_reads, 0);
    }
    if (atomic_exchange(&keys->not_loaded, false)) {
        atomic_fetch_sub(&keys->active, 1);
        log_write(NG_LOG_INFO, "keys", "%zu keys were read", keys_count(keys));
    }
    return NG_OK;
}

int keys_look(struct keys *keys, struct call *call)
{
    uint64_t changes = 0;
    struct key_log log;
    if (keys == NULL) {
        return NG_OK;
    }
    /* Not the feed: its numbers may be waiting for a gateway that died. Before the keys, so
     * that none that changes meanwhile is missed. */
    int rc = keys_read_log(keys, call, &changes, &log);
    if (rc != NG_OK) {
        return rc;
    }
    if (!keys_not_loaded(keys) && changes == atomic_load(&keys->seen_log) &&
        !atomic_load(&keys->stale)) {
        return NG_OK;
    }
    return keys_load(keys, call, changes, &log);
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
    return keys_look(keys, call);
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
            } else {
                /* keys_change() puts it into the table, unless its call has ended by now. */
                unknown = unknown || event->revision > entry->key->revision;
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
        rc = keys_declare_log(keys, call);
    }
    if (rc == NG_OK) {
        atomic_store(&keys->seen_log, UINT64_MAX); /* none yet: all keys are read */
        rc = keys_look(keys, call);
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

struct new_key {
    struct key *key; /* not in force yet */
    struct key_log_entry *logged;
};

static int write_new(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    const struct new_key *made = user;
    struct buf json;
    (void)pub;
    buf_init(&json, KEY_JSON_MAX);
    int rc = key_write(made->key, &json);
    key_log_set(made->logged, present, false);
    made->key->revision = made->logged->revision;
    if (rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}

int keys_remove_old(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    struct key_log_entry *logged = user;
    bool is_there = present->revision != 0 && !present->deleted;
    (void)pub;
    if (is_there) {
        store_draft_delete(next);
    }
    if (logged != NULL && is_there) {
        key_log_set(logged, present, true);
    } else if (logged != NULL) {
        logged->revision = 0;
    }
    return NG_OK;
}

static struct ng_change keys_removal(struct ng_key document, struct key_log_entry *logged)
{
    struct ng_change change = {
        .size = sizeof(change), .key = document, .fn = keys_remove_old, .user = logged};
    return change;
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
    struct key_log log = {.count = 1};
    memcpy(log.items[0].id, key->id, sizeof(key->id));
    struct new_key made = {key, &log.items[0]};
    struct ng_change changes[4] = {{.size = sizeof(changes[0]),
                                    .key = keys_document(ng_str_of(key->id)),
                                    .fn = write_new,
                                    .user = &made,
                                    .has_expected = true}};
    size_t count = 1;
    if (old != NULL) {
        struct key_log_entry *gone = &log.items[log.count++];
        memcpy(gone->id, old->id, sizeof(gone->id));
        changes[count++] = keys_removal(keys_document(ng_str_of(old->id)), gone);
        changes[count++] = keys_removal(keys_use_document(ng_str_of(old->id)), NULL);
    }
    changes[count++] = keys_log_change(&log);
    rc = store_write_wait(keys->gateway->store, call, changes, count);
    keys_end_reserve(keys, key, old, rc);
    key_unref(old);
    return rc;
}

void keys_audit(const char *what, const struct key *key, struct ng_str members,
                const struct call *call)
{
    audit_event(&(struct audit_event){
        .gateway = call->gateway,
        .what = what,
        .outcome = "ok",
        .face = call->face,
        .call = call,
        .is_of_keys = true,
        .agent = call->caller.agent,
        .key = call->key != NULL ? ng_str_of(call->key->id) : str_make(NULL, 0),
        .remote = call->remote,
        .client = call->caller.client,
        .target = ng_str_of(key->id),
        .members = members,
        .run = call->caller.run_id,
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
        (void)call_fail(call, NG_EINTERNAL, "out of memory");
        rc = NG_EINTERNAL;
    } else {
        rc = keys_store(keys, call, key);
    }
    if (rc != NG_OK) {
        explicit_bzero(ret_text, KEY_TEXT_MAX);
        key_unref(key);
        return rc;
    }
    keys_audit("key_add", key, STR_NONE, call);
    log_write(NG_LOG_INFO, "keys", "key %s added for %.*s (%s) by %.*s", key->id,
              (int)key->agent.len, key->agent.data, key_role_name(key->role),
              (int)call->caller.agent.len, call->caller.agent.data);
    *ret = key;
    return NG_OK;
}
