/* SPDX-License-Identifier: MIT */
/* keys_use.c - the time of last use of each key: in memory, stored each minute and at a stop.
 */
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/store/store.h"
#include "keys_table.h"

/* A use is noted only if the known one is older than this: the time is shown in seconds, and
 * the cache line that the threads share must not change with each request. */
#define USE_STEP_MS 1000
#define USE_JSON_MAX 128
#define USE_DEPTH 2
/* A stored use that is further ahead of the clock counts as wrong. Times of last use are shown,
 * and decide nothing. */
#define USE_AHEAD_MS 120000
/* Time limit for keys_store_last(). */
#define USE_LAST_MS 5000

static const struct ng_collection uses_collection = {
    .name = KEY_USES_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

struct ng_key keys_use_document(struct ng_str id)
{
    struct ng_key key = {ng_str_of(KEY_USES_COLLECTION), ng_str_of(KEYS_SPACE), id};
    return key;
}

int keys_declare_uses(struct keys *keys, struct call *call)
{
    atomic_store(&keys->uses_not_loaded, true);
    return store_declare(keys->gateway->store, call, &uses_collection);
}

bool key_use_is_newer(int64_t known_ms, int64_t other_ms, int64_t now_ms)
{
    int64_t most = now_ms + USE_AHEAD_MS;
    return other_ms <= most && (other_ms > known_ms || known_ms > most);
}

/* ---- in memory ---- */

void key_use(struct key *key, int64_t now_ms)
{
    key = key_state(key);
    int64_t known = atomic_load_explicit(&key->used_ms, memory_order_relaxed);
    while ((now_ms - known >= USE_STEP_MS || known > now_ms) &&
           key_use_is_newer(known, now_ms, now_ms) &&
           !atomic_compare_exchange_weak(&key->used_ms, &known, now_ms)) {
    }
}

/* Takes over the time that a document contains. */
static void use_learn(struct key *key, int64_t stored_ms, int64_t now_ms)
{
    key = key_state(key);
    int64_t known = atomic_load(&key->used_ms);
    while (key_use_is_newer(known, stored_ms, now_ms) &&
           !atomic_compare_exchange_weak(&key->used_ms, &known, stored_ms)) {
    }
    atomic_store(&key->used_stored_ms, stored_ms);
}

/* ---- reading ---- */

/* The time of last use in a document; 0: none. */
static int64_t use_of(const struct ng_value *body)
{
    int64_t used_ms = 0;
    (void)json_integer(json_get(body, "used"), &used_ms);
    return i64_max(used_ms, 0);
}

static int use_row(void *user, const struct ng_doc *row)
{
    struct keys *keys = user;
    struct arena arena;
    const struct ng_value *body = NULL;
    struct key *key = keys_get(keys, row->key.id);
    arena_init(&arena, 0);
    if (key != NULL && json_parse(&arena, row->json, USE_DEPTH, &body, NULL) == NG_OK) {
        use_learn(key, use_of(body), clock_unix_ms());
    }
    arena_done(&arena);
    key_unref(key);
    return 0;
}

void keys_refresh_uses(struct keys *keys, struct call *call)
{
    if (!store_is_shared(keys->gateway->store) && !atomic_load(&keys->uses_not_loaded)) {
        return; /* this gateway noted all of them */
    }
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(KEY_USES_COLLECTION),
        .space = ng_str_of(KEYS_SPACE),
        .limit = 2 * KEYS_MAX,
    };
    struct result before = call->staged;
    int rc = store_query(keys->gateway->store, call, &query, use_row, keys, NULL);
    if (rc == NG_OK) {
        atomic_store(&keys->uses_not_loaded, false);
        return;
    }
    log_write(NG_LOG_WARNING, "keys", "the times of the keys' last use could not be read: %.*s",
              (int)call->staged.message.len,
              call->staged.message.data == NULL ? "" : call->staged.message.data);
    call->staged = before;
}

/* ---- storing ---- */

struct key_use {
    struct key *key; /* pinned to the call */
    int64_t used_ms, now_ms;
};

