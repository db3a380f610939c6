/* SPDX-License-Identifier: MIT */
/* journal_zone.c - the time zone of the gateway. The C library has one zone per process, so
 * that everything that writes local times has the same one. */
#include "journal_zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/str.h"

#define ZONE_FOLDER "/usr/share/zoneinfo/"
#define ZONE_NAME_MAX 64
#define ZONE_UTC "UTC0" /* as POSIX writes it: needs no zone database */

bool journal_zone_exists(struct ng_str name)
{
    char path[sizeof(ZONE_FOLDER) + ZONE_NAME_MAX];
    char magic[4] = "";
    if (name.len == 0 || str_is(name, "UTC")) {
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

int journal_zone_use(struct ng_str name)
{
    char value[ZONE_NAME_MAX + 2] = ZONE_UTC;
    if (!journal_zone_exists(name)) {
        return NG_EINVAL;
    }
    if (name.len > 0 && !str_is(name, "UTC")) {
        (void)snprintf(value, sizeof(value), ":%.*s", (int)name.len, name.data);
    }
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): before plugins start their threads */
    if (name.len > 0 && setenv("TZ", value, 1) != 0) {
        return NG_EINTERNAL;
    }
    tzset(); /* localtime_r() does not read TZ */
    return NG_OK;
}

void journal_zone_day(int64_t time_ms, char out[RFC3339_DAY_SIZE])
{
    time_t seconds = (time_t)(time_ms / 1000 - (time_ms % 1000 < 0));
    struct tm parts;
    int64_t offset_ms = 0;
    if (localtime_r(&seconds, &parts) != NULL) {
        offset_ms = (int64_t)parts.tm_gmtoff * 1000;
    }
    rfc3339_write_day(time_ms + offset_ms, out);
}
