/* SPDX-License-Identifier: MIT */
/* key_time.c - when a key expires, as people write it. */
#include "core/config/config.h"
#include "key.h"

#define DAY_MS ((int64_t)86400 * 1000)
/* A later date is taken for a mistake; its year might not have four digits. */
#define YEARS_MAX 100

int key_parse_expiry(struct ng_str text, int64_t now_ms, int64_t *ret_ms)
{
    const int64_t longest_ms = YEARS_MAX * 366 * DAY_MS;
    struct rfc3339 time;
    int64_t time_ms = 0;
    if (rfc3339_read(text, &time)) {
        if (!time.is_strict) {
            return NG_EINVAL;
        }
        time_ms = rfc3339_ms(&time) - time.ms;
        if (!time.has_time) {
            time_ms += DAY_MS; /* the key is valid to the end of that day */
        }
    } else {
        int64_t duration_ms;
        if (config_parse_duration(text, &duration_ms) != NG_OK || duration_ms == 0 ||
            duration_ms > longest_ms) {
            return NG_EINVAL;
        }
        time_ms = now_ms + duration_ms;
    }
    if (time_ms > now_ms + longest_ms) {
        return NG_EINVAL;
    }
    *ret_ms = time_ms;
    return NG_OK;
}
