/* SPDX-License-Identifier: MIT */
/* test_cells_lease.c - leases of notebooks, of two gateways on one database. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "core/config/config.h"
#include "core/gateway/gateway_open.h"
#include "hub.h"
#include "tools/cells_lease.h"
#include "tools/cells_lease_table.h"

/* Far more than anything here takes. */
#define PATIENCE_MS 60000
/* Leases of gateways, whose heartbeats are further apart: to the other one it seems dead. */
#define IMPATIENT_MS 500
#define ROUNDS 60

static const char notebook[] = "/nowhere/n.ipynb";

/* A gateway, and the plugin's state beside the one of its module. */
struct side {
    struct harness harness;
    struct cells cells;
};

struct bench {
    struct side one, two;
};

static void step(void)
{
    const struct timespec time = {0, 2000000};
    (void)nanosleep(&time, NULL);
}

#define WAIT_FOR(condition)                                                                    \
    for (int64_t until_ = clock_monotonic_ns() + (int64_t)PATIENCE_MS * 1000000; !(condition); \
         step()) {                                                                             \
        assert_true(clock_monotonic_ns() < until_);                                            \
    }

static void side_begin(struct side *side)
{
    const struct kernels_options options = {.max_kernels = 1,
                                            .data_folder = ng_str_of(side->harness.dir)};
    struct call *call = harness_new_call(&side->harness);
    memset(&side->cells, 0, sizeof(side->cells));
    side->cells.host = call->pub.host;
    assert_int_equal(cells_leases_open(&side->cells, &call->pub), NG_OK);
    side->cells.kernels = kernels_new(&options);
    assert_non_null(side->cells.kernels);
    call_unref(call);
}

static void side_end(struct side *side)
{
    cells_leases_settle(side->cells.leases);
    kernels_free(side->cells.kernels);
    cells_leases_close(side->cells.leases);
}

static void side_open(struct side *side)
{
    static const char *const sets[] = {"plugins=cells", "documents=" HUB_MODULE, NULL};
    harness_open(&side->harness, sets);
    side_begin(side);
}

static void side_close(struct side *side)
{
    side_end(side);
    harness_close(&side->harness);
}

static void bench_open(struct bench *bench)
{
    hub_reset();
    side_open(&bench->one);
    side_open(&bench->two);
    assert_non_null(bench->one.cells.leases);
}

static void bench_close(struct bench *bench)
{
    hub_reset();
    side_close(&bench->one);
    side_close(&bench->two);
}

/* ret_text: the message, to be freed; may be NULL. */
static int take_of(struct side *side, const char *of, unsigned *ret_losses, char **ret_text)
{
    struct call *call = harness_new_call(&side->harness);
    int rc = cells_lease_take(&side->cells, &call->pub, ng_str_of(of), ret_losses);
    if (ret_text != NULL) {
        struct ng_str text = call->staged.message;
        *ret_text = strndup(text.data == NULL ? "" : text.data, text.len);
    }
    call_unref(call);
    return rc;
}

static int take(struct side *side)
{
    unsigned losses = 0;
    return take_of(side, notebook, &losses, NULL);
}

static void leave(struct side *side)
{
    cells_lease_leave(&side->cells, notebook);
}

static int check(struct side *side, unsigned losses)
{
    struct call *call = harness_new_call(&side->harness);
    int rc = cells_lease_check(&side->cells, &call->pub, ng_str_of(notebook), losses);
    call_unref(call);
    return rc;
}

static int find(struct side *side)
{
    struct call *call = harness_new_call(&side->harness);
    int rc = cells_lease_find(&side->cells, &call->pub, ng_str_of(notebook));
    call_unref(call);
    return rc;
}

/* Does the lease's document exist, of any gateway? */
static bool is_leased(struct side *side)
{
    char id[SHA256_HEX_SIZE];
    const struct ng_doc *doc = NULL;
    struct call *call = harness_new_call(&side->harness);
    assert_true(lease_id(ng_str_of(notebook), id));
    struct ng_key key = lease_key(id);
    assert_int_equal(call->pub.host->get(&call->pub, &key, 0, &doc), NG_OK);
    bool is_there = doc->revision != 0 && !doc->deleted;
    call_unref(call);
    return is_there;
}

