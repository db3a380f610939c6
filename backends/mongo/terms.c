/* SPDX-License-Identifier: MIT */
/* terms.c - the conditions of a query as a filter. */
#include "db.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    const char *path;
    bool number, date;
} built_in[] = {
    {"id", "notegate.id", false, false},
    {"created", "notegate.created", true, true},
    {"updated", "notegate.updated", true, true},
    {"created_seq", "notegate.created_seq", true, false},
    {"seq", "notegate.seq", true, false},
    {"revision", "notegate.revision", true, false},
    {"author", "notegate.author", false, false},
};

struct subject {
    const char *path;
    bool number, date;
};

static bool subject_find(const struct db_collection *collection, struct ng_str name,
                         bool ordered, struct subject *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct db_field *field = &collection->fields[i];
        if (field->use == NG_FIELD_TEXT || (ordered && field->use == NG_FIELD_TAG)) {
            continue;
        }
        if (str_equal(name, ng_str_of(field->name))) {
            ret->path = field->path;
            ret->number = field->use == NG_FIELD_NUMBER;
            return true;
        }
    }
    for (size_t i = 0; i < NG_COUNT(built_in); i++) {
        if (str_equal(name, ng_str_of(built_in[i].name))) {
            ret->path = built_in[i].path;
            ret->number = built_in[i].number;
            ret->date = built_in[i].date;
            return true;
        }
    }
    return false;
}

static bool find_number(const void *collection, struct ng_str name, bool ordered,
                        bool *ret_number)
{
    struct subject subject;
    bool found = subject_find(collection, name, ordered, &subject);
    *ret_number = subject.number;
    return found;
}

int terms_check(struct ng_call *call, const struct db_collection *collection,
                const struct ng_query *query)
{
    return query_check(call, query, collection->name, find_number, collection);
}

const char *sort_path(const struct db_collection *collection, struct ng_str sort)
{
    struct subject subject;
    if (sort.data == NULL || sort.len == 0 || !subject_find(collection, sort, true, &subject)) {
        return "notegate.created_seq";
    }
    return subject.path;
}

static const char *sign_of(enum ng_op op)
{
    static const char *const signs[] = {"$eq", "$eq",  "$ne", "$lt", "$lte",
                                        "$gt", "$gte", "$eq", "$in"};
    return signs[op];
}

/* Dates are whole milliseconds: a bound between two is rounded to the equivalent one. */
static void add_number(bson_t *part, const struct subject *subject, const struct ng_term *term)
{
    const char *sign = sign_of(term->op);
    double number = term->number;
    if (!subject->date) {
        BSON_APPEND_DOUBLE(part, sign, number);
        return;
    }
    bool up = term->op == NG_TERM_GE || term->op == NG_TERM_LT;
    double whole;
    if (up) {
        whole = ceil(number);
    } else {
        whole = floor(number);
    }
    bool between = whole < number || whole > number;
    if (between && (term->op == NG_TERM_EQ || term->op == NG_TERM_NE)) {
        BSON_APPEND_DOUBLE(part, sign, number); /* no date equals a number */
        return;
    }
    double most = 9.0e15;
    if (whole > most) {
        whole = most;
    } else if (whole < -most) {
        whole = -most;
    }
    BSON_APPEND_DATE_TIME(part, sign, (int64_t)whole);
}

/* From the prefix up to the prefix followed by the last of all characters. */
static void add_prefix(bson_t *part, struct ng_str prefix)
{
    static const char last[] = "\xF4\x8F\xBF\xBF\xF4\x8F\xBF\xBF\xF4\x8F\xBF\xBF";
    struct bytes end = {0};
    put_str(part, "$gte", prefix.data != NULL ? prefix : ng_str_of(""));
    if (bytes_add(&end, prefix.data, prefix.len) == NG_OK && bytes_add_c(&end, last) == NG_OK) {
        put_str(part, "$lte", bytes_str(&end));
    }
    bytes_done(&end);
}

static void add_list(bson_t *part, const char *key, const struct ng_str *values, size_t count)
{
    bson_t list;
    char digits[16];
    BSON_APPEND_ARRAY_BEGIN(part, key, &list);
    for (size_t i = 0; i < count; i++) {
        const char *index = NULL;
        (void)bson_uint32_to_string((uint32_t)i, &index, digits, sizeof(digits));
        put_str(&list, index, values[i]);
    }
    (void)bson_append_array_end(part, &list);
}

static bool add_term(bson_t *filter, const struct db_collection *collection,
                     const struct ng_term *term)
{
    struct subject subject;
    bson_t one, part;
    if (!subject_find(collection, term->field, query_is_ordered(term->op), &subject)) {
        return true;
    }
    if (term->op == NG_TERM_IN && term->value_count == 0) {
        return false;
    }
    bson_init(&one);
    BSON_APPEND_DOCUMENT_BEGIN(&one, subject.path, &part);
    if (term->op == NG_TERM_PREFIX) {
        add_prefix(&part, term->value);
    } else if (term->op == NG_TERM_IN) {
        add_list(&part, "$in", term->values, term->value_count);
    } else if (subject.number) {
        add_number(&part, &subject, term);
    } else {
        put_str(&part, sign_of(term->op), term->value);
    }
    (void)bson_append_document_end(&one, &part);
    char digits[16];
    const char *index = NULL;
    (void)bson_uint32_to_string(bson_count_keys(filter), &index, digits, sizeof(digits));
    BSON_APPEND_DOCUMENT(filter, index, &one);
    bson_destroy(&one);
    return true;
}

bool terms_filter(const struct db_collection *collection, const struct ng_query *query,
                  bson_t *ret)
{
    bson_t all, part;
    bool any = true;
    bson_init(ret);
    if (query->space.data != NULL) {
        put_str(ret, "space", query->space);
    } else if (query->space_count == 0) {
        return false;
    } else {
        BSON_APPEND_DOCUMENT_BEGIN(ret, "space", &part);
        add_list(&part, "$in", query->spaces, query->space_count);
        (void)bson_append_document_end(ret, &part);
    }
    if (!query->with_deleted) {
        BSON_APPEND_BOOL(ret, "notegate.deleted", false);
    } else {
        nest_i64(ret, "notegate.revision", "$gt", 0);
    }
    bson_init(&all);
    for (size_t i = 0; i < query->term_count && any; i++) {
        any = add_term(&all, collection, &query->terms[i]);
    }
    if (bson_count_keys(&all) > 0) {
        BSON_APPEND_ARRAY(ret, "$and", &all);
    }
    bson_destroy(&all);
    return any;
}
