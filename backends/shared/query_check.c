/* SPDX-License-Identifier: MIT */
/* query_check.c - the conditions of a query, checked before anything is asked of the database.
 */
#include "query_check.h"

#include "core/base/str.h"

static int clip(struct ng_str text)
{
    return (int)size_min(text.len, NG_COLLECTION_MAX);
}

bool query_is_ordered(enum ng_op op)
{
    return op == NG_TERM_LT || op == NG_TERM_LE || op == NG_TERM_GT || op == NG_TERM_GE ||
           op == NG_TERM_PREFIX;
}

bool subject_built_in(struct ng_str name, const char *const columns[7], struct subject *ret)
{
    static const char *const names[] = {"id",          "author", "created", "updated",
                                        "created_seq", "seq",    "revision"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        if (str_is(name, names[i])) {
            *ret = (struct subject){
                .column = columns[i], .number = i >= 2, .is_time = i == 2 || i == 3};
            return true;
        }
    }
    return false;
}

static int term_check(struct ng_call *call, const struct ng_term *term, const char *name,
                      query_find_fn *find, const void *collection)
{
    struct subject subject = {0};
    int len = clip(term->field);
    const char *field = term->field.data;
    if (!find(collection, term->field, query_is_ordered(term->op), &subject)) {
        return ng_fail(call, NG_EINVAL,
                       "the field `%.*s` of %s does not support this comparison", len, field,
                       name);
    }
    if (term->op < NG_TERM_EQ || term->op > NG_TERM_IN) {
        return ng_fail(call, NG_EINVAL, "the comparison %d of `%.*s` is unknown", (int)term->op,
                       len, field);
    }
    if (subject.number && (term->op == NG_TERM_PREFIX || term->op == NG_TERM_IN)) {
        return ng_fail(call, NG_EINVAL, "`%.*s` is a number: it has no prefix and no list", len,
                       field);
    }
    if (term->op == NG_TERM_IN && term->value_count > NG_IN_MAX) {
        return ng_fail(call, NG_EINVAL, "`%.*s` has %zu values; the maximum is %d", len, field,
                       term->value_count, NG_IN_MAX);
    }
    return NG_OK;
}

int query_check(struct ng_call *call, const struct ng_query *query, const char *name,
                query_find_fn *find, const void *collection)
{
    struct subject subject;
    if (query->term_count > NG_TERMS_MAX) {
        return ng_fail(call, NG_EINVAL, "a query has %zu conditions; the maximum is %d",
                       query->term_count, NG_TERMS_MAX);
    }
    if (query->sort.len > 0 && !find(collection, query->sort, true, &subject)) {
        return ng_fail(call, NG_EINVAL, "%s cannot be sorted by `%.*s`", name,
                       clip(query->sort), query->sort.data);
    }
    for (size_t i = 0; i < query->term_count; i++) {
        int rc = term_check(call, &query->terms[i], name, find, collection);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}
