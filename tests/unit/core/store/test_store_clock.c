/* SPDX-License-Identifier: MIT */
/* test_store_clock.c - a clock that is wrong for a while removes nothing: history, stored
 * answers. The test moves the clocks. */
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/store/store.h"
#include "harness.h"
#include "test_clock.h"

#define AHEAD_MS (200 * TEST_CLOCK_DAY_MS)
#define REVISIONS 6

static int setup(void **state)
{
    static struct harness harness;
    static const char *const sets[] = {"plugins=notebook", "history.keep=90d", NULL};
    test_clock_reset();
    harness_open(&harness, sets);
    for (int i = 1; i <= REVISIONS; i++) {
        struct answer answer =
            harness_call_as(&harness, NULL, "team", "notebook",
                            i == 1 ? "{\"mode\":\"create\",\"name\":\"n\"}"
                                   : "{\"mode\":\"write\",\"name\":\"n\",\"newStr\":\"more\"}");
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
    }
    *state = &harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    return 0;
}

/* How many of the revisions are kept. */
static size_t kept(struct harness *harness)
{
    size_t count = 0;
    struct ng_key key = {ng_str_of("notebooks"), ng_str_of("team"), ng_str_of("n")};
    for (uint64_t revision = 1; revision <= REVISIONS; revision++) {
        struct call *call = harness_new_call(harness);
        const struct ng_doc *doc = NULL;
        int rc = store_get(harness->gateway->store, call, &key, revision, &doc);
        assert_true(rc == NG_OK || rc == NG_ENOTFOUND);
        count += rc == NG_OK;
        call_unref(call);
    }
    return count;
}

static void maintain(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    store_set_keep(harness->gateway->store, 90 * TEST_CLOCK_DAY_MS); /* due now */
    assert_int_equal(store_maintain(harness->gateway->store, call), NG_OK);
    call_unref(call);
}

static void write_one(struct harness *harness)
{
    struct answer answer = harness_call_as(harness, NULL, "team", "notebook",
                                           "{\"mode\":\"create\",\"name\":\"other\"}");
    answer_free(&answer);
}

static void test_a_clock_that_jumps(void **state)
{
    struct harness *harness = *state;
    assert_int_equal(kept(harness), REVISIONS);
    test_clock_set_ahead(CLOCK_REALTIME, AHEAD_MS);
    write_one(harness); /* it is the newest in the store, at a time that is wrong */
    maintain(harness);
    test_clock_set_ahead(CLOCK_REALTIME, 0);
    assert_int_equal(kept(harness), REVISIONS);
}

static void test_a_clock_that_is_wrong_from_the_start(void **state)
{
    struct harness *harness = *state;
    test_clock_set_ahead(CLOCK_REALTIME, AHEAD_MS);
    harness_reopen(harness);
    write_one(harness);
    maintain(harness);
    test_clock_set_ahead(CLOCK_REALTIME, 0);
    assert_int_equal(kept(harness), REVISIONS);
    harness_reopen(harness);
    maintain(harness);
    assert_int_equal(kept(harness), REVISIONS);
}

static void test_time_that_has_passed(void **state)
{
    struct harness *harness = *state;
    test_clock_set_ahead(CLOCK_REALTIME, AHEAD_MS);
    test_clock_set_ahead(CLOCK_BOOTTIME, AHEAD_MS);
    maintain(harness);
    assert_true(kept(harness) < REVISIONS);
}

/* A store that lay still for months: the clock is believed after a day. */
static void test_a_clock_that_stays(void **state)
{
    struct harness *harness = *state;
    test_clock_set_ahead(CLOCK_REALTIME, AHEAD_MS);
    harness_reopen(harness);
    maintain(harness);
    assert_int_equal(kept(harness), REVISIONS);
    for (int64_t hours = 1; hours <= 24; hours++) {
        test_clock_set_ahead(CLOCK_REALTIME, AHEAD_MS + hours * TEST_CLOCK_HOUR_MS);
        test_clock_set_ahead(CLOCK_BOOTTIME, hours * TEST_CLOCK_HOUR_MS);
        assert_int_equal(kept(harness), REVISIONS);
        maintain(harness);
    }
    assert_true(kept(harness) < REVISIONS);
}

static void test_stored_answers(void **state)
{
    struct harness *harness = *state;
    struct store *store = harness->gateway->store;
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    int64_t now = clock_unix_ms();
    struct ng_answer answer = {
        .size = sizeof(answer),
        .scope = ng_str_of("scope"),
        .body_hash = ng_str_of("hash"),
        .reply = ng_str_of("reply"),
        .time_ms = now,
        .expires_ms = now + TEST_CLOCK_DAY_MS,
    };
    struct ng_answer found;
    assert_int_equal(store_write_answered_wait(store, call, NULL, 0, &answer), NG_OK);
    test_clock_set_ahead(CLOCK_REALTIME, AHEAD_MS);
    maintain(harness);
    test_clock_set_ahead(CLOCK_REALTIME, 0);
    assert_int_equal(store_answer(store, call, answer.scope, &found), NG_OK);
    test_clock_set_ahead(CLOCK_REALTIME, 2 * TEST_CLOCK_DAY_MS);
    test_clock_set_ahead(CLOCK_BOOTTIME, 2 * TEST_CLOCK_DAY_MS);
    maintain(harness);
    test_clock_set_ahead(CLOCK_REALTIME, 0);
    assert_int_equal(store_answer(store, call, answer.scope, &found), NG_ENOTFOUND);
    call_unref(call);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_clock_that_jumps),   TEST(test_a_clock_that_is_wrong_from_the_start),
        TEST(test_time_that_has_passed), TEST(test_a_clock_that_stays),
        TEST(test_stored_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
