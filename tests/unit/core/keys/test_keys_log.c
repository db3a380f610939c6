/* SPDX-License-Identifier: MIT */
/* test_keys_log.c - the log of changes of keys: what counts, what it names, and what a gateway
 * reads because of it. */
#include "test_keys_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "core/keys/keys_table.h"
#include "core/store/store.h"
#include "hub.h"

static const char *const on_hub[] = {"plugins=", "documents=" HUB_MODULE, NULL};

static struct key *add(struct harness *harness, const char *agent)
{
    char text[KEY_TEXT_MAX];
    struct key_spec spec = spec_of(agent);
    struct key *key = NULL;
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_add(harness->gateway->keys, call, &spec, text, &key), NG_OK);
    call_unref(call);
    return key;
}

static int revoke(struct harness *harness, const char *id, bool forced)
{
    struct key *key = NULL;
    enum keys_left left = KEYS_LEFT_SOME;
    struct call *call = harness_new_call(harness);
    int rc =
        keys_revoke(harness->gateway->keys, call, ng_str_of(id), forced ? NULL : &left, &key);
    key_unref(key);
    call_unref(call);
    return rc;
}

static uint64_t read_log(struct harness *harness, struct key_log *log)
{
    uint64_t revision = 0;
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_read_log(harness->gateway->keys, call, &revision, log), NG_OK);
    call_unref(call);
    return revision;
}

static void expect_entry(const struct key_log_entry *entry, const char *id, uint64_t revision)
{
    assert_string_equal(entry->id, id);
    assert_int_equal(entry->revision, revision);
    assert_false(entry->gone);
    assert_false(entry->seen);
}

static void test_each_change_counts_once(void **state)
{
    struct harness harness;
    struct key_log log;
    (void)state;
    harness_open(&harness, plain);
    assert_int_equal(read_log(&harness, &log), 0);
    assert_int_equal(log.count, 0);
    assert_true(key_log_all_seen(&log));
    struct key *ada = add(&harness, "ada");
    struct key *bob = add(&harness, "bob");
    assert_int_equal(read_log(&harness, &log), 2);
    assert_int_equal(log.count, 2);
    expect_entry(&log.items[0], bob->id, 1);
    expect_entry(&log.items[1], ada->id, 1);
    assert_int_equal(revoke(&harness, ada->id, false), NG_OK);
    assert_int_equal(read_log(&harness, &log), 3);
    assert_int_equal(log.count, 2); /* the latest of each key */
    expect_entry(&log.items[0], ada->id, 2);
    expect_entry(&log.items[1], bob->id, 1);
    /* No change: revoked before, and refused as the last one. */
    assert_int_equal(revoke(&harness, ada->id, true), NG_OK);
    assert_int_equal(revoke(&harness, bob->id, false), NG_ECONFLICT);
    assert_int_equal(read_log(&harness, &log), 3);
    key_unref(ada);
    key_unref(bob);
    harness_close(&harness);
}

static void test_it_names_the_latest(void **state)
{
    struct harness harness;
    struct key_log log;
    char first[KEY_ID_LEN + 1] = "";
    char last[KEY_ID_LEN + 1] = "";
    (void)state;
    harness_open(&harness, plain);
    for (size_t i = 0; i < KEY_LOG_MAX + 3; i++) {
        struct key *key = add(&harness, "ada");
        memcpy(last, key->id, sizeof(last));
        if (i == 3) {
            memcpy(first, key->id, sizeof(first));
        }
        key_unref(key);
    }
    assert_int_equal(read_log(&harness, &log), KEY_LOG_MAX + 3);
    assert_int_equal(log.count, KEY_LOG_MAX);
    expect_entry(&log.items[0], last, 1);
    expect_entry(&log.items[KEY_LOG_MAX - 1], first, 1);
    harness_close(&harness);
}

static void saw(struct key_log *log, const char *id, uint64_t revision)
{
    struct ng_doc row = {
        .size = sizeof(row), .key = keys_document(ng_str_of(id)), .revision = revision};
    key_log_saw(log, &row);
}

