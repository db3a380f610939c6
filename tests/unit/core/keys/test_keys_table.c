/* SPDX-License-Identifier: MIT */
/* test_keys_table.c - all keys of a gateway: lookup, foreign documents, no memory, many
 * threads. */
#include "test_keys_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/keys/keys_table.h"
#include "core/store/store.h"

#define THREADS 4

static const char *const on_disk[] = {"plugins=notebook", NULL};

static struct key *add(struct harness *harness, const struct key_spec *spec,
                       char text[KEY_TEXT_MAX])
{
    struct key *key = NULL;
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_add(harness->gateway->keys, call, spec, text, &key), NG_OK);
    call_unref(call);
    assert_non_null(key);
    return key;
}

static void expect_found(struct harness *harness, const char *text, const char *id)
{
    const char *why = NULL;
    struct key *key = keys_find(harness->gateway->keys, ng_str_of(text), &why);
    assert_non_null(key);
    assert_string_equal(key->id, id);
    key_unref(key);
}

static void expect_none(struct harness *harness, const char *text, const char *says)
{
    const char *why = NULL;
    assert_null(keys_find(harness->gateway->keys, ng_str_of(text), &why));
    assert_non_null(why);
    if (strstr(why, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", why, says);
    }
}

/* ---- the table ---- */

static void test_table(void **state)
{
    struct harness harness;
    char text[KEY_TEXT_MAX];
    char other[KEY_TEXT_MAX];
    struct key_spec spec = spec_of("ada");
    (void)state;
    harness_open(&harness, on_disk);
    struct keys *keys = harness.gateway->keys;
    assert_int_equal(keys_active(keys), 0);
    assert_int_equal(key_text_make(other), NG_OK);
    expect_none(&harness, other, "has no keys");
    struct key *key = add(&harness, &spec, text);
    assert_int_equal(keys_active(keys), 1);
    assert_int_equal(keys_count(keys), 1);
    expect_found(&harness, text, key->id);
    expect_none(&harness, other, "not known");
    expect_none(&harness, "ng_x", "is not a key");
    text[KEY_TEXT_LEN - 1] = text[KEY_TEXT_LEN - 1] == 'x' ? 'y' : 'x';
    expect_none(&harness, text, "not known");

    spec.expires_ms = 1;
    struct key *late = add(&harness, &spec, other);
    expect_none(&harness, other, "expired");
    assert_int_equal(keys_count(keys), 1);
    assert_int_equal(keys_active(keys), 2); /* it keeps the gateway closed */

    struct call *call = harness_new_call(&harness);
    struct key *gone = NULL;
    assert_int_equal(keys_revoke(keys, call, ng_str_of("nobodyishere"), NULL, &gone),
                     NG_ENOTFOUND);
    call_reset_result(call);
    assert_int_equal(keys_revoke(keys, call, ng_str_of(key->id), NULL, &gone), NG_OK);
    assert_ptr_equal(gone, key);
    key_unref(gone);
    assert_int_equal(keys_revoke(keys, call, ng_str_of(key->id), NULL, &gone),
                     NG_OK); /* again */
    key_unref(gone);
    assert_false(key_live(key));
    assert_int_equal(keys_active(keys), 1);
    struct key **list = NULL;
    size_t count = 0;
    assert_int_equal(keys_list(keys, call, &list, &count), NG_OK);
    assert_int_equal(count, 2);
    call_unref(call);
    key_unref(key);
    key_unref(late);

    harness_reopen(&harness);
    keys = harness.gateway->keys;
    assert_int_equal(keys_active(keys), 1);
    expect_none(&harness, other, "expired");
    call = harness_new_call(&harness);
    assert_int_equal(keys_list(keys, call, &list, &count), NG_OK);
    assert_int_equal(count, 2);
    call_unref(call);
    harness_close(&harness);
    assert_int_equal(keys_active(NULL), 0);
    assert_int_equal(keys_count(NULL), 0);
    keys_close(NULL);
}

static void test_full(void **state)
{
    struct harness harness;
    char text[KEY_TEXT_MAX];
    char first[KEY_ID_LEN + 1] = "";
    struct key_spec spec = spec_of("ada");
    struct key *key = NULL;
    (void)state;
    harness_open(&harness, plain);
    struct keys *keys = harness.gateway->keys;
    for (int i = 0; i < KEYS_MAX; i++) {
        key = add(&harness, &spec, text);
        if (i == 0) {
            memcpy(first, key->id, sizeof(first));
        }
        key_unref(key);
    }
    struct call *call = harness_new_call(&harness);
    assert_int_equal(keys_add(keys, call, &spec, text, &key), NG_ETOOLARGE);
    assert_int_equal(text[0], '\0');
    call_reset_result(call);
    assert_int_equal(keys_revoke(keys, call, ng_str_of(first), NULL, &key), NG_OK);
    key_unref(key);
    call_unref(call);
    /* If that fails the revoked key is still there, as its document is. */
    size_t failed = 0;
    for (long i = 0; i < 60; i++) {
        call = harness_new_call(&harness);
        alloc_fail_after(i);
        int rc = keys_add(keys, call, &spec, text, &key);
        alloc_fail_after(-1);
        call_unref(call);
        if (rc == NG_OK) {
            break;
        }
        failed++;
        struct key *old = keys_get(keys, ng_str_of(first));
        assert_true(old != NULL && atomic_load(&old->revoked));
        assert_int_equal(keys_active(keys), KEYS_MAX - 1);
        key_unref(old);
    }
    assert_true(failed > 5); /* the last one was added, in the place of the revoked one */
    expect_found(&harness, text, key->id);
    key_unref(key);
    assert_null(keys_get(keys, ng_str_of(first)));
    assert_int_equal(keys_active(keys), KEYS_MAX);
    harness_close(&harness);
}

/* ---- foreign documents ---- */

struct foreign {
    const char *json; /* NULL: delete */
};

static int foreign_write(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const struct foreign *foreign = user;
    (void)call;
    (void)present;
    if (foreign->json == NULL) {
        store_draft_delete(next);
        return NG_OK;
    }
    return store_draft_json(next, ng_str_of(foreign->json));
}

static void write_foreign(struct harness *harness, const char *id, const char *json)
{
    struct foreign foreign = {json};
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(KEYS_COLLECTION), ng_str_of(KEYS_SPACE), ng_str_of(id)},
        .fn = foreign_write,
        .user = &foreign,
    };
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_write_wait(harness->gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

/* The reading of it runs on a worker: waits until that has ended. */
static void wait_exist(struct harness *harness, size_t count)
{
    int64_t until = clock_monotonic_ns() + 20 * SECOND_NS;
    while (keys_active(harness->gateway->keys) != count) {
        assert_true(clock_monotonic_ns() < until);
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
}

static void test_follows_the_documents(void **state)
{
    static const char good[] =
        "{\"agent\":\"a\",\"role\":\"reader\",\"mode\":\"ask\",\"spaces\":[\"s\"],\"tools\":[],"
        "\"created\":1,\"hash\":\"" HEX "\"}";
    struct harness harness;
    (void)state;
    harness_open(&harness, plain);
    write_foreign(&harness, "aaaaaaaaaaaa", good);
    wait_exist(&harness, 1);
    struct key *key = keys_get(harness.gateway->keys, ng_str_of("aaaaaaaaaaaa"));
    assert_non_null(key);
    assert_int_equal(key->role, NG_ROLE_READER);
    write_foreign(&harness, "aaaaaaaaaaaa", NULL);
    assert_int_equal(keys_active(harness.gateway->keys), 0); /* before it was answered */
    assert_false(key_live(key));
    key_unref(key);
    /* An unreadable key does not work, and does not open the gateway. */
    write_foreign(&harness, "bbbbbbbbbbbb", "{\"agent\":7}");
    wait_exist(&harness, 1);
    assert_null(keys_get(harness.gateway->keys, ng_str_of("bbbbbbbbbbbb")));
    assert_int_equal(keys_count(harness.gateway->keys), 0);
    write_foreign(&harness, "cccccccccccc", good);
    wait_exist(&harness, 2);
    write_foreign(&harness, "bbbbbbbbbbbb", NULL);
    wait_exist(&harness, 1);
    assert_int_equal(keys_count(harness.gateway->keys), 1);
    harness_close(&harness);
}

/* ---- memory runs out, threads meet ---- */

static void test_out_of_memory(void **state)
{
    struct harness harness;
    struct key_spec spec = spec_of("ada");
    (void)state;
    harness_open(&harness, plain);
    struct keys *keys = harness.gateway->keys;
    bool done = false;
    for (long i = 0; i < 200 && !done; i++) {
        char text[KEY_TEXT_MAX];
        struct key *key = NULL;
        struct call *call = harness_new_call(&harness);
        size_t before = keys_active(keys);
        alloc_fail_after(i);
        int rc = keys_add(keys, call, &spec, text, &key);
        alloc_fail_after(-1);
        assert_int_equal(keys_active(keys), before + (rc == NG_OK ? 1 : 0));
        if (rc == NG_OK) {
            expect_found(&harness, text, key->id);
            done = i > 20; /* no allocation was left to fail */
        }
        key_unref(key);
        call_unref(call);
    }
    assert_true(done);
    harness_close(&harness);
}

struct crowd {
    struct harness *harness;
    char text[KEY_TEXT_MAX];
    atomic_bool stop;
    atomic_uint found;
};

static void *crowd_find(void *user)
{
    struct crowd *crowd = user;
    const char *why = NULL;
    while (!atomic_load(&crowd->stop)) {
        struct key *key =
            keys_find(crowd->harness->gateway->keys, ng_str_of(crowd->text), &why);
        int retry_s = 0;
        if (key != NULL && key_live(key) && key_take(key, &retry_s)) {
            atomic_fetch_add(&crowd->found, 1);
        }
        key_unref(key);
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct harness harness;
    pthread_t threads[THREADS];
    struct key_spec spec = spec_of("ada");
    (void)state;
    harness_open(&harness, plain);
    struct crowd crowd = {.harness = &harness};
    spec.rate = 1e6;
    struct key *kept = add(&harness, &spec, crowd.text);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_find, &crowd), 0);
    }
    for (int i = 0; i < 50; i++) {
        char text[KEY_TEXT_MAX];
        struct key *gone = NULL;
        struct key *key = add(&harness, &spec, text);
        expect_found(&harness, text, key->id);
        struct call *call = harness_new_call(&harness);
        assert_int_equal(
            keys_revoke(harness.gateway->keys, call, ng_str_of(key->id), NULL, &gone), NG_OK);
        expect_none(&harness, text, "revoked");
        call_unref(call);
        key_unref(gone);
        key_unref(key);
    }
    while (atomic_load(&crowd.found) == 0) {
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
    atomic_store(&crowd.stop, true);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    key_unref(kept);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_follows_the_documents),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_threads),
    };
    log_set_level(NG_LOG_ERROR); /* thousands of keys come and go */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
