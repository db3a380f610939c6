/* SPDX-License-Identifier: MIT */
/* sql_notes.c - the table-valued function read_markdown(glob): the notes of the index. */
#include <stdlib.h>
#include <string.h>

#include "sql_parts.h"

#define EVERY_NOTE "**"

enum column {
    FILE_PATH,
    TITLE,
    CONTENT,
    METADATA,
    TAGS,
    CREATED,
    MODIFIED,
    SIZE,
    WORD_COUNT,
    GLOB
};

/* Bits of idxNum: which arguments filter() gets, in this order. */
enum { WITH_GLOB = 1, WITH_PATH = 2 };

#define COLUMNS                                                                                \
    "SELECT id, path, title, front, created, modified, size, words, front_error IS NOT NULL "  \
    "FROM notes"

struct vtab_cursor {
    sqlite3_vtab_cursor base;
    struct notes_sql_guard *guard;
    sqlite3_stmt *notes;   /* on the index: COLUMNS */
    sqlite3_stmt *content; /* of one note, made at its first use */
    sqlite3_stmt *tags;
    char *glob; /* NULL: every note */
    size_t glob_len;
    bool ended;
};

static struct vtab_cursor *cursor_of(sqlite3_vtab_cursor *cursor)
{
    return (struct vtab_cursor *)(void *)cursor;
}

static int vtab_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    int glob = -1;
    int path = -1;
    (void)table;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) {
            continue;
        }
        if (info->aConstraint[i].iColumn == GLOB) {
            if (!info->aConstraint[i].usable) {
                return SQLITE_CONSTRAINT; /* an argument must be known before the rows */
            }
            glob = i;
        } else if (info->aConstraint[i].iColumn == FILE_PATH && info->aConstraint[i].usable &&
                   strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0) {
            path = i;
        }
    }
    int argument = 0;
    if (glob >= 0) {
        info->aConstraintUsage[glob].argvIndex = ++argument;
        info->aConstraintUsage[glob].omit = 1;
        info->idxNum |= WITH_GLOB;
    }
    info->estimatedCost = 1000000.0;
    info->estimatedRows = 10000;
    if (path >= 0) {
        info->aConstraintUsage[path].argvIndex = ++argument;
        info->idxNum |= WITH_PATH;
        info->estimatedCost = 10.0;
        info->estimatedRows = 1;
    }
    info->orderByConsumed = info->nOrderBy == 1 && info->aOrderBy[0].iColumn == FILE_PATH &&
                            info->aOrderBy[0].desc == 0;
    return SQLITE_OK;
}