/* Of a transaction on two shards the log may be visible first. */
static void test_keys_that_do_not_show_a_change_are_read_again(void **state)
{
    struct key_log log = {.count = 2};
    (void)state;
    (void)snprintf(log.items[0].id, sizeof(log.items[0].id), "abcdefgh2345");
    (void)snprintf(log.items[1].id, sizeof(log.items[1].id), "bbcdefgh2345");
    log.items[0].revision = 2;
    log.items[1].revision = 3;
    log.items[1].gone = true;
    log.items[1].seen = true; /* as key_log_read() begins */
    assert_false(key_log_all_seen(&log));
    saw(&log, "abcdefgh2345", 1); /* before the change */
    assert_false(key_log_all_seen(&log));
    saw(&log, "cbcdefgh2345", 9);
    assert_false(key_log_all_seen(&log));
    saw(&log, "abcdefgh2345", 2);
    assert_true(key_log_all_seen(&log));
    saw(&log, "abcdefgh2345", 5);
    assert_true(key_log_all_seen(&log));
    saw(&log, "bbcdefgh2345", 2); /* it is still there */
    assert_false(key_log_all_seen(&log));
}

static void look(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_look(harness->gateway->keys, call), NG_OK);
    call_unref(call);
}

static int write_unlogged(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    return store_draft_json(next, ng_str_of(user));
}

/* As an earlier version of a gateway adds one. */
static void put_unlogged(struct harness *harness, const char *id)
{
    char json[] =
        "{\"agent\":\"eve\",\"role\":\"writer\",\"mode\":\"agent\",\"spaces\":[\"s\"],"
        "\"tools\":[],\"hash\":\"" HEX "\"}";
    struct ng_change change = {.size = sizeof(change),
                               .key = keys_document(ng_str_of(id)),
                               .fn = write_unlogged,
                               .user = json};
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_write_wait(harness->gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

static bool has(struct harness *harness, const char *id)
{
    struct key *key = keys_get(harness->gateway->keys, ng_str_of(id));
    key_unref(key);
    return key != NULL;
}

static void upkeep(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_upkeep(harness->gateway->keys, call), NG_OK);
    call_unref(call);
}

static void test_other_gateways_read_what_counts(void **state)
{
    static const char unlogged[] = "abcdefgh2345";
    struct harness harness[2];
    (void)state;
    hub_reset();
    harness_open(&harness[0], on_hub);
    harness_open(&harness[1], on_hub);
    cluster_stop(harness[1].gateway->cluster); /* it looks when the test says so */
    struct key *ada = add(&harness[0], "ada");
    look(&harness[1]);
    assert_true(has(&harness[1], ada->id));
    assert_int_equal(keys_active(harness[1].gateway->keys), 1);
    put_unlogged(&harness[0], unlogged);
    look(&harness[1]);
    assert_false(has(&harness[1], unlogged)); /* nothing counted: nothing is read */
    upkeep(&harness[1]);
    assert_true(has(&harness[1], unlogged)); /* but each minute */
    struct key *there = keys_get(harness[1].gateway->keys, ng_str_of(ada->id));
    assert_int_equal(revoke(&harness[0], ada->id, true), NG_OK);
    look(&harness[1]);
    assert_false(key_live(there));
    key_unref(there);
    key_unref(ada);
    hub_reset();
    harness_close(&harness[1]);
    harness_close(&harness[0]);
}

/* log: as a full table replaces a revoked key, or NULL: as another program deletes one. */
static void delete_key(struct harness *harness, const char *id, struct key_log *log)
{
    struct ng_change changes[2] = {{.size = sizeof(changes[0]),
                                    .key = keys_document(ng_str_of(id)),
                                    .fn = keys_remove_old}};
    size_t count = 1;
    if (log != NULL) {
        (void)snprintf(log->items[0].id, sizeof(log->items[0].id), "%s", id);
        log->count = 1;
        changes[0].user = &log->items[0];
        changes[count++] = keys_log_change(log);
    }
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_write_wait(harness->gateway->store, call, changes, count), NG_OK);
    call_unref(call);
}

