/* SPDX-License-Identifier: MIT */
/* test_point.c - points of the history: their forms, and the change that lies before one. The
 * test moves the clock. */
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/history/point.h"
#include "core/store/store.h"
#include "harness.h"
#include "test_clock.h"

#define NOW_MS INT64_C(1769610600250) /* 2026-01-28T14:30:00.250Z */
#define CHANGES 40

static void in_zone(const char *zone)
{
    (void)setenv("TZ", zone, 1);
    tzset();
}

static void test_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum point_kind kind;
        uint64_t number;
        int64_t time_ms;
    } rows[] = {
        {"7", POINT_REVISION, 7, 0},
        {"0", POINT_REVISION, 0, 0},
        {"18446744073709551615", POINT_REVISION, UINT64_MAX, 0},
        {"#1234", POINT_SEQ, 1234, 0},
        {"#0", POINT_SEQ, 0, 0},
        {"now", POINT_TIME, 0, NOW_MS},
        {"30m", POINT_TIME, 0, NOW_MS - INT64_C(1800000)},
        {"30min", POINT_TIME, 0, NOW_MS - INT64_C(1800000)},
        {"0m", POINT_TIME, 0, NOW_MS},
        {"2h", POINT_TIME, 0, NOW_MS - INT64_C(7200000)},
        {"7d", POINT_TIME, 0, NOW_MS - INT64_C(604800000)},
        {"90s", POINT_TIME, 0, NOW_MS - INT64_C(90000)},
        {"2026-01-28T14:30:00Z", POINT_TIME, 0, INT64_C(1769610600000)},
        {"2026-01-28T14:30:00.125+01:00", POINT_TIME, 0, INT64_C(1769607000125)},
        {"2026-01-28T14:30:00", POINT_TIME, 0, INT64_C(1769607000000)},
        {"2026-01-28", POINT_TIME, 0, INT64_C(1769554800000)},
        {"2026-07-01", POINT_TIME, 0, INT64_C(1782856800000)},
    };
    in_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        struct point point;
        assert_true(point_parse(ng_str_of(rows[i].text), NOW_MS, &point));
        assert_int_equal(point.kind, rows[i].kind);
        if (point.kind == POINT_TIME) {
            assert_int_equal(point.time_ms, rows[i].time_ms);
        } else {
            assert_int_equal(point.number, rows[i].number);
        }
    }
    in_zone("UTC");
}

static void test_no_forms(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    "#",   "# 1",        "#-1",        "-1",
        "1.5", "2 x", "tomorrow",   "Now",        "18446744073709551616",
        "h",   "-2h", "2026-02-30", "2026-13-01", "9007199254740991d",
        "m",   "-1m", "30 m",       "1.5m",       "99999999999999999m",
    };
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        struct point point;
        assert_false(point_parse(ng_str_of(texts[i]), NOW_MS, &point));
    }
}

/* ---- the change before a point ---- */

static int setup(void **state)
{
    static struct harness harness;
    static const char *const sets[] = {"plugins=notebook", NULL};
    test_clock_reset();
    harness_open(&harness, sets);
    *state = &harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    return 0;
}

static void change_one(struct harness *harness)
{
    struct answer answer = harness_call_as(harness, NULL, "team", "notebook",
                                           "{\"mode\":\"create\",\"name\":\"n\"}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
}

static uint64_t before(struct harness *harness, int64_t time_ms)
{
    struct call *call = harness_new_call(harness);
    struct point point = {.kind = POINT_TIME, .time_ms = time_ms};
    uint64_t seq = UINT64_MAX;
    call->may_block = true;
    assert_int_equal(point_seq(harness->gateway->store, call, &point, &seq), NG_OK);
    call_unref(call);
    return seq;
}

struct times {
    uint64_t seqs[CHANGES];
    int64_t ms[CHANGES];
    size_t count;
};

static int take_time(void *user, const struct ng_event *event)
{
    struct times *times = user;
    assert_true(times->count < CHANGES);
    times->seqs[times->count] = event->seq;
    times->ms[times->count++] = event->time_ms;
    return 0;
}

static void read_times(struct harness *harness, struct times *ret)
{
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    ret->count = 0;
    assert_int_equal(store_changes(harness->gateway->store, call, 0, CHANGES, take_time, ret),
                     NG_OK);
    call_unref(call);
}

static void test_the_change_before(void **state)
{
    struct harness *harness = *state;
    assert_int_equal(before(harness, INT64_MAX), 0);
    for (int i = 0; i < CHANGES; i++) {
        test_clock_set_ahead(CLOCK_REALTIME, i / 3 * TEST_CLOCK_HOUR_MS);
        change_one(harness);
    }
    static struct times times;
    read_times(harness, &times);
    assert_int_equal(times.count, CHANGES);
    assert_int_equal(before(harness, times.ms[0] - 1), 0);
    assert_int_equal(before(harness, INT64_MAX), times.seqs[CHANGES - 1]);
    for (size_t i = 0; i < times.count; i++) {
        size_t last = i; /* of the same time */
        while (last + 1 < times.count && times.ms[last + 1] == times.ms[i]) {
            last++;
        }
        assert_int_equal(before(harness, times.ms[i]), times.seqs[last]);
    }
}

static void test_times_do_not_go_back(void **state)
{
    struct harness *harness = *state;
    for (int i = 0; i < CHANGES; i++) {
        test_clock_set_ahead(CLOCK_REALTIME, (i % 7 - 3) * TEST_CLOCK_HOUR_MS);
        if (i % 5 == 4) {
            harness_reopen(harness);
        }
        change_one(harness);
    }
    static struct times times;
    read_times(harness, &times);
    assert_int_equal(times.count, CHANGES);
    for (size_t i = 1; i < times.count; i++) {
        assert_true(times.ms[i] >= times.ms[i - 1]);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_no_forms),
        TEST(test_the_change_before),
        TEST(test_times_do_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
