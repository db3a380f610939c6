/* SPDX-License-Identifier: MIT */
/* journal_zone.h - the day at a time in the zone of the setting `timezone`. The process keeps
 * the zone of the system. */
#ifndef NOTEGATE_CORE_JOURNAL_ZONE_H
#define NOTEGATE_CORE_JOURNAL_ZONE_H

#include "core/base/text/rfc3339.h"

struct journal_zone;

/* True for "UTC", "" and names in the zone database of the system ("Europe/Berlin"). */
bool journal_zone_exists(struct ng_str name);
/* Switches the process to the zone temporarily: call it before threads use local times.
 * NG_EINVAL: there is no such zone. NG_EINTERNAL: out of memory. */
int journal_zone_open(struct ng_str name, struct journal_zone **ret);
void journal_zone_free(struct journal_zone *zone);
/* The day in the zone (NULL: UTC) at a Unix time in milliseconds. */
void journal_zone_day(const struct journal_zone *zone, int64_t time_ms,
                      char out[RFC3339_DAY_SIZE]);

#endif
