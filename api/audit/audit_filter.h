/* SPDX-License-Identifier: MIT */
/* audit_filter.h - which entries of the audit log are wanted. */
#ifndef NOTEGATE_API_AUDIT_FILTER_H
#define NOTEGATE_API_AUDIT_FILTER_H

#include "audit_shown.h"

/* Absent texts and 0 do not count. `collection`, `id` and `action` are of one document; a final
 * "*" of an id is any end. */
struct audit_filter {
    struct ng_str agent, run, tool, action, collection, space, id, outcome, key;
    int64_t since_ms, until_ms;
};

/* The names that audit_filter_set() takes. */
#define AUDIT_FILTER_NAMES                                                                     \
    "agent, run, tool, action, collection, space, id, outcome, key, since, until"

/* value is lent as long as the filter is used. NG_OK; NG_ENOTFOUND: no such name; NG_EINVAL:
 * `since` and `until` are RFC 3339 times or days, or a duration before now. */
int audit_filter_set(struct audit_filter *filter, struct ng_str name, struct ng_str value);
bool audit_filter_fits(const struct audit_filter *filter, const struct audit_shown *shown);

#endif