static int write_use(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    const struct key_use *use = user;
    struct buf json;
    (void)pub;
    bool there = present->revision != 0 && !present->deleted && present->body != NULL;
    /* Another gateway may have stored a later use. */
    if (there && !key_use_is_newer(use_of(present->body), use->used_ms, use->now_ms)) {
        return NG_OK;
    }
    buf_init(&json, USE_JSON_MAX);
    (void)buf_printf(&json, "{\"used\":%lld}", (long long)use->used_ms);
    int rc = json.rc;
    if (rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}

static bool use_is_due(const struct key_entry *entry)
{
    const struct key *state = key_state(entry->key);
    int64_t used_ms = atomic_load(&state->used_ms);
    return entry->committed && used_ms != 0 && used_ms != atomic_load(&state->used_stored_ms);
}

/* Collects at most `most` keys with a last use that is not stored, from bucket *at on. *at: the
 * bucket to continue with. */
static size_t collect_due(struct keys *keys, struct key_use *uses, size_t most, size_t *at)
{
    size_t count = 0;
    int64_t now_ms = clock_unix_ms();
    rwlock_read(&keys->lock);
    for (; *at < KEYS_BUCKETS; (*at)++) {
        const struct key_entry *entry = keys->buckets[*at];
        for (; entry != NULL && count < most; entry = entry->next) {
            if (use_is_due(entry)) {
                struct key *state = key_state(entry->key);
                key_ref(state);
                uses[count++] = (struct key_use){state, atomic_load(&state->used_ms), now_ms};
            }
        }
        if (entry != NULL) {
            break; /* the next round continues with this bucket */
        }
    }
    rwlock_release(&keys->lock);
    return count;
}

static int store_some(struct keys *keys, struct call *call, struct key_use *uses, size_t count)
{
    struct ng_change changes[KEY_USES_AT_ONCE];
    memset(changes, 0, sizeof(changes));
    for (size_t i = 0; i < count; i++) {
        changes[i].size = sizeof(changes[i]);
        changes[i].key = keys_use_document(ng_str_of(uses[i].key->id));
        changes[i].fn = write_use;
        changes[i].user = &uses[i];
    }
    int rc = store_write_wait(keys->gateway->store, call, changes, count);
    for (size_t i = 0; i < count; i++) {
        if (rc == NG_OK) {
            atomic_store(&uses[i].key->used_stored_ms, uses[i].used_ms);
        }
        key_unref(uses[i].key);
    }
    return rc;
}

static int store_due(struct keys *keys, struct call *call)
{
    struct key_use uses[KEY_USES_AT_ONCE];
    /* A change of one document is the cheapest where several gateways share a database. */
    size_t most = store_is_shared(keys->gateway->store) ? 1 : KEY_USES_AT_ONCE;
    size_t at = 0;
    int rc = NG_OK;
    while (rc == NG_OK && at < KEYS_BUCKETS) {
        if (call->deadline_ns != 0 && clock_monotonic_ns() >= call->deadline_ns) {
            return call_fail(call, NG_ETIMEOUT, "it took too long");
        }
        size_t count = collect_due(keys, uses, most, &at);
        if (count > 0) {
            rc = store_some(keys, call, uses, count);
        }
    }
    return rc;
}

int keys_upkeep(struct keys *keys, struct call *call)
{
    if (keys != NULL && store_is_shared(keys->gateway->store)) {
        atomic_store(&keys->stale, true); /* gateways of earlier versions count no changes */
    }
    int rc = keys_read_again(keys, call);
    if (keys == NULL || keys_not_loaded(keys)) {
        return rc;
    }
    int uses_rc = store_due(keys, call);
    if (rc == NG_OK) {
        rc = uses_rc;
    }
    return rc;
}

void keys_store_last(struct keys *keys)
{
    if (keys == NULL || keys_not_loaded(keys)) {
        return;
    }
    struct call *call = call_new(keys->gateway);
    if (call == NULL) {
        return;
    }
    call->may_block = true;
    call->deadline_ns = clock_monotonic_ns() + (int64_t)USE_LAST_MS * 1000000;
    if (store_due(keys, call) != NG_OK) {
        log_write(NG_LOG_WARNING, "keys",
                  "the times of the keys' last use were not stored: %.*s",
                  (int)call->staged.message.len,
                  call->staged.message.data == NULL ? "" : call->staged.message.data);
    }
    call_unref(call);
}