static size_t others(struct side *side)
{
    struct call *call = harness_new_call(&side->harness);
    struct cells_other *list = NULL;
    size_t count = 0;
    assert_int_equal(cells_lease_others(&side->cells, &call->pub, &list, &count), NG_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(str_is(list[i].notebook, notebook));
    }
    call_unref(call);
    return count;
}

/* ---- one gateway ---- */

static void test_not_shared(void **state)
{
    static const char *const sets[] = {"plugins=cells", "documents=memory", NULL};
    struct side side;
    char id[CELLS_RUN_ID_SIZE] = "0123456789abcdef0123456789abcdef";
    (void)state;
    harness_open(&side.harness, sets);
    side_begin(&side);
    assert_null(side.cells.leases);
    assert_int_equal(take(&side), NG_OK);
    assert_int_equal(check(&side, 0), NG_OK);
    assert_int_equal(find(&side), NG_OK);
    assert_int_equal(others(&side), 0);
    cells_lease_name_run(&side.cells, id);
    assert_string_equal(id, "0123456789abcdef0123456789abcdef");
    leave(&side);
    side_close(&side);
}

/* ---- two gateways ---- */

static void test_one_has_it(void **state)
{
    struct bench bench;
    unsigned losses = 9;
    char *text = NULL;
    (void)state;
    bench_open(&bench);
    assert_int_equal(take_of(&bench.one, notebook, &losses, NULL), NG_OK);
    assert_int_equal(losses, 0);
    assert_int_equal(take_of(&bench.two, notebook, &losses, &text), CELLS_EELSEWHERE);
    struct ng_str id = cluster_id(bench.one.harness.gateway->cluster);
    assert_non_null(strstr(text, "runs on another gateway: "));
    assert_non_null(strstr(text, id.data));
    free(text);
    assert_int_equal(find(&bench.two), CELLS_EELSEWHERE);
    assert_int_equal(find(&bench.one), NG_OK);
    assert_int_equal(others(&bench.two), 1);
    assert_int_equal(others(&bench.one), 0);
    assert_int_equal(check(&bench.one, losses), NG_OK);
    /* A run and its kernel: the lease lasts as long as one of them. */
    cells_leases_watch(bench.one.cells.leases, notebook, true);
    leave(&bench.one);
    assert_int_equal(take(&bench.one), NG_OK);
    leave(&bench.one);
    assert_int_equal(take(&bench.two), CELLS_EELSEWHERE);
    cells_leases_watch(bench.one.cells.leases, notebook, false);
    WAIT_FOR(take(&bench.two) == NG_OK);
    assert_int_equal(take(&bench.one), CELLS_EELSEWHERE);
    leave(&bench.two);
    WAIT_FOR(find(&bench.one) == NG_OK && others(&bench.one) == 0);
    bench_close(&bench);
}

/* It seemed dead to the other one, which took over. */
static void test_it_is_taken_over(void **state)
{
    struct bench bench;
    unsigned first = 0;
    unsigned second = 0;
    (void)state;
    bench_open(&bench);
    assert_int_equal(take_of(&bench.one, notebook, &first, NULL), NG_OK);
    assert_int_equal(check(&bench.one, first), NG_OK);
    cluster_set_lease(bench.two.harness.gateway->cluster, IMPATIENT_MS);
    WAIT_FOR(take(&bench.two) == NG_OK);
    cluster_set_lease(bench.two.harness.gateway->cluster, CLUSTER_LEASE_MS);
    assert_int_equal(check(&bench.one, first), CELLS_EELSEWHERE);
    assert_int_equal(take(&bench.one), CELLS_EELSEWHERE);
    /* It has it again: a run of before may still not save. */
    leave(&bench.two);
    WAIT_FOR(take_of(&bench.one, notebook, &second, NULL) == NG_OK);
    assert_int_not_equal(second, first);
    assert_int_equal(check(&bench.one, second), NG_OK);
    assert_int_equal(check(&bench.one, first), CELLS_EELSEWHERE);
    leave(&bench.one);
    leave(&bench.one);
    bench_close(&bench);
}

