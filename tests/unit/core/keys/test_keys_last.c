/* SPDX-License-Identifier: MIT */
/* test_keys_last.c - the last key in force, and when a key was used last: one gateway, several
 * on one database, revoked at once, read from earlier versions' records. */
#include "test_keys_rig.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/keys/keys_table.h"
#include "core/store/store.h"
#include "hub.h"

#define ROUNDS 40
#define DAY_MS INT64_C(86400000)

static const char *const on_disk[] = {"plugins=notebook", NULL};
static const char *const on_hub[] = {"plugins=", "documents=" HUB_MODULE, NULL};

static struct key *add(struct harness *harness, const struct key_spec *spec,
                       char text[KEY_TEXT_MAX])
{
    struct call *call = harness_new_call(harness);
    struct key *key = NULL;
    assert_int_equal(keys_add(harness->gateway->keys, call, spec, text, &key), NG_OK);
    call_unref(call);
    return key;
}

static struct key *add_one(struct harness *harness, const char *agent)
{
    char text[KEY_TEXT_MAX];
    struct key_spec spec = spec_of(agent);
    return add(harness, &spec, text);
}

/* forced: whatever is left. */
static int revoke(struct harness *harness, const char *id, bool forced,
                  enum keys_left *ret_left)
{
    struct call *call = harness_new_call(harness);
    struct key *key = NULL;
    *ret_left = KEYS_LEFT_SOME;
    int rc = keys_revoke(harness->gateway->keys, call, ng_str_of(id), forced ? NULL : ret_left,
                         &key);
    assert_true(rc == NG_OK || rc == NG_EBUSY || *ret_left != KEYS_LEFT_SOME);
    key_unref(key);
    call_unref(call);
    return rc;
}

/* ---- the last key ---- */

static void test_the_last_key(void **state)
{
    struct harness harness;
    enum keys_left left;
    char text[KEY_TEXT_MAX];
    struct key_spec spec = spec_of("late");
    (void)state;
    harness_open(&harness, on_disk);
    struct keys *keys = harness.gateway->keys;
    struct key *ada = add_one(&harness, "ada");
    struct key *bob = add_one(&harness, "bob");
    assert_int_equal(revoke(&harness, ada->id, false, &left), NG_OK);
    assert_int_equal(revoke(&harness, ada->id, false, &left), NG_OK); /* again */
    assert_int_equal(revoke(&harness, bob->id, false, &left), NG_ECONFLICT);
    assert_int_equal(left, KEYS_LEFT_NONE);
    assert_true(key_live(bob));
    assert_int_equal(keys_active(keys), 1);

    /* An expired key keeps the gateway closed and admits no caller. */
    spec.expires_ms = 1;
    struct key *late = add(&harness, &spec, text);
    assert_int_equal(revoke(&harness, bob->id, false, &left), NG_ECONFLICT);
    assert_int_equal(left, KEYS_LEFT_UNUSABLE);
    assert_int_equal(revoke(&harness, late->id, false, &left), NG_OK);
    assert_int_equal(revoke(&harness, bob->id, true, &left), NG_OK);
    assert_int_equal(keys_active(keys), 0);

    /* Of those that have expired the last one opens the gateway. */
    struct key *later = add(&harness, &spec, text);
    struct key *latest = add(&harness, &spec, text);
    assert_int_equal(revoke(&harness, later->id, false, &left), NG_OK);
    assert_int_equal(revoke(&harness, latest->id, false, &left), NG_ECONFLICT);
    assert_int_equal(left, KEYS_LEFT_NONE);
    assert_int_equal(revoke(&harness, latest->id, true, &left), NG_OK);
    struct key *all[] = {ada, bob, late, later, latest};
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        key_unref(all[i]);
    }
    harness_close(&harness);
}

struct revoker {
    struct harness *harness;
    const char *id;
    pthread_barrier_t *start;
    int rc;
    enum keys_left left;
};

static void *revoke_at_once(void *user)
{
    struct revoker *revoker = user;
    (void)pthread_barrier_wait(revoker->start);
    revoker->rc = revoke(revoker->harness, revoker->id, false, &revoker->left);
    return NULL;
}

