/* SPDX-License-Identifier: MIT */
/* keys.c - all keys of the gateway: the table that requests look into, and the documents behind
 * it, whose events it follows. */
#include <stdlib.h>
#include <sys/random.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "clock.h"
#include "gateway.h"
#include "keys_table.h"
#include "log.h"
#include "str.h"

#define KEYS_BUCKETS 4096
/* Hashes that are computed at a time without an allocation. */
#define KEYS_HASHERS 8
#define KEYS_PAGE 500
#define KEYS_ID_TRIES 8
#define ACTION_REVOKED "revoked"
#define ACTION_DELETED "deleted"

struct key_entry {
    struct key *key; /* a reference */
    bool committed;  /* its document is on disk: it is in force */
    struct key_entry *next;
};

struct hasher {
    atomic_flag busy;
    EVP_MD_CTX *context;
};

struct keys {
    struct gateway *gateway;
    pthread_rwlock_t lock; /* of the table; never held across I/O */
    struct key_entry *buckets[KEYS_BUCKETS];
    size_t count;        /* entries */
    atomic_size_t exist; /* in force and not revoked, expired or not; and what is unreadable */
    atomic_bool stale;   /* a change could not be read yet */
    size_t unreadable;   /* documents: under the lock */
    struct hasher hashers[KEYS_HASHERS];
    unsigned char nobody[KEY_HASH_BYTES]; /* what an unknown id is compared with */
};

