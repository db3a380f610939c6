/* SPDX-License-Identifier: MIT */
/* zone.h - a time zone by its name, beside the process's own: which day it is there. */
#ifndef NOTEGATE_CORE_ZONE_H
#define NOTEGATE_CORE_ZONE_H

#include "notegate/abi.h"

struct zone;

/* "YYYY-MM-DD" and NUL. */
#define ZONE_DATE_SIZE 16

/* "UTC", "" or absent, or the name of a file of the system's zone database ("Europe/Berlin").
 * NG_EINVAL: there is no such zone. */
int zone_open(struct ng_str name, struct zone **ret);
void zone_free(struct zone *zone);
/* The day in the zone (NULL: UTC) at a Unix time in milliseconds. */
void zone_date(const struct zone *zone, int64_t time_ms, char date[ZONE_DATE_SIZE]);
/* Is it YYYY-MM-DD, and a day that exists? */
bool zone_date_valid(struct ng_str date);

#endif
