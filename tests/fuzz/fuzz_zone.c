/* SPDX-License-Identifier: MIT */
/* fuzz_zone.c - eight bytes of a time, then a file of the zone database: a day that exists, or
 * the file is refused. The same bytes as a day that somebody wrote. */
#include <stdlib.h>

#include "core/base/zone.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zone *zone = NULL;
    int64_t time_ms = 0;
    if (size < sizeof(time_ms)) {
        return 0;
    }
    memcpy(&time_ms, data, sizeof(time_ms));
    struct ng_str rest = {(const char *)data + sizeof(time_ms), size - sizeof(time_ms)};
    (void)zone_date_valid(rest);
    zone = calloc(1, sizeof(*zone));
    if (zone == NULL) {
        return 0;
    }
    if (zone_parse(zone, (const unsigned char *)rest.data, rest.len)) {
        /* From the year 1 to the year 9999, where four digits are enough. */
        const int64_t times[] = {time_ms % INT64_C(62000000000000), 0, INT64_C(253370764800000),
                                 INT64_C(-62000000000000)};
        for (size_t i = 0; i < NG_COUNT(times); i++) {
            char date[ZONE_DATE_SIZE];
            zone_date(zone, times[i], date);
            must(zone_date_valid(ng_str_of(date)));
        }
    }
    zone_free(zone);
    return 0;
}
