/* SPDX-License-Identifier: MIT */
/* test_journal_zone.c - the zone of the gateway, and which day it is there. */
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
    char date[RFC3339_DAY_SIZE];
    assert_int_equal(journal_zone_use(ng_str_of(name)), NG_OK);
    journal_zone_day(time_s * 1000, date);
    assert_string_equal(date, want);
}

static void test_days(void **state)
{
    (void)state;
    check_day("UTC", 0, "1970-01-01");
    check_day("UTC", -1, "1969-12-31");
    check_day("UTC", 951782400, "2000-02-29");
    check_day("UTC", 1709251199, "2024-02-29");
    /* 2025-06-30 22:30 UTC is summer time in Berlin, 2025-12-31 22:30 is not. */
    check_day("Europe/Berlin", 1751322600, "2025-07-01");
    check_day("Europe/Berlin", 1767220200, "2025-12-31");
    check_day("Pacific/Kiritimati", 1767176400, "2026-01-01");
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
        assert_false(journal_zone_exists(ng_str_of(names[i])));
        assert_int_equal(journal_zone_use(ng_str_of(names[i])), NG_EINVAL);
    }
}

/* Without a setting TZ decides; with one it decides for local times too. */
static void test_one_zone(void **state)
{
    (void)state;
    const time_t noon = 1767182400; /* 2025-12-31 12:00 UTC */
    struct tm tm;
    assert_int_equal(setenv("TZ", "Pacific/Kiritimati", 1), 0);
    check_day("", noon, "2026-01-01");
    check_day("Pacific/Pago_Pago", noon, "2025-12-31");
    assert_non_null(localtime_r(&noon, &tm));
    assert_int_equal(tm.tm_hour, 1);
    check_day("UTC", noon, "2025-12-31");
    assert_non_null(localtime_r(&noon, &tm));
    assert_int_equal(tm.tm_hour, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_one_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