/* The other one has come and gone before a run asks: there is no document, and the kernel of
 * before is a stale one all the same. */
static void test_it_was_taken_over_and_released(void **state)
{
    struct bench bench;
    unsigned first = 0;
    unsigned second = 0;
    (void)state;
    bench_open(&bench);
    assert_int_equal(take_of(&bench.one, notebook, &first, NULL), NG_OK);
    cluster_set_lease(bench.two.harness.gateway->cluster, IMPATIENT_MS);
    WAIT_FOR(take(&bench.two) == NG_OK);
    cluster_set_lease(bench.two.harness.gateway->cluster, CLUSTER_LEASE_MS);
    leave(&bench.two);
    WAIT_FOR(!is_leased(&bench.one));
    assert_int_equal(take_of(&bench.one, notebook, &second, NULL), NG_OK);
    assert_int_equal(second, first + 1);
    assert_int_equal(check(&bench.one, second), NG_OK);
    assert_int_equal(check(&bench.one, first), CELLS_EELSEWHERE);
    leave(&bench.one);
    leave(&bench.one);
    bench_close(&bench);
}

/* Of calls that do not wait for the lease of the gateway. */
static void expect_cut_off(struct side *side, unsigned losses)
{
    struct call *calls[2];
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        calls[i] = harness_new_call(&side->harness);
        call_cancel(calls[i]);
    }
    assert_int_equal(
        cells_lease_check(&side->cells, &calls[0]->pub, ng_str_of(notebook), losses),
        NG_EUNAVAILABLE);
    assert_int_equal(
        cells_lease_take(&side->cells, &calls[1]->pub, ng_str_of(notebook), &losses),
        NG_EUNAVAILABLE);
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        call_unref(calls[i]);
    }
}

/* The database did not answer for longer than others wait: nothing is taken or saved, and what
 * was lost meanwhile is noticed without a call. */
static void test_it_was_cut_off(void **state)
{
    struct bench bench;
    unsigned losses = 0;
    (void)state;
    bench_open(&bench);
    struct cluster *cluster = bench.one.harness.gateway->cluster;
    assert_int_equal(take_of(&bench.one, notebook, &losses, NULL), NG_OK);
    uint64_t term = cluster_term(cluster);
    assert_int_not_equal(term, 0);
    cluster_set_lease(cluster, IMPATIENT_MS);
    hub_load()->away(true);
    WAIT_FOR(cluster_term(cluster) == 0);
    expect_cut_off(&bench.one, losses);
    hub_load()->away(false);
    WAIT_FOR(cluster_term(cluster) > term);
    cluster_set_lease(cluster, CLUSTER_LEASE_MS);
    WAIT_FOR(check(&bench.one, losses) == NG_OK);
    leave(&bench.one);
    WAIT_FOR(take(&bench.two) == NG_OK);
    leave(&bench.two);
    bench_close(&bench);
}

static void test_it_starts_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    assert_int_equal(take(&bench.one), NG_OK);
    assert_int_equal(take(&bench.two), CELLS_EELSEWHERE);
    /* As after a kill: nothing is released. */
    hub_load()->away(true);
    side_end(&bench.one);
    harness_reopen(&bench.one.harness);
    side_begin(&bench.one);
    hub_load()->away(false);
    WAIT_FOR(find(&bench.two) == NG_OK); /* though that gateway is alive */
    assert_int_equal(others(&bench.two), 0);
    assert_int_equal(take(&bench.one), NG_OK);
    assert_int_equal(take(&bench.two), CELLS_EELSEWHERE);
    leave(&bench.one);
    bench_close(&bench);
}

static void test_a_release_that_fails(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    assert_int_equal(take(&bench.one), NG_OK);
    hub_load()->away(true);
    leave(&bench.one);
    assert_int_equal(find(&bench.two), NG_EUNAVAILABLE);
    hub_load()->away(false);
    WAIT_FOR(find(&bench.two) == NG_OK);
    bench_close(&bench);
}

