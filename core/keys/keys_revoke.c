/* SPDX-License-Identifier: MIT */
/* keys_revoke.c - revokes a key; the last one in force only on request. */
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/dispatch/audit.h"
#include "core/store/store.h"
#include "keys_table.h"

/* Keys to try as the remaining one while others are revoked at the same time. */
#define REMAINING_MAX 64

struct revocation {
    int64_t now_ms;
    struct key_log_entry *logged;
    bool before; /* another call revoked it first */
};

/* The remaining key is a part of the change, so that no other change revokes it meanwhile. */
struct remaining_key {
    const struct revocation *revocation;
    bool gone;
};

static int write_revoked(struct ng_call *pub, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    struct revocation *revocation = user;
    struct buf json;
    struct ng_writer writer;
    (void)pub;
    if (present->revision == 0 || present->deleted || present->body == NULL) {
        return NG_ENOTFOUND;
    }
    revocation->before = json_get(present->body, "revoked") != NULL;
    key_log_set(revocation->logged, present, false);
    if (revocation->before) {
        revocation->logged->revision = 0;
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
    json_int(&writer, revocation->now_ms);
    json_end(&writer);
    int rc = json.rc;
    if (rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}

/* Checks that the remaining key is neither revoked nor paused. Changes nothing; runs after
 * write_revoked(). */
static int check_remaining(struct ng_call *pub, const struct ng_doc *present,
                           struct ng_draft *next, void *user)
{
    struct remaining_key *remaining = user;
    (void)pub;
    (void)next;
    remaining->gone = !remaining->revocation->before &&
                      (present->revision == 0 || present->deleted || present->body == NULL ||
                       json_get(present->body, "revoked") != NULL ||
                       json_get(present->body, "paused") != NULL);
    return remaining->gone ? NG_ECONFLICT : NG_OK;
}

static bool was_tried(const struct ng_key *tried, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (str_is(tried[i].id, id)) {
            return true;
        }
    }
    return false;
}

/* Another key that is in force after `going` is revoked. If `going` has expired, an expired one
 * counts too: it keeps the gateway from being open to all. A reference; NULL: none. */
static struct key *find_remaining(struct keys *keys, const struct key *going,
                                  const struct ng_key *tried, size_t count)
{
    struct key *found = NULL;
    bool live = key_live(going);
    int64_t now_ms = clock_unix_ms();
    rwlock_read(&keys->lock);
    for (size_t i = 0; i < KEYS_BUCKETS && found == NULL; i++) {
        for (const struct key_entry *entry = keys->buckets[i]; entry != NULL && found == NULL;
             entry = entry->next) {
            struct key *key = entry->key;
            bool counts = live ? key_live_at(key, now_ms) : !key_is_revoked(key);
            if (entry->committed && strcmp(key->id, going->id) != 0 && counts &&
                !was_tried(tried, count, key->id)) {
                key_ref(key);
                found = key;
            }
        }
    }
    rwlock_release(&keys->lock);
    return found;
}

/* other: the key that must remain, or NULL. *ret_gone: it was revoked meanwhile. */
static int revoke_beside(struct keys *keys, struct call *call, const struct key *key,
                         const struct key *other, bool *ret_gone)
{
    struct key_log log = {.count = 1};
    struct revocation revocation = {.now_ms = clock_unix_ms(), .logged = &log.items[0]};
    struct remaining_key remaining = {.revocation = &revocation};
    struct result before = call->staged;
    struct ng_change changes[3];
    size_t count = 1;
    memset(changes, 0, sizeof(changes));
    memcpy(log.items[0].id, key->id, sizeof(key->id));
    changes[0].size = sizeof(changes[0]);
    changes[0].key = keys_document(ng_str_of(key->id));
    changes[0].fn = write_revoked;
    changes[0].user = &revocation;
    changes[0].action = KEYS_ACTION_REVOKED;
    if (other != NULL) {
        changes[1].size = sizeof(changes[1]);
        changes[1].key = keys_document(ng_str_of(other->id));
        changes[1].fn = check_remaining;
        changes[1].user = &remaining;
        count = 2;
    }
    changes[count++] = keys_log_change(&log);
    int rc = store_write_wait(keys->gateway->store, call, changes, count);
    *ret_gone = rc == NG_ECONFLICT && remaining.gone;
    if (*ret_gone) {
        call->staged = before;
    }
    if (rc == NG_OK && !revocation.before) {
        keys_audit("key_revoke", key, STR_NONE, call);
        log_write(NG_LOG_INFO, "keys", "key %s of %.*s revoked by %.*s", key->id,
                  (int)key->agent.len, key->agent.data, (int)call->caller.agent.len,
                  call->caller.agent.data);
    }
    return rc;
}

/* Refuses, because no other usable key remains. keys_active() counts `going`, too. */
static int refuse_last(struct keys *keys, struct call *call, const struct key *going,
                       enum keys_left *ret_left)
{
    *ret_left = keys_active(keys) > 1 ? KEYS_LEFT_UNUSABLE : KEYS_LEFT_NONE;
    return call_fail(call, NG_ECONFLICT, "the key %s of %.*s is the last one", going->id,
                     (int)going->agent.len, going->agent.data);
}

static int revoke_one_of_many(struct keys *keys, struct call *call, const struct key *going,
                              enum keys_left *ret_left)
{
    struct ng_key tried[REMAINING_MAX];
    size_t count = 0;
    bool gone = true;
    int rc = NG_OK;
    while (gone && count < REMAINING_MAX) {
        struct key *other = find_remaining(keys, going, tried, count);
        bool ends_nothing = !key_live(going) && keys_active(keys) > 1;
        if (other == NULL && !key_is_revoked(going) && !ends_nothing) {
            return refuse_last(keys, call, going, ret_left);
        }
        gone = false;
        rc = revoke_beside(keys, call, going, other, &gone);
        if (gone) {
            struct ng_str id = arena_copy(&call->arena, ng_str_of(other->id));
            tried[count++] = keys_document(id);
            keys_look_now(keys, call);
        }
        key_unref(other);
    }
    if (!gone) {
        return rc;
    }
    return call_fail(call, NG_EBUSY, "many keys are being revoked at the same time; try again");
}

int keys_revoke(struct keys *keys, struct call *call, struct ng_str id,
                enum keys_left *ret_left, struct key **ret)
{
    bool gone = false;
    keys_look_now(keys, call);
    struct key *key = keys_get(keys, id);
    if (key == NULL) {
        return call_fail(call, NG_ENOTFOUND, "no key has the id \"%.*s\"",
                         (int)utf8_cut(id, KEY_TEXT_MAX).len, id.data);
    }
    int rc = NG_OK;
    if (ret_left != NULL) {
        *ret_left = KEYS_LEFT_SOME;
        rc = revoke_one_of_many(keys, call, key, ret_left);
    } else {
        rc = revoke_beside(keys, call, key, NULL, &gone);
    }
    if (rc != NG_OK && (ret_left == NULL || *ret_left == KEYS_LEFT_SOME)) {
        key_unref(key);
        return rc;
    }
    *ret = key;
    return rc;
}
