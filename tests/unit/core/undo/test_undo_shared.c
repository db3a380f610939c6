/* SPDX-License-Identifier: MIT */
/* test_undo_shared.c - undos of several gateways on one database: one that runs is not
 * unfinished, one that nobody does is, and a single process takes it over. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/cluster/cluster.h"
#include "core/store/store.h"
#include "core/undo/undo.h"
#include "hub.h"

#define GATEWAYS 2
#define DOCUMENTS 150
/* Far more than anything here takes. */
#define PATIENCE_MS 60000
/* Of each trip to the database, so that an undo is seen while it runs. */
#define TRIP_US 2000
/* So that it does not end. */
#define LONG_TRIP_US 50000
#define DEAD_LIFE ".00000000"

static const struct hub_control *hub;
static struct harness gateways[GATEWAYS];

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

static void open_one(struct harness *harness, const char *timeout)
{
    const char *const sets[] = {"plugins=notebook,history", "documents=" HUB_MODULE, timeout,
                                NULL};
    harness_open(harness, sets);
    WAIT_FOR(cluster_has_lease(harness->gateway->cluster));
}

static int setup_with(const char *timeout)
{
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        open_one(&gateways[i], timeout);
    }
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_with(NULL);
}

static int setup_hasty(void **state)
{
    (void)state;
    return setup_with("limits.call_timeout=3s");
}

static int teardown(void **state)
{
    (void)state;
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        harness_close(&gateways[i]);
    }
    return 0;
}

/* ---- documents and records ---- */

struct put {
    const char *collection, *id, *run, *json;
};

static int put_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                  void *user)
{
    const struct put *put = user;
    struct ng_str text = ng_str_of("text\n");
    (void)present;
    int rc = call->host->draft_json(next, ng_str_of(put->json));
    return rc == NG_OK ? call->host->draft_text(next, &text, 1) : rc;
}

