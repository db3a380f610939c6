/* SPDX-License-Identifier: MIT */
/* cases_match.c - compares values: an object may have more members than expected. */
#include "cases.h"

static bool cases_match_array(const struct ng_value *expected, const struct ng_value *value)
{
    const struct ng_value *got = value->first;
    if (expected->count != value->count) {
        return false;
    }
    for (const struct ng_value *want = expected->first; want != NULL; want = want->next) {
        if (!cases_match(want, got)) {
            return false;
        }
        got = got->next;
    }
    return true;
}

/* The parser limits the depth of both. */
bool cases_match(const struct ng_value *expected, const struct ng_value *value)
{
    if (value == NULL || value->type != expected->type) {
        return false;
    }
    if (expected->type == NG_TYPE_ARRAY) {
        return cases_match_array(expected, value);
    }
    if (expected->type != NG_TYPE_OBJECT) {
        return json_equal(expected, value);
    }
    for (const struct ng_value *want = expected->first; want != NULL; want = want->next) {
        if (!cases_match(want, json_get_str(value, want->key))) {
            return false;
        }
    }
    return true;
}
