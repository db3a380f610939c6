/* SPDX-License-Identifier: MIT */
/* test_store_shared_crowd.c - several gateways on one store: many agents at once.
 */
#include "test_store_shared_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

/* Changes of one agent that another gateway's may wait for, each time. */
#define TURN_WRITES_MAX 100

static void expect_lines(const char *text, size_t agents, size_t writes)
{
    size_t *next = calloc(agents, sizeof(*next));
    size_t lines = 0;
    assert_non_null(next);
    for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
        size_t agent = 0;
        size_t line = 0;
        assert_int_equal(sscanf(at, "agent %zu line %zu", &agent, &line), 2);
        assert_true(agent < agents);
        assert_int_equal(line, next[agent]++); /* each agent's own in order, once */
        lines++;
    }
    assert_int_equal(lines, agents * writes);
    free(next);
}

static int count_row(void *user, const struct ng_doc *row)
{
    uint64_t *next = user;
    assert_int_equal(row->revision, (*next)++);
    return 0;
}

static void expect_line_of_versions(struct cluster *cluster, const char *id, uint64_t count)
{
    struct call *call = harness_new_call(&cluster->harness[0]);
    struct ng_key key = key_of(ng_str_of(id));
    struct ng_range range = {.size = sizeof(range), .limit = 100000, .ascending = true};
    uint64_t next = 1;
    assert_int_equal(
        store_history(cluster->harness[0].gateway->store, call, &key, &range, count_row, &next),
        NG_OK);
    assert_int_equal(next, count + 1);
    call_unref(call);
}

static void expect_crowd(struct cluster *cluster, const char *id, size_t agents, size_t writes)
{
    char args[64];
    (void)snprintf(args, sizeof(args), "{\"id\":\"%s\"}", id);
    for (size_t i = 0; i < GATEWAYS; i++) {
        struct answer answer = harness_call(&cluster->harness[i], "read", args);
        assert_int_equal(answer.rc, NG_OK);
        assert_int_equal(answer.revision, agents * writes);
        expect_lines(answer.text, agents, writes);
        answer_free(&answer);
    }
    expect_line_of_versions(cluster, id, agents * writes);
}

static void test_crowd(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    run_crowd(&cluster, 9, 40, GATEWAYS, "\"id\":\"a\"");
    expect_crowd(&cluster, "a", 9, 40);
    hub->delay(500);
    run_crowd(&cluster, 9, 25, GATEWAYS, "\"id\":\"b\"");
    expect_crowd(&cluster, "b", 9, 25);
    gateways_close(&cluster);
}

static void run_agents(struct agent *work, size_t count)
{
    pthread_t *threads = calloc(count, sizeof(*threads));
    assert_non_null(threads);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, agent_run, &work[i]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
}

/* One gateway's agents write without a gap; the only agent of another gateway gets through. */
static void test_fair(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    hub->delay(1000);
    struct agent work[16];
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        work[i] = (struct agent){&cluster, i, i == 0 ? 1 : 0, 40, "\"id\":\"a\""};
    }
    run_agents(work, NG_COUNT(work));
    expect_crowd(&cluster, "a", NG_COUNT(work), 40);
    gateways_close(&cluster);
}

struct lone {
    struct cluster *cluster;
    atomic_bool stop;
    size_t writes;
};

static void *lone_run(void *user)
{
    struct lone *lone = user;
    char args[128];
    for (; !atomic_load(&lone->stop); lone->writes++) {
        (void)snprintf(args, sizeof(args), "{\"id\":\"a\",\"text\":\"agent 0 line %zu\"}",
                       lone->writes);
        struct answer answer = harness_call(&lone->cluster->harness[1], "append", args);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
    }
    return NULL;
}

/* The only agent of one gateway writes without a pause; those of another get through, and none
 * waits for more than a few turns of the other. */
static void test_fair_to_a_crowd(void **state)
{
    struct cluster cluster;
    struct lone lone = {.cluster = &cluster};
    pthread_t thread;
    (void)state;
    gateways_open(&cluster);
    hub->delay(1000);
    assert_int_equal(pthread_create(&thread, NULL, lone_run, &lone), 0);
    struct agent work[15];
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        work[i] = (struct agent){&cluster, i + 1, 0, 10, "\"id\":\"a\""};
    }
    run_agents(work, NG_COUNT(work));
    atomic_store(&lone.stop, true);
    pthread_join(thread, NULL);
    assert_true(lone.writes < 10 * TURN_WRITES_MAX);
    gateways_close(&cluster);
}

/* Changes of two documents as one, in both orders, and of each alone. */
static void test_crowd_of_two(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    hub->delay(200);
    struct agent work[9];
    static const char *const named[] = {
        "\"id\":\"a\",\"also\":\"b\"",
        "\"id\":\"b\",\"also\":\"a\"",
        "\"id\":\"a\"",
    };
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        work[i] = (struct agent){&cluster, i, (i / 3) % GATEWAYS, 20, named[i % 3]};
    }
    run_agents(work, NG_COUNT(work));
    expect_crowd(&cluster, "a", 9, 20);
    expect_line_of_versions(&cluster, "b", 120);
    gateways_close(&cluster);
}

/* A plugin that takes one call at a time is given its functions one at a time, too. */
static void test_serial(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open_as(&cluster, &serial_desc, NULL);
    run_crowd(&cluster, 6, 20, GATEWAYS, "\"id\":\"a\"");
    expect_crowd(&cluster, "a", 6, 20);
    gateways_close(&cluster);
}

/* Some wait for their change inside of the call, so they keep the plugin for themselves: whose
 * turn it is may not wait for the plugin. */
static void test_serial_and_waiting(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open_as(&cluster, &serial_desc, NULL);
    hub->delay(500);
    struct agent work[12];
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        work[i] = (struct agent){&cluster, i, i % GATEWAYS, 40,
                                 i / GATEWAYS % 2 == 0 ? "\"id\":\"a\""
                                                       : "\"id\":\"a\",\"wait\":true"};
    }
    run_agents(work, NG_COUNT(work));
    expect_crowd(&cluster, "a", NG_COUNT(work), 40);
    gateways_close(&cluster);
}

/* Changes that wait for one round trip go together with the next one. */
static void test_batches(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    hub->delay(20000);
    uint64_t trips = hub->trips();
    uint64_t commits = hub->commits();
    run_crowd(&cluster, 16, 5, 1, "\"id\":\"a\"");
    trips = hub->trips() - trips;
    commits = hub->commits() - commits;
    hub->delay(0);
    expect_crowd(&cluster, "a", 16, 5);
    assert_true(commits >= 80);
    assert_true(trips * 2 < commits);
    gateways_close(&cluster);
}

int main(void)
{
    hub = hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crowd),           cmocka_unit_test(test_fair),
        cmocka_unit_test(test_fair_to_a_crowd), cmocka_unit_test(test_crowd_of_two),
        cmocka_unit_test(test_serial),          cmocka_unit_test(test_serial_and_waiting),
        cmocka_unit_test(test_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