static int vtab_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    struct vtab_cursor *cursor = sqlite3_malloc64(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *cursor = (struct vtab_cursor){
        .guard = ((struct notes_sql_table *)(void *)table)->guard,
        .ended = true,
    };
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static int vtab_close(sqlite3_vtab_cursor *base)
{
    struct vtab_cursor *cursor = cursor_of(base);
    (void)sqlite3_finalize(cursor->notes);
    (void)sqlite3_finalize(cursor->content);
    (void)sqlite3_finalize(cursor->tags);
    sqlite3_free(cursor->glob);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* An error of the index is an error of the table. */
static int index_failed(struct vtab_cursor *cursor)
{
    sqlite3_vtab *table = cursor->base.pVtab;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("the index: %s", sqlite3_errmsg(cursor->guard->index));
    return SQLITE_ERROR;
}

static int vtab_next(sqlite3_vtab_cursor *base)
{
    struct vtab_cursor *cursor = cursor_of(base);
    for (;;) {
        if (notes_sql_guard_over(cursor->guard)) {
            return SQLITE_INTERRUPT;
        }
        int rc = sqlite3_step(cursor->notes);
        if (rc != SQLITE_ROW) {
            cursor->ended = true;
            if (rc == SQLITE_DONE) {
                return SQLITE_OK;
            }
            return index_failed(cursor);
        }
        struct ng_str path = notes_column_text(cursor->notes, 1);
        if (cursor->glob == NULL ||
            notes_glob(str_make(cursor->glob, cursor->glob_len), path)) {
            return SQLITE_OK;
        }
    }
}

/* The glob in the form of paths: NFC, without "./". */
static int take_glob(struct vtab_cursor *cursor, sqlite3_value *value)
{
    struct ng_str glob = notes_value_text(value);
    struct arena arena;
    sqlite3_free(cursor->glob);
    cursor->glob = NULL;
    if (glob.data == NULL || !utf8_valid(glob) || glob.len > 4096 || notes_glob_is_wide(glob)) {
        cursor->base.pVtab->zErrMsg =
            sqlite3_mprintf("read_markdown() takes one glob, as in read_markdown('**/*.md')");
        return SQLITE_ERROR;
    }
    glob = notes_without_dot(glob);
    if (notes_glob_leaves(glob)) {
        char what[NOTES_SQL_WHAT_MAX];
        (void)sqlite3_snprintf((int)sizeof(what), what, "%.*s", (int)utf8_cut(glob, 100).len,
                               glob.data);
        notes_sql_guard_stop(cursor->guard, NOTES_SQL_TRAVERSAL, what);
        return SQLITE_ERROR;
    }
    arena_init(&arena, 0);
    struct ng_str form = notes_nfc(&arena, glob);
    char *copy = form.data != NULL ? sqlite3_malloc64(form.len + 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, form.data, form.len);
        copy[form.len] = '\0';
        cursor->glob = copy;
        cursor->glob_len = form.len;
    }
    arena_done(&arena);
    if (copy != NULL) {
        return SQLITE_OK;
    }
    return SQLITE_NOMEM;
}

static int vtab_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text,
                       int count, sqlite3_value **values)
{
    struct vtab_cursor *cursor = cursor_of(base);
    int argument = 0;
    (void)index_text;
    (void)count;
    if ((index_number & WITH_GLOB) != 0) {
        int rc = take_glob(cursor, values[argument++]);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    (void)sqlite3_finalize(cursor->notes);
    cursor->notes = NULL;
    bool one = (index_number & WITH_PATH) != 0;
    const char *sql = one ? COLUMNS " WHERE path = ?1" : COLUMNS " ORDER BY path";
    if (sqlite3_prepare_v2(cursor->guard->index, sql, -1, &cursor->notes, NULL) != SQLITE_OK) {
        return index_failed(cursor);
    }
    if (one) {
        struct ng_str path = notes_value_text(values[argument]);
        (void)sqlite3_bind_text64(cursor->notes, 1, path.data, path.len, SQLITE_TRANSIENT,
                                  SQLITE_UTF8);
    }
    cursor->ended = false;
    return vtab_next(base);
}

static int vtab_eof(sqlite3_vtab_cursor *base)
{
    return cursor_of(base)->ended;
}

/* ---- columns ---- */

/* Appended to a text that was cut, so that a query that measures or prints it shows the cut. */
#define CUT_MARK "\n[cut: the note is longer than SQL reads]\n"

/* A text of the index; values over the limit are cut, so that one huge note does not fail a
 * query. */
static void give_text(sqlite3_context *context, sqlite3_stmt *statement, int column)
{
    struct ng_str text = notes_column_text(statement, column);
    if (text.data == NULL) {
        return; /* NULL */
    }
    if (text.len >= NOTES_SQL_VALUE_MAX) {
        text = utf8_cut(text, NOTES_SQL_VALUE_MAX - 1);
    }
    sqlite3_result_text64(context, text.data, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* The indexed part of a note; the file may be larger. */
static int give_content(struct vtab_cursor *cursor, sqlite3_context *context, bool whole)
{
    struct ng_str text = notes_column_text(cursor->content, 0);
    size_t most = NOTES_SQL_VALUE_MAX - sizeof(CUT_MARK);
    if (whole && text.len <= most) {
        sqlite3_result_text64(context, text.data, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
        return SQLITE_OK;
    }
    text = utf8_cut(text, most);
    char *cut = sqlite3_malloc64(text.len + sizeof(CUT_MARK));
    if (cut == NULL) {
        return SQLITE_NOMEM;
    }
    if (text.len > 0) {
        memcpy(cut, text.data, text.len);
    }
    memcpy(cut + text.len, CUT_MARK, sizeof(CUT_MARK));
    sqlite3_result_text64(context, cut, text.len + sizeof(CUT_MARK) - 1, sqlite3_free,
                          SQLITE_UTF8);
    return SQLITE_OK;
}

/* The first column of a statement about the present note. */
static int give_of_note(struct vtab_cursor *cursor, sqlite3_context *context,
                        sqlite3_stmt **statement, const char *sql)
{
    if (*statement == NULL &&
        sqlite3_prepare_v2(cursor->guard->index, sql, -1, statement, NULL) != SQLITE_OK) {
        return index_failed(cursor);
    }
    (void)sqlite3_bind_int64(*statement, 1, sqlite3_column_int64(cursor->notes, 0));
    int rc = sqlite3_step(*statement);
    int given = SQLITE_OK;
    if (rc == SQLITE_ROW && statement == &cursor->content) {
        int64_t size = sqlite3_column_int64(cursor->notes, 6);
        given = give_content(cursor, context, size <= (int64_t)NOTES_INDEX_NOTE_MAX);
    } else if (rc == SQLITE_ROW) {
        give_text(context, *statement, 0);
    }
    (void)sqlite3_reset(*statement);
    if (given != SQLITE_OK) {
        return given;
    }
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
        return SQLITE_OK;
    }
    return index_failed(cursor);
}

static int vtab_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct vtab_cursor *cursor = cursor_of(base);
    char time[RFC3339_SIZE];
    if ((column == METADATA || column == TAGS) && sqlite3_column_int(cursor->notes, 8) != 0 &&
        notes_sql_broken_read(cursor->guard, sqlite3_column_int64(cursor->notes, 0)) !=
            SQLITE_OK) {
        return SQLITE_NOMEM;
    }
    switch (column) {
    case FILE_PATH:
        give_text(context, cursor->notes, 1);
        break;
    case TITLE:
        give_text(context, cursor->notes, 2);
        break;
    case CONTENT:
        return give_of_note(cursor, context, &cursor->content,
                            "SELECT content FROM bodies WHERE note = ?1");
    case METADATA:
        give_text(context, cursor->notes, 3);
        break;
    case TAGS:
        return give_of_note(cursor, context, &cursor->tags,
                            "SELECT json_group_array(tag) FROM (SELECT tag FROM tags "
                            "WHERE note = ?1 ORDER BY rowid)");
    case CREATED:
    case MODIFIED:
        rfc3339_write(sqlite3_column_int64(cursor->notes, column == CREATED ? 4 : 5),
                      RFC3339_SECONDS, time);
        sqlite3_result_text(context, time, -1, SQLITE_TRANSIENT);
        break;
    case SIZE:
        sqlite3_result_int64(context, sqlite3_column_int64(cursor->notes, 6));
        break;
    case WORD_COUNT:
        sqlite3_result_int64(context, sqlite3_column_int64(cursor->notes, 7));
        break;
    default:
        if (cursor->glob != NULL) {
            sqlite3_result_text64(context, cursor->glob, cursor->glob_len, SQLITE_TRANSIENT,
                                  SQLITE_UTF8);
        } else {
            sqlite3_result_text(context, EVERY_NOTE, -1, SQLITE_STATIC);
        }
    }
    return SQLITE_OK;
}

static int vtab_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = sqlite3_column_int64(cursor_of(base)->notes, 0);
    return SQLITE_OK;
}

/* Without xCreate it can only be used as a table-valued function. */
static const sqlite3_module vtab_module = {
    .xConnect = notes_sql_connect,
    .xBestIndex = vtab_best_index,
    .xDisconnect = notes_sql_disconnect,
    .xOpen = vtab_open,
    .xClose = vtab_close,
    .xFilter = vtab_filter,
    .xNext = vtab_next,
    .xEof = vtab_eof,
    .xColumn = vtab_column,
    .xRowid = vtab_rowid,
};

int notes_sql_notes_table(struct notes_sql_guard *guard)
{
    return sqlite3_create_module_v2(guard->db, notes_sql_table_names[NOTES_SQL_NOTES],
                                    &vtab_module, guard, NULL);
}
