/* SPDX-License-Identifier: MIT */
/* zone.c - reads the system's compiled zone files (RFC 8536), because the C library knows only
 * one zone a process. */
#include "zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "str.h"

#define ZONE_FOLDER "/usr/share/zoneinfo/"
#define ZONE_NAME_MAX 64
#define ZONE_FILE_MAX ((size_t)256 * 1024)
#define ZONE_HEADER 44
#define ZONE_RULE_MAX 127 /* also in the format that reads it */
#define ZONE_TYPE_SIZE 6
#define ZONE_DAY_S INT64_C(86400)
#define ZONE_OFFSET_MAX ((int64_t)26 * 3600)

/* A day in a year on which the clocks change: week `week` of `month` (5: the last), `weekday`
 * (0: Sunday), `second` of the day. */
struct zone_turn {
    int month, week, weekday;
    int64_t second;
};

struct zone_change {
    int64_t from; /* Unix seconds */
    int64_t offset;
};

struct zone {
    struct zone_change *changes;
    size_t count;
    int64_t first_offset; /* before the first change */
    /* After the last change, where the file has a rule. */
    bool has_rule;
    bool has_summer;
    int64_t winter_offset, summer_offset;
    struct zone_turn to_summer, to_winter;
};

/* ---- calendar ---- */

