/* SPDX-License-Identifier: MIT */
/* view_time.c - time variables of views: days, weeks that begin on Monday, months, quarters, in
 * the gateway's zone. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "view.h"

/* Largest step of {{today+N}}: about a thousand years. */
#define STEP_MAX 400000

enum unit { DAYS, WEEKS, MONTHS, MONTH_ENDS, QUARTERS, QUARTER_ENDS };

struct time_name {
    const char *name;
    enum unit unit;
    int step;
};

static const struct time_name time_names[] = {
    {"today", DAYS, 0},
    {"yesterday", DAYS, -1},
    {"tomorrow", DAYS, 1},
    {"this_week", WEEKS, 0},
    {"last_week", WEEKS, -1},
    {"next_week", WEEKS, 1},
    {"this_month", MONTHS, 0},
    {"start_of_month", MONTHS, 0},
    {"last_month", MONTHS, -1},
    {"next_month", MONTHS, 1},
    {"end_of_month", MONTH_ENDS, 0},
    {"start_of_quarter", QUARTERS, 0},
    {"end_of_quarter", QUARTER_ENDS, 0},
};

/* Splits "+3", "-10" from the end of a name; *ret_name is the part before. */
static bool split_step(struct ng_str text, struct ng_str *ret_name, int *ret_step)
{
    size_t at = 0;
    int step = 0;
    while (at < text.len && text.data[at] != '+' && text.data[at] != '-') {
        at++;
    }
    *ret_name = notes_trim(str_make(text.data, at));
    *ret_step = 0;
    if (at == text.len) {
        return true;
    }
    struct ng_str digits = notes_trim(str_make(text.data + at + 1, text.len - at - 1));
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9' || step > STEP_MAX) {
            return false;
        }
        step = step * 10 + (digits.data[i] - '0');
    }
    if (text.data[at] == '-') {
        *ret_step = -step;
    } else {
        *ret_step = step;
    }
    return digits.len > 0 && step <= STEP_MAX;
}

/* The day of a unit plus a number of steps. The first of a month is computed before the steps
 * are added, so that the 31st does not overflow. */
static void move(struct tm *tm, enum unit unit, int step)
{
    switch (unit) {
    case DAYS:
        tm->tm_mday += step;
        break;
    case WEEKS:
        tm->tm_mday += step * 7 - (tm->tm_wday + 6) % 7;
        break;
    case MONTHS:
        tm->tm_mday = 1;
        tm->tm_mon += step;
        break;
    case MONTH_ENDS:
        tm->tm_mday = 0;
        tm->tm_mon += step + 1;
        break;
    case QUARTERS:
        tm->tm_mday = 1;
        tm->tm_mon += step * 3 - tm->tm_mon % 3;
        break;
    case QUARTER_ENDS:
        tm->tm_mday = 0;
        tm->tm_mon += (step + 1) * 3 - tm->tm_mon % 3;
        break;
    }
}

bool notes_view_time(struct ng_str name, int64_t now_ms, char out[RFC3339_SIZE])
{
    time_t now = (time_t)(now_ms / 1000);
    struct tm tm;
    struct ng_str base;
    int step = 0;
    if (localtime_r(&now, &tm) == NULL || !split_step(notes_trim(name), &base, &step)) {
        return false;
    }
    if (str_is(notes_trim(name), "now")) {
        notes_time_write_local(now_ms, out);
        return true;
    }
    if (str_is(notes_trim(name), "quarter")) {
        (void)snprintf(out, RFC3339_SIZE, "Q%d", tm.tm_mon / 3 + 1);
        return true;
    }
    if (str_is(notes_trim(name), "year")) {
        (void)snprintf(out, RFC3339_SIZE, "%04d", tm.tm_year + 1900);
        return true;
    }
    for (size_t i = 0; i < NG_COUNT(time_names); i++) {
        if (!str_is(base, time_names[i].name)) {
            continue;
        }
        move(&tm, time_names[i].unit, time_names[i].step + step);
        /* Noon exists on every day in every zone. */
        tm.tm_hour = 12;
        tm.tm_min = tm.tm_sec = 0;
        tm.tm_isdst = -1;
        time_t moved = mktime(&tm);
        if (moved == (time_t)-1) {
            return false;
        }
        notes_day_write((int64_t)moved * 1000, out);
        return true;
    }
    return false;
}
