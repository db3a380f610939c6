/* SPDX-License-Identifier: MIT */
/* test_cluster_hold.c - what gateways of one database hold, and the minutes that they count. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/protocol/mcp_state.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "hub.h"
#include "test_clock.h"

#define GATEWAYS 2
/* Far more than anything here takes. */
#define PATIENCE_MS 60000
/* A minute is four leases. */
#define SHORT_LEASE_MS 400
/* Where a lease that runs out changes nothing. */
#define MINUTE_LEASE_MS 100
/* Polls are quicker than with the usual one; its minute is longer than a test. */
#define LONG_LEASE_MS 5000
#define LIFE_MINUTES (MCP_SEAL_LIFE_MS / 60000)

static const struct hub_control *hub;

static const char *const sets[GATEWAYS][5] = {
    {"plugins=", "documents=" HUB_MODULE, "cluster.advertise=http://127.0.0.1:1/", NULL},
    {"plugins=", "documents=" HUB_MODULE, "cluster.advertise=http://127.0.0.1:2", NULL},
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

static struct cluster *open_one(struct harness *harness, size_t number, int64_t lease_ms)
{
    harness_open(harness, sets[number]);
    struct cluster *cluster = harness->gateway->cluster;
    cluster_set_lease(cluster, lease_ms);
    WAIT_FOR(cluster_has_lease(cluster));
    return cluster;
}

/* As one gateway sees the other. */
struct view {
    struct harness *from;
    char id[CLUSTER_ID_LEN + 1];
    char token[CLUSTER_SECRET_LEN + 1];
};

static void look_at(struct view *view, struct harness *from, const struct cluster *other)
{
    view->from = from;
    (void)snprintf(view->id, sizeof(view->id), "%s", cluster_id(other).data);
    (void)snprintf(view->token, sizeof(view->token), "%s", cluster_token(other));
}

/* Without the wait for the next one of its own. */
static void poll_now(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    struct ng_str *ids = NULL;
    size_t count = 0;
    assert_int_equal(cluster_peers(harness->gateway->cluster, call, &ids, &count), NG_OK);
    call_unref(call);
}

static bool holds(const struct view *view)
{
    poll_now(view->from);
    return cluster_holds(view->from->gateway->cluster, ng_str_of(view->id),
                         ng_str_of(view->token));
}

static uint64_t minutes_now(struct harness *harness)
{
    poll_now(harness);
    return cluster_minutes(harness->gateway->cluster);
}

/* A start of a gateway holds nothing once it has left, was followed by another one, or is dead.
 */
static void test_holds(void **state)
{
    struct harness harness[GATEWAYS];
    struct view view;
    struct cluster_address address;
    (void)state;
    hub_reset();
    struct cluster *first = open_one(&harness[0], 0, LONG_LEASE_MS);
    struct cluster *second = open_one(&harness[1], 1, LONG_LEASE_MS);
    look_at(&view, &harness[0], second);
    WAIT_FOR(holds(&view));
    assert_true(cluster_address(first, ng_str_of(view.id), &address));
    assert_string_equal(address.url, "http://127.0.0.1:2");
    assert_true(cluster_address(first, cluster_id(first), &address));
    assert_string_equal(address.url, "http://127.0.0.1:1");
    assert_true(cluster_holds(first, cluster_id(first), ng_str_of(cluster_token(first))));
    assert_false(cluster_holds(first, cluster_id(first), ng_str_of(view.token)));
    assert_false(cluster_holds(first, cluster_id(second), ng_str_of("")));
    /* It leaves: said by the next heartbeat, which does not wait for its time. */
    cluster_leave(second);
    WAIT_FOR(!holds(&view));
    assert_true(cluster_is_alive(first, ng_str_of(view.id)));
    assert_false(cluster_holds(second, cluster_id(second), ng_str_of(view.token)));
    assert_true(cluster_is_token(second, ng_str_of(view.token)));
    /* Another start. */
    harness_reopen(&harness[1]);
    second = harness[1].gateway->cluster;
    assert_true(str_is(cluster_id(second), view.id));
    assert_string_not_equal(cluster_token(second), view.token);
    look_at(&view, &harness[0], second);
    WAIT_FOR(holds(&view));
    /* Its end. */
    cluster_set_lease(first, SHORT_LEASE_MS);
    harness_close(&harness[1]);
    WAIT_FOR(!holds(&view));
    harness_close(&harness[0]);
}

/* A gateway whose heartbeats fail finds out by itself. What it takes before they succeed again
 * may be lost as well. */
static void test_lapses(void **state)
{
    struct harness harness;
    (void)state;
    hub_reset();
    struct cluster *cluster = open_one(&harness, 0, SHORT_LEASE_MS);
    for (int i = 0; i < 2; i++) {
        uint64_t before = cluster_lapses(cluster);
        hub->away(true);
        WAIT_FOR(cluster_lapses(cluster) != before);
        assert_false(cluster_has_lease(cluster));
        uint64_t during = cluster_lapses(cluster);
        assert_int_equal(during, before + 1);
        hub->away(false);
        WAIT_FOR(cluster_has_lease(cluster));
        assert_int_equal(cluster_lapses(cluster), during + 1);
    }
    harness_close(&harness);
}

/* The machine sleeps: the time passes since the boot, and no other. */
static void test_sleep(void **state)
{
    struct harness harness;
    (void)state;
    hub_reset();
    struct cluster *cluster = open_one(&harness, 0, SHORT_LEASE_MS);
    WAIT_FOR(cluster_has_lease(cluster));
    uint64_t before = cluster_lapses(cluster);
    hub->away(true);
    test_clock_set_ahead(CLOCK_BOOTTIME, TEST_CLOCK_HOUR_MS);
    assert_false(cluster_has_lease(cluster));
    assert_int_equal(cluster_lapses(cluster), before + 1);
    hub->away(false);
    WAIT_FOR(cluster_has_lease(cluster));
    test_clock_reset();
    harness_close(&harness);
}

/* ---- minutes ---- */

/* The gateways raise one number together, no faster than one of them alone. */
static void test_minutes(void **state)
{
    struct harness harness[GATEWAYS];
    struct cluster *clusters[GATEWAYS];
    (void)state;
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        clusters[i] = open_one(&harness[i], i, MINUTE_LEASE_MS);
    }
    uint64_t begin = cluster_minutes(clusters[0]);
    int64_t begun = clock_monotonic_ns();
    WAIT_FOR(cluster_minutes(clusters[0]) >= begin + 3 &&
             cluster_minutes(clusters[1]) >= begin + 3);
    int64_t took_ms = (clock_monotonic_ns() - begun) / 1000000;
    assert_true(took_ms >= (int64_t)2 * 4 * MINUTE_LEASE_MS); /* the first one was under way */
    uint64_t reached = cluster_minutes(clusters[0]);
    for (size_t i = 0; i < GATEWAYS; i++) {
        harness_close(&harness[i]);
    }
    /* It goes on where it was. */
    clusters[0] = open_one(&harness[0], 0, MINUTE_LEASE_MS);
    WAIT_FOR(cluster_minutes(clusters[0]) >= reached);
    harness_close(&harness[0]);
}

