/* SPDX-License-Identifier: MIT */
/* filter_parse.h - one parsed condition of a filter. */
#ifndef OPENNOTES_FILTER_PARSE_H
#define OPENNOTES_FILTER_PARSE_H

#include "filter.h"

enum notes_field {
    NOTES_FIELD_DATA = 1, /* of key */
    NOTES_FIELD_TAGS,
    NOTES_FIELD_PATH,
    NOTES_FIELD_TITLE,
    NOTES_FIELD_LINKS_TO,
    NOTES_FIELD_LINKED_BY
};

enum notes_operator {
    NOTES_EQUAL = 1,
    NOTES_UNEQUAL,
    NOTES_LESS,
    NOTES_GREATER,
    NOTES_LESS_EQUAL,
    NOTES_GREATER_EQUAL,
    NOTES_CONTAINS
};

struct notes_filter_condition {
    enum notes_field field;
    enum notes_operator op;
    struct ng_str name; /* of the field, as written */
    struct ng_str key;  /* of data: behind "data." */
    struct ng_str value;
    bool is_number;
    double number;
};

/* NULL: the condition is valid; else the fault, as a sentence. Parts point into `text`. */
const char *notes_filter_parse(struct ng_str text, struct notes_filter_condition *ret);

/* "=", "<=" */
const char *notes_operator_name(enum notes_operator op);

#endif
