/* SPDX-License-Identifier: MIT */
/* keys_table.c - the table of all keys in memory, and the look-up that every request makes. */
#include "keys_table.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/call/gateway.h"

/* ---- the table; the caller holds the lock ---- */

struct key_entry **keys_place(struct keys *keys, struct ng_str id)
{
    struct key_entry **place = &keys->buckets[str_hash(id) % KEYS_BUCKETS];
    while (*place != NULL && !str_is(id, (*place)->key->id)) {
        place = &(*place)->next;
    }
    return place;
}

bool keys_enter(struct keys *keys, struct key *key, bool committed)
{
    struct key_entry **place = keys_place(keys, ng_str_of(key->id));
    if (*place != NULL) {
        return false;
    }
    struct key_entry *entry = alloc_zeroed(1, sizeof(*entry));
    if (entry == NULL) {
        return false;
    }
    entry->key = key;
    entry->committed = committed;
    entry->committed_read = keys->reads;
    *place = entry;
    keys->count++;
    if (committed && !key_is_revoked(key)) {
        atomic_fetch_add(&keys->active, 1);
    }
    return true;
}

void keys_remove(struct keys *keys, struct ng_str id)
{
    struct key_entry **place = keys_place(keys, id);
    struct key_entry *entry = *place;
    if (entry == NULL) {
        return;
    }
    *place = entry->next;
    keys->count--;
    if (entry->committed && !key_is_revoked(entry->key)) {
        atomic_fetch_sub(&keys->active, 1);
    }
    atomic_store(&key_state(entry->key)->revoked, true); /* ends its sessions and streams */
    key_unref(entry->key);
    free(entry);
}

/* Whether a key in force is gone. A key that is not in force yet is being stored. */
static bool is_missing(const struct key_entry *entry, const struct key_log *log, uint64_t read)
{
    bool is_new = entry->found_read == 0 && read - entry->committed_read < KEYS_UNSEEN_MAX;
    return entry->committed && entry->committed_read < read && entry->found_read < read &&
           !(is_new && key_log_waits_for(log, entry->key->id));
}

/* The entries of all buckets in turn, from NULL to NULL. *bucket: the next one; 0 at first. */
static struct key_entry *next_entry(struct keys *keys, const struct key_entry *entry,
                                    size_t *bucket)
{
    struct key_entry *next = NULL;
    if (entry != NULL) {
        next = entry->next;
    }
    while (next == NULL && *bucket < KEYS_BUCKETS) {
        next = keys->buckets[(*bucket)++];
    }
    return next;
}

size_t keys_remove_missing(struct keys *keys, const struct key_log *log, uint64_t read)
{
    size_t bucket = 0;
    size_t removed = 0;
    struct key_entry *entry = next_entry(keys, NULL, &bucket);
    while (entry != NULL) {
        struct key_entry *next = next_entry(keys, entry, &bucket);
        if (is_missing(entry, log, read)) {
            /* The last one is counted until the next read: while a backup is being restored
             * there is none for a moment, and the gateway must not be open to all. */
            if (!key_is_revoked(entry->key) && atomic_load(&keys->active) == 1) {
                keys->unreadable++;
                atomic_fetch_add(&keys->active, 1);
            }
            keys_remove(keys, ng_str_of(entry->key->id));
            removed++;
        }
        entry = next;
    }
    return removed;
}

void keys_commit(struct keys *keys, struct key_entry *entry)
{
    if (!entry->committed) {
        entry->committed = true;
        entry->committed_read = keys->reads;
        if (!key_is_revoked(entry->key)) {
            atomic_fetch_add(&keys->active, 1);
        }
    }
}

bool keys_replace(struct key_entry *entry, struct key *key)
{
    struct key *old = entry->key;
    struct key *state = key_state(old);
    bool same = (key_differences(old, key) & KEY_RIGHTS) == 0;
    key->rights = same ? old->rights : key->revision;
    key->first = state;
    key_ref(state);
    entry->key = key;
    atomic_store(&state->expires_ms, atomic_load(&key->expires_ms));
    atomic_store(&state->paused, key->paused_ms != 0);
    atomic_store_explicit(&state->present_rights, key->rights, memory_order_release);
    key_unref(old);
    return !same;
}

void keys_end(struct keys *keys, struct key_entry *entry, int64_t time_ms)
{
    if (!key_is_revoked(entry->key)) {
        atomic_store(&key_state(entry->key)->revoked_ms, time_ms);
        atomic_store(&key_state(entry->key)->revoked, true);
        if (entry->committed) {
            atomic_fetch_sub(&keys->active, 1);
        }
    }
}

