/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_checkpoint_keep.c - journal.keep: old memories go from the journal of
 * every space, by a clock that cannot jump, and a checkpoint brings them back. */
#include "test_agent_notebook_checkpoint_rig.h"

#include "core/call/gateway.h"
#include "core/journal/journal.h"
#include "test_clock.h"

static void keep(struct bench *bench, int64_t keep_ms)
{
    struct journal_front *journal = bench->harness.gateway->journal;
    struct call *call = harness_new_call(&bench->harness);
    call->may_block = true;
    journal_set_keep(journal, keep_ms); /* due now */
    assert_int_equal(journal_keep_run(journal, call), NG_OK);
    call_unref(call);
}

static int64_t known(struct bench *bench, const char *space)
{
    const struct ng_value *found = json_get(
        ask_as(bench, "ann", space, "memory_recall", "{\"query\":\"\",\"limit\":1000}"),
        "results");
    return (int64_t)found->count;
}

static void log_in(struct bench *bench, const char *space)
{
    (void)ask_as(bench, "ann", space, "memory_log", "{\"content\":\"something\"}");
    assert_true(known(bench, space) > 0); /* it is delivered */
}

static void test_keep(void **state)
{
    struct bench *bench = *state;
    log_in(bench, "shared");
    log_in(bench, "ann");
    (void)ask(bench, "memory_summary", "{\"text\":\"stays\"}");
    const char *first = snapshot(bench, "first");
    keep(bench, 90 * TEST_CLOCK_DAY_MS);
    assert_int_equal(known(bench, "shared"), 1);
    /* A clock that is wrong removes nothing; time that went by does. */
    test_clock_set_ahead(CLOCK_REALTIME, 200 * TEST_CLOCK_DAY_MS);
    keep(bench, 90 * TEST_CLOCK_DAY_MS);
    assert_int_equal(known(bench, "shared"), 1);
    test_clock_reset();
    test_clock_pass(92 * TEST_CLOCK_DAY_MS);
    log_in(bench, "shared");
    keep(bench, 0);
    assert_int_equal(known(bench, "shared"), 2);
    keep(bench, 90 * TEST_CLOCK_DAY_MS);
    assert_int_equal(known(bench, "shared"), 1);
    assert_int_equal(known(bench, "ann"), 0);
    expect_member(ask(bench, "memory_summary", "{}"), "summary", "stays");
    (void)ask(bench, "checkpoint_restore", form(bench, "{\"checkpoint_id\":\"%s\"}", first));
    assert_int_equal(known(bench, "shared"), 1);
    test_clock_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keep, setup_sqlite, teardown),
        cmocka_unit_test_setup_teardown(test_keep, setup_memory, teardown),
        cmocka_unit_test_setup_teardown(test_keep, setup_redis, teardown),
    };
    bool redis = getenv("NOTEGATE_TEST_REDIS_URI") != NULL;
    if (!redis) {
        (void)fprintf(stderr, "NOTEGATE_TEST_REDIS_URI is not set: not tried in Redis\n");
    }
    return _cmocka_run_group_tests("keep", tests, redis ? 3 : 2, NULL, NULL);
}
