/* SPDX-License-Identifier: MIT */
/* journal_zone.c - the day in a time zone. The C library supports one zone per process, and
 * OpenNotes uses the one of the system. So the offsets of this zone are read once, at the
 * start. */
#include "journal_zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/str.h"

#define ZONE_FOLDER "/usr/share/zoneinfo/"
#define ZONE_NAME_MAX 64
#define ZONE_CHANGES_MAX ((size_t)4096)
/* Unix seconds of 1901 and 2200; before and after them the first and last offset apply. */
#define ZONE_FROM INT64_C(-2145916800)
#define ZONE_TO INT64_C(7258118400)
/* No zone changes its offset and back within this time (Ramadan in Morocco: a month). */
#define ZONE_STEP ((int64_t)7 * 86400)

struct zone_change {
    int64_t from; /* Unix seconds */
    int64_t offset;
};

struct journal_zone {
    struct zone_change *changes; /* by time; the first from the beginning of time */
    size_t count, cap;
};

static bool is_utc(struct ng_str name)
{
    return name.len == 0 || str_is(name, "UTC");
}

bool journal_zone_exists(struct ng_str name)
{
    char path[sizeof(ZONE_FOLDER) + ZONE_NAME_MAX];
    char magic[4] = "";
    if (is_utc(name)) {
        return true;
    }
    if (name.len > ZONE_NAME_MAX || name.data[0] == '/' ||
        memchr(name.data, '.', name.len) != NULL || memchr(name.data, '\0', name.len) != NULL) {
        return false;
    }
    (void)snprintf(path, sizeof(path), ZONE_FOLDER "%.*s", (int)name.len, name.data);
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return false;
    }
    bool is_zone = fread(magic, 1, sizeof(magic), file) == sizeof(magic) &&
                   memcmp(magic, "TZif", sizeof(magic)) == 0;
    (void)fclose(file);
    return is_zone;
}

/* Seconds east of UTC in the zone of the process. */
static int64_t offset_at(int64_t time)
{
    time_t seconds = (time_t)time;
    struct tm parts;
    if (localtime_r(&seconds, &parts) == NULL) {
        return 0;
    }
    return parts.tm_gmtoff;
}

static int add_change(struct journal_zone *zone, int64_t from, int64_t offset)
{
    int rc = array_reserve((void **)&zone->changes, &zone->cap, zone->count + 1,
                           sizeof(*zone->changes), ZONE_CHANGES_MAX);
    if (rc == NG_OK) {
        zone->changes[zone->count++] = (struct zone_change){from, offset};
    }
    return rc;
}

/* The first second in (early, late] with the offset of `late`. */
static int64_t change_between(int64_t early, int64_t late)
{
    int64_t offset = offset_at(late);
    while (late - early > 1) {
        int64_t middle = early + (late - early) / 2;
        if (offset_at(middle) == offset) {
            late = middle;
        } else {
            early = middle;
        }
    }
    return late;
}

static int read_changes(struct journal_zone *zone)
{
    int64_t offset = offset_at(ZONE_FROM);
    int rc = add_change(zone, INT64_MIN, offset);
    for (int64_t time = ZONE_FROM; time < ZONE_TO && rc == NG_OK; time += ZONE_STEP) {
        int64_t next = offset_at(time + ZONE_STEP);
        if (next != offset) {
            offset = next;
            rc = add_change(zone, change_between(time, time + ZONE_STEP), offset);
        }
    }
    return rc;
}

/* Reads the changes while TZ names the zone, then restores TZ. */
static int read_named(struct journal_zone *zone, struct ng_str name)
{
    char value[ZONE_NAME_MAX + 2];
    const char *old = getenv("TZ");
    char *kept = NULL;
    int rc = NG_EINTERNAL;
    if (old != NULL && (kept = strdup(old)) == NULL) {
        return NG_EINTERNAL;
    }
    (void)snprintf(value, sizeof(value), ":%.*s", (int)name.len, name.data);
    if (setenv("TZ", value, 1) == 0) {
        tzset();
        rc = read_changes(zone);
        if (kept != NULL) {
            (void)setenv("TZ", kept, 1);
        } else {
            (void)unsetenv("TZ");
        }
        tzset();
    }
    free(kept);
    return rc;
}

int journal_zone_open(struct ng_str name, struct journal_zone **ret)
{
    if (!journal_zone_exists(name)) {
        return NG_EINVAL;
    }
    struct journal_zone *zone = alloc_zeroed(1, sizeof(*zone));
    if (zone == NULL) {
        return NG_EINTERNAL;
    }
    int rc = NG_OK;
    if (!is_utc(name)) {
        rc = read_named(zone, name);
    }
    if (rc != NG_OK) {
        journal_zone_free(zone);
        return rc;
    }
    *ret = zone;
    return NG_OK;
}

void journal_zone_free(struct journal_zone *zone)
{
    if (zone != NULL) {
        free(zone->changes);
        free(zone);
    }
}

void journal_zone_day(const struct journal_zone *zone, int64_t time_ms,
                      char out[RFC3339_DAY_SIZE])
{
    int64_t offset_ms = 0;
    if (zone != NULL && zone->count > 0) {
        size_t at = zone->count - 1;
        while (at > 0 && zone->changes[at].from > time_ms / 1000) {
            at--;
        }
        offset_ms = zone->changes[at].offset * 1000;
    }
    rfc3339_write_day(time_ms + offset_ms, out);
}
