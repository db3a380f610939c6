/* SPDX-License-Identifier: MIT */
/* audit_filter.h - which entries of the audit log are wanted. */
#ifndef NOTEGATE_API_AUDIT_FILTER_H
#define NOTEGATE_API_AUDIT_FILTER_H

#include "audit_shown.h"

/* Absent texts and 0 do not count. Of all but `id` the text may be several by commas, one of
 * which has to hold. `collection`, `id`, `action` and numbers of changes are of one document; a
 * final "*" of an id is any end, "\*" the character itself. */
struct audit_filter {
    struct ng_str agent, run, tool, action, collection, space, id, outcome, key;
    int64_t since_ms, until_ms;
    uint64_t since_seq, until_seq;
    bool has_until_seq;
};

/* The names that audit_filter_set() takes. */
#define AUDIT_FILTER_NAMES                                                                     \
    "agent, run, tool, action, collection, space, id, path, outcome, key, since, until"

/* value is lent as long as the filter is used. NG_OK; NG_ENOTFOUND: no such name; NG_EINVAL:
 * `since` and `until` are #SEQ, RFC 3339 times or days, durations before now, or now; `path` is
 * absolute, and the id of a file: not beside `id`. */
int audit_filter_set(struct audit_filter *filter, struct ng_str name, struct ng_str value);
bool audit_filter_fits(const struct audit_filter *filter, const struct audit_shown *shown);

#endif
