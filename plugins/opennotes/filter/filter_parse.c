/* SPDX-License-Identifier: MIT */
/* filter_parse.c - takes "data.status != done" apart. */
#include "filter_parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS "Fields are data.KEY, path, title, links-to and linked-by."
#define NUMBER_LENGTH_MAX 40

const char *on_operator_name(enum on_operator op)
{
    static const char *const names[] = {"", "=", "!=", "<", ">", "<=", ">=", "~"};
    return names[op];
}

static bool is_mark(char c)
{
    return c == '=' || c == '!' || c == '<' || c == '>' || c == '~';
}

/* The operator at *at, and *at behind it; 0: none that there is. */
static int take_operator(struct ng_str text, size_t *at)
{
    static const enum on_operator longest_first[] = {
        ON_UNEQUAL, ON_LESS_EQUAL, ON_GREATER_EQUAL, ON_EQUAL,
        ON_LESS,    ON_GREATER,    ON_CONTAINS};
    struct ng_str rest = on_str(text.data + *at, text.len - *at);
    for (size_t i = 0; i < NG_COUNT(longest_first); i++) {
        const char *name = on_operator_name(longest_first[i]);
        if (on_begins(rest, name)) {
            *at += strlen(name);
            return (int)longest_first[i];
        }
    }
    return 0;
}

static const char *take_field(struct on_filter_condition *condition)
{
    struct ng_str name = condition->name;
    if (on_begins(name, "data.")) {
        condition->key = on_str(name.data + 5, name.len - 5);
        condition->field = on_is(condition->key, "tag") || on_is(condition->key, "tags")
                               ? ON_FIELD_TAGS
                               : ON_FIELD_DATA;
        bool dots = condition->key.len == 0 || condition->key.data[0] == '.' ||
                    on_ends(condition->key, ".") ||
                    on_find(condition->key, on_str("..", 2), 0) != SIZE_MAX;
        return dots ? "The key behind `data.` is missing or has a part without a name." : NULL;
    }
    condition->field = on_is(name, "path")        ? ON_FIELD_PATH
                       : on_is(name, "title")     ? ON_FIELD_TITLE
                       : on_is(name, "links-to")  ? ON_FIELD_LINKS_TO
                       : on_is(name, "linked-by") ? ON_FIELD_LINKED_BY
                                                  : 0;
    if (name.len == 0) {
        return "The field before the operator is missing. " FIELDS;
    }
    return condition->field == 0 ? "There is no such field. " FIELDS : NULL;
}

static struct ng_str without_quotes(struct ng_str value)
{
    bool quoted = value.len >= 2 && (value.data[0] == '"' || value.data[0] == '\'') &&
                  value.data[value.len - 1] == value.data[0];
    return quoted ? on_str(value.data + 1, value.len - 2) : value;
}

static void take_number(struct on_filter_condition *condition)
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

const char *on_filter_parse(struct ng_str text, struct on_filter_condition *ret)
{
    size_t at = 0;
    *ret = (struct on_filter_condition){.name = {NULL, 0}};
    if (text.len > ON_FILTER_LENGTH_MAX) {
        return "It is longer than 4096 bytes.";
    }
    while (at < text.len && !is_mark(text.data[at])) {
        at++;
    }
    ret->name = on_trim(on_str(text.data, at));
    if (at == text.len) {
        return "It has no operator. Operators are = != < > <= >= and ~ (contains).";
    }
    int op = take_operator(text, &at);
    if (op == 0 || (at < text.len && (is_mark(text.data[at])))) {
        return "It has no operator that there is. Operators are = != < > <= >= and ~ "
               "(contains); a value that begins with one is put in quotes.";
    }
    ret->op = (enum on_operator)op;
    const char *wrong = take_field(ret);
    if (wrong != NULL) {
        return wrong;
    }
    bool about_links = ret->field == ON_FIELD_LINKS_TO || ret->field == ON_FIELD_LINKED_BY;
    if (about_links && ret->op != ON_EQUAL && ret->op != ON_UNEQUAL && ret->op != ON_CONTAINS) {
        return "links-to and linked-by know the operators = != and ~ only.";
    }
    struct ng_str value = on_trim(on_str(text.data + at, text.len - at));
    ret->value = without_quotes(value);
    if (ret->value.len == 0 && (about_links || ret->field == ON_FIELD_PATH)) {
        return "The value behind the operator is missing.";
    }
    if (ret->value.len == value.len) {
        take_number(ret);
    }
    return NULL;
}