/* Days since 1970-01-01 of a day of the proleptic Gregorian calendar. */
static int64_t zone_days(int64_t year, int month, int day)
{
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t era = (shifted >= 0 ? shifted : shifted - 399) / 400;
    int64_t of_era = shifted - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct zone_day {
    int64_t year;
    int month, day;
};

static struct zone_day zone_civil(int64_t days)
{
    int64_t at = days + 719468;
    int64_t era = (at >= 0 ? at : at - 146096) / 146097;
    int64_t of_era = at - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int month = (int)((5 * of_year + 2) / 153);
    struct zone_day civil = {
        .year = year + era * 400 + (month >= 10 ? 1 : 0),
        .month = month < 10 ? month + 3 : month - 9,
        .day = (int)(of_year - (153 * month + 2) / 5 + 1),
    };
    return civil;
}

static int64_t zone_floor(int64_t number, int64_t by)
{
    int64_t result = number / by;
    return number % by < 0 ? result - 1 : result;
}

/* ---- the rule behind the last change: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

static const char *zone_skip_name(const char *at)
{
    if (*at == '<') {
        const char *end = strchr(at, '>');
        return end == NULL ? NULL : end + 1;
    }
    const char *from = at;
    while ((*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z')) {
        at++;
    }
    return at - from >= 3 ? at : NULL;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static const char *zone_read_time(const char *at, int64_t *ret_seconds)
{
    int64_t sign = *at == '-' ? -1 : 1;
    at += *at == '-' || *at == '+' ? 1 : 0;
    int64_t unit = 3600;
    int64_t seconds = 0;
    do {
        int64_t part = 0;
        int digits = 0;
        for (; *at >= '0' && *at <= '9' && digits < 3; digits++) {
            part = part * 10 + (*at++ - '0');
        }
        if (digits == 0) {
            return NULL;
        }
        seconds += part * unit;
        unit /= 60;
    } while (unit > 0 && *at == ':' && *at++ != '\0');
    *ret_seconds = sign * seconds;
    return at;
}

static const char *zone_read_turn(const char *at, struct zone_turn *turn)
{
    int read = 0;
    if (sscanf(at, ",M%2d.%1d.%1d%n", &turn->month, &turn->week, &turn->weekday, &read) != 3 ||
        turn->month < 1 || turn->month > 12 || turn->week < 1 || turn->week > 5 ||
        turn->weekday < 0 || turn->weekday > 6) {
        return NULL;
    }
    at += read;
    turn->second = 2 * 3600;
    return *at == '/' ? zone_read_time(at + 1, &turn->second) : at;
}

/* Leaves the zone without a rule where it is of another form. */
static void zone_read_rule(struct zone *zone, const char *text)
{
    int64_t offset = 0;
    const char *at = zone_skip_name(text);
    at = at == NULL ? NULL : zone_read_time(at, &offset);
    if (at == NULL) {
        return;
    }
    zone->winter_offset = -offset;
    if (*at == '\0') {
        zone->has_rule = true;
        return;
    }
    zone->summer_offset = zone->winter_offset + 3600;
    at = zone_skip_name(at);
    if (at != NULL && *at != ',' && *at != '\0') {
        at = zone_read_time(at, &offset);
        zone->summer_offset = -offset;
    }
    at = at == NULL ? NULL : zone_read_turn(at, &zone->to_summer);
    at = at == NULL ? NULL : zone_read_turn(at, &zone->to_winter);
    zone->has_rule = at != NULL && *at == '\0';
    zone->has_summer = zone->has_rule;
}

/* When the turn is in that year, in seconds of the clock then in use. */
static int64_t zone_turn_at(const struct zone_turn *turn, int64_t year)
{
    int64_t first = zone_days(year, turn->month, 1);
    int64_t next =
        turn->month == 12 ? zone_days(year + 1, 1, 1) : zone_days(year, turn->month + 1, 1);
    /* 1970-01-01 was a Thursday. */
    int64_t weekday = zone_floor(first + 4, 7) * -7 + first + 4;
    int64_t day = first + (turn->weekday - weekday + 7) % 7 + (int64_t)(turn->week - 1) * 7;
    if (day >= next) {
        day -= 7;
    }
    return day * ZONE_DAY_S + turn->second;
}

static int64_t zone_rule_offset(const struct zone *zone, int64_t time)
{
    if (!zone->has_summer) {
        return zone->winter_offset;
    }
    int64_t year = zone_civil(zone_floor(time + zone->winter_offset, ZONE_DAY_S)).year;
    int64_t summer = zone_turn_at(&zone->to_summer, year) - zone->winter_offset;
    int64_t winter = zone_turn_at(&zone->to_winter, year) - zone->summer_offset;
    bool is_summer =
        summer < winter ? time >= summer && time < winter : time >= summer || time < winter;
    return is_summer ? zone->summer_offset : zone->winter_offset;
}

/* ---- the file ---- */

struct zone_block {
    size_t times, types, chars, leaps, stds, uts;
};

static int64_t zone_number(const unsigned char *at, size_t bytes)
{
    uint64_t number = (at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < bytes; i++) {
        number = number << 8 | at[i];
    }
    return (int64_t)number;
}

static bool zone_header(const unsigned char *at, size_t left, struct zone_block *block)
{
    if (left < ZONE_HEADER || memcmp(at, "TZif", 4) != 0) {
        return false;
    }
    size_t *counts[] = {&block->uts,   &block->stds,  &block->leaps,
                        &block->times, &block->types, &block->chars};
    for (size_t i = 0; i < NG_COUNT(counts); i++) {
        int64_t count = zone_number(at + 20 + i * 4, 4);
        if (count < 0 || count > (int64_t)ZONE_FILE_MAX) {
            return false;
        }
        *counts[i] = (size_t)count;
    }
    return block->types > 0;
}

static size_t zone_block_size(const struct zone_block *block, size_t time_size)
{
    return block->times * (time_size + 1) + block->types * ZONE_TYPE_SIZE + block->chars +
           block->leaps * (time_size + 4) + block->stds + block->uts;
}

/* As RFC 8536 has it: more than a day behind or ahead of UTC is no clock. */
static bool zone_offset_valid(int64_t seconds)
{
    return seconds > -ZONE_OFFSET_MAX && seconds < ZONE_OFFSET_MAX;
}

static bool zone_fill(struct zone *zone, const unsigned char *at,
                      const struct zone_block *block)
{
    const unsigned char *indexes = at + block->times * 8;
    const unsigned char *types = indexes + block->times;
    zone->changes = alloc_zeroed(block->times + 1, sizeof(*zone->changes));
    if (zone->changes == NULL) {
        return false;
    }
    zone->first_offset = zone_number(types, 4);
    for (size_t i = 0; i < block->times; i++) {
        if (indexes[i] >= block->types) {
            return false;
        }
        zone->changes[i].from = zone_number(at + i * 8, 8);
        zone->changes[i].offset = zone_number(types + (size_t)indexes[i] * ZONE_TYPE_SIZE, 4);
        if (!zone_offset_valid(zone->changes[i].offset)) {
            return false;
        }
    }
    zone->count = block->times;
    return zone_offset_valid(zone->first_offset);
}

/* `bytes` ends in a NUL that `len` does not count. */
static bool zone_parse(struct zone *zone, const unsigned char *bytes, size_t len)
{
    struct zone_block block;
    if (!zone_header(bytes, len, &block)) {
        return false;
    }
    /* The first block has 32-bit times, for old readers. */
    size_t skip = ZONE_HEADER + zone_block_size(&block, 4);
    if (bytes[4] < '2' || skip > len || !zone_header(bytes + skip, len - skip, &block)) {
        return false;
    }
    size_t start = skip + ZONE_HEADER;
    size_t size = zone_block_size(&block, 8);
    if (size > len - start || !zone_fill(zone, bytes + start, &block)) {
        return false;
    }
    char line[ZONE_RULE_MAX + 2]; /* the end of line before it, and NUL */
    char rule[ZONE_RULE_MAX + 1];
    size_t footer = start + size;
    size_t left = len - footer < sizeof(line) - 1 ? len - footer : sizeof(line) - 1;
    memcpy(line, bytes + footer, left);
    line[left] = '\0';
    if (sscanf(line, "\n%127[^\n]", rule) == 1) {
        zone_read_rule(zone, rule);
        zone->has_rule = zone->has_rule && zone_offset_valid(zone->winter_offset) &&
                         (!zone->has_summer || zone_offset_valid(zone->summer_offset));
    }
    return true;
}

static int zone_load(struct zone *zone, struct ng_str name)
{
    char path[sizeof(ZONE_FOLDER) + ZONE_NAME_MAX];
    if (name.len > ZONE_NAME_MAX || name.data[0] == '/' ||
        memchr(name.data, '.', name.len) != NULL || memchr(name.data, '\0', name.len) != NULL) {
        return NG_EINVAL;
    }
    (void)snprintf(path, sizeof(path), ZONE_FOLDER "%.*s", (int)name.len, name.data);
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return NG_EINVAL;
    }
    int rc = NG_EINTERNAL;
    unsigned char *bytes = alloc_bytes(ZONE_FILE_MAX);
    if (bytes != NULL) {
        size_t len = fread(bytes, 1, ZONE_FILE_MAX, file);
        rc = zone_parse(zone, bytes, len) ? NG_OK : NG_EINVAL;
        free(bytes);
    }
    (void)fclose(file);
    return rc;
}

