/* SPDX-License-Identifier: MIT */
/* journal_zone.h - the day at a time in the zone that `timezone` names. The process keeps the
 * system's zone. */
#ifndef NOTEGATE_CORE_JOURNAL_ZONE_H
#define NOTEGATE_CORE_JOURNAL_ZONE_H

#include "core/base/rfc3339.h"

struct journal_zone;

/* Is it "UTC", "" or the name of a file of the system's zone database ("Europe/Berlin")? */
bool journal_zone_exists(struct ng_str name);
/* Switches the process to the zone for a moment, so only before threads ask for local times.
 * NG_EINVAL: there is no such zone. NG_EINTERNAL: out of memory. */
int journal_zone_open(struct ng_str name, struct journal_zone **ret);
void journal_zone_free(struct journal_zone *zone);
/* The day in the zone (NULL: UTC) at a Unix time in milliseconds. */
void journal_zone_day(const struct journal_zone *zone, int64_t time_ms,
                      char out[RFC3339_DAY_SIZE]);

#endif