static int unseal(const struct mcp_seal *seal, const struct mcp_binding *binding, int64_t now,
                  struct ng_str text)
{
    struct arena arena;
    struct ng_str back = {NULL, 0};
    const char *why = NULL;
    arena_init(&arena, 0);
    int rc = mcp_seal_open(seal, binding, now, text, &arena, &back, &why);
    arena_done(&arena);
    return rc;
}

/* Moves the minutes in the database. */
static int raise_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    const uint64_t *minutes = user;
    struct ng_str secret = json_get_text(present->body, "secret");
    char json[2 * CLUSTER_SECRET_LEN];
    int len = snprintf(json, sizeof(json), "{\"secret\":\"%.*s\",\"minutes\":%llu}",
                       (int)secret.len, secret.data, (unsigned long long)*minutes);
    return call->host->draft_json(next, str_make(json, (size_t)len));
}

static void set_minutes(struct harness *harness, uint64_t minutes)
{
    struct call *call = harness_new_call(harness);
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("gateways"), ng_str_of("~:gateway"), ng_str_of("secret")},
        .fn = raise_fn,
        .user = &minutes,
    };
    assert_int_equal(store_write_wait(harness->gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

/* The clocks of the two gateways are years apart; the seal lives as long as the database says.
 */
static void test_seal(void **state)
{
    static const int64_t clocks[GATEWAYS] = {1, (int64_t)1 << 50};
    struct harness harness[GATEWAYS];
    struct mcp_seal *seals[GATEWAYS];
    struct mcp_binding binding;
    struct ng_str piece = ng_str_of("ada");
    struct buf text;
    (void)state;
    hub_reset();
    assert_int_equal(mcp_binding_make(&piece, 1, &binding), NG_OK);
    buf_init(&text, 65536);
    for (size_t i = 0; i < GATEWAYS; i++) {
        char secret[CLUSTER_SECRET_LEN + 1];
        struct cluster *cluster = open_one(&harness[i], i, LONG_LEASE_MS);
        assert_int_equal(mcp_seal_new(NULL, &seals[i]), NG_OK);
        mcp_seal_share(seals[i], cluster);
        WAIT_FOR(cluster_secret(cluster, secret));
    }
    uint64_t begin = cluster_minutes(harness[0].gateway->cluster);
    for (size_t i = 0; i < GATEWAYS; i++) {
        size_t other = 1 - i;
        buf_clear(&text);
        assert_int_equal(
            mcp_seal_close(seals[i], &binding, clocks[i], ng_str_of("state"), &text), NG_OK);
        assert_int_equal(unseal(seals[other], &binding, clocks[other], buf_str(&text)), NG_OK);
        set_minutes(&harness[0], begin + LIFE_MINUTES - 1);
        WAIT_FOR(minutes_now(&harness[other]) == begin + LIFE_MINUTES - 1);
        assert_int_equal(unseal(seals[other], &binding, clocks[other], buf_str(&text)), NG_OK);
        set_minutes(&harness[0], begin + LIFE_MINUTES);
        WAIT_FOR(minutes_now(&harness[other]) == begin + LIFE_MINUTES);
        assert_int_equal(unseal(seals[other], &binding, clocks[other], buf_str(&text)),
                         NG_EINVAL);
        begin += LIFE_MINUTES;
        WAIT_FOR(minutes_now(&harness[other]) == begin && minutes_now(&harness[i]) == begin);
    }
    buf_done(&text);
    for (size_t i = 0; i < GATEWAYS; i++) {
        mcp_seal_free(seals[i]);
        harness_close(&harness[i]);
    }
}

int main(void)
{
    hub = hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds), cmocka_unit_test(test_lapses),
        cmocka_unit_test(test_sleep), cmocka_unit_test(test_minutes),
        cmocka_unit_test(test_seal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
