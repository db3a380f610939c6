/* SPDX-License-Identifier: MIT */
/* filter_parse.h - one condition of a filter, taken apart. */
#ifndef OPENNOTES_FILTER_PARSE_H
#define OPENNOTES_FILTER_PARSE_H

#include "filter.h"

enum on_field {
    ON_FIELD_DATA = 1, /* of key */
    ON_FIELD_TAGS,
    ON_FIELD_PATH,
    ON_FIELD_TITLE,
    ON_FIELD_LINKS_TO,
    ON_FIELD_LINKED_BY
};

enum on_operator {
    ON_EQUAL = 1,
    ON_UNEQUAL,
    ON_LESS,
    ON_GREATER,
    ON_LESS_EQUAL,
    ON_GREATER_EQUAL,
    ON_CONTAINS
};

struct on_filter_condition {
    enum on_field field;
    enum on_operator op;
    struct ng_str name; /* of the field, as written */
    struct ng_str key;  /* of data: behind "data." */
    struct ng_str value;
    bool is_number;
    double number;
};

/* NULL: it is one; else what is wrong with it, as a sentence. Parts point into `text`. */
const char *on_filter_parse(struct ng_str text, struct on_filter_condition *ret);

/* "=", "<=" */
const char *on_operator_name(enum on_operator op);

#endif
