/* SPDX-License-Identifier: MIT */
/* audit_values.h - the values behind the names that entries show (audit_names.h). */
#ifndef NOTEGATE_CORE_AUDIT_VALUES_H
#define NOTEGATE_CORE_AUDIT_VALUES_H

#include "audit_names.h"
#include "audit_tiles.h"

struct audit_values;

/* dir: the folder of the log, lent until audit_values_close(). NULL: out of memory. */
struct audit_values *audit_values_open(int dir);
/* NULL is a no-op. */
void audit_values_close(struct audit_values *values);

/* The value of a name in an entry of this month ("2026-11", or more of a time); it lives until
 * one of another month is asked for. Absent: the name was redacted. NG_OK; NG_EUNAVAILABLE,
 * NG_EINTERNAL with the sentence. */
int audit_values_get(struct audit_values *values, struct ng_str time, struct ng_str name,
                     struct ng_str *ret, struct buf *error);

/* Removes the lines of a value, or of a name, in all months. *ret_count: lines. A gateway's
 * audit_names must forget its table then. NG_OK, or as above. */
int audit_values_redact(int dir, struct ng_str value, uint64_t *ret_count, struct buf *error);

/* Removes the months that no entry from `first` on can be of. NG_OK, NG_EFAILED, or as above.
 */
int audit_values_prune(const struct audit_tiles *tiles, uint64_t first);

#endif
