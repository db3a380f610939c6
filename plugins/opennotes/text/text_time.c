/* SPDX-License-Identifier: MIT */
/* text_time.c - times of the gateway's zone (`timezone`, else TZ). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/hash.h"
#include "text.h"

#define YEAR_MAX 9999
#define MINUTE_MS ((int64_t)60 * 1000)
/* Times at which zones are compared: a season apart, from 1970 to 2040. */
#define ZONE_STEP_MS ((int64_t)91 * 24 * 60 * MINUTE_MS)
#define ZONE_UNTIL_MS ((int64_t)70 * 365 * 24 * 60 * MINUTE_MS)

void notes_time_write_local(int64_t time_ms, char out[RFC3339_SIZE])
{
    struct tm tm;
    time_t seconds = (time_t)(time_ms / 1000 - (time_ms % 1000 < 0));
    if (localtime_r(&seconds, &tm) == NULL || tm.tm_year < -1900 ||
        tm.tm_year > YEAR_MAX - 1900) {
        rfc3339_write(time_ms, RFC3339_SECONDS, out);
        return;
    }
    /* The local time written as UTC, then the offset in place of its "Z". */
    long minutes = tm.tm_gmtoff / 60;
    char sign = minutes < 0 ? '-' : '+';
    rfc3339_write(time_ms + minutes * MINUTE_MS, RFC3339_SECONDS, out);
    minutes = labs(minutes);
    size_t zone = strlen(out) - 1;
    (void)snprintf(out + zone, RFC3339_SIZE - zone, "%c%02ld:%02ld", sign, minutes / 60,
                   minutes % 60);
}

void notes_day_write(int64_t time_ms, char out[RFC3339_DAY_SIZE])
{
    char text[RFC3339_SIZE];
    notes_time_write_local(time_ms, text);
    (void)snprintf(out, RFC3339_DAY_SIZE, "%.10s", text);
}

uint64_t notes_time_zone(void)
{
    uint64_t hash = HASH_FNV_BASIS;
    char text[RFC3339_SIZE];
    for (int64_t time_ms = 0; time_ms < ZONE_UNTIL_MS; time_ms += ZONE_STEP_MS) {
        notes_time_write_local(time_ms, text);
        hash = hash_fnv(hash, ng_str_of(text));
    }
    return hash;
}

bool notes_time_parse(struct ng_str text, int64_t *ret_ms)
{
    struct rfc3339 time;
    if (!rfc3339_read(notes_trim(text), &time)) {
        return false;
    }
    *ret_ms = rfc3339_local_ms(&time);
    return true;
}
