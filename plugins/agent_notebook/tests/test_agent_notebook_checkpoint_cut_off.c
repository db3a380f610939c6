/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_checkpoint_cut_off.c - interrupted restores are completed by the next
 * gateway or call that finds them. */
#include "test_agent_notebook_checkpoint_rig.h"

#include "core/base/clock.h"
#include "core/call/gateway.h"
#include "core/journal/journal.h"
#include "core/module/registry.h"
#include "core/store/store.h"

/* Writes the record that a gateway leaves which dies in the middle. */
struct record {
    const char *json;
};

static int write_record(struct ng_call *call, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    const struct record *record = user;
    (void)call;
    (void)present;
    return store_draft_json(next, ng_str_of(record->json));
}

static void leave_record(struct bench *bench, const char *json)
{
    struct call *call = harness_new_call(&bench->harness);
    struct record record = {json};
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("agent_restores"), ng_str_of("shared"), ng_str_of("shared")},
        .fn = write_record,
        .user = &record,
    };
    assert_int_equal(store_write_wait(bench->harness.gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

static int count_row(void *user, const struct ng_doc *row)
{
    size_t *count = user;
    (void)row;
    ++*count;
    return 0;
}

/* Reads from the disk, as recovery does. A read by key may be a moment behind that, until
 * the store has heard of the commit. */
static bool record_is_there(struct bench *bench)
{
    struct call *call = harness_new_call(&bench->harness);
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("agent_restores"),
                             .space = ng_str_of("shared"),
                             .limit = 10};
    size_t count = 0;
    assert_int_equal(
        store_query(bench->harness.gateway->store, call, &query, count_row, &count, NULL),
        NG_OK);
    call_unref(call);
    return count > 0;
}

/* As /readyz asks. */
static int health(struct bench *bench)
{
    struct plugin *const *plugins = NULL;
    struct call *call = harness_new_call(&bench->harness);
    assert_int_equal(registry_plugins(bench->harness.gateway->registry, &plugins), 1);
    int rc = plugins[0]->desc.health(plugins[0]->self, &call->pub);
    call_unref(call);
    return rc;
}

static void wait_ready(struct bench *bench)
{
    int64_t until = clock_monotonic_ns() + INT64_C(60) * 1000000000;
    while (health(bench) != NG_OK) {
        assert_true(clock_monotonic_ns() < until);
        (void)usleep(1000);
    }
}

static const char *record_json(struct bench *bench, const char *checkpoint,
                               const char *previous, int phase, long long lease)
{
    return form(bench,
                "{\"space\":\"shared\",\"checkpoint\":\"%s\",\"previous\":\"%s\",\"owner\":"
                "\"elsewhere:/data\",\"token\":\"00000000-0000-4000-8000-000000000000\","
                "\"phase\":%d,\"notebooks\":true,\"lease\":%lld}",
                checkpoint, previous, phase, lease);
}

/* By the phase of the interruption: the state afterwards. */
static void cut_off(struct bench *bench, int phase)
{
    const char *page = page_new(bench, "one");
    remember(bench, "before");
    const char *first = snapshot(bench, "first");
    page_set(bench, page, "two");
    remember(bench, "after");
    const char *previous = snapshot(bench, "present");
    remember(bench, "since");
    leave_record(bench, record_json(bench, first, phase > 1 ? previous : "", phase, 1));
    harness_reopen(&bench->harness);
    wait_ready(bench);
    assert_false(record_is_there(bench));
    if (phase == 1) { /* it never began */
        page_is(bench, page, "two", 2);
        assert_int_equal(memories(bench), 3);
        return;
    }
    page_is(bench, page, "one", 3);
    /* Writes after the present was read stay; in the last phase the journal is back. */
    assert_int_equal(memories(bench), phase == 2 ? 2 : 3);
    /* A second restart changes nothing more. */
    harness_reopen(&bench->harness);
    wait_ready(bench);
    page_is(bench, page, "one", 3);
}

static void test_cut_off_begun(void **state)
{
    cut_off(*state, 1);
}

static void test_cut_off_journal(void **state)
{
    cut_off(*state, 2);
}

static void test_cut_off_entries(void **state)
{
    cut_off(*state, 3);
}

/* The present was to be kept as it lies. */
static void test_cut_off_aside(void **state)
{
    struct bench *bench = *state;
    const char *previous = "11111111-0000-4000-8000-000000000000";
    void *handle = NULL;
    const struct ng_journal *journal = journal_vtable(bench->harness.gateway->journal, &handle);
    remember(bench, "before");
    const char *first = snapshot(bench, "first");
    remember(bench, "after");
    struct call *call = harness_new_call(&bench->harness);
    assert_int_equal(
        journal->checkpoint_put(
            handle, &call->pub, ng_str_of("shared"), ng_str_of(previous),
            ng_str_of(form(bench,
                           "{\"format\":\"notegate-checkpoint-1\",\"entries\":[],\"journal\":"
                           "{\"format\":\"notegate-journal-kept-1\",\"id\":\"%s\"}}",
                           previous))),
        NG_OK);
    call_unref(call);
    leave_record(bench, record_json(bench, first, previous, 2, 1));
    harness_reopen(&bench->harness);
    wait_ready(bench);
    assert_int_equal(memories(bench), 1);
    /* Interrupted after that step: it is not repeated. */
    remember(bench, "since");
    leave_record(bench, record_json(bench, first, previous, 2, 1));
    harness_reopen(&bench->harness);
    wait_ready(bench);
    assert_int_equal(memories(bench), 2);
    (void)ask(bench, "checkpoint_restore", form(bench, "{\"checkpoint_id\":\"%s\"}", previous));
    assert_int_equal(memories(bench), 2);
}

/* Another gateway works on it: it is waited for, and taken over when its lease is out. */
static void test_lease(void **state)
{
    struct bench *bench = *state;
    const char *page = page_new(bench, "one");
    const char *first = snapshot(bench, "first");
    page_set(bench, page, "two");
    const char *previous = snapshot(bench, "present");
    wait_ready(bench);
    leave_record(bench, record_json(bench, first, previous, 2, 3600000));
    /* One that was ready stays so. */
    assert_int_equal(health(bench), NG_OK);
    refused(bench, "checkpoint_restore", form(bench, "{\"checkpoint_id\":\"%s\"}", first),
            "BUSY", first);
    page_is(bench, page, "two", 2);
    /* One that starts waits. */
    harness_reopen(&bench->harness);
    assert_int_equal(health(bench), NG_EBUSY);
    assert_true(record_is_there(bench));
    leave_record(bench, record_json(bench, first, previous, 2, 1));
    wait_ready(bench);
    page_is(bench, page, "one", 3);
    assert_false(record_is_there(bench));
}

/* A restore of a dead gateway is finished when calls come upon it again, with or without
 * requests to /readyz; a ready gateway stays ready meanwhile. */
static void test_come_upon(void **state)
{
    struct bench *bench = *state;
    const char *page = page_new(bench, "one");
    const char *first = snapshot(bench, "first");
    page_set(bench, page, "two");
    const char *previous = snapshot(bench, "present");
    wait_ready(bench);
    leave_record(bench, record_json(bench, first, previous, 2, 1));
    refused(bench, "checkpoint_restore", form(bench, "{\"checkpoint_id\":\"%s\"}", first),
            "BUSY", first);
    int64_t until = clock_monotonic_ns() + INT64_C(60) * 1000000000;
    while (record_is_there(bench)) {
        assert_true(clock_monotonic_ns() < until);
        (void)usleep(1000);
        struct answer answer = harness_call(&bench->harness, "checkpoint_restore",
                                            form(bench, "{\"checkpoint_id\":\"%s\"}", first));
        answer_free(&answer); /* BUSY, until it is finished */
    }
    page_is(bench, page, "one", 3);
    leave_record(bench, record_json(bench, first, previous, 2, 1));
    assert_int_equal(health(bench), NG_OK);
    until = clock_monotonic_ns() + INT64_C(60) * 1000000000;
    while (record_is_there(bench)) {
        assert_true(clock_monotonic_ns() < until);
        (void)usleep(1000);
        (void)health(bench);
    }
}

/* A checkpoint that is gone cannot be finished: the gateway gets ready all the same. */
static void test_cut_off_gone(void **state)
{
    struct bench *bench = *state;
    const char *page = page_new(bench, "one");
    leave_record(bench, record_json(bench, "gone", "gone too", 2, 1));
    harness_reopen(&bench->harness);
    wait_ready(bench);
    assert_false(record_is_there(bench));
    page_is(bench, page, "one", 1);
}

#define CUT_OFF(setup)                                                                         \
    cmocka_unit_test_setup_teardown(test_cut_off_begun, setup, teardown),                      \
        cmocka_unit_test_setup_teardown(test_cut_off_journal, setup, teardown),                \
        cmocka_unit_test_setup_teardown(test_cut_off_entries, setup, teardown),                \
        cmocka_unit_test_setup_teardown(test_cut_off_aside, setup, teardown),                  \
        cmocka_unit_test_setup_teardown(test_cut_off_gone, setup, teardown),                   \
        cmocka_unit_test_setup_teardown(test_lease, setup, teardown),                          \
        cmocka_unit_test_setup_teardown(test_come_upon, setup, teardown)

int main(void)
{
    const struct CMUnitTest documents[] = {
        CUT_OFF(setup_sqlite),
    };
    const struct CMUnitTest redis[] = {CUT_OFF(setup_redis)};
    int failed = cmocka_run_group_tests_name("documents", documents, NULL, NULL);
    if (getenv("NOTEGATE_TEST_REDIS_URI") == NULL) {
        (void)fprintf(stderr, "NOTEGATE_TEST_REDIS_URI is not set: not tried in Redis\n");
        return failed;
    }
    return failed + cmocka_run_group_tests_name("redis", redis, NULL, NULL);
}
