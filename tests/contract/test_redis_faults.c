/* SPDX-License-Identifier: MIT */
/* test_redis_faults.c - a Redis that answers with errors, breaks off, talks nonsense or says
 * nothing; played by the test itself. */
#include "test_redis_faults_rig.h"

static void test_errors_by_name(void **state)
{
    static const struct {
        const char *reply;
        int rc;
        const char *part;
    } errors[] = {
        {"-READONLY You can't write against a read only replica.\r\n", NG_EUNAVAILABLE,
         "primary"},
        {"-LOADING Redis is loading the dataset in memory\r\n", NG_EUNAVAILABLE, "LOADING"},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", NG_EFULL, "maxmemory"},
        {"-NOAUTH Authentication required.\r\n", NG_EUNAVAILABLE, "password"},
        {"-NOPERM this user has no permissions\r\n", NG_EUNAVAILABLE, "right"},
        {"-WRONGTYPE Operation against a key\r\n", NG_EUNAVAILABLE, "another program"},
        {"-MISCONF Redis is configured to save RDB snapshots\r\n", NG_EUNAVAILABLE, "disk"},
        {"-MOVED 1 127.0.0.1:1\r\n", NG_EUNAVAILABLE, "Cluster"},
        {"-ERR something new\r\n", NG_EUNAVAILABLE, "something new"},
    };
    struct fault_test *test = *state;
    open_gateway(test, "redis.timeout=60s");
    for (size_t i = 0; i < NG_COUNT(errors); i++) {
        atomic_store(&test->fake.text, errors[i].reply);
        expect_deliver(test, errors[i].rc, errors[i].part);
    }
    atomic_store(&test->fake.text, ":1\r\n");
    expect_deliver(test, NG_OK, NULL);
}

/* A connection that was idle and is dead is replaced without a word. */
static void test_dead_idle_connection(void **state)
{
    struct fault_test *test = *state;
    atomic_store(&test->fake.text, ":1\r\n");
    open_gateway(test, "redis.timeout=60s");
    expect_deliver(test, NG_OK, NULL);
    int before = atomic_load(&test->fake.accepted);
    /* It takes the commands and breaks off: once more on a new connection, which does too. */
    atomic_store(&test->fake.mode, FAKE_CLOSE);
    expect_deliver(test, NG_EUNAVAILABLE, "Redis at 127.0.0.1:");
    assert_true(atomic_load(&test->fake.accepted) > before);
    atomic_store(&test->fake.mode, FAKE_TEXT);
    deliver_at_last(test);
}

static void test_nonsense(void **state)
{
    struct fault_test *test = *state;
    open_gateway(test, "redis.timeout=60s");
    atomic_store(&test->fake.text, "HTTP/1.1 400 Bad Request\r\n\r\n");
    expect_deliver(test, NG_EUNAVAILABLE, "protocol");
    atomic_store(&test->fake.text, "*2\r\n+a\r\n*-1\r\n");
    deliver_at_last(test); /* it is not read */
    expect_degraded(test, false);
    struct call *call = harness_new_call(&test->harness);
    struct ng_str json = {NULL, 0};
    assert_int_equal(test->journal->dump(test->db, &call->pub, ng_str_of("shared"), &json),
                     NG_EUNAVAILABLE);
    expect_message(call, "an unexpected type");
    call_unref(call);
}

static void test_silent(void **state)
{
    struct fault_test *test = *state;
    open_gateway(test, "redis.timeout=300ms");
    atomic_store(&test->fake.mode, FAKE_SILENT);
    expect_deliver(test, NG_EUNAVAILABLE, "redis.timeout");
    atomic_store(&test->fake.mode, FAKE_SILENT_AT_ALL);
    expect_deliver(test, NG_EUNAVAILABLE, NULL);
    atomic_store(&test->fake.mode, FAKE_TEXT);
    atomic_store(&test->fake.text, ":1\r\n");
    deliver_at_last(test);
}

/* The gateway starts without its Redis, and takes it when it is there. */
static void test_away_at_start(void **state)
{
    struct fault_test *test = *state;
    atomic_store(&test->fake.mode, FAKE_GONE);
    open_gateway(test, "redis.timeout=60s");
    expect_deliver(test, NG_EUNAVAILABLE, NULL);
    expect_degraded(test, true);
    atomic_store(&test->fake.text, ":1\r\n");
    atomic_store(&test->fake.mode, FAKE_TEXT);
    deliver_at_last(test);
    expect_degraded(test, false);
    atomic_store(&test->fake.mode, FAKE_GONE);
    expect_degraded(test, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_errors_by_name), TEST(test_dead_idle_connection), TEST(test_nonsense),
        TEST(test_silent),         TEST(test_away_at_start),
    };
    return cmocka_run_group_tests_name("redis faults", tests, NULL, NULL);
}