static void put(struct put put)
{
    struct call *call = harness_new_call(&gateways[0]);
    const struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(put.collection), ng_str_of("shared"), ng_str_of(put.id)},
        .fn = put_fn,
        .user = &put};
    call->may_block = true;
    call_set_run(call, ng_str_of(put.run));
    assert_int_equal(store_write_wait(gateways[0].gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

static void put_record(const char *run, const char *json)
{
    put((struct put){.collection = UNDO_RECORDS, .id = run, .json = json});
}

static void put_documents(const char *run)
{
    char id[16];
    for (int i = 0; i < DOCUMENTS; i++) {
        (void)snprintf(id, sizeof(id), "n%d", i);
        put((struct put){.collection = "notebooks", .id = id, .run = run, .json = "{}"});
    }
    WAIT_FOR(store_last_seq(gateways[1].gateway->store) >=
             store_last_seq(gateways[0].gateway->store));
}

static int count_row(void *user, const struct ng_doc *row)
{
    (void)snprintf(user, UNDO_RUN_SIZE, "%.*s", (int)row->key.id.len, row->key.id.data);
    return 0;
}

/* Is there a record? ret: the run of the last one. */
static bool has_record(char ret[UNDO_RUN_SIZE])
{
    struct call *call = harness_new_call(&gateways[0]);
    const struct ng_query query = {.size = sizeof(query),
                                   .collection = ng_str_of(UNDO_RECORDS),
                                   .space = ng_str_of(UNDO_RECORDS_SPACE),
                                   .limit = 10};
    uint64_t total = 0;
    ret[0] = '\0';
    call->may_block = true;
    assert_int_equal(
        store_query(gateways[0].gateway->store, call, &query, count_row, ret, &total), NG_OK);
    call_unref(call);
    return ret[0] != '\0';
}

/* ---- calls ---- */

static bool is_listed(size_t number, const char *run)
{
    struct answer answer = harness_call(&gateways[number], "history_log", "{\"limit\":1}");
    assert_int_equal(answer.rc, NG_OK);
    const char *list = strstr(answer.text, "\"unfinished\":[");
    assert_non_null(list);
    const char *at = strstr(list, run);
    bool listed = at != NULL && at < strchr(list, ']');
    answer_free(&answer);
    return listed;
}

static struct answer go_on(size_t number, const char *run, const char *dry)
{
    char args[128];
    (void)snprintf(args, sizeof(args), "{\"continue\":\"%s\",\"dry_run\":%s}", run, dry);
    return harness_call(&gateways[number], "history_undo", args);
}

static void expect_runs(size_t number, const char *run, const char *where)
{
    static const char *const dry[] = {"true", "false"};
    for (size_t i = 0; i < NG_COUNT(dry); i++) {
        struct answer answer = go_on(number, run, dry[i]);
        assert_string_equal(answer.code, "CONFLICT");
        assert_non_null(strstr(answer.message, run));
        if (strstr(answer.message, where) == NULL) {
            fail_msg("%s: not %s", answer.message, where);
        }
        assert_non_null(strstr(answer.details, run));
        answer_free(&answer);
    }
}

/* Static where a test fails while it runs. */
struct running {
    pthread_t thread;
    struct call *call; /* a reference */
    const char *args;
    struct answer answer;
};

static void running_make(struct running *running, size_t number, const char *args)
{
    *running = (struct running){.call = harness_new_call(&gateways[number]), .args = args};
    running->call->caller.all_spaces = false; /* as harness_call() */
    call_ref(running->call);
}

static void *running_run(void *user)
{
    struct running *running = user;
    running->answer = harness_run(running->call, "history_undo", running->args);
    return NULL;
}

/* Returns once the record is stored. */
static void running_begin(struct running *running, size_t number, char run[UNDO_RUN_SIZE])
{
    running_make(running, number, "{\"run\":\"night\",\"dry_run\":false}");
    assert_int_equal(pthread_create(&running->thread, NULL, running_run, running), 0);
    WAIT_FOR(has_record(run));
}

static void running_end(struct running *running)
{
    assert_int_equal(pthread_join(running->thread, NULL), 0);
    call_unref(running->call);
}

/* ---- the tests ---- */

static void test_one_that_runs(void **state)
{
    static struct running running;
    char run[UNDO_RUN_SIZE];
    struct ng_str name = cluster_name(gateways[1].gateway->cluster);
    (void)state;
    put_documents("night");
    hub->delay(TRIP_US);
    running_begin(&running, 1, run);
    assert_false(is_listed(0, run));
    assert_false(is_listed(1, run));
    expect_runs(0, run, name.data);
    expect_runs(1, run, "on this gateway");
    char left[UNDO_RUN_SIZE];
    assert_true(has_record(left)); /* it ran all the time */
    hub->delay(0);
    running_end(&running);
    assert_int_equal(running.answer.rc, NG_OK);
    assert_non_null(strstr(running.answer.text, "\"undone\":150"));
    answer_free(&running.answer);
    assert_false(has_record(left));
    assert_false(is_listed(0, run));
}

/* It fails; the gateway stays alive, and does not do it any more. */
static void test_one_that_failed(void **state)
{
    static struct running running;
    char run[UNDO_RUN_SIZE];
    char left[UNDO_RUN_SIZE];
    (void)state;
    put_documents("night");
    hub->delay(TRIP_US);
    running_begin(&running, 1, run);
    hub->refuse("notebooks", NULL);
    running_end(&running);
    hub->refuse(NULL, NULL);
    hub->delay(0);
    assert_int_not_equal(running.answer.rc, NG_OK);
    answer_free(&running.answer);
    for (size_t i = 0; i < GATEWAYS; i++) {
        assert_true(is_listed(i, run));
    }
    struct answer answer = go_on(0, run, "true");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    assert_true(is_listed(1, run)); /* a preview takes nothing over */
    answer = go_on(0, run, "false");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    assert_false(is_listed(0, run));
    assert_false(has_record(left));
}

static void expect_rest(struct running *running, const char *code, const char *run)
{
    running_end(running);
    hub->delay(0);
    assert_string_equal(running->answer.code, code);
    if (strstr(running->answer.message, run) == NULL) {
        fail_msg("%s: no %s", running->answer.message, run);
    }
    answer_free(&running->answer);
    WAIT_FOR(is_listed(0, run)); /* its tool ends later than its call */
}

/* The caller learns which undo it has begun. */
static void test_one_that_is_late(void **state)
{
    static struct running running;
    char run[UNDO_RUN_SIZE];
    (void)state;
    put_documents("night");
    hub->delay(TRIP_US);
    running_begin(&running, 1, run);
    hub->delay(LONG_TRIP_US);
    expect_rest(&running, "TIMEOUT", run);
}

static void test_one_that_is_cancelled(void **state)
{
    static struct running running;
    char run[UNDO_RUN_SIZE];
    (void)state;
    put_documents("night");
    hub->delay(TRIP_US);
    running_begin(&running, 1, run);
    hub->delay(LONG_TRIP_US);
    call_cancel(running.call);
    expect_rest(&running, "CANCELLED", run);
}

/* Of a process that ended: by the record of an older gateway, by another start of a gateway
 * that lives, by a gateway that nobody knows. */
static void test_ones_that_nobody_does(void **state)
{
    static const char *const runs[] = {"undo-aaaaaaaaaaaa", "undo-bbbbbbbbbbbb",
                                       "undo-cccccccccccc", "undo-dddddddddddd"};
    char json[128];
    (void)state;
    put_record(runs[0], "{\"agent\":\"eve\"}");
    for (size_t i = 0; i < GATEWAYS; i++) {
        struct ng_str id = cluster_id(gateways[i].gateway->cluster);
        (void)snprintf(json, sizeof(json), "{\"agent\":\"eve\",\"gateway\":\"%.*s%s\"}",
                       (int)id.len, id.data, DEAD_LIFE);
        put_record(runs[1 + i], json);
    }
    put_record(runs[3],
               "{\"agent\":\"eve\",\"gateway\":\"0123456789abcdef01234567.01234567\"}");
    for (size_t i = 0; i < NG_COUNT(runs); i++) {
        assert_true(is_listed(0, runs[i]));
        assert_true(is_listed(1, runs[i]));
        struct answer answer = go_on(i % GATEWAYS, runs[i], "false");
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
        assert_false(is_listed(0, runs[i]));
    }
}

/* Two that continue one at the same time: one of them does it. */
static void test_taken_over_once(void **state)
{
    static const char run[] = "undo-aaaaaaaaaaaa";
    static struct running running[GATEWAYS];
    size_t done = 0;
    (void)state;
    put_documents("night");
    put_record(run, "{\"agent\":\"eve\",\"until\":1000000,\"runs\":[\"night\"]}");
    hub->delay(TRIP_US);
    for (size_t i = 0; i < GATEWAYS; i++) {
        running_make(&running[i], i, "{\"continue\":\"undo-aaaaaaaaaaaa\",\"dry_run\":false}");
        assert_int_equal(pthread_create(&running[i].thread, NULL, running_run, &running[i]), 0);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        running_end(&running[i]);
        bool won = running[i].answer.rc == NG_OK;
        if (won) {
            assert_non_null(strstr(running[i].answer.text, "\"undone\":150"));
        } else {
            assert_string_equal(running[i].answer.code, "CONFLICT");
        }
        done += won;
        answer_free(&running[i].answer);
    }
    assert_int_equal(done, 1);
    assert_false(is_listed(0, run));
}

int main(void)
{
    hub = hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_that_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_late, setup_hasty, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ones_that_nobody_does, setup, teardown),
        cmocka_unit_test_setup_teardown(test_taken_over_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