/* The lease was written, but its answer was lost: the run fails, and the lease is released. */
static void test_a_take_without_an_answer(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    /* Used until the answers come again, so that it is not released before. */
    assert_non_null(lease_use(bench.one.cells.leases, ng_str_of(notebook)));
    hub_load()->unanswered(CELLS_LEASES);
    assert_int_not_equal(take(&bench.one), NG_OK);
    assert_true(is_leased(&bench.two));
    hub_load()->unanswered(NULL);
    leave(&bench.one);
    WAIT_FOR(!is_leased(&bench.one));
    assert_int_equal(take(&bench.two), NG_OK);
    leave(&bench.two);
    bench_close(&bench);
}

/* ---- handles of runs ---- */

static int find_run(struct side *side, const char *id)
{
    struct call *call = harness_new_call(&side->harness);
    int rc = cells_lease_find_run(&side->cells, &call->pub, ng_str_of(id));
    call_unref(call);
    return rc;
}

static void test_handles(void **state)
{
    struct bench bench;
    char id[CELLS_RUN_ID_SIZE] = "0123456789abcdef0123456789abcdef";
    char broken[CELLS_RUN_ID_SIZE];
    (void)state;
    bench_open(&bench);
    cells_lease_name_run(&bench.one.cells, id);
    assert_int_equal(strlen(id), 16 + 1 + CLUSTER_NAME_SIZE - 1);
    assert_int_equal(find_run(&bench.one, id), NG_OK);
    WAIT_FOR(find_run(&bench.two, id) == CELLS_EELSEWHERE);
    memcpy(broken, id, sizeof(id));
    broken[20] = '\xc3';
    assert_int_equal(find_run(&bench.two, broken), NG_OK);
    memcpy(broken, id, sizeof(id));
    broken[strlen(id) - 1] ^= 1; /* another process of that gateway */
    assert_int_equal(find_run(&bench.two, broken), NG_OK);
    assert_int_equal(find_run(&bench.two, "0123456789abcdef0123456789abcdef"), NG_OK);
    assert_int_equal(find_run(&bench.two, ""), NG_OK);
    bench_close(&bench);
}

/* ---- at the same time ---- */

struct racer {
    struct side *side;
    atomic_int *inside;
    int number;
    int taken;
    bool failed;
};

static void *race(void *user)
{
    struct racer *racer = user;
    unsigned losses = 0;
    for (int i = 0; i < ROUNDS && !racer->failed; i++) {
        int rc = take_of(racer->side, notebook, &losses, NULL);
        if (rc == CELLS_EELSEWHERE || rc == NG_EBUSY) {
            step();
            continue;
        }
        int inside = atomic_fetch_or(racer->inside, racer->number);
        step();
        racer->failed = rc != NG_OK || (inside | racer->number) != racer->number ||
                        losses != 0 || check(racer->side, losses) != NG_OK;
        racer->taken++;
        (void)atomic_fetch_and(racer->inside, ~racer->number);
        leave(racer->side);
    }
    return NULL;
}

/* One run at a time of each gateway, so that `inside` tells whose turn it is. */
static void test_races(void **state)
{
    struct bench bench;
    atomic_int inside = 0;
    pthread_t threads[2];
    (void)state;
    bench_open(&bench);
    struct racer racers[2] = {{.side = &bench.one, .inside = &inside, .number = 1},
                              {.side = &bench.two, .inside = &inside, .number = 2}};
    for (size_t i = 0; i < NG_COUNT(racers); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < NG_COUNT(racers); i++) {
        pthread_join(threads[i], NULL);
        assert_false(racers[i].failed);
    }
    assert_true(racers[0].taken + racers[1].taken > 0);
    WAIT_FOR(find(&bench.one) == NG_OK && find(&bench.two) == NG_OK);
    bench_close(&bench);
}

int main(void)
{
    (void)hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_shared),
        cmocka_unit_test(test_one_has_it),
        cmocka_unit_test(test_it_is_taken_over),
        cmocka_unit_test(test_it_was_cut_off),
        cmocka_unit_test(test_it_starts_again),
        cmocka_unit_test(test_a_release_that_fails),
        cmocka_unit_test(test_it_was_taken_over_and_released),
        cmocka_unit_test(test_a_take_without_an_answer),
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
