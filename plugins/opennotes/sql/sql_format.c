/* SPDX-License-Identifier: MIT */
/* sql_format.c - printf() and format(): SQLite's own repeat a character as often as the
 * statement asks, in one operation that cannot be interrupted. Here width and precision are
 * limited to the length of a value, and the deadline is checked between conversions. */
#include <stdio.h>
#include <string.h>

#include "core/base/minmax.h"
#include "sql_parts.h"

#define SPEC_MAX 64
#define NUMBER_MAX ((int64_t)1 << 32) /* more digits are refused */

/* One conversion, as sqlite3_str_appendf() takes it. */
struct spec {
    char flags[8];
    size_t flag_count;
    int64_t width, precision; /* -1: none */
    char kind;
};

struct reader {
    const char *at; /* ends with NUL */
    sqlite3_value **values;
    int count, next;
};

static sqlite3_value *next_value(struct reader *reader)
{
    if (reader->next >= reader->count) {
        return NULL;
    }
    return reader->values[reader->next++];
}

static int64_t next_integer(struct reader *reader)
{
    sqlite3_value *value = next_value(reader);
    if (value == NULL) {
        return 0;
    }
    return sqlite3_value_int64(value);
}

/* Digits, or `*` for an argument. */
static int64_t read_number(struct reader *reader)
{
    int64_t number = 0;
    if (*reader->at == '*') {
        reader->at++;
        number = next_integer(reader);
        if (number < -NUMBER_MAX) {
            return -NUMBER_MAX;
        }
        return i64_min(number, NUMBER_MAX);
    }
    for (; *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        number = number * 10 + (*reader->at - '0');
        number = i64_min(number, NUMBER_MAX);
    }
    return number;
}

static void add_flag(struct spec *spec, char flag)
{
    if (memchr(spec->flags, flag, spec->flag_count) == NULL) {
        spec->flags[spec->flag_count++] = flag;
    }
}

/* From behind the `%`. */
static struct spec read_spec(struct reader *reader)
{
    struct spec spec = {.width = -1, .precision = -1};
    for (; *reader->at != '\0' && strchr("-+ #!0,", *reader->at) != NULL; reader->at++) {
        add_flag(&spec, *reader->at);
    }
    if (*reader->at == '*' || (*reader->at >= '1' && *reader->at <= '9')) {
        spec.width = read_number(reader);
        if (spec.width < 0) {
            add_flag(&spec, '-');
            spec.width = -spec.width;
        }
    }
    if (*reader->at == '.') {
        reader->at++;
        spec.precision = read_number(reader);
        if (spec.precision < 0) {
            spec.precision = -spec.precision;
        }
    }
    while (*reader->at == 'l') {
        reader->at++;
    }
    spec.kind = *reader->at;
    reader->at += spec.kind != '\0';
    return spec;
}

/* The first character of a text, as SQLite reads it. */
static unsigned first_character(sqlite3_value *value)
{
    size_t at = 0;
    struct ng_str text = str_make(NULL, 0);
    if (value != NULL) {
        text = notes_value_text(value);
    }
    if (text.len == 0) {
        return 0;
    }
    return (unsigned)notes_next(text, &at);
}

static void write_format(const struct spec *spec, char kind, char format[SPEC_MAX])
{
    char width[24] = "";
    char precision[24] = "";
    const char *size = "";
    if (strchr("diuxXopr", spec->kind) != NULL) {
        size = "ll";
    }
    if (spec->width >= 0) {
        (void)snprintf(width, sizeof(width), "%lld", (long long)spec->width);
    }
    if (spec->precision >= 0) {
        (void)snprintf(precision, sizeof(precision), ".%lld", (long long)spec->precision);
    }
    (void)snprintf(format, SPEC_MAX, "%%%.*s%s%s%s%c", (int)spec->flag_count, spec->flags,
                   width, precision, size, kind);
}

/* false: there is no such conversion, and the text ends here. */
static bool add_conversion(sqlite3_str *out, struct reader *reader, const struct spec *spec)
{
    char format[SPEC_MAX];
    char kind = spec->kind;
    if (kind == 'p') {
        kind = 'X';
    } else if (kind == 'z') {
        kind = 's';
    }
    write_format(spec, kind, format);
    switch (spec->kind) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
    case 'p':
    case 'r':
        sqlite3_str_appendf(out, format, next_integer(reader));
        return true;
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G': {
        sqlite3_value *value = next_value(reader);
        sqlite3_str_appendf(out, format, value != NULL ? sqlite3_value_double(value) : 0.0);
        return true;
    }
    case 'c': {
        sqlite3_str_appendf(out, format, first_character(next_value(reader)));
        return true;
    }
    case 's':
    case 'z':
    case 'q':
    case 'Q':
    case 'w': {
        sqlite3_value *value = next_value(reader);
        const char *text = value != NULL ? (const char *)sqlite3_value_text(value) : NULL;
        sqlite3_str_appendf(out, format, text == NULL && kind == 's' ? "" : text);
        return true;
    }
    case '%':
        sqlite3_str_append(out, "%", 1);
        return true;
    default:
        return spec->kind == 'n';
    }
}

/* An SQLite code. SQLITE_INTERRUPT: the guard has the reason. */
static int add_all(struct notes_sql_guard *guard, sqlite3_str *out, struct reader *reader)
{
    while (*reader->at != '\0') {
        const char *mark = strchrnul(reader->at, '%');
        if (mark > reader->at) {
            sqlite3_str_append(out, reader->at, (int)(mark - reader->at));
        }
        reader->at = mark;
        if (*mark == '\0') {
            break;
        }
        reader->at++;
        struct spec spec = read_spec(reader);
        if (spec.kind == '\0') {
            sqlite3_str_append(out, "%", 1);
            break;
        }
        if (spec.width > NOTES_SQL_VALUE_MAX || spec.precision > NOTES_SQL_VALUE_MAX) {
            return SQLITE_TOOBIG;
        }
        if (notes_sql_guard_over(guard)) {
            return SQLITE_INTERRUPT;
        }
        if (!add_conversion(out, reader, &spec) || sqlite3_str_errcode(out) != SQLITE_OK) {
            break;
        }
    }
    return sqlite3_str_errcode(out);
}

void notes_sql_printf(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct notes_sql_guard *guard = sqlite3_user_data(context);
    struct reader reader = {.values = values, .count = count, .next = 1};
    if (count > 0) {
        reader.at = (const char *)sqlite3_value_text(values[0]);
    } else {
        reader.at = NULL;
    }
    if (reader.at == NULL) {
        return; /* NULL */
    }
    sqlite3_str *out = sqlite3_str_new(guard->db);
    int rc = add_all(guard, out, &reader);
    int len = sqlite3_str_length(out);
    char *text = sqlite3_str_finish(out);
    if (rc == SQLITE_INTERRUPT) {
        notes_sql_guard_result(guard, context);
    } else if (rc == SQLITE_TOOBIG) {
        sqlite3_result_error_toobig(context);
    } else if (rc != SQLITE_OK) {
        sqlite3_result_error_nomem(context);
    } else {
        sqlite3_result_text64(context, text, (sqlite3_uint64)len, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
    }
    sqlite3_free(text);
}
