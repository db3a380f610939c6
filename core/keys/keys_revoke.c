/* SPDX-License-Identifier: MIT */
/* keys_revoke.c - ending a key; the last one that is in force only where that is wanted. */
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/dispatch/audit.h"
#include "core/store/store.h"
#include "keys_table.h"

/* Keys that are tried as the one that stays, where others are revoked at the same time. */
#define STAYING_MAX 64

struct revoking {
    int64_t now_ms;
    bool before; /* another call revoked it first */
};

/* The key that stays is a part of the change: it is revoked meanwhile in no other one. */
struct staying {
    const struct revoking *revoking;
    bool gone;
};

static int write_revoked(struct ng_call *pub, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    struct revoking *revoking = user;
    struct buf json;
    struct ng_writer writer;
    (void)pub;
    if (present->revision == 0 || present->deleted || present->body == NULL) {
        return NG_ENOTFOUND;
    }
    revoking->before = json_get(present->body, "revoked") != NULL;
    if (revoking->before) {
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
    json_int(&writer, revoking->now_ms);
    json_end(&writer);
    int rc = json.rc;
    if (json.rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}

/* Changes nothing; runs after write_revoked(). */
static int stays(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                 void *user)
{
    struct staying *staying = user;
    (void)pub;
    (void)next;
    staying->gone = !staying->revoking->before &&
                    (present->revision == 0 || present->deleted || present->body == NULL ||
                     json_get(present->body, "revoked") != NULL);
    if (staying->gone) {
        return NG_ECONFLICT;
    }
    return NG_OK;
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

/* A key that is in force beside `going`; beside one that has expired also one that has: the
 * gateway then stays closed. A reference; NULL: none. */
static struct key *find_staying(struct keys *keys, const struct key *going,
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
            bool good;
            if (live) {
                good = key_live_at(key, now_ms);
            } else {
                good = !atomic_load(&key->revoked);
            }
            if (entry->committed && key != going && good && !was_tried(tried, count, key->id)) {
                key_ref(key);
                found = key;
            }
        }
    }
    rwlock_release(&keys->lock);
    return found;
}

/* other: the key that is to stay, or NULL. *ret_gone: it is being revoked, too. */
static int revoke_beside(struct keys *keys, struct call *call, const struct key *key,
                         const struct key *other, bool *ret_gone)
{
    struct revoking revoking = {.now_ms = clock_unix_ms()};
    struct staying staying = {.revoking = &revoking};
    struct result before = call->staged;
    struct ng_change changes[2];
    memset(changes, 0, sizeof(changes));
    changes[0].size = sizeof(changes[0]);
    changes[0].key = keys_document(ng_str_of(key->id));
    changes[0].fn = write_revoked;
    changes[0].user = &revoking;
    changes[0].action = KEYS_ACTION_REVOKED;
    if (other != NULL) {
        changes[1].size = sizeof(changes[1]);
        changes[1].key = keys_document(ng_str_of(other->id));
        changes[1].fn = stays;
        changes[1].user = &staying;
    }
    int rc = store_write_wait(keys->gateway->store, call, changes, other != NULL ? 2 : 1);
    *ret_gone = rc == NG_ECONFLICT && staying.gone;
    if (*ret_gone) {
        call->staged = before;
    }
    if (rc == NG_OK && !revoking.before) {
        keys_audit("key_revoke", key, call);
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
    if (keys_active(keys) > 1) {
        *ret_left = KEYS_LEFT_UNUSABLE;
    } else {
        *ret_left = KEYS_LEFT_NONE;
    }
    return call_fail(call, NG_ECONFLICT, "the key %s of %.*s is the last one", going->id,
                     (int)going->agent.len, going->agent.data);
}

static int revoke_one_of_many(struct keys *keys, struct call *call, const struct key *going,
                              enum keys_left *ret_left)
{
    struct ng_key tried[STAYING_MAX];
    size_t count = 0;
    bool gone = true;
    int rc = NG_OK;
    while (gone && count < STAYING_MAX) {
        struct key *other = find_staying(keys, going, tried, count);
        bool ends_nothing = !key_live(going) && keys_active(keys) > 1;
        if (other == NULL && !atomic_load(&going->revoked) && !ends_nothing) {
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