int zone_open(struct ng_str name, struct zone **ret)
{
    struct zone *zone = alloc_zeroed(1, sizeof(*zone));
    if (zone == NULL) {
        return NG_EINTERNAL;
    }
    /* UTC needs no database. */
    int rc = name.len == 0 || str_is(name, "UTC") ? NG_OK : zone_load(zone, name);
    if (rc != NG_OK) {
        zone_free(zone);
        return rc;
    }
    *ret = zone;
    return NG_OK;
}

void zone_free(struct zone *zone)
{
    if (zone != NULL) {
        free(zone->changes);
        free(zone);
    }
}

static int64_t zone_offset(const struct zone *zone, int64_t time)
{
    size_t low = 0;
    size_t high = zone->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].from <= time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == zone->count && zone->has_rule) {
        return zone_rule_offset(zone, time);
    }
    return low == 0 ? zone->first_offset : zone->changes[low - 1].offset;
}

void zone_date(const struct zone *zone, int64_t time_ms, char date[ZONE_DATE_SIZE])
{
    int64_t time = zone_floor(time_ms, 1000);
    int64_t offset = zone == NULL ? 0 : zone_offset(zone, time);
    struct zone_day day = zone_civil(zone_floor(time + offset, ZONE_DAY_S));
    unsigned year = day.year < 0 ? 0 : day.year > 9999 ? 9999 : (unsigned)day.year;
    (void)snprintf(date, ZONE_DATE_SIZE, "%04u-%02u-%02u", year, (unsigned)day.month % 100,
                   (unsigned)day.day % 100);
}

bool zone_date_valid(struct ng_str date)
{
    if (date.len != 10 || date.data[4] != '-' || date.data[7] != '-') {
        return false;
    }
    int parts[3] = {0, 0, 0};
    size_t part = 0;
    for (size_t i = 0; i < date.len; i++) {
        if (i == 4 || i == 7) {
            part++;
        } else if (date.data[i] < '0' || date.data[i] > '9') {
            return false;
        } else {
            parts[part] = parts[part] * 10 + (date.data[i] - '0');
        }
    }
    if (parts[1] < 1 || parts[1] > 12 || parts[2] < 1) {
        return false;
    }
    struct zone_day day = zone_civil(zone_days(parts[0], parts[1], parts[2]));
    return day.month == parts[1] && day.day == parts[2];
}
