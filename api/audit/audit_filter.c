/* SPDX-License-Identifier: MIT */
/* audit_filter.c - all conditions have to hold. */
#include "audit_filter.h"

#include <stddef.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/history/point.h"

static const struct condition {
    const char *name;
    size_t at;       /* in the filter */
    size_t shown_at; /* in an entry */
} conditions[] = {
    {"agent", offsetof(struct audit_filter, agent), offsetof(struct audit_shown, agent)},
    {"run", offsetof(struct audit_filter, run), offsetof(struct audit_shown, run)},
    {"tool", offsetof(struct audit_filter, tool), offsetof(struct audit_shown, tool)},
    {"space", offsetof(struct audit_filter, space), offsetof(struct audit_shown, space)},
    {"outcome", offsetof(struct audit_filter, outcome), offsetof(struct audit_shown, outcome)},
    {"key", offsetof(struct audit_filter, key), offsetof(struct audit_shown, key)},
};

static int filter_since(struct audit_filter *filter, struct ng_str text)
{
    struct point point;
    if (!point_parse(text, clock_unix_ms(), &point) || point.kind == POINT_REVISION) {
        return NG_EINVAL;
    }
    if (point.kind == POINT_SEQ) {
        filter->since_seq = point.number;
    } else {
        filter->since_ms = point.time_ms;
    }
    return NG_OK;
}

static int filter_until(struct audit_filter *filter, struct ng_str text)
{
    struct point point;
    if (!point_parse(text, clock_unix_ms(), &point) || point.kind == POINT_REVISION) {
        return NG_EINVAL;
    }
    if (point.kind == POINT_SEQ) {
        filter->until_seq = point.number;
        filter->has_until_seq = true;
    } else {
        filter->until_ms = point.time_ms;
    }
    return NG_OK;
}

static int filter_id(struct audit_filter *filter, struct ng_str id)
{
    if (filter->id.data != NULL) {
        return NG_EINVAL;
    }
    filter->id = id;
    return NG_OK;
}

int audit_filter_set(struct audit_filter *filter, struct ng_str name, struct ng_str value)
{
    if (str_is(name, "since")) {
        return filter_since(filter, value);
    }
    if (str_is(name, "until")) {
        return filter_until(filter, value);
    }
    if (str_is(name, "collection")) {
        filter->collection = value;
        return NG_OK;
    }
    if (str_is(name, "id")) {
        return filter_id(filter, value);
    }
    if (str_is(name, "path")) {
        return str_begins(value, "/") ? filter_id(filter, value) : NG_EINVAL;
    }
    if (str_is(name, "action")) {
        filter->action = value;
        return NG_OK;
    }
    for (size_t i = 0; i < NG_COUNT(conditions); i++) {
        if (str_is(name, conditions[i].name)) {
            *(struct ng_str *)(void *)((char *)filter + conditions[i].at) = value;
            return NG_OK;
        }
    }
    return NG_ENOTFOUND;
}

/* Is the text one of those with commas between? */
static bool fits_text(struct ng_str wanted, struct ng_str text)
{
    size_t at = 0;
    bool fits = wanted.data == NULL;
    while (!fits && at <= wanted.len) {
        size_t end = size_min(str_find(wanted, ng_str_of(","), at), wanted.len);
        fits = str_equal(str_make(wanted.data + at, end - at), text);
        at = end + 1;
    }
    return fits;
}

static bool fits_id(struct ng_str wanted, struct ng_str id)
{
    if (wanted.data == NULL) {
        return true;
    }
    if (str_ends(wanted, "\\*")) {
        return str_ends(id, "*") &&
               str_equal(str_make(wanted.data, wanted.len - 2), str_make(id.data, id.len - 1));
    }
    return str_ends(wanted, "*") ? str_starts(id, str_make(wanted.data, wanted.len - 1))
                                 : str_equal(wanted, id);
}

static bool fits_seq(const struct audit_filter *filter, uint64_t seq)
{
    return (filter->since_seq == 0 || seq > filter->since_seq) &&
           (!filter->has_until_seq || (seq != 0 && seq <= filter->until_seq));
}

static bool fits_docs(const struct audit_filter *filter, const struct audit_shown *shown)
{
    if (filter->collection.data == NULL && filter->id.data == NULL &&
        filter->action.data == NULL && filter->since_seq == 0 && !filter->has_until_seq) {
        return true;
    }
    for (size_t i = 0; i < shown->doc_count; i++) {
        const struct audit_doc *doc = &shown->docs[i];
        if (fits_text(filter->collection, doc->collection) && fits_id(filter->id, doc->id) &&
            fits_text(filter->action, doc->action) && fits_seq(filter, doc->seq)) {
            return true;
        }
    }
    return false;
}

static bool fits_time(const struct audit_filter *filter, const struct audit_shown *shown)
{
    struct rfc3339 time;
    if (filter->since_ms == 0 && filter->until_ms == 0) {
        return true;
    }
    if (!rfc3339_read(shown->time, &time)) {
        return false;
    }
    int64_t ms = rfc3339_ms(&time);
    return (filter->since_ms == 0 || ms > filter->since_ms) &&
           (filter->until_ms == 0 || ms <= filter->until_ms);
}

bool audit_filter_fits(const struct audit_filter *filter, const struct audit_shown *shown)
{
    for (size_t i = 0; i < NG_COUNT(conditions); i++) {
        const char *wanted = (const char *)filter + conditions[i].at;
        const char *text = (const char *)shown + conditions[i].shown_at;
        if (!fits_text(*(const struct ng_str *)(const void *)wanted,
                       *(const struct ng_str *)(const void *)text)) {
            return false;
        }
    }
    return fits_docs(filter, shown) && fits_time(filter, shown);
}
