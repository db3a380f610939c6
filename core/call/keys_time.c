/* SPDX-License-Identifier: MIT */
/* keys_time.c - when a key expires, as people write it and as they are told. */
#include "core/base/rfc3339.h"
#include "core/base/str.h"
#include "core/config/config.h"
#include "core/keys/keys.h"

#define DAY_MS ((int64_t)86400 * 1000)
/* A longer life is a typing error; the year keeps four digits. */
#define YEARS_MAX 100

int keys_parse_expiry(struct ng_str text, int64_t now_ms, int64_t *ret_ms)
{
    int64_t time_ms = 0;
    struct rfc3339 time;
    if (rfc3339_read(text, &time) && time.is_strict) {
        time_ms = rfc3339_ms(&time) - time.ms; /* whole seconds */
        if (!time.has_time) {
            time_ms += DAY_MS; /* a date alone: that day is its last */
        }
    } else {
        int64_t duration_ms;
        if (config_parse_duration(text, &duration_ms) != NG_OK || duration_ms == 0 ||
            duration_ms > YEARS_MAX * 366 * DAY_MS) {
            return NG_EINVAL;
        }
        time_ms = now_ms + duration_ms;
    }
    if (time_ms > now_ms + YEARS_MAX * 366 * DAY_MS) {
        return NG_EINVAL;
    }
    *ret_ms = time_ms;
    return NG_OK;
}

void keys_print_time(int64_t time_ms, char ret_text[KEY_TIME_SIZE])
{
    rfc3339_write(time_ms, RFC3339_SECONDS, ret_text);
}