/* Each thread revokes one of all keys that are in force: one key stays. */
static void race(struct harness *const harness[3], struct key *const keys[3])
{
    pthread_t threads[3];
    struct revoker revokers[3];
    pthread_barrier_t start;
    size_t refused = 0;
    size_t live = 0;
    assert_int_equal(pthread_barrier_init(&start, NULL, 3), 0);
    for (size_t i = 0; i < 3; i++) {
        revokers[i] = (struct revoker){harness[i], keys[i]->id, &start, NG_OK, KEYS_LEFT_SOME};
        assert_int_equal(pthread_create(&threads[i], NULL, revoke_at_once, &revokers[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        refused += revokers[i].rc == NG_OK ? 0 : 1;
    }
    (void)pthread_barrier_destroy(&start);
    for (size_t i = 0; i < 3; i++) {
        struct call *call = harness_new_call(harness[0]);
        assert_int_equal(keys_look(harness[0]->gateway->keys, call), NG_OK);
        call_unref(call);
        struct key *key = keys_get(harness[0]->gateway->keys, ng_str_of(keys[i]->id));
        live += key_live(key) ? 1 : 0;
        assert_true(key_live(key) == (revokers[i].rc != NG_OK));
        key_unref(key);
    }
    assert_int_equal(refused, 1);
    assert_int_equal(live, 1);
}

/* The gateway's own thread that looks may just be reading what is missing. */
static void wait_count(struct harness *harness, size_t count)
{
    int64_t until = clock_monotonic_ns() + 60 * SECOND_NS;
    while (keys_count(harness->gateway->keys) != count) {
        assert_true(clock_monotonic_ns() < until);
        struct call *call = harness_new_call(harness);
        assert_int_equal(keys_look(harness->gateway->keys, call), NG_OK);
        call_unref(call);
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
}

static void race_often(struct harness *const harness[3])
{
    static const char *const agents[] = {"ada", "bob", "eve"};
    for (size_t round = 0; round < ROUNDS; round++) {
        struct key *keys[3];
        enum keys_left left;
        for (size_t i = 0; i < 3; i++) {
            keys[i] = add_one(harness[0], agents[i]);
        }
        for (size_t i = 0; i < 3; i++) {
            wait_count(harness[i], 3);
        }
        race(harness, keys);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(revoke(harness[0], keys[i]->id, true, &left), NG_OK);
            key_unref(keys[i]);
        }
    }
}

static void test_all_revoked_at_once(void **state)
{
    struct harness harness;
    (void)state;
    harness_open(&harness, on_disk);
    struct harness *same[] = {&harness, &harness, &harness};
    race_often(same);
    harness_close(&harness);
}

static void test_all_revoked_at_once_by_several_gateways(void **state)
{
    struct harness harness[3];
    struct harness *each[] = {&harness[0], &harness[1], &harness[2]};
    (void)state;
    hub_reset();
    for (size_t i = 0; i < 3; i++) {
        harness_open(&harness[i], on_hub);
    }
    race_often(each);
    hub_reset();
    for (size_t i = 0; i < 3; i++) {
        harness_close(&harness[i]);
    }
}

/* ---- the last use ---- */

static void use(struct harness *harness, const char *text)
{
    const char *why = NULL;
    struct key *key = keys_find(harness->gateway->keys, ng_str_of(text), &why);
    assert_non_null(key);
    key_unref(key);
}

/* As a list of the keys tells it; 0: never. */
static int64_t used_ms(struct harness *harness, const char *id)
{
    struct call *call = harness_new_call(harness);
    keys_refresh_uses(harness->gateway->keys, call);
    struct key *key = keys_get(harness->gateway->keys, ng_str_of(id));
    assert_non_null(key);
    int64_t found = atomic_load(&key->used_ms);
    key_unref(key);
    call_unref(call);
    return found;
}

static int upkeep(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    int rc = keys_upkeep(harness->gateway->keys, call);
    call_unref(call);
    return rc;
}

static uint64_t use_revision(struct harness *harness, const char *id)
{
    struct call *call = harness_new_call(harness);
    const struct ng_doc *doc = NULL;
    struct ng_key key = keys_use_document(ng_str_of(id));
    int rc = store_get(harness->gateway->store, call, &key, 0, &doc);
    uint64_t revision = rc == NG_OK ? doc->revision : 0;
    call_unref(call);
    return revision;
}

static void test_used(void **state)
{
    struct harness harness;
    char text[KEY_TEXT_MAX];
    char other[KEY_TEXT_MAX];
    struct key_spec spec = spec_of("ada");
    (void)state;
    harness_open(&harness, on_disk);
    struct key *key = add(&harness, &spec, text);
    struct key *idle = add(&harness, &spec, other);
    assert_int_equal(used_ms(&harness, key->id), 0);
    int64_t before = clock_unix_ms();
    use(&harness, text);
    int64_t first = used_ms(&harness, key->id);
    assert_in_range(first, before, clock_unix_ms());
    /* A use is no write; an upkeep is one, and only where there was a use. */
    assert_int_equal(use_revision(&harness, key->id), 0);
    assert_int_equal(upkeep(&harness), NG_OK);
    assert_int_equal(use_revision(&harness, key->id), 1);
    assert_int_equal(upkeep(&harness), NG_OK);
    assert_int_equal(use_revision(&harness, key->id), 1);
    assert_int_equal(use_revision(&harness, idle->id), 0);
    key_use(key, first + 999); /* told to a second */
    assert_int_equal(used_ms(&harness, key->id), first);
    key_use(key, first + 1000);
    char id[KEY_ID_LEN + 1];
    memcpy(id, key->id, sizeof(id));
    key_unref(key);
    key_unref(idle);
    harness_reopen(&harness); /* an orderly stop stores what no upkeep did */
    assert_int_equal(used_ms(&harness, id), first + 1000);
    harness_close(&harness);
}

static void test_more_uses_than_one_change_takes(void **state)
{
    struct harness harness;
    struct key *keys[2 * KEY_USES_AT_ONCE + 3];
    char text[KEY_TEXT_MAX];
    struct key_spec spec = spec_of("ada");
    (void)state;
    harness_open(&harness, on_disk);
    for (size_t i = 0; i < NG_COUNT(keys); i++) {
        keys[i] = add(&harness, &spec, text);
        key_use(keys[i], spec.created_ms - (int64_t)i);
    }
    assert_int_equal(upkeep(&harness), NG_OK);
    for (size_t i = 0; i < NG_COUNT(keys); i++) {
        assert_int_equal(use_revision(&harness, keys[i]->id), 1);
        assert_int_equal(atomic_load(&keys[i]->used_stored_ms), spec.created_ms - (int64_t)i);
        key_unref(keys[i]);
    }
    harness_close(&harness);
}

static void test_a_wrong_clock_does_not_count(void **state)
{
    int64_t now = clock_unix_ms();
    (void)state;
    assert_true(key_use_is_newer(0, now, now));
    assert_true(key_use_is_newer(now - 5, now, now));
    assert_false(key_use_is_newer(now, now, now));
    assert_false(key_use_is_newer(now, now - 5, now)); /* it never goes back */
    assert_false(key_use_is_newer(now - 5, now + DAY_MS, now));
    assert_true(key_use_is_newer(now + DAY_MS, now, now));
    struct harness harness;
    char text[KEY_TEXT_MAX];
    struct key_spec spec = spec_of("ada");
    harness_open(&harness, on_disk);
    struct key *key = add(&harness, &spec, text);
    atomic_store(&key->used_ms, now + 30 * DAY_MS);
    assert_int_equal(upkeep(&harness), NG_OK);
    use(&harness, text);
    assert_in_range(used_ms(&harness, key->id), now, clock_unix_ms());
    assert_int_equal(upkeep(&harness), NG_OK);
    char id[KEY_ID_LEN + 1];
    memcpy(id, key->id, sizeof(id));
    key_unref(key);
    harness_reopen(&harness);
    assert_in_range(used_ms(&harness, id), now, clock_unix_ms());
    harness_close(&harness);
}

static void test_used_at_several_gateways(void **state)
{
    struct harness harness[2];
    char text[KEY_TEXT_MAX];
    struct key_spec spec = spec_of("ada");
    (void)state;
    hub_reset();
    harness_open(&harness[0], on_hub);
    struct key *key = add(&harness[0], &spec, text);
    harness_open(&harness[1], on_hub);
    struct key *there = keys_get(harness[1].gateway->keys, ng_str_of(key->id));
    assert_non_null(there);
    int64_t now = clock_unix_ms();
    key_use(key, now - 9000);
    key_use(there, now - 5000);
    /* The earlier one is written last, and does not win. */
    assert_int_equal(upkeep(&harness[1]), NG_OK);
    assert_int_equal(upkeep(&harness[0]), NG_OK);
    assert_int_equal(use_revision(&harness[0], key->id), 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(used_ms(&harness[i], key->id), now - 5000);
    }
    key_use(key, now - 2000);
    assert_int_equal(used_ms(&harness[0], key->id), now - 2000);
    assert_int_equal(upkeep(&harness[0]), NG_OK);
    assert_int_equal(used_ms(&harness[1], key->id), now - 2000);
    key_unref(there);
    key_unref(key);
    hub_reset();
    harness_close(&harness[1]);
    harness_close(&harness[0]);
}

/* ---- creator and purpose ---- */

static struct key *read_record(const char *members)
{
    struct key *key = NULL;
    struct buf json;
    buf_init(&json, KEY_JSON_MAX);
    (void)buf_printf(&json,
                     "{\"agent\":\"a\",\"role\":\"admin\",\"mode\":\"agent\",\"spaces\":"
                     "[\"s\"],\"tools\":[]%s,\"hash\":\"" HEX "\"}",
                     members);
    struct ng_doc doc = {
        .size = sizeof(doc),
        .key = keys_document(ng_str_of("abcdefgh2345")),
        .revision = 1,
        .json = buf_str(&json),
    };
    assert_int_equal(key_read(&doc, &key), NG_OK);
    buf_done(&json);
    return key;
}

/* As earlier versions wrote them, and as none did: the key works all the same. */
static void test_records_without_note_and_maker(void **state)
{
    static const char *const members[] = {
        "",
        ",\"note\":\"\",\"made_by\":7",
        ",\"note\":\"a\\nb\",\"made_by\":null",
        ",\"note\":{\"a\":1},\"made_by\":\"\\u001b[2J\"",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(members); i++) {
        struct key *key = read_record(members[i]);
        struct ng_writer writer;
        struct buf shown;
        assert_null(key->note.data);
        assert_null(key->made_by.data);
        buf_init(&shown, KEY_JSON_MAX);
        json_writer_init(&writer, &shown);
        json_object(&writer);
        key_print(key, &writer);
        json_end(&writer);
        assert_null(strstr(buf_cstr(&shown), "note"));
        assert_null(strstr(buf_cstr(&shown), "made_by"));
        assert_null(strstr(buf_cstr(&shown), "last_used"));
        buf_done(&shown);
        key_unref(key);
    }
    struct key *key = read_record(",\"note\":\"for CI\",\"made_by\":\"agent ops (abc)\"");
    assert_true(str_is(key->note, "for CI"));
    assert_true(str_is(key->made_by, "agent ops (abc)"));
    key_unref(key);
}

static int write_earlier(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    return store_draft_json(next, ng_str_of(user));
}

/* A key of an earlier version works, is noted as used, and can be revoked. */
static void test_a_key_of_an_earlier_version(void **state)
{
    static char earlier[] = "{\"agent\":\"a\",\"role\":\"reader\",\"mode\":\"ask\",\"spaces\":"
                            "[\"s\"],\"tools\":[],\"rate\":0,\"created\":1,\"expires\":0,"
                            "\"hash\":\"" HEX "\"}";
    struct harness harness;
    enum keys_left left;
    (void)state;
    harness_open(&harness, on_disk);
    struct ng_change change = {
        .size = sizeof(change),
        .key = keys_document(ng_str_of("aaaaaaaaaaaa")),
        .fn = write_earlier,
        .user = earlier,
    };
    struct call *call = harness_new_call(&harness);
    assert_int_equal(store_write_wait(harness.gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
    harness_reopen(&harness);
    struct key *key = keys_get(harness.gateway->keys, ng_str_of("aaaaaaaaaaaa"));
    assert_true(key != NULL && key_live(key));
    assert_int_equal(used_ms(&harness, key->id), 0);
    key_use(key, 5000);
    key_unref(key);
    harness_reopen(&harness);
    assert_int_equal(used_ms(&harness, "aaaaaaaaaaaa"), 5000);
    assert_int_equal(revoke(&harness, "aaaaaaaaaaaa", false, &left), NG_ECONFLICT);
    assert_int_equal(revoke(&harness, "aaaaaaaaaaaa", true, &left), NG_OK);
    harness_close(&harness);
}

/* The documents are away: calls go on, and what was not stored is so later. */
static void test_uses_wait_for_the_documents(void **state)
{
    struct harness harness;
    char text[KEY_TEXT_MAX];
    struct key_spec spec = spec_of("ada");
    const struct hub_control *hub = hub_load();
    (void)state;
    hub_reset();
    harness_open(&harness, on_hub);
    struct key *key = add(&harness, &spec, text);
    hub->away(true);
    use(&harness, text);
    assert_int_not_equal(upkeep(&harness), NG_OK);
    assert_int_not_equal(used_ms(&harness, key->id), 0); /* the known time stays */
    hub->away(false);
    assert_int_equal(upkeep(&harness), NG_OK);
    assert_int_equal(use_revision(&harness, key->id), 1);
    key_unref(key);
    hub_reset();
    harness_close(&harness);
}

static void test_notes(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"for CI", true},         {"f\xc3\xbcr die Bücher", true},
        {"\xe2\x80\xa6", true},   {"", false},
        {"a\nb", false},          {"a\tb", false},
        {"\x1b[31m", false},      {"\x7f", false},
        {"a\xc2\x85", false},     /* NEXT LINE */
        {"a\xe2\x80\xa8", false}, /* LINE SEPARATOR */
        {"\xff", false},
    };
    char many[KEY_NOTE_CHARS + 2];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        assert_true(key_note_valid(ng_str_of(cases[i].text)) == cases[i].good);
    }
    memset(many, 'x', sizeof(many));
    assert_true(key_note_valid(str_make(many, KEY_NOTE_CHARS)));
    assert_false(key_note_valid(str_make(many, KEY_NOTE_CHARS + 1)));
}

static void test_makers(void **state)
{
    struct harness harness;
    (void)state;
    harness_open(&harness, on_disk);
    struct key *ada = add_one(&harness, "ada");
    assert_null(ada->made_by.data);
    struct call *call = harness_new_call(&harness);
    call->user = 4000000000; /* no system has it */
    assert_true(str_is(key_maker(call), "unix user #4000000000"));
    call->user = 0;
    assert_true(str_is(key_maker(call), "unix user root (0)"));
    key_ref(ada);
    call->key = ada;
    struct ng_str maker = key_maker(call);
    assert_memory_equal(maker.data, "agent ", 6);
    assert_true(maker.len >= strlen(ada->id) &&
                memmem(maker.data, maker.len, ada->id, strlen(ada->id)) != NULL);
    call_unref(call);
    key_unref(ada);
    harness_close(&harness);
}

int main(void)
{
    (void)hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_key),
        cmocka_unit_test(test_all_revoked_at_once),
        cmocka_unit_test(test_all_revoked_at_once_by_several_gateways),
        cmocka_unit_test(test_used),
        cmocka_unit_test(test_more_uses_than_one_change_takes),
        cmocka_unit_test(test_a_wrong_clock_does_not_count),
        cmocka_unit_test(test_used_at_several_gateways),
        cmocka_unit_test(test_records_without_note_and_maker),
        cmocka_unit_test(test_a_key_of_an_earlier_version),
        cmocka_unit_test(test_uses_wait_for_the_documents),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_makers),
    };
    log_set_level(NG_LOG_ERROR); /* keys come and go */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