static const struct ng_collection keys_collection = {
    .name = KEYS_COLLECTION,
    .flags = NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

static struct ng_key keys_document(struct ng_str id)
{
    struct ng_key key = {ng_str_of(KEYS_COLLECTION), ng_str_of(KEYS_SPACE), id};
    return key;
}

/* ---- the table; the lock is the caller's ---- */

static struct key_entry **table_place(struct keys *keys, struct ng_str id)
{
    struct key_entry **place = &keys->buckets[str_hash(id) % KEYS_BUCKETS];
    while (*place != NULL && !str_is(id, (*place)->key->id)) {
        place = &(*place)->next;
    }
    return place;
}

/* Takes over the reference. False: out of memory, or the id is there. */
static bool table_add(struct keys *keys, struct key *key, bool committed)
{
    struct key_entry **place = table_place(keys, ng_str_of(key->id));
    struct key_entry *entry = *place != NULL ? NULL : alloc_zeroed(1, sizeof(*entry));
    if (entry == NULL) {
        return false;
    }
    entry->key = key;
    entry->committed = committed;
    *place = entry;
    keys->count++;
    if (committed && !atomic_load(&key->revoked)) {
        atomic_fetch_add(&keys->exist, 1);
    }
    return true;
}

static void table_remove(struct keys *keys, struct ng_str id)
{
    struct key_entry **place = table_place(keys, id);
    struct key_entry *entry = *place;
    if (entry == NULL) {
        return;
    }
    *place = entry->next;
    keys->count--;
    if (entry->committed && !atomic_load(&entry->key->revoked)) {
        atomic_fetch_sub(&keys->exist, 1);
    }
    atomic_store(&entry->key->revoked, true); /* sessions and streams of it end */
    key_unref(entry->key);
    free(entry);
}

static void entry_commit(struct keys *keys, struct key_entry *entry)
{
    if (!entry->committed) {
        entry->committed = true;
        if (!atomic_load(&entry->key->revoked)) {
            atomic_fetch_add(&keys->exist, 1);
        }
    }
}

static void entry_revoke(struct keys *keys, struct key_entry *entry, int64_t time_ms)
{
    if (!atomic_load(&entry->key->revoked)) {
        atomic_store(&entry->key->revoked_ms, time_ms);
        atomic_store(&entry->key->revoked, true);
        if (entry->committed) {
            atomic_fetch_sub(&keys->exist, 1);
        }
    }
}

/* ---- reading documents ---- */

/* A document as it is now; the key is new, or was revoked. */
static void keys_apply(struct keys *keys, const struct ng_doc *doc)
{
    struct key *key = NULL;
    int rc = key_read(doc, &key);
    (void)pthread_rwlock_wrlock(&keys->lock);
    struct key_entry *entry = *table_place(keys, doc->key.id);
    if (rc != NG_OK) {
        /* Closed rather than open: it may be the only one. */
        keys->unreadable++;
        atomic_fetch_add(&keys->exist, 1);
    } else if (entry != NULL) {
        entry_commit(keys, entry);
        if (atomic_load(&key->revoked)) {
            entry_revoke(keys, entry, atomic_load(&key->revoked_ms));
        }
    } else if (table_add(keys, key, true)) {
        key = NULL;
    } else {
        atomic_store(&keys->stale, true);
    }
    (void)pthread_rwlock_unlock(&keys->lock);
    key_unref(key);
    if (rc != NG_OK) {
        log_write(NG_LOG_ERROR, "keys", "the key %.*s cannot be read, and does not work",
                  (int)str_utf8_cut(doc->key.id, KEY_ID_LEN).len, doc->key.id.data);
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
    (void)pthread_rwlock_wrlock(&keys->lock);
    atomic_fetch_sub(&keys->exist, keys->unreadable);
    keys->unreadable = 0;
    (void)pthread_rwlock_unlock(&keys->lock);
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(KEYS_COLLECTION),
        .space = ng_str_of(KEYS_SPACE),
        .limit = 2 * KEYS_MAX,
    };
    int rc = store_query(keys->gateway->store, call, &query, apply_row, keys, NULL);
    if (rc != NG_OK) {
        atomic_store(&keys->stale, true);
    }
    return rc;
}

static int follow_step(struct ng_call *pub, void *user)
{
    return keys_read_all(user, call_of(pub));
}

static void follow_done(struct call *call, void *user)
{
    (void)user;
    if (call->result.rc != NG_OK) {
        log_write(NG_LOG_WARNING, "keys", "the keys that changed were not read: %.*s",
                  (int)call->result.message.len, call->result.message.data);
    }
    call_unref(call);
}

/* A key that this process did not make: another gateway on the same documents did. */
static void keys_follow(struct keys *keys)
{
    if (atomic_exchange(&keys->stale, true)) {
        return; /* on its way, or the upkeep's */
    }
    struct call *call = call_new(keys->gateway);
    if (call == NULL) {
        return;
    }
    call->caller.agent = ng_str_of("/"); /* no agent's: no agent's calls are in its way */
    call->done = follow_done;
    if (dispatch_step(call, follow_step, keys) == NG_OK) {
        follow_done(call, NULL);
    }
}

int keys_upkeep(struct keys *keys, struct call *call)
{
    return keys == NULL || !atomic_load(&keys->stale) ? NG_OK : keys_read_all(keys, call);
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
        (void)pthread_rwlock_wrlock(&keys->lock);
        struct key_entry *entry = *table_place(keys, event->key.id);
        if (str_is(event->action, ACTION_DELETED)) {
            table_remove(keys, event->key.id);
        } else if (entry == NULL) {
            unknown = true;
        } else {
            entry_commit(keys, entry);
            if (str_is(event->action, ACTION_REVOKED)) {
                entry_revoke(keys, entry, event->time_ms);
            }
        }
        (void)pthread_rwlock_unlock(&keys->lock);
    }
    if (unknown) {
        keys_follow(keys);
    }
}

/* ---- opening and closing ---- */

static int keys_open_hashers(struct keys *keys)
{
    for (size_t i = 0; i < KEYS_HASHERS; i++) {
        struct hasher *hasher = &keys->hashers[i];
        atomic_flag_clear(&hasher->busy);
        hasher->context = EVP_MD_CTX_new();
        if (hasher->context == NULL ||
            EVP_DigestInit_ex(hasher->context, EVP_sha256(), NULL) != 1) {
            return NG_EINTERNAL;
        }
    }
    return getrandom(keys->nobody, sizeof(keys->nobody), 0) == (ssize_t)sizeof(keys->nobody)
               ? NG_OK
               : NG_EINTERNAL;
}

