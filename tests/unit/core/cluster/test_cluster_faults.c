/* SPDX-License-Identifier: MIT */
/* test_cluster_faults.c - gateways whose shared database refuses some of their writes or reads.
 */
#include "harness.h"

#include <stdio.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/cluster/cluster_state.h"
#include "core/keys/keys.h"
#include "hub.h"

#define GATEWAYS 2
/* Far more than anything here takes. */
#define PATIENCE_MS 60000
/* A lease whose end a test waits for. */
#define SHORT_LEASE_MS 2000

#define NG_TEXT(text)                                                                          \
    {                                                                                          \
        (text), sizeof(text) - 1                                                               \
    }

static const struct hub_control *hub;

struct bench {
    struct harness harness[GATEWAYS];
};

static void step(void)
{
    const struct timespec time = {0, 2000000};
    (void)nanosleep(&time, NULL);
}

/* Until the condition holds; a failure if it never does. */
#define WAIT_FOR(condition)                                                                    \
    for (int64_t until_ = clock_monotonic_ns() + (int64_t)PATIENCE_MS * 1000000; !(condition); \
         step()) {                                                                             \
        assert_true(clock_monotonic_ns() < until_);                                            \
    }

static struct cluster *cluster_at(const struct bench *bench, size_t number)
{
    return bench->harness[number].gateway->cluster;
}

/* Each gateway has its lease, and sees the other. */
static void bench_open(struct bench *bench)
{
    static const char *const sets[] = {"plugins=", "documents=" HUB_MODULE, NULL};
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        harness_open(&bench->harness[i], sets);
        cluster_set_lease(cluster_at(bench, i), SHORT_LEASE_MS);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        struct cluster *cluster = cluster_at(bench, i);
        struct cluster_address address;
        WAIT_FOR(cluster_has_lease(cluster) &&
                 cluster_address(cluster, cluster_id(cluster_at(bench, 1 - i)), &address));
    }
}

static void bench_close(struct bench *bench)
{
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        harness_close(&bench->harness[i]);
    }
}

static struct key *add_key(struct harness *harness)
{
    char text[KEY_TEXT_MAX];
    struct key_spec spec = {.agent = NG_TEXT("someone"), .role = NG_ROLE_WRITER};
    struct key *key = NULL;
    spec.mode = NG_MODE_AGENT;
    spec.created_ms = clock_unix_ms();
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_add(harness->gateway->keys, call, &spec, text, &key), NG_OK);
    call_unref(call);
    return key;
}

static struct key *find_key(struct harness *harness, const char *id)
{
    struct key *key = NULL;
    WAIT_FOR((key = keys_get(harness->gateway->keys, ng_str_of(id))) != NULL);
    return key;
}

/* Reading works, heartbeats cannot be written: a revocation is seen. */
static void test_revoked_while_heartbeats_fail(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    struct key *key = add_key(&bench.harness[0]);
    struct key *there = find_key(&bench.harness[1], key->id);
    hub->refuse("gateways", NULL);
    WAIT_FOR(!cluster_has_lease(cluster_at(&bench, 1)));
    assert_true(key_live(there));
    struct call *call = harness_new_call(&bench.harness[0]);
    struct key *revoked = NULL;
    assert_int_equal(
        keys_revoke(bench.harness[0].gateway->keys, call, ng_str_of(key->id), NULL, &revoked),
        NG_OK);
    call_unref(call);
    WAIT_FOR(!key_live(there));
    assert_false(cluster_has_lease(cluster_at(&bench, 1)));
    key_unref(revoked);
    key_unref(there);
    key_unref(key);
    bench_close(&bench);
}

/* A gateway that can write but cannot look gives up its own lease, and calls nobody dead. */
static void test_nobody_is_dead_unseen(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    struct cluster *first = cluster_at(&bench, 0);
    struct ng_str other = cluster_id(cluster_at(&bench, 1));
    uint64_t deaths = cluster_deaths(first);
    hub->refuse(NULL, "gateways");
    WAIT_FOR(!cluster_has_lease(first));
    int64_t until = clock_monotonic_ns() + (int64_t)2 * SHORT_LEASE_MS * 1000000;
    while (clock_monotonic_ns() < until) {
        assert_true(cluster_is_alive(first, other));
        step();
    }
    assert_int_equal(cluster_term(first), 0);
    hub->refuse(NULL, NULL);
    WAIT_FOR(cluster_has_lease(first));
    assert_true(cluster_is_alive(first, other));
    assert_int_equal(cluster_deaths(first), deaths);
    bench_close(&bench);
}

struct looks {
    size_t count;
    int rc;
};

static int count_look(void *user, struct call *call)
{
    struct looks *looks = user;
    looks->count++;
    return looks->rc == NG_OK ? NG_OK : call_fail(call, looks->rc, "a fault was injected");
}

/* After long work, once; a failure of it is not a failure of that work. */
static void test_looks_again(void **state)
{
    struct bench bench;
    struct looks looks = {.rc = NG_EUNAVAILABLE};
    (void)state;
    bench_open(&bench);
    struct cluster *cluster = cluster_at(&bench, 0);
    cluster_stop(cluster);
    cluster_each_look(cluster, count_look, &looks);
    struct call *call = harness_new_call(&bench.harness[0]);
    cluster_look_again(NULL, call);
    atomic_store(&cluster->looked_ns, 0);
    cluster_look_again(cluster, call);
    assert_int_equal(looks.count, 1);
    assert_int_equal(call->staged.message.len, 0);
    looks.rc = NG_OK;
    cluster_look_again(cluster, call); /* the one that failed does not count */
    assert_int_equal(looks.count, 2);
    atomic_store(&cluster->looked_ns, clock_boot_ns() + INT64_C(60000000000));
    cluster_look_again(cluster, call); /* not so soon */
    assert_int_equal(looks.count, 2);
    call_unref(call);
    bench_close(&bench);
}

int main(void)
{
    hub = hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_revoked_while_heartbeats_fail),
        cmocka_unit_test(test_nobody_is_dead_unseen),
        cmocka_unit_test(test_looks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
