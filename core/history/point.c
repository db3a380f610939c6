/* SPDX-License-Identifier: MIT */
/* point.c - reads a point of the history. */
#include "point.h"

#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/config/config.h"

/* Ages beyond this are no age: a hundred years. */
#define POINT_AGE_MAX_MS (INT64_C(100) * 366 * 24 * 60 * 60 * 1000)

static bool point_number(struct ng_str text, uint64_t *ret)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *ret = number;
    return text.len > 0;
}

static bool point_time(struct ng_str text, int64_t *ret_ms)
{
    struct rfc3339 time;
    if (!rfc3339_read(text, &time)) {
        return false;
    }
    *ret_ms = rfc3339_local_ms(&time);
    return true;
}

/* "30m", as people write it; the configuration has no m, which could be months. */
static bool point_minutes(struct ng_str text, int64_t *ret_ms)
{
    const uint64_t minute_ms = UINT64_C(60) * 1000;
    uint64_t minutes = 0;
    if (!str_ends(text, "m") || !point_number(str_make(text.data, text.len - 1), &minutes) ||
        minutes > (uint64_t)POINT_AGE_MAX_MS / minute_ms) {
        return false;
    }
    *ret_ms = (int64_t)(minutes * minute_ms);
    return true;
}

bool point_parse(struct ng_str text, int64_t now_ms, struct point *ret)
{
    int64_t age_ms = 0;
    ret->number = 0;
    ret->time_ms = now_ms;
    if (point_number(text, &ret->number)) {
        ret->kind = POINT_REVISION;
        return true;
    }
    if (text.len > 0 && text.data[0] == '#') {
        ret->kind = POINT_SEQ;
        return point_number(str_make(text.data + 1, text.len - 1), &ret->number);
    }
    ret->kind = POINT_TIME;
    if (str_is(text, "now") || point_time(text, &ret->time_ms)) {
        return true;
    }
    if (!point_minutes(text, &age_ms) &&
        (config_parse_duration(text, &age_ms) != NG_OK || age_ms > POINT_AGE_MAX_MS)) {
        return false;
    }
    ret->time_ms = now_ms - age_ms;
    return true;
}
