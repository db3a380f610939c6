/* SPDX-License-Identifier: MIT */
/* filter_parse.c - parses one condition such as "data.status != done". */
#include "filter_parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS "Fields are data.KEY, path, title, links-to and linked-by."
#define NUMBER_LENGTH_MAX 40

const char *notes_operator_name(enum notes_operator op)
{
    static const char *const names[] = {"", "=", "!=", "<", ">", "<=", ">=", "~"};
    return names[op];
}

static bool is_mark(char c)
{
    return c == '=' || c == '!' || c == '<' || c == '>' || c == '~';
}

/* The operator at *at; *at moves behind it. 0: there is no valid one. */
static int take_operator(struct ng_str text, size_t *at)
{
    static const enum notes_operator longest_first[] = {
        NOTES_UNEQUAL, NOTES_LESS_EQUAL, NOTES_GREATER_EQUAL, NOTES_EQUAL,
        NOTES_LESS,    NOTES_GREATER,    NOTES_CONTAINS};
    struct ng_str rest = str_make(text.data + *at, text.len - *at);
    for (size_t i = 0; i < NG_COUNT(longest_first); i++) {
        const char *name = notes_operator_name(longest_first[i]);
        if (str_begins(rest, name)) {
            *at += strlen(name);
            return (int)longest_first[i];
        }
    }
    return 0;
}

static bool is_tags(struct ng_str key)
{
    return str_equal_fold(key, ng_str_of("tag")) || str_equal_fold(key, ng_str_of("tags"));
}

static const char *take_field(struct notes_filter_condition *condition)
{
    struct ng_str name = condition->name;
    if (str_begins(name, "data.")) {
        condition->key = str_make(name.data + 5, name.len - 5);
        condition->field = NOTES_FIELD_DATA;
        if (is_tags(condition->key)) {
            condition->field = NOTES_FIELD_TAGS;
        }
        bool dots = condition->key.len == 0 || condition->key.data[0] == '.' ||
                    str_ends(condition->key, ".") ||
                    str_find(condition->key, str_make("..", 2), 0) != SIZE_MAX;
        if (dots) {
            return "The key behind `data.` is missing or has a part without a name.";
        }
        return NULL;
    }
    if (name.len == 0) {
        return "The field before the operator is missing. " FIELDS;
    }
    static const char *const names[] = {[NOTES_FIELD_PATH] = "path",
                                        [NOTES_FIELD_TITLE] = "title",
                                        [NOTES_FIELD_LINKS_TO] = "links-to",
                                        [NOTES_FIELD_LINKED_BY] = "linked-by"};
    for (size_t i = NOTES_FIELD_PATH; i < NG_COUNT(names); i++) {
        if (str_is(name, names[i])) {
            condition->field = (enum notes_field)i;
            return NULL;
        }
    }
    return "There is no such field. " FIELDS;
}

static struct ng_str without_quotes(struct ng_str value)
{
    bool quoted = value.len >= 2 && (value.data[0] == '"' || value.data[0] == '\'') &&
                  value.data[value.len - 1] == value.data[0];
    if (quoted) {
        return str_make(value.data + 1, value.len - 2);
    }
    return value;
}

static void take_number(struct notes_filter_condition *condition)
{
    char digits[NUMBER_LENGTH_MAX + 1];
    struct ng_str value = condition->value;
    char *end = NULL;
    if (value.len == 0 || value.len > NUMBER_LENGTH_MAX ||
        strspn(value.data, "+-.0123456789eE") < value.len) {
        return;
    }
    memcpy(digits, value.data, value.len);
    digits[value.len] = '\0';
    condition->number = strtod(digits, &end);
    condition->is_number = *end == '\0' && isfinite(condition->number);
}

const char *notes_filter_parse(struct ng_str text, struct notes_filter_condition *ret)
{
    size_t at = 0;
    *ret = (struct notes_filter_condition){.name = {NULL, 0}};
    if (text.len > NOTES_FILTER_LENGTH_MAX) {
        return "It is longer than 4096 bytes.";
    }
    while (at < text.len && !is_mark(text.data[at])) {
        at++;
    }
    ret->name = notes_trim(str_make(text.data, at));
    if (at == text.len) {
        return "It has no operator. Operators are = != < > <= >= and ~ (contains).";
    }
    int op = take_operator(text, &at);
    if (op == 0 || (at < text.len && (is_mark(text.data[at])))) {
        return "Its operator is unknown. Operators are = != < > <= >= and ~ (contains); put a "
               "value that begins with one in quotes.";
    }
    ret->op = (enum notes_operator)op;
    const char *wrong = take_field(ret);
    if (wrong != NULL) {
        return wrong;
    }
    bool about_links =
        ret->field == NOTES_FIELD_LINKS_TO || ret->field == NOTES_FIELD_LINKED_BY;
    if (about_links && ret->op != NOTES_EQUAL && ret->op != NOTES_UNEQUAL &&
        ret->op != NOTES_CONTAINS) {
        return "links-to and linked-by have only the operators = != and ~.";
    }
    struct ng_str value = notes_trim(str_make(text.data + at, text.len - at));
    ret->value = without_quotes(value);
    if (ret->value.len == 0 && (about_links || ret->field == NOTES_FIELD_PATH)) {
        return "The value behind the operator is missing.";
    }
    if (ret->value.len == value.len) {
        take_number(ret);
    }
    return NULL;
}
