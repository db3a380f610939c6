/* SPDX-License-Identifier: MIT */
/* Days and times of RFC 3339. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/text/rfc3339.h"
#include "harness.h"

static void test_times_are_written(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *seconds, *with_ms, *day;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z", "1970-01-01"},
        {1769610600250, "2026-01-28T14:30:00Z", "2026-01-28T14:30:00.250Z", "2026-01-28"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z", "1969-12-31"},
        {253402300799999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z", "9999-12-31"},
        {253402300800000, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z", "1970-01-01"},
        {INT64_MIN, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z", "1970-01-01"},
        {INT64_MAX, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z", "1970-01-01"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char text[RFC3339_SIZE];
        char day[RFC3339_DAY_SIZE];
        rfc3339_write(cases[i].ms, RFC3339_SECONDS, text);
        assert_string_equal(text, cases[i].seconds);
        rfc3339_write(cases[i].ms, RFC3339_MS, text);
        assert_string_equal(text, cases[i].with_ms);
        rfc3339_write_day(cases[i].ms, day);
        assert_string_equal(day, cases[i].day);
    }
}

static void test_times_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
        bool is_strict;
    } cases[] = {
        {"2026-01-28T14:30:00Z", 1769610600000, true},
        {"2026-01-28t14:30:00.25z", 1769610600250, true},
        {"2026-01-28 14:30:00.2509Z", 1769610600250, true},
        {"2026-01-28T15:30:00+01:00", 1769610600000, true},
        {"2026-01-28T13:00:00-01:30", 1769610600000, true},
        {"2026-01-28", 1769558400000, true},
        {"2026-01-28T14:30:00", 1769610600000, false},
        {"2026-01-28T14:30", 1769610600000, false},
        {"2026-01-28T14:30:00,25Z", 1769610600250, false},
        {"2026-01-28T15:30:00+0100", 1769610600000, false},
        {"2026-01-28T15:30:00 +01", 1769610600000, false},
        {"2026-01-27T24:00:00Z", 1769558400000, false},
        {"0001-01-01T00:00:00Z", -62135596800000, true},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct rfc3339 time;
        assert_true(rfc3339_read(ng_str_of(cases[i].text), &time));
        assert_int_equal(rfc3339_ms(&time), cases[i].ms);
        assert_int_equal(time.is_strict, cases[i].is_strict);
    }
}

static void in_zone(const char *zone)
{
    (void)setenv("TZ", zone, 1);
    tzset();
}

static void test_times_without_an_offset_are_local(void **state)
{
    (void)state;
    static const struct {
        const char *zone, *text;
        int64_t ms;
    } cases[] = {
        {"EAST-14", "2026-12-01", 1796032800000}, /* 2026-11-30T10:00:00Z */
        {"EAST-14", "2026-12-01T08:30:00.25", 1796063400250},
        {"EAST-14", "2026-12-01T08:30", 1796063400000},
        {"EAST-14", "2026-11-30T18:30:00Z", 1796063400000},
        {"EAST-14", "1970-01-01", -50400000},
        {"WEST11", "2026-12-01", 1796122800000}, /* 2026-12-01T11:00:00Z */
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-01-28", 1769554800000},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-01", 1782856800000},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-06-30T24:00", 1782856800000},
        {"UTC", "2026-01-28", 1769558400000},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct rfc3339 time;
        in_zone(cases[i].zone);
        assert_true(rfc3339_read(ng_str_of(cases[i].text), &time));
        assert_int_equal(rfc3339_local_ms(&time), cases[i].ms);
    }
    in_zone("UTC");
}

static void test_what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "2026",
        "2026-1-28",
        "2026-13-01",
        "2026-00-01",
        "2026-02-29",
        "2100-02-29",
        "2026-04-31",
        "0000-01-01",
        "2026-01-28T",
        "2026-01-28T25:00:00Z",
        "2026-01-28T14:60:00Z",
        "2026-01-28T14:30:61Z",
        "2026-01-28T14:30:00.Z",
        "2026-01-28T14:30:00Zx",
        "2026-01-28T14:30:00+1:00",
        "2026-01-28T14:30:00+01:60",
        "2026-01-28T14:30:00+01:",
        "2026-01-28x14:30:00Z",
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        struct rfc3339 time;
        assert_false(rfc3339_read(ng_str_of(bad[i]), &time));
        assert_false(rfc3339_is_day(ng_str_of(bad[i])));
    }
    assert_true(rfc3339_is_day(ng_str_of("2024-02-29")));
    assert_false(rfc3339_is_day(ng_str_of("2024-02-29T00:00:00Z")));
}

/* Against the C library, each day of four centuries. */
static void test_days_are_those_of_the_calendar(void **state)
{
    (void)state;
    for (int64_t days = -100000; days < 100000; days++) {
        time_t seconds = (time_t)(days * 86400);
        struct tm parts;
        assert_non_null(gmtime_r(&seconds, &parts));
        assert_int_equal(rfc3339_days(parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday),
                         days);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_written),
        cmocka_unit_test(test_times_are_read),
        cmocka_unit_test(test_times_without_an_offset_are_local),
        cmocka_unit_test(test_what_is_no_time_is_refused),
        cmocka_unit_test(test_days_are_those_of_the_calendar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
