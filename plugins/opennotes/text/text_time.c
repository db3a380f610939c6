/* SPDX-License-Identifier: MIT */
/* text_time.c - times of notes: read in the forms that people write, written as ISO 8601. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "text.h"

#define YEAR_MIN 1
#define YEAR_MAX 9999

static void split_ms(int64_t time_ms, time_t *ret_seconds)
{
    *ret_seconds = (time_t)(time_ms / 1000 - (time_ms % 1000 < 0 ? 1 : 0));
}

/* Years of more digits than four are not written. */
static bool writable(const struct tm *tm)
{
    return tm->tm_year + 1900 >= 0 && tm->tm_year + 1900 <= YEAR_MAX;
}

void notes_time_write(int64_t time_ms, char out[NOTES_TIME_SIZE])
{
    time_t seconds;
    struct tm tm;
    split_ms(time_ms, &seconds);
    if (gmtime_r(&seconds, &tm) == NULL || !writable(&tm)) {
        seconds = 0;
        (void)gmtime_r(&seconds, &tm);
    }
    (void)snprintf(out, NOTES_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void notes_time_write_local(int64_t time_ms, char out[NOTES_TIME_SIZE])
{
    time_t seconds;
    struct tm tm;
    split_ms(time_ms, &seconds);
    if (localtime_r(&seconds, &tm) == NULL || !writable(&tm)) {
        notes_time_write(time_ms, out);
        return;
    }
    long offset = tm.tm_gmtoff / 60;
    long minutes = offset < 0 ? -offset : offset;
    (void)snprintf(out, NOTES_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d%c%02ld:%02ld",
                   tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                   tm.tm_sec, offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

void notes_day_write(int64_t time_ms, char out[NOTES_DAY_SIZE])
{
    char text[NOTES_TIME_SIZE];
    notes_time_write_local(time_ms, text);
    (void)snprintf(out, NOTES_DAY_SIZE, "%.10s", text);
}

/* ---- reading */

/* `count` digits at *at as a number; -1: they are not there. */
static int digits(struct ng_str text, size_t *at, size_t count)
{
    int number = 0;
    if (text.len - *at < count) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        char c = text.data[*at + i];
        if (c < '0' || c > '9') {
            return -1;
        }
        number = number * 10 + (c - '0');
    }
    *at += count;
    return number;
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
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static bool read_day(struct ng_str text, size_t *at, struct tm *tm)
{
    int year = digits(text, at, 4);
    bool ok = year >= YEAR_MIN && accept(text, at, '-');
    int month = ok ? digits(text, at, 2) : -1;
    ok = ok && month >= 1 && month <= 12 && accept(text, at, '-');
    int day = ok ? digits(text, at, 2) : -1;
    ok = ok && day >= 1 && day <= month_days(year, month);
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return ok;
}

/* Hours and minutes, seconds with a fraction where they are written. */
static bool read_clock(struct ng_str text, size_t *at, struct tm *tm, int *ret_ms)
{
    tm->tm_hour = digits(text, at, 2);
    bool ok = tm->tm_hour >= 0 && tm->tm_hour <= 24 && accept(text, at, ':');
    tm->tm_min = ok ? digits(text, at, 2) : -1;
    ok = ok && tm->tm_min >= 0 && tm->tm_min <= 59;
    if (!ok || !accept(text, at, ':')) {
        return ok;
    }
    tm->tm_sec = digits(text, at, 2);
    if (tm->tm_sec < 0 || tm->tm_sec > 60) {
        return false;
    }
    if (accept(text, at, '.') || accept(text, at, ',')) {
        int scale = 100;
        size_t from = *at;
        for (int digit = digits(text, at, 1); digit >= 0; digit = digits(text, at, 1)) {
            *ret_ms += digit * scale;
            scale /= 10;
        }
        return *at > from;
    }
    return true;
}

/* "Z", "+02:00", "+0200", "+02", blanks before it; nothing: the system's. */
static bool read_zone(struct ng_str text, size_t *at, bool *ret_local, int *ret_minutes)
{
    while (accept(text, at, ' ')) {
    }
    *ret_local = *at == text.len;
    if (*ret_local || accept(text, at, 'Z') || accept(text, at, 'z')) {
        return true;
    }
    bool minus = accept(text, at, '-');
    if (!minus && !accept(text, at, '+')) {
        return false;
    }
    int hours = digits(text, at, 2);
    int minutes = 0;
    if (*at < text.len) {
        (void)accept(text, at, ':');
        minutes = digits(text, at, 2);
    }
    *ret_minutes = (hours * 60 + minutes) * (minus ? -1 : 1);
    return hours >= 0 && hours <= 24 && minutes >= 0 && minutes <= 59;
}

bool notes_time_parse(struct ng_str text, int64_t *ret_ms)
{
    struct tm tm = {.tm_isdst = -1};
    int ms = 0;
    int zone = 0;
    bool local = true;
    size_t at = 0;
    text = notes_trim(text);
    if (!read_day(text, &at, &tm)) {
        return false;
    }
    if (at < text.len) {
        if (!accept(text, &at, 'T') && !accept(text, &at, 't') && !accept(text, &at, ' ')) {
            return false;
        }
        while (accept(text, &at, ' ')) {
        }
        if (!read_clock(text, &at, &tm, &ms) || !read_zone(text, &at, &local, &zone) ||
            at != text.len) {
            return false;
        }
    }
    tm.tm_isdst = local ? -1 : 0;
    int64_t seconds = local ? (int64_t)mktime(&tm) : (int64_t)timegm(&tm);
    *ret_ms = (seconds - (int64_t)zone * 60) * 1000 + ms;
    return true;
}

bool notes_day_valid(struct ng_str day)
{
    struct tm tm = {0};
    size_t at = 0;
    return day.len == 10 && read_day(day, &at, &tm) && at == day.len;
}