struct key_entry *keys_oldest_revoked(struct keys *keys)
{
    size_t bucket = 0;
    struct key_entry *oldest = NULL;
    for (struct key_entry *entry = next_entry(keys, NULL, &bucket); entry != NULL;
         entry = next_entry(keys, entry, &bucket)) {
        struct key *key = entry->key;
        if (entry->committed && !entry->leaving && key_is_revoked(key) &&
            (oldest == NULL || atomic_load(&key_state(key)->revoked_ms) <
                                   atomic_load(&key_state(oldest->key)->revoked_ms))) {
            oldest = entry;
        }
    }
    return oldest;
}

/* ---- opening and closing ---- */

int keys_open_table(struct keys *keys)
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
    if (!random_bytes(keys->unknown_hash, sizeof(keys->unknown_hash))) {
        return NG_EINTERNAL;
    }
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
    rwlock_done(&keys->lock);
    if (keys->gateway != NULL && keys->gateway->active_keys == &keys->active) {
        keys->gateway->active_keys = NULL;
    }
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
    rwlock_read(&keys->lock);
    for (size_t i = 0; i < KEYS_BUCKETS; i++) {
        for (const struct key_entry *entry = keys->buckets[i]; entry != NULL;
             entry = entry->next) {
            count += entry->committed && key_live_at(entry->key, now_ms);
        }
    }
    rwlock_release(&keys->lock);
    return count;
}

size_t keys_active(const struct keys *keys)
{
    if (keys == NULL) {
        return 0;
    }
    return atomic_load_explicit(&keys->active, memory_order_acquire);
}

struct key *keys_get(struct keys *keys, struct ng_str id)
{
    struct key *key = NULL;
    if (keys == NULL) {
        return NULL;
    }
    rwlock_read(&keys->lock);
    const struct key_entry *entry = *keys_place(keys, id);
    if (entry != NULL && entry->committed) {
        key = entry->key;
        key_ref(key);
    }
    rwlock_release(&keys->lock);
    return key;
}

int keys_hash(struct keys *keys, struct ng_str text, unsigned char ret[KEY_HASH_BYTES])
{
    struct hasher *hasher = NULL;
    for (size_t i = 0; i < KEYS_HASHERS && hasher == NULL; i++) {
        if (!atomic_flag_test_and_set_explicit(&keys->hashers[i].busy, memory_order_acquire)) {
            hasher = &keys->hashers[i];
        }
    }
    bool good;
    if (hasher != NULL) {
        good = EVP_DigestInit_ex(hasher->context, NULL, NULL) == 1 &&
               EVP_DigestUpdate(hasher->context, text.data, text.len) == 1 &&
               EVP_DigestFinal_ex(hasher->context, ret, NULL) == 1;
        atomic_flag_clear_explicit(&hasher->busy, memory_order_release);
    } else {
        good = EVP_Digest(text.data, text.len, ret, NULL, EVP_sha256(), NULL) == 1;
    }
    return good ? NG_OK : NG_EINTERNAL;
}

const char keys_why_paused[] = "The key that was sent is paused";

struct key *keys_find(struct keys *keys, struct ng_str text, const char **ret_why)
{
    struct ng_str id;
    unsigned char hash[KEY_HASH_BYTES];
    if (keys_active(keys) == 0) {
        *ret_why = "A key was sent, but this gateway has no keys";
        return NULL;
    }
    if (!key_text_parse(text, &id)) {
        *ret_why = "The text that was sent is not a key: a key is ng_, an id, _ and a secret";
        return NULL;
    }
    /* An unknown id takes the same steps, and the same time, as a wrong secret. */
    struct key *key = keys_get(keys, id);
    int rc = keys_hash(keys, text, hash);
    const unsigned char *known = keys->unknown_hash;
    if (key != NULL) {
        known = key->hash;
    }
    bool same = CRYPTO_memcmp(hash, known, KEY_HASH_BYTES) == 0;
    if (rc != NG_OK || !same || key == NULL) {
        *ret_why = "The key that was sent is not known here";
    } else if (key_is_revoked(key)) {
        *ret_why = "The key that was sent has been revoked";
    } else if (key_is_paused(key)) {
        *ret_why = keys_why_paused;
    } else if (!key_live(key)) {
        *ret_why = "The key that was sent has expired";
    } else {
        key_use(key, clock_unix_ms());
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
    rwlock_read(&keys->lock);
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
    rwlock_release(&keys->lock);
    bool good = list != NULL;
    for (size_t i = 0; i < count; i++) {
        good = call_pin(call, unref_pinned, list[i]) == NG_OK && good;
    }
    if (!good) {
        return call_no_memory(call);
    }
    qsort(list, count, sizeof(struct key *), older_first);
    *ret = list;
    *ret_count = count;
    return NG_OK;
}
