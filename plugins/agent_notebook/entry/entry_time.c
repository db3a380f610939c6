/* SPDX-License-Identifier: MIT */
/* entry_time.c - times as entries have them and as callers give them: ISO 8601. */
#include <time.h>

#include "entry.h"

struct ng_str entry_time(struct ng_call *call, int64_t ms)
{
    struct tm parts;
    time_t seconds = (time_t)(ms / 1000);
    struct ng_str none = {NULL, 0};
    if (gmtime_r(&seconds, &parts) == NULL) {
        return none;
    }
    return call->host->format(call, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                              parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                              parts.tm_sec, (int)(ms % 1000));
}

/* A number of so many digits. */
static bool time_digits(struct ng_str text, size_t at, size_t count, int *ret)
{
    *ret = 0;
    for (size_t i = at; i < at + count; i++) {
        if (i >= text.len || text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        *ret = *ret * 10 + (text.data[i] - '0');
    }
    return true;
}

static bool time_is(struct ng_str text, size_t at, char c)
{
    return at < text.len && text.data[at] == c;
}

/* "Z", "+01:00", or nothing, which is UTC. */
static bool time_zone(struct ng_str text, size_t at, int *ret_minutes)
{
    int hours = 0;
    int minutes = 0;
    *ret_minutes = 0;
    if (at == text.len || (at + 1 == text.len && (text.data[at] | 0x20) == 'z')) {
        return true;
    }
    bool minus = time_is(text, at, '-');
    size_t colon = at + 3 < text.len && text.data[at + 3] == ':' ? 1 : 0;
    if ((!minus && !time_is(text, at, '+')) || !time_digits(text, at + 1, 2, &hours) ||
        !time_digits(text, at + 3 + colon, 2, &minutes) || text.len != at + 5 + colon ||
        hours > 23 || minutes > 59) {
        return false;
    }
    *ret_minutes = (hours * 60 + minutes) * (minus ? -1 : 1);
    return true;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t time_days(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool time_clock(struct ng_str text, size_t *at, int64_t *ret_ms)
{
    int hour = 0;
    int minute = 0;
    int second = 0;
    int64_t ms = 0;
    if (!time_digits(text, 11, 2, &hour) || !time_is(text, 13, ':') ||
        !time_digits(text, 14, 2, &minute)) {
        return false;
    }
    *at = 16;
    if (time_is(text, 16, ':')) {
        if (!time_digits(text, 17, 2, &second)) {
            return false;
        }
        *at = 19;
    }
    if (*at == 19 && time_is(text, 19, '.')) {
        int64_t unit = 100;
        for (*at = 20; *at < text.len && text.data[*at] >= '0' && text.data[*at] <= '9';
             (*at)++) {
            ms += unit * (text.data[*at] - '0');
            unit /= 10;
        }
    }
    *ret_ms = ((int64_t)hour * 3600 + (int64_t)minute * 60 + second) * 1000 + ms;
    return hour < 24 && minute < 60 && second < 61;
}

bool entry_time_parse(struct ng_str text, int64_t *ret_ms)
{
    int year = 0;
    int month = 0;
    int day = 0;
    int zone = 0;
    int64_t of_day = 0;
    size_t at = 10;
    if (!time_digits(text, 0, 4, &year) || !time_is(text, 4, '-') ||
        !time_digits(text, 5, 2, &month) || !time_is(text, 7, '-') ||
        !time_digits(text, 8, 2, &day) || month < 1 || month > 12 || day < 1 || day > 31 ||
        year < 1) {
        return false;
    }
    if (text.len > 10 &&
        ((text.data[10] != 'T' && text.data[10] != 't' && text.data[10] != ' ') ||
         !time_clock(text, &at, &of_day))) {
        return false;
    }
    if (!time_zone(text, at, &zone)) {
        return false;
    }
    *ret_ms = time_days(year, month, day) * 86400000 + of_day - (int64_t)zone * 60000;
    return true;
}
