/* SPDX-License-Identifier: MIT */
/* rfc3339.c - days and times of RFC 3339 in and out. */
#include "rfc3339.h"

#include <time.h>

#define YEAR_MAX 9999

/* ---- out ---- */

static struct tm parts_of(int64_t time_ms, int *ret_ms)
{
    struct tm parts = {0};
    int64_t ms = time_ms % 1000;
    time_t seconds = (time_t)(time_ms / 1000);
    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    *ret_ms = (int)ms;
    if (gmtime_r(&seconds, &parts) == NULL || parts.tm_year < -1900 ||
        parts.tm_year > YEAR_MAX - 1900) {
        parts = (struct tm){.tm_year = 70, .tm_mday = 1};
        *ret_ms = 0;
    }
    return parts;
}

/* Returns the place behind `after`. Not strftime(): times are written for each call. */
static char *put_number(char *at, int number, int digits, char after)
{
    for (int i = digits; i-- > 0; number /= 10) {
        at[i] = (char)('0' + number % 10);
    }
    at[digits] = after;
    return at + digits + 1;
}

static char *put_day(char *at, const struct tm *parts, char after)
{
    at = put_number(at, parts->tm_year + 1900, 4, '-');
    at = put_number(at, parts->tm_mon + 1, 2, '-');
    return put_number(at, parts->tm_mday, 2, after);
}

void rfc3339_write(int64_t time_ms, enum rfc3339_form form, char out[RFC3339_SIZE])
{
    int ms;
    struct tm parts = parts_of(time_ms, &ms);
    char *at = put_day(out, &parts, 'T');
    at = put_number(at, parts.tm_hour, 2, ':');
    at = put_number(at, parts.tm_min, 2, ':');
    if (form == RFC3339_MS) {
        at = put_number(at, parts.tm_sec, 2, '.');
        at = put_number(at, ms, 3, 'Z');
    } else {
        at = put_number(at, parts.tm_sec, 2, 'Z');
    }
    *at = '\0';
}

void rfc3339_write_day(int64_t time_ms, char out[RFC3339_DAY_SIZE])
{
    int ms;
    struct tm parts = parts_of(time_ms, &ms);
    (void)put_day(out, &parts, '\0');
}

/* ---- in ---- */

/* `count` digits at *at as a number of at most `most`; *at moves behind them. */
static bool read_number(struct ng_str text, size_t *at, size_t count, int most, int *ret)
{
    int number = 0;
    if (text.len - *at < count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char c = text.data[*at + i];
        if (c < '0' || c > '9') {
            return false;
        }
        number = number * 10 + (c - '0');
    }
    *at += count;
    *ret = number;
    return number <= most;
}

static bool accept(struct ng_str text, size_t *at, char c)
{
    if (*at < text.len && text.data[*at] == c) {
        (*at)++;
        return true;
    }
    return false;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

static bool read_day(struct ng_str text, size_t *at, struct rfc3339 *time)
{
    return read_number(text, at, 4, YEAR_MAX, &time->year) && time->year >= 1 &&
           accept(text, at, '-') && read_number(text, at, 2, 12, &time->month) &&
           time->month >= 1 && accept(text, at, '-') &&
           read_number(text, at, 2, 31, &time->day) && time->day >= 1 &&
           time->day <= month_days(time->year, time->month);
}

static bool read_fraction(struct ng_str text, size_t *at, struct rfc3339 *time)
{
    int digit;
    int unit = 100;
    bool is_comma = accept(text, at, ',');
    if (!is_comma && !accept(text, at, '.')) {
        return true;
    }
    if (is_comma) {
        time->is_strict = false;
    }
    size_t from = *at;
    while (read_number(text, at, 1, 9, &digit)) {
        time->ms += digit * unit;
        unit /= 10;
    }
    return *at > from;
}

static bool read_clock(struct ng_str text, size_t *at, struct rfc3339 *time)
{
    if (!read_number(text, at, 2, 24, &time->hour) || !accept(text, at, ':') ||
        !read_number(text, at, 2, 59, &time->minute)) {
        return false;
    }
    if (time->hour == 24) {
        time->is_strict = false;
    }
    if (!accept(text, at, ':')) {
        time->is_strict = false;
        return true;
    }
    time->has_seconds = true;
    return read_number(text, at, 2, 60, &time->second) && read_fraction(text, at, time);
}

static bool read_offset(struct ng_str text, size_t *at, struct rfc3339 *time)
{
    int hours;
    int minutes = 0;
    if (*at == text.len) {
        time->is_strict = false;
        return true;
    }
    time->has_offset = true;
    if (accept(text, at, 'Z') || accept(text, at, 'z')) {
        return true;
    }
    bool is_west = accept(text, at, '-');
    if ((!is_west && !accept(text, at, '+')) || !read_number(text, at, 2, 24, &hours)) {
        return false;
    }
    bool has_colon = accept(text, at, ':');
    if (!has_colon || hours == 24) {
        time->is_strict = false;
    }
    if ((has_colon || *at < text.len) && !read_number(text, at, 2, 59, &minutes)) {
        return false;
    }
    time->offset_minutes = hours * 60 + minutes;
    if (is_west) {
        time->offset_minutes = -time->offset_minutes;
    }
    return true;
}

static void skip_blanks(struct ng_str text, size_t *at, struct rfc3339 *time)
{
    while (accept(text, at, ' ')) {
        time->is_strict = false;
    }
}

bool rfc3339_read(struct ng_str text, struct rfc3339 *ret)
{
    struct rfc3339 time = {.is_strict = true};
    size_t at = 0;
    if (!read_day(text, &at, &time)) {
        return false;
    }
    if (at < text.len) {
        time.has_time = true;
        if (!accept(text, &at, 'T') && !accept(text, &at, 't') && !accept(text, &at, ' ')) {
            return false;
        }
        skip_blanks(text, &at, &time);
        if (!read_clock(text, &at, &time)) {
            return false;
        }
        skip_blanks(text, &at, &time);
        if (!read_offset(text, &at, &time) || at != text.len) {
            return false;
        }
    }
    *ret = time;
    return true;
}

int64_t rfc3339_ms(const struct rfc3339 *time)
{
    int64_t minutes = rfc3339_days(time->year, time->month, time->day) * 1440 +
                      (int64_t)time->hour * 60 + time->minute - time->offset_minutes;
    return (minutes * 60 + time->second) * 1000 + time->ms;
}

int64_t rfc3339_local_ms(const struct rfc3339 *time)
{
    struct tm parts = {
        .tm_year = time->year - 1900,
        .tm_mon = time->month - 1,
        .tm_mday = time->day,
        .tm_hour = time->hour,
        .tm_min = time->minute,
        .tm_sec = time->second,
        .tm_isdst = -1,
    };
    if (time->has_offset) {
        return rfc3339_ms(time);
    }
    return (int64_t)mktime(&parts) * 1000 + time->ms;
}

bool rfc3339_is_day(struct ng_str text)
{
    struct rfc3339 time;
    return text.len == 10 && rfc3339_read(text, &time);
}

int64_t rfc3339_days(int year, int month, int day)
{
    /* Years begin in March, so that the leap day is their last. */
    int64_t y = year - (month <= 2);
    int64_t m = month - 3;
    if (month <= 2) {
        m = month + 9;
    }
    int64_t days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    return days - 719468;
}