/* Revoked and replaced before another gateway looked: it does not work there either. */
static void test_a_key_whose_document_is_gone_ends(void **state)
{
    struct harness harness[2];
    struct key_log log;
    (void)state;
    hub_reset();
    harness_open(&harness[0], on_hub);
    harness_open(&harness[1], on_hub);
    cluster_stop(harness[1].gateway->cluster); /* it looks when the test says so */
    struct key *ada = add(&harness[0], "ada");
    struct key *bob = add(&harness[0], "bob");
    struct key *eve = add(&harness[0], "eve");
    look(&harness[1]);
    struct key *there = keys_get(harness[1].gateway->keys, ng_str_of(ada->id));
    assert_true(key_live(there));
    assert_int_equal(revoke(&harness[0], ada->id, true), NG_OK);
    delete_key(&harness[0], ada->id, &log);
    look(&harness[1]);
    assert_false(has(&harness[1], ada->id));
    assert_false(key_live(there)); /* its running calls see that */
    assert_int_equal(keys_active(harness[1].gateway->keys), 2);
    /* Nothing in the log tells of it. */
    delete_key(&harness[0], bob->id, NULL);
    upkeep(&harness[1]);
    assert_false(has(&harness[1], bob->id));
    assert_true(has(&harness[1], eve->id));
    assert_int_equal(keys_active(harness[1].gateway->keys), 1);
    /* The last one: two reads must agree before all callers are let in. */
    delete_key(&harness[0], eve->id, NULL);
    upkeep(&harness[1]);
    assert_false(has(&harness[1], eve->id));
    assert_int_equal(keys_active(harness[1].gateway->keys), 1);
    upkeep(&harness[1]);
    assert_int_equal(keys_active(harness[1].gateway->keys), 0);
    key_unref(there);
    key_unref(eve);
    key_unref(bob);
    key_unref(ada);
    hub_reset();
    harness_close(&harness[1]);
    harness_close(&harness[0]);
}

/* Of a transaction on two shards the log may be visible before the key that it made. */
static void test_a_key_that_the_log_names_is_waited_for(void **state)
{
    struct harness harness;
    struct key_log log = {.count = 1};
    (void)state;
    harness_open(&harness, plain);
    struct keys *keys = harness.gateway->keys;
    struct key *ada = add(&harness, "ada");
    memcpy(log.items[0].id, ada->id, sizeof(ada->id));
    log.items[0].revision = 1;
    rwlock_write(&keys->lock);
    uint64_t read = keys->reads; /* began before the key was there */
    size_t before = keys_remove_missing(keys, &log, read);
    size_t waits = keys_remove_missing(keys, &log, read + KEYS_UNSEEN_MAX - 1);
    rwlock_release(&keys->lock);
    assert_int_equal(before, 0);
    assert_int_equal(waits, 0);
    assert_true(has(&harness, ada->id));
    rwlock_write(&keys->lock);
    size_t removed = keys_remove_missing(keys, &log, read + KEYS_UNSEEN_MAX);
    rwlock_release(&keys->lock);
    assert_int_equal(removed, 1);
    assert_false(has(&harness, ada->id));
    key_unref(ada);
    harness_close(&harness);
}

struct reader {
    struct harness *harness;
    atomic_bool over;
};

static void *read_on(void *user)
{
    struct reader *reader = user;
    while (!atomic_load(&reader->over)) {
        upkeep(reader->harness);
    }
    return NULL;
}

/* One that is added while all are being read stays. */
static void test_new_keys_outlast_reads(void **state)
{
    struct harness harness;
    pthread_t thread;
    (void)state;
    hub_reset();
    harness_open(&harness, on_hub);
    struct reader reader = {.harness = &harness};
    assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
    for (size_t i = 0; i < 100; i++) {
        struct key *key = add(&harness, "ada");
        look(&harness);
        assert_true(has(&harness, key->id));
        key_unref(key);
    }
    atomic_store(&reader.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(keys_active(harness.gateway->keys), 100);
    hub_reset();
    harness_close(&harness);
}

int main(void)
{
    (void)hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_change_counts_once),
        cmocka_unit_test(test_it_names_the_latest),
        cmocka_unit_test(test_keys_that_do_not_show_a_change_are_read_again),
        cmocka_unit_test(test_other_gateways_read_what_counts),
        cmocka_unit_test(test_a_key_whose_document_is_gone_ends),
        cmocka_unit_test(test_a_key_that_the_log_names_is_waited_for),
        cmocka_unit_test(test_new_keys_outlast_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
