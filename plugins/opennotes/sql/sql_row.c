/* SPDX-License-Identifier: MIT */
/* sql_row.c - rows of a statement as JSON objects. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql_parts.h"

/* Larger integers lose digits in programs that read JSON numbers as doubles, so they become
 * strings. */
#define SAFE_INTEGER INT64_C(9007199254740991)
#define NUMBER_SIZE 40

static bool is_taken(const struct notes_sql_names *names, int count, struct ng_str name)
{
    for (int i = 0; i < count; i++) {
        if (str_equal(names->names[i], name)) {
            return true;
        }
    }
    return false;
}

int notes_sql_names(struct ng_call *call, sqlite3_stmt *statement,
                    struct notes_sql_names *names)
{
    int count = sqlite3_column_count(statement);
    *names = (struct notes_sql_names){.names = NULL};
    names->names = ng_alloc(call, (size_t)(count + 1) * sizeof(*names->names));
    if (names->names == NULL) {
        return NG_EINTERNAL;
    }
    for (int i = 0; i < count; i++) {
        const char *own = sqlite3_column_name(statement, i);
        struct ng_str name = call->host->format(call, "%s", own != NULL ? own : "");
        for (int number = 2; name.data != NULL && is_taken(names, i, name); number++) {
            name = call->host->format(call, "%s_%d", own, number);
        }
        if (name.data == NULL) {
            return NG_EINTERNAL;
        }
        names->names[i] = name;
    }
    names->count = count;
    return NG_OK;
}

int64_t notes_sql_row_bytes(sqlite3_stmt *statement)
{
    int64_t bytes = 0;
    int count = sqlite3_data_count(statement);
    for (int i = 0; i < count; i++) {
        int type = sqlite3_column_type(statement, i);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
            bytes += sqlite3_column_bytes(statement, i);
        } else {
            bytes += (int64_t)sizeof(int64_t);
        }
    }
    return bytes;
}

static void write_double(struct buf *buf, double number)
{
    char text[NUMBER_SIZE];
    if (isnan(number)) {
        notes_json_null(buf);
        return;
    }
    if (isinf(number)) {
        notes_json_text(buf, ng_str_of(number > 0 ? "Infinity" : "-Infinity"));
        return;
    }
    /* The shortest that reads back as the same number. */
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    if (strpbrk(text, ".e") == NULL) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ".0");
    }
    notes_json_raw(buf, ng_str_of(text));
}

/* As SQLite writes it: X'0AFF'. */
static void write_blob(struct buf *buf, struct buf *scratch, const unsigned char *data, int len)
{
    static const char digits[] = "0123456789ABCDEF";
    buf_clear(scratch);
    buf_add_c(scratch, "X'");
    for (int i = 0; i < len; i++) {
        buf_add_char(scratch, digits[data[i] >> 4]);
        buf_add_char(scratch, digits[data[i] & 15]);
    }
    buf_add_char(scratch, '\'');
    notes_json_text(buf, notes_buf_str(scratch));
}

static void write_value(struct buf *buf, struct buf *scratch, sqlite3_stmt *statement,
                        int column)
{
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: {
        int64_t number = sqlite3_column_int64(statement, column);
        char text[NUMBER_SIZE];
        (void)snprintf(text, sizeof(text), "%lld", (long long)number);
        if (number >= -SAFE_INTEGER && number <= SAFE_INTEGER) {
            notes_json_raw(buf, ng_str_of(text));
        } else {
            notes_json_text(buf, ng_str_of(text));
        }
        break;
    }
    case SQLITE_FLOAT:
        write_double(buf, sqlite3_column_double(statement, column));
        break;
    case SQLITE_TEXT:
        notes_json_text(buf, notes_column_text(statement, column));
        break;
    case SQLITE_BLOB: {
        const unsigned char *data = sqlite3_column_blob(statement, column);
        write_blob(buf, scratch, data, sqlite3_column_bytes(statement, column));
        break;
    }
    default:
        notes_json_null(buf);
    }
}

void notes_sql_row(struct buf *buf, sqlite3_stmt *statement,
                   const struct notes_sql_names *names)
{
    struct buf scratch;
    buf_init(&scratch, (size_t)NOTES_SQL_VALUE_MAX * 2 + 8);
    notes_json_begin(buf, '{');
    for (int i = 0; i < names->count; i++) {
        notes_json_name(buf, names->names[i]);
        write_value(buf, &scratch, statement, i);
    }
    notes_json_end(buf, '}');
    buf_done(&scratch);
}
