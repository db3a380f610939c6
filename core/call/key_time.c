/* SPDX-License-Identifier: MIT */
/* key_time.c - when a key expires, as people write it and as they are told. */
#include <stdio.h>
#include <time.h>

#include "core/base/str.h"
#include "core/base/zone.h"
#include "core/config/config.h"
#include "core/keys/keys.h"

#define DAY_MS ((int64_t)86400 * 1000)
#define DATE_LEN 10 /* "2027-01-31" */
#define TIME_LEN 8  /* "12:00:00" */
/* Nobody means a key for longer; later dates would not print in four digits some day. */
#define YEARS_MAX 100

/* Days since 1970-01-01 of a date of the Gregorian calendar. */
static int64_t days_of(int year, int month, int day)
{
    /* Years begin in March, so that the leap day is their last. */
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3;
    int64_t days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    return days - 719468;
}

/* `count` digits as a number; -1: they are not digits. */
static int digits_of(struct ng_str text, size_t at, size_t count)
{
    int value = 0;
    if (at + count > text.len) {
        return -1;
    }
    for (size_t i = at; i < at + count; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return -1;
        }
        value = value * 10 + (text.data[i] - '0');
    }
    return value;
}

/* "Z", "+01:00" or "-01:00" in milliseconds. */
static bool parse_offset(struct ng_str text, int64_t *ret_ms)
{
    if (str_is(text, "Z") || str_is(text, "z")) {
        *ret_ms = 0;
        return true;
    }
    int hours = digits_of(text, 1, 2);
    int minutes = digits_of(text, 4, 2);
    if (text.len != 6 || (text.data[0] != '+' && text.data[0] != '-') || text.data[3] != ':' ||
        hours < 0 || hours > 23 || minutes < 0 || minutes > 59) {
        return false;
    }
    *ret_ms = ((int64_t)hours * 60 + minutes) * 60000 * (text.data[0] == '-' ? -1 : 1);
    return true;
}

/* What follows the date: "T12:00:00", perhaps ".5", and the offset. */
static bool parse_time(struct ng_str text, int64_t *ret_ms)
{
    int hours = digits_of(text, 1, 2);
    int minutes = digits_of(text, 4, 2);
    int seconds = digits_of(text, 7, 2);
    if (text.len < 1 + TIME_LEN + 1 || strchr("Tt ", text.data[0]) == NULL ||
        text.data[3] != ':' || text.data[6] != ':' || hours < 0 || hours > 23 || minutes < 0 ||
        minutes > 59 || seconds < 0 || seconds > 60) {
        return false;
    }
    size_t at = 1 + TIME_LEN;
    if (text.data[at] == '.') {
        size_t from = ++at;
        while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9') {
            at++;
        }
        if (at == from) {
            return false;
        }
    }
    int64_t offset_ms;
    if (!parse_offset(str_make(text.data + at, text.len - at), &offset_ms)) {
        return false;
    }
    *ret_ms = (((int64_t)hours * 60 + minutes) * 60 + seconds) * 1000 - offset_ms;
    return true;
}

int keys_parse_expiry(struct ng_str text, int64_t now_ms, int64_t *ret_ms)
{
    int64_t time_ms = 0;
    if (text.len >= DATE_LEN && zone_date_valid(str_make(text.data, DATE_LEN))) {
        int64_t days =
            days_of(digits_of(text, 0, 4), digits_of(text, 5, 2), digits_of(text, 8, 2));
        int64_t in_day_ms = DAY_MS; /* a date alone: that day is its last */
        if (text.len > DATE_LEN &&
            !parse_time(str_make(text.data + DATE_LEN, text.len - DATE_LEN), &in_day_ms)) {
            return NG_EINVAL;
        }
        time_ms = days * DAY_MS + in_day_ms;
    } else {
        int64_t duration_ms;
        if (config_parse_duration(text, &duration_ms) != NG_OK || duration_ms == 0 ||
            duration_ms > YEARS_MAX * 366 * DAY_MS) {
            return NG_EINVAL;
        }
        time_ms = now_ms + duration_ms;
    }
    if (time_ms > now_ms + YEARS_MAX * 366 * DAY_MS) {
        return NG_EINVAL;
    }
    *ret_ms = time_ms;
    return NG_OK;
}

void keys_print_time(int64_t time_ms, char ret_text[KEY_TIME_SIZE])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(ret_text, KEY_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        (void)snprintf(ret_text, KEY_TIME_SIZE, "?");
    }
}
