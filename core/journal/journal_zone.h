/* SPDX-License-Identifier: MIT */
/* journal_zone.h - the time zone of the gateway: that of the setting `timezone`, else that of
 * the system (TZ, /etc/localtime). */
#ifndef NOTEGATE_CORE_JOURNAL_ZONE_H
#define NOTEGATE_CORE_JOURNAL_ZONE_H

#include "core/base/text/rfc3339.h"

/* True for "UTC", "" (the zone of the system) and names in the zone database of the system
 * ("Europe/Berlin"). */
bool journal_zone_exists(struct ng_str name);
/* Makes it the zone of the process: call it before threads use local times. NG_EINVAL: there is
 * no such zone. NG_EINTERNAL: out of memory. */
int journal_zone_use(struct ng_str name);
/* The day in the zone of the process at a Unix time in milliseconds. */
void journal_zone_day(int64_t time_ms, char out[RFC3339_DAY_SIZE]);

#endif
