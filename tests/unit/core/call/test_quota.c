/* SPDX-License-Identifier: MIT */
/* test_quota.c - places that agents share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "core/base/arena.h"
#include "core/call/quota.h"

#define THREADS 4
#define ROUNDS 5000

static int take(struct quota *quota, const char *agent, size_t limit)
{
    return quota_acquire(quota, ng_str_of(agent), limit);
}

static void test_one_agent_has_at_most_half(void **state)
{
    (void)state;
    struct quota *quota = quota_new();
    assert_non_null(quota);
    assert_int_equal(take(quota, "ada", 4), NG_OK);
    assert_int_equal(take(quota, "ada", 4), NG_OK);
    assert_int_equal(take(quota, "ada", 4), NG_EBUSY);
    assert_int_equal(take(quota, "bob", 4), NG_OK);
    assert_int_equal(take(quota, "", 4), NG_OK);
    assert_int_equal(take(quota, "eve", 4), NG_EBUSY);
    quota_release(quota, ng_str_of("ada"));
    assert_int_equal(take(quota, "eve", 4), NG_OK);
    assert_int_equal(take(quota, "max", 4), NG_EBUSY);
    /* A limit that was lowered below what is taken, and raised again. */
    quota_release(quota, ng_str_of("eve"));
    assert_int_equal(take(quota, "eve", 2), NG_EBUSY);
    assert_int_equal(take(quota, "eve", 5), NG_OK);
    quota_free(quota); /* with places taken */
}

static void test_the_most(void **state)
{
    char name[4];
    size_t len = 9;
    (void)state;
    struct quota *quota = quota_new();
    assert_int_equal(quota_most(quota, name, sizeof(name), &len), 0);
    assert_int_equal(len, 0);
    assert_int_equal(take(quota, "ada", 10), NG_OK);
    assert_int_equal(take(quota, "bob", 10), NG_OK);
    assert_int_equal(take(quota, "bob", 10), NG_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(take(quota, "a name that has no room", 10), NG_OK);
    }
    assert_int_equal(quota_most(quota, name, sizeof(name), &len), 2);
    assert_int_equal(len, 3);
    assert_memory_equal(name, "bob", 3);
    quota_free(quota);
}

static void test_odd_and_none(void **state)
{
    (void)state;
    struct quota *quota = quota_new();
    assert_int_equal(take(quota, "ada", 0), NG_EBUSY);
    assert_int_equal(take(quota, "ada", 1), NG_OK);
    quota_release(quota, ng_str_of("ada"));
    assert_int_equal(take(quota, "ada", 3), NG_OK);
    assert_int_equal(take(quota, "ada", 3), NG_OK);
    assert_int_equal(take(quota, "ada", 3), NG_EBUSY);
    quota_release(quota, ng_str_of("nobody")); /* has none: nothing happens */
    quota_free(quota);
    quota_free(NULL);
}

static void test_without_memory(void **state)
{
    (void)state;
    struct quota *quota = quota_new();
    alloc_fail_after(0);
    assert_int_equal(take(quota, "ada", 2), NG_EINTERNAL);
    alloc_fail_after(-1);
    assert_int_equal(take(quota, "ada", 2), NG_OK);
    assert_int_equal(take(quota, "bob", 2), NG_OK);
    quota_free(quota);
}

static void *come_and_go(void *user)
{
    struct quota *quota = user;
    char agent[16];
    for (unsigned i = 0; i < ROUNDS; i++) {
        (void)snprintf(agent, sizeof(agent), "a%u", i % 7);
        if (take(quota, agent, 5) == NG_OK) {
            quota_release(quota, ng_str_of(agent));
        }
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    struct quota *quota = quota_new();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, quota), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(take(quota, "ada", 4), NG_OK);
        assert_int_equal(take(quota, "bob", 4), NG_OK);
    }
    assert_int_equal(take(quota, "eve", 4), NG_EBUSY);
    quota_free(quota);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_agent_has_at_most_half),
        cmocka_unit_test(test_the_most),
        cmocka_unit_test(test_odd_and_none),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
