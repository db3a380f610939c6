/* SPDX-License-Identifier: MIT */
/* rfc3339.h - days and times of RFC 3339 in and out, of the Gregorian calendar. */
#ifndef NOTEGATE_CORE_RFC3339_H
#define NOTEGATE_CORE_RFC3339_H

#include "notegate/abi.h"

#define RFC3339_SIZE 40 /* "2026-01-28T14:30:00.000+00:00" and a NUL, whatever is written */
#define RFC3339_DAY_SIZE 16

enum rfc3339_form {
    RFC3339_SECONDS = 0, /* 2026-01-28T14:30:00Z */
    RFC3339_MS,          /* 2026-01-28T14:30:00.250Z */
};

/* A Unix time in UTC. Years that do not have four digits become 1970-01-01T00:00:00Z. */
void rfc3339_write(int64_t time_ms, enum rfc3339_form form, char out[RFC3339_SIZE]);
/* Its day in UTC, "2026-01-28". */
void rfc3339_write_day(int64_t time_ms, char out[RFC3339_DAY_SIZE]);

/* A time as it was written. */
struct rfc3339 {
    int year, month, day; /* 1 to 9999, 1 to 12, 1 to the days of that month */
    int hour, minute;     /* 0 to 24, 0 to 59 */
    int second;           /* 0 to 60 */
    int ms;               /* of the fraction, cut off */
    int offset_minutes;   /* east of UTC */
    bool has_time;        /* else a day alone */
    bool has_seconds;
    bool has_offset; /* "Z" or one with a sign */
    bool
        is_strict; /* RFC 3339; else a form beside it: without seconds or offset, "+0100",
                      "+01", a comma before the fraction, blanks before time or offset, 24:00 */
};

/* Reads all of `text`. false: it is neither a day nor a time, or a day that does not exist. */
bool rfc3339_read(struct ng_str text, struct rfc3339 *ret);
/* The Unix time; without an offset it is one of UTC. For texts that programs have written. */
int64_t rfc3339_ms(const struct rfc3339 *time);
/* The same; without an offset it is one of the zone of the process, which is the gateway's. For
 * days and times that a caller gives. */
int64_t rfc3339_local_ms(const struct rfc3339 *time);
/* YYYY-MM-DD, and a day that exists? */
bool rfc3339_is_day(struct ng_str text);
/* Days from 1970-01-01 to a day. */
int64_t rfc3339_days(int year, int month, int day);

#endif