int keys_open(struct gateway *gateway, struct call *call, struct keys **ret)
{
    struct keys *keys = alloc_zeroed(1, sizeof(*keys));
    if (keys == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    keys->gateway = gateway;
    (void)pthread_rwlock_init(&keys->lock, NULL);
    int rc = keys_open_hashers(keys);
    if (rc != NG_OK) {
        call_fail(call, rc, "the keys' hashes cannot be computed: out of memory");
    }
    if (rc == NG_OK) {
        rc = store_declare(gateway->store, call, &keys_collection);
    }
    if (rc == NG_OK) {
        rc = keys_read_all(keys, call);
    }
    /* Last: what watches must live as long as the store does. */
    if (rc == NG_OK) {
        rc = store_watch(gateway->store, keys_watch, keys);
    }
    if (rc != NG_OK) {
        keys_close(keys);
        return rc;
    }
    *ret = keys;
    return NG_OK;
}

void keys_close(struct keys *keys)
{
    if (keys == NULL) {
        return;
    }
    for (size_t i = 0; i < KEYS_BUCKETS; i++) {
        while (keys->buckets[i] != NULL) {
            struct key_entry *entry = keys->buckets[i];
            keys->buckets[i] = entry->next;
            key_unref(entry->key);
            free(entry);
        }
    }
    for (size_t i = 0; i < KEYS_HASHERS; i++) {
        EVP_MD_CTX_free(keys->hashers[i].context);
    }
    (void)pthread_rwlock_destroy(&keys->lock);
    free(keys);
}

/* ---- looking up ---- */

size_t keys_count(struct keys *keys)
{
    size_t count = 0;
    int64_t now_ms = clock_unix_ms();
    if (keys == NULL) {
        return 0;
    }
    (void)pthread_rwlock_rdlock(&keys->lock);
    for (size_t i = 0; i < KEYS_BUCKETS; i++) {
        for (const struct key_entry *entry = keys->buckets[i]; entry != NULL;
             entry = entry->next) {
            count += entry->committed && key_live_at(entry->key, now_ms) ? 1 : 0;
        }
    }
    (void)pthread_rwlock_unlock(&keys->lock);
    return count;
}

size_t keys_exist(const struct keys *keys)
{
    return keys == NULL ? 0 : atomic_load_explicit(&keys->exist, memory_order_acquire);
}

struct key *keys_get(struct keys *keys, struct ng_str id)
{
    struct key *key = NULL;
    if (keys == NULL) {
        return NULL;
    }
    (void)pthread_rwlock_rdlock(&keys->lock);
    const struct key_entry *entry = *table_place(keys, id);
    if (entry != NULL && entry->committed) {
        key = entry->key;
        key_ref(key);
    }
    (void)pthread_rwlock_unlock(&keys->lock);
    return key;
}

/* SHA-256. A context is initialised again after its use, so the next one only hashes. */
static int keys_hash(struct keys *keys, struct ng_str text, unsigned char ret[KEY_HASH_BYTES])
{
    for (size_t i = 0; i < KEYS_HASHERS; i++) {
        struct hasher *hasher = &keys->hashers[i];
        if (atomic_flag_test_and_set_explicit(&hasher->busy, memory_order_acquire)) {
            continue;
        }
        bool good = EVP_DigestInit_ex(hasher->context, NULL, NULL) == 1 &&
                    EVP_DigestUpdate(hasher->context, text.data, text.len) == 1 &&
                    EVP_DigestFinal_ex(hasher->context, ret, NULL) == 1;
        atomic_flag_clear_explicit(&hasher->busy, memory_order_release);
        return good ? NG_OK : NG_EINTERNAL;
    }
    return EVP_Digest(text.data, text.len, ret, NULL, EVP_sha256(), NULL) == 1 ? NG_OK
                                                                               : NG_EINTERNAL;
}

struct key *keys_find(struct keys *keys, struct ng_str text, const char **ret_why)
{
    struct ng_str id;
    unsigned char hash[KEY_HASH_BYTES];
    if (keys_exist(keys) == 0) {
        *ret_why = "A key was sent, but this gateway has none";
        return NULL;
    }
    if (!key_text_parse(text, &id)) {
        *ret_why = "What was sent as a key is none: it must be ng_, an id, _ and a secret";
        return NULL;
    }
    /* An unknown id takes the same way as a wrong secret. */
    struct key *key = keys_get(keys, id);
    int rc = keys_hash(keys, text, hash);
    bool same =
        CRYPTO_memcmp(hash, key != NULL ? key->hash : keys->nobody, KEY_HASH_BYTES) == 0;
    if (rc != NG_OK || !same || key == NULL) {
        *ret_why = "The key that was sent is not known here";
    } else if (atomic_load(&key->revoked)) {
        *ret_why = "The key that was sent has been revoked";
    } else if (!key_live(key)) {
        *ret_why = "The key that was sent has expired";
    } else {
        return key;
    }
    key_unref(key);
    return NULL;
}

static int older_first(const void *a, const void *b)
{
    const struct key *const *left = a;
    const struct key *const *right = b;
    if ((*left)->created_ms != (*right)->created_ms) {
        return (*left)->created_ms < (*right)->created_ms ? -1 : 1;
    }
    return strcmp((*left)->id, (*right)->id);
}

static void unref_pinned(void *object)
{
    key_unref(object);
}

int keys_list(struct keys *keys, struct call *call, struct key ***ret, size_t *ret_count)
{
    size_t count = 0;
    (void)pthread_rwlock_rdlock(&keys->lock);
    struct key **list = arena_alloc(&call->arena, keys->count * sizeof(struct key *));
    for (size_t i = 0; i < KEYS_BUCKETS && list != NULL; i++) {
        for (const struct key_entry *entry = keys->buckets[i]; entry != NULL;
             entry = entry->next) {
            if (entry->committed) {
                key_ref(entry->key);
                list[count++] = entry->key;
            }
        }
    }
    (void)pthread_rwlock_unlock(&keys->lock);
    int rc = list == NULL ? NG_EINTERNAL : NG_OK;
    for (size_t i = 0; i < count; i++) {
        if (call_pin(call, unref_pinned, list[i]) != NG_OK) {
            rc = NG_EINTERNAL;
        }
    }
    if (rc != NG_OK) {
        return call_fail(call, rc, "out of memory");
    }
    qsort(list, count, sizeof(struct key *), older_first);
    *ret = list;
    *ret_count = count;
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
    rc = rc == NG_OK ? store_draft_json(next, buf_str(&json)) : rc;
    buf_done(&json);
    return rc;
}

static int remove_old(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    (void)pub;
    (void)user;
    if (present->revision != 0 && !present->deleted) {
        store_draft_delete(next);
    }
    return NG_OK;
}

/* The table is full: the longest revoked one makes room. The lock is the caller's. */
static struct key *oldest_revoked(struct keys *keys)
{
    struct key *oldest = NULL;
    for (size_t i = 0; i < KEYS_BUCKETS; i++) {
        for (const struct key_entry *entry = keys->buckets[i]; entry != NULL;
             entry = entry->next) {
            struct key *key = entry->key;
            if (entry->committed && atomic_load(&key->revoked) &&
                (oldest == NULL ||
                 atomic_load(&key->revoked_ms) < atomic_load(&oldest->revoked_ms))) {
                oldest = key;
            }
        }
    }
    return oldest;
}

/* Into the table, not in force yet. ret_old: a key that goes for it, or NULL; a reference. */
static int keys_reserve(struct keys *keys, struct call *call, struct key *key,
                        struct key **ret_old)
{
    int rc = NG_OK;
    (void)pthread_rwlock_wrlock(&keys->lock);
    if (keys->count >= KEYS_MAX) {
        *ret_old = oldest_revoked(keys);
        rc = *ret_old == NULL ? NG_ETOOLARGE : NG_OK;
    }
    if (*ret_old != NULL) {
        key_ref(*ret_old);
        table_remove(keys, ng_str_of((*ret_old)->id));
    }
    key_ref(key);
    bool added = rc == NG_OK && table_add(keys, key, false);
    (void)pthread_rwlock_unlock(&keys->lock);
    if (!added) {
        key_unref(key);
    }
    if (rc != NG_OK) {
        return call_fail(call, rc, "there are %d keys, the most there can be; revoke some",
                         KEYS_MAX);
    }
    return added ? NG_OK : call_fail(call, NG_EINTERNAL, "out of memory");
}

static int keys_store(struct keys *keys, struct call *call, struct key *key)
{
    struct key *old = NULL;
    int rc = keys_reserve(keys, call, key, &old);
    if (rc != NG_OK) {
        key_unref(old);
        return rc;
    }
    struct ng_change changes[2];
    memset(changes, 0, sizeof(changes));
    changes[0].size = sizeof(changes[0]);
    changes[0].key = keys_document(ng_str_of(key->id));
    changes[0].fn = write_new;
    changes[0].user = key;
    changes[0].has_expected = true;
    if (old != NULL) {
        changes[1].size = sizeof(changes[1]);
        changes[1].key = keys_document(ng_str_of(old->id));
        changes[1].fn = remove_old;
    }
    rc = store_write_wait(keys->gateway->store, call, changes, old != NULL ? 2 : 1);
    (void)pthread_rwlock_wrlock(&keys->lock);
    if (rc != NG_OK) {
        table_remove(keys, ng_str_of(key->id));
    }
    (void)pthread_rwlock_unlock(&keys->lock);
    key_unref(old);
    return rc;
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
    rc = keys_hash(keys, ng_str_of(ret_text), hash);
    struct key *key = rc == NG_OK ? key_new(id.data, spec, hash) : NULL;
    rc = key == NULL ? call_fail(call, NG_EINTERNAL, "out of memory")
                     : keys_store(keys, call, key);
    if (rc != NG_OK) {
        explicit_bzero(ret_text, KEY_TEXT_MAX);
        key_unref(key);
        return rc;
    }
    log_write(NG_LOG_INFO, "keys", "key %s added for %.*s (%s) by %.*s", key->id,
              (int)key->agent.len, key->agent.data, key_role_name(key->role),
              (int)call->caller.agent.len, call->caller.agent.data);
    *ret = key;
    return NG_OK;
}

static int write_revoked(struct ng_call *pub, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const int64_t *now_ms = user;
    struct buf json;
    struct ng_writer writer;
    (void)pub;
    if (present->revision == 0 || present->deleted || present->body == NULL) {
        return NG_ENOTFOUND;
    }
    if (json_get(present->body, "revoked") != NULL) {
        return NG_OK;
    }
    buf_init(&json, KEY_JSON_MAX);
    json_writer_init(&writer, &json);
    json_object(&writer);
    for (const struct ng_value *member = present->body->first; member != NULL;
         member = member->next) {
        json_name_str(&writer, member->key);
        json_copy(&writer, member);
    }
    json_name(&writer, "revoked");
    json_int(&writer, *now_ms);
    json_end(&writer);
    int rc = json.rc == NG_OK ? store_draft_json(next, buf_str(&json)) : json.rc;
    buf_done(&json);
    return rc;
}

int keys_revoke(struct keys *keys, struct call *call, struct ng_str id, struct key **ret)
{
    struct key *key = keys_get(keys, id);
    if (key == NULL) {
        return call_fail(call, NG_ENOTFOUND, "no key has the id \"%.*s\"",
                         (int)str_utf8_cut(id, KEY_TEXT_MAX).len, id.data);
    }
    int64_t now_ms = clock_unix_ms();
    struct ng_change change = {
        .size = sizeof(change),
        .key = keys_document(ng_str_of(key->id)),
        .fn = write_revoked,
        .user = &now_ms,
        .action = ACTION_REVOKED,
    };
    bool before = atomic_load(&key->revoked);
    int rc = store_write_wait(keys->gateway->store, call, &change, 1);
    if (rc != NG_OK) {
        key_unref(key);
        return rc;
    }
    if (!before) {
        log_write(NG_LOG_INFO, "keys", "key %s of %.*s revoked by %.*s", key->id,
                  (int)key->agent.len, key->agent.data, (int)call->caller.agent.len,
                  call->caller.agent.data);
    }
    *ret = key;
    return NG_OK;
}
