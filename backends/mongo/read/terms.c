/* SPDX-License-Identifier: MIT */
/* terms.c - the conditions of a query as a filter. */
#include "../../shared/query_check.h"
#include "read.h"

#include <math.h>
#include <stdio.h>

static bool subject_find(const void *of, struct ng_str name, bool ordered, struct subject *ret)
{
    static const char *const columns[] = {
        "notegate.id",  "notegate.author", "notegate.created", "notegate.updated", CREATED_SEQ,
        "notegate.seq", REVISION};
    const struct db_collection *collection = of;
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct db_field *field = &collection->fields[i];
        bool fits = field->use != NG_FIELD_TEXT && !(ordered && field->use == NG_FIELD_TAG);
        if (fits && str_is(name, field->name)) {
            *ret = (struct subject){
                .field = field, .column = field->path, .number = field->use == NG_FIELD_NUMBER};
            return true;
        }
    }
    return subject_built_in(name, columns, ret);
}

int terms_check(struct ng_call *call, const struct db_collection *collection,
                const struct ng_query *query)
{
    return query_check(call, query, collection->name, subject_find, collection);
}

const char *sort_path(const struct db_collection *collection, struct ng_str sort)
{
    struct subject subject;
    if (sort.len == 0 || !subject_find(collection, sort, true, &subject)) {
        return CREATED_SEQ;
    }
    return subject.column;
}

/* By enum ng_op. */
static const char *const signs[] = {"$eq", "$eq",  "$ne", "$lt", "$lte",
                                    "$gt", "$gte", "$eq", "$in"};

/* Dates are whole milliseconds: a bound between two is rounded to the equivalent one. */
static void add_number(bson_t *part, const struct subject *subject, const struct ng_term *term)
{
    static const double most = 9.0e15;
    const char *sign = signs[term->op];
    double whole = floor(term->number);
    bool between = whole < term->number;
    if (!subject->is_time || (between && (term->op == NG_TERM_EQ || term->op == NG_TERM_NE))) {
        BSON_APPEND_DOUBLE(part, sign, term->number); /* between two dates: equal to none */
        return;
    }
    if (between && (term->op == NG_TERM_GE || term->op == NG_TERM_LT)) {
        whole = ceil(term->number);
    }
    BSON_APPEND_DATE_TIME(part, sign, (int64_t)fmax(fmin(whole, most), -most));
}

/* From the prefix up to the prefix followed by the last of all characters. */
static void add_prefix(bson_t *part, struct ng_str prefix)
{
    static const char last[] = "\xF4\x8F\xBF\xBF\xF4\x8F\xBF\xBF\xF4\x8F\xBF\xBF";
    struct bytes end = {0};
    bson_add(part, "$gte:s", prefix);
    if (bytes_add(&end, prefix.data, prefix.len) == NG_OK && bytes_add_c(&end, last) == NG_OK) {
        bson_add(part, "$lte:s", bytes_str(&end));
    }
    bytes_done(&end);
}

static void add_list(bson_t *part, const struct ng_str *values, size_t count)
{
    bson_t list;
    BSON_APPEND_ARRAY_BEGIN(part, "$in", &list);
    for (size_t i = 0; i < count; i++) {
        bson_item(&list, (uint32_t)i, values[i]);
    }
    (void)bson_append_array_end(part, &list);
}

static bool add_term(bson_t *filter, const struct db_collection *collection,
                     const struct ng_term *term)
{
    struct subject subject;
    bson_t part = BSON_INITIALIZER;
    char index[16];
    if (!subject_find(collection, term->field, query_is_ordered(term->op), &subject)) {
        return true;
    }
    if (term->op == NG_TERM_PREFIX) {
        add_prefix(&part, term->value);
    } else if (term->op == NG_TERM_IN) {
        add_list(&part, term->values, term->value_count);
    } else if (subject.number) {
        add_number(&part, &subject, term);
    } else {
        put_str(&part, signs[term->op], term->value);
    }
    (void)snprintf(index, sizeof(index), "%u", bson_count_keys(filter));
    bson_add(filter, "%:{%:D}", index, subject.column, &part);
    bson_destroy(&part);
    return term->op != NG_TERM_IN || term->value_count > 0;
}

bool terms_filter(const struct db_collection *collection, const struct ng_query *query,
                  bson_t *ret)
{
    bson_t all = BSON_INITIALIZER;
    bson_t part;
    bool any = true;
    bson_init(ret);
    if (query->space.data != NULL) {
        put_str(ret, "space", query->space);
    } else if (query->space_count == 0) {
        return false;
    } else {
        BSON_APPEND_DOCUMENT_BEGIN(ret, "space", &part);
        add_list(&part, query->spaces, query->space_count);
        (void)bson_append_document_end(ret, &part);
    }
    if (NG_HAS(query, only_deleted) && query->only_deleted) {
        bson_add(ret, "notegate.deleted:T, notegate.revision:{$gt:0}");
    } else if (query->with_deleted) {
        bson_add(ret, "notegate.revision:{$gt:0}");
    } else {
        bson_add(ret, "notegate.deleted:F");
    }
    for (size_t i = 0; i < query->term_count && any; i++) {
        any = add_term(&all, collection, &query->terms[i]);
    }
    if (bson_count_keys(&all) > 0) {
        BSON_APPEND_ARRAY(ret, "$and", &all);
    }
    bson_destroy(&all);
    return any;
}
