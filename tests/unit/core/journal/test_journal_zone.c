/* SPDX-License-Identifier: MIT */
/* test_journal_zone.c - which day it is in a zone, against the C library's own reading of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/journal/journal_zone.h"

static void check_day(const char *name, int64_t time_s, const char *want)
{
    struct journal_zone *zone = NULL;
    char date[RFC3339_DAY_SIZE];
    assert_int_equal(journal_zone_open(ng_str_of(name), &zone), NG_OK);
    journal_zone_day(zone, time_s * 1000, date);
    assert_string_equal(date, want);
    journal_zone_free(zone);
}

static void test_days(void **state)
{
    (void)state;
    check_day("UTC", 0, "1970-01-01");
    check_day("", -1, "1969-12-31");
    check_day("UTC", 951782400, "2000-02-29");
    check_day("UTC", 1709251199, "2024-02-29");
    /* 2025-06-30 22:30 UTC is summer time in Berlin, 2025-12-31 22:30 is not. */
    check_day("Europe/Berlin", 1751322600, "2025-07-01");
    check_day("Europe/Berlin", 1767220200, "2025-12-31");
    check_day("Pacific/Kiritimati", 1767176400, "2026-01-01");
}

/* Every eleven hours of many years, past the end of what the files list, so that the rule
 * behind it is used. */
static void test_against_the_library(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Europe/Berlin",
        "America/New_York",
        "Australia/Sydney",
        "Asia/Kolkata",
        "America/Sao_Paulo",
        "Pacific/Chatham",
        "America/Argentina/Buenos_Aires",
    };
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        struct journal_zone *zone = NULL;
        assert_int_equal(journal_zone_open(ng_str_of(names[i]), &zone), NG_OK);
        assert_int_equal(setenv("TZ", names[i], 1), 0);
        tzset();
        for (int64_t time = INT64_C(-1000000000); time < INT64_C(3500000000);
             time += 11 * 3600 + 17) {
            char date[RFC3339_DAY_SIZE];
            char want[RFC3339_DAY_SIZE];
            struct tm tm;
            time_t now = (time_t)time;
            assert_non_null(localtime_r(&now, &tm));
            assert_int_equal(strftime(want, sizeof(want), "%Y-%m-%d", &tm), 10);
            journal_zone_day(zone, time * 1000, date);
            assert_string_equal(date, want);
        }
        journal_zone_free(zone);
    }
    assert_int_equal(unsetenv("TZ"), 0);
}

static void test_unknown(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Europe/Nowhere",
        "../../../etc/passwd",
        "/etc/passwd",
        "Europe",
        "zone.tab",
        "tzdata\x01",
        "Europe/Berlin/And/A/Name/That/Is/Longer/Than/Any/Zone/Ever/Will/Be",
    };
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        struct journal_zone *zone = NULL;
        assert_false(journal_zone_exists(ng_str_of(names[i])));
        assert_int_equal(journal_zone_open(ng_str_of(names[i]), &zone), NG_EINVAL);
        assert_null(zone);
    }
}

static void test_the_process_keeps_its_zone(void **state)
{
    (void)state;
    static const char *const kept[] = {"Asia/Tokyo", NULL};
    for (size_t i = 0; i < NG_COUNT(kept); i++) {
        struct journal_zone *zone = NULL;
        assert_int_equal(kept[i] != NULL ? setenv("TZ", kept[i], 1) : unsetenv("TZ"), 0);
        assert_int_equal(journal_zone_open(ng_str_of("Europe/Berlin"), &zone), NG_OK);
        const char *now = getenv("TZ");
        assert_true(now == kept[i] || strcmp(now, kept[i]) == 0);
        journal_zone_free(zone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_against_the_library),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_the_process_keeps_its_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
