/* SPDX-License-Identifier: MIT */
/* sql_functions.c - versions of SQLite's functions that take linear time or check the deadline:
 * SQLite's own search naively and cannot be interrupted inside one call. upper() and lower()
 * support all alphabets. */
#include <string.h>
#include <utf8proc.h>

#include "markdown/markdown.h"
#include "sql_parts.h"

#define TRIM_SET_MAX 256
#define CLOCK_BYTES ((size_t)64 * 1024) /* bytes between checks of the deadline */

static struct ng_str bytes_of(sqlite3_value *value)
{
    if (sqlite3_value_type(value) != SQLITE_BLOB) {
        return notes_value_text(value);
    }
    const char *data = sqlite3_value_blob(value);
    return str_make(data != NULL ? data : "", (size_t)sqlite3_value_bytes(value));
}

static void result_text(sqlite3_context *context, struct buf *buf)
{
    if (buf->rc == NG_EINTERNAL) {
        sqlite3_result_error_nomem(context);
    } else if (buf->rc != NG_OK) {
        sqlite3_result_error_toobig(context);
    } else {
        struct ng_str text = notes_buf_str(buf);
        sqlite3_result_text64(context, text.data, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    }
}

/* instr(X, Y): where Y begins in X, in characters from 1 (of blobs: bytes). */
static void sql_instr(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    bool blobs = sqlite3_value_type(values[0]) == SQLITE_BLOB &&
                 sqlite3_value_type(values[1]) == SQLITE_BLOB;
    struct ng_str (*read)(sqlite3_value *) = blobs ? bytes_of : notes_value_text;
    struct ng_str text = read(values[0]);
    struct ng_str needle = read(values[1]);
    if (text.data == NULL || needle.data == NULL) {
        return; /* NULL */
    }
    size_t at = 0; /* an empty needle is found at once */
    if (needle.len > 0) {
        at = str_find(text, needle, 0);
    }
    if (at == SIZE_MAX) {
        sqlite3_result_int(context, 0);
        return;
    }
    int64_t position = 1;
    for (size_t i = 0; i < at; i++) {
        position += blobs || utf8_is_start(text.data[i]);
    }
    sqlite3_result_int64(context, position);
}

static void sql_replace(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct ng_str text = notes_value_text(values[0]);
    struct ng_str from = notes_value_text(values[1]);
    struct ng_str to = notes_value_text(values[2]);
    struct notes_sql_guard *guard = sqlite3_user_data(context);
    if (text.data == NULL || from.data == NULL || to.data == NULL) {
        return;
    }
    if (from.len == 0) {
        sqlite3_result_value(context, values[0]);
        return;
    }
    struct buf buf;
    buf_init(&buf, NOTES_SQL_VALUE_MAX);
    size_t looked = 0;
    for (size_t at = 0; at <= text.len && buf.rc == NG_OK;) {
        size_t found = str_find(text, from, at);
        size_t end = found;
        if (found == SIZE_MAX) {
            end = text.len;
        }
        buf_add_str(&buf, str_make(text.data + at, end - at));
        if (found == SIZE_MAX) {
            break;
        }
        buf_add_str(&buf, to);
        at = found + from.len;
        if (at - looked > CLOCK_BYTES) {
            looked = at;
            if (notes_sql_guard_over(guard)) {
                buf_done(&buf);
                notes_sql_guard_result(guard, context);
                return;
            }
        }
    }
    result_text(context, &buf);
    buf_done(&buf);
}

/* ---- upper(), lower() ---- */

static void change_case(sqlite3_context *context, sqlite3_value *value,
                        utf8proc_int32_t (*change)(utf8proc_int32_t))
{
    struct ng_str text = notes_value_text(value);
    struct buf buf;
    struct arena arena;
    if (text.data == NULL) {
        return;
    }
    arena_init(&arena, 0);
    buf_init(&buf, NOTES_SQL_VALUE_MAX);
    struct ng_str clean = notes_utf8_clean(&arena, text);
    for (size_t at = 0; clean.data != NULL && at < clean.len && buf.rc == NG_OK;) {
        char out[4];
        int32_t c = notes_next(clean, &at);
        buf_add_str(&buf, str_make(out, utf8_encode((uint32_t)change(c), out)));
    }
    if (clean.data == NULL) {
        sqlite3_result_error_nomem(context);
    } else {
        result_text(context, &buf);
    }
    buf_done(&buf);
    arena_done(&arena);
}

static void sql_lower(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    change_case(context, values[0], utf8proc_tolower);
}

static void sql_upper(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    change_case(context, values[0], utf8proc_toupper);
}

/* ---- trim ---- */

enum trim_side { TRIM_LEFT = 1, TRIM_RIGHT = 2 };

/* Bytes of the character of `set` that `text` begins with (or ends with); 0: of none. */
static size_t trim_match(struct ng_str text, struct ng_str set, bool at_end)
{
    for (size_t at = 0; at < set.len;) {
        size_t end = at + 1;
        while (end < set.len && !utf8_is_start(set.data[end])) {
            end++;
        }
        size_t len = end - at;
        if (len <= text.len) {
            size_t place = (text.len - len) * at_end;
            if (memcmp(text.data + place, set.data + at, len) == 0) {
                return len;
            }
        }
        at = end;
    }
    return 0;
}

static void trim_sides(sqlite3_context *context, int count, sqlite3_value **values, int sides)
{
    struct ng_str text = notes_value_text(values[0]);
    struct ng_str set = str_make(" ", 1);
    if (count > 1) {
        set = notes_value_text(values[1]);
    }
    if (text.data == NULL || set.data == NULL) {
        return;
    }
    if (set.len > TRIM_SET_MAX) {
        sqlite3_result_error(context, "trim() takes at most 256 bytes of characters to trim",
                             -1);
        return;
    }
    size_t steps = 0;
    for (int side = TRIM_LEFT; side <= TRIM_RIGHT; side++) {
        size_t len = 0;
        while ((sides & side) != 0 && (len = trim_match(text, set, side == TRIM_RIGHT)) > 0) {
            text = str_make(text.data + len * (side == TRIM_LEFT), text.len - len);
            if (++steps % CLOCK_BYTES == 0 &&
                notes_sql_guard_over(sqlite3_user_data(context))) {
                notes_sql_guard_result(sqlite3_user_data(context), context);
                return;
            }
        }
    }
    sqlite3_result_text64(context, text.data, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void sql_trim(sqlite3_context *context, int count, sqlite3_value **values)
{
    trim_sides(context, count, values, TRIM_LEFT | TRIM_RIGHT);
}

static void sql_ltrim(sqlite3_context *context, int count, sqlite3_value **values)
{
    trim_sides(context, count, values, TRIM_LEFT);
}

static void sql_rtrim(sqlite3_context *context, int count, sqlite3_value **values)
{
    trim_sides(context, count, values, TRIM_RIGHT);
}

/* ---- md_stats ---- */

static void sql_stats(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct ng_str text = notes_value_text(values[0]);
    struct notes_sql_guard *guard = sqlite3_user_data(context);
    struct notes_markdown_stats stats;
    struct arena arena;
    if (text.data == NULL) {
        return;
    }
    if (notes_sql_guard_over(guard)) {
        notes_sql_guard_result(guard, context);
        return;
    }
    arena_init(&arena, 0);
    struct ng_str clean = notes_utf8_clean(&arena, text);
    int rc = NG_EINTERNAL;
    if (clean.data != NULL) {
        rc = notes_markdown_parse(clean, NULL, NULL, &stats);
    }
    arena_done(&arena);
    if (rc != NG_OK) {
        sqlite3_result_error_nomem(context);
        return;
    }
    struct buf buf;
    buf_init(&buf, 1024);
    buf_printf(&buf,
               "{\"word_count\":%llu,\"char_count\":%llu,\"line_count\":%llu,"
               "\"heading_count\":%llu,\"code_block_count\":%llu,\"link_count\":%llu,"
               "\"task_count\":%llu}",
               (unsigned long long)stats.words, (unsigned long long)stats.chars,
               (unsigned long long)stats.lines, (unsigned long long)stats.headings,
               (unsigned long long)stats.code_blocks, (unsigned long long)stats.links,
               (unsigned long long)stats.tasks);
    result_text(context, &buf);
    sqlite3_result_subtype(context, 'J'); /* the subtype of json() */
    buf_done(&buf);
}

struct function {
    const char *name;
    int arguments;
    void (*run)(sqlite3_context *context, int count, sqlite3_value **values);
};

int notes_sql_functions(struct notes_sql_guard *guard)
{
    static const struct function functions[] = {
        {"instr", 2, sql_instr},
        {"replace", 3, sql_replace},
        {"like", 2, notes_sql_like},
        {"like", 3, notes_sql_like},
        {"glob", 2, notes_sql_glob},
        {"lower", 1, sql_lower},
        {"upper", 1, sql_upper},
        {"trim", 1, sql_trim},
        {"trim", 2, sql_trim},
        {"ltrim", 1, sql_ltrim},
        {"ltrim", 2, sql_ltrim},
        {"rtrim", 1, sql_rtrim},
        {"rtrim", 2, sql_rtrim},
        {"md_stats", 1, sql_stats},
        {"printf", -1, notes_sql_printf},
        {"format", -1, notes_sql_printf},
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; i < NG_COUNT(functions) && rc == SQLITE_OK; i++) {
        rc = sqlite3_create_function_v2(guard->db, functions[i].name, functions[i].arguments,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS |
                                            SQLITE_SUBTYPE,
                                        guard, functions[i].run, NULL, NULL, NULL);
    }
    return rc;
}
