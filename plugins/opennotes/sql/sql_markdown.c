/* SPDX-License-Identifier: MIT */
/* sql_markdown.c - the table-valued functions md_links(content), md_headings(content) and
 * md_tasks(content). */
#include <stdlib.h>
#include <string.h>

#include "markdown/markdown.h"
#include "sql_parts.h"

/* Of the rows of one text. */
#define ROWS_BYTES_MAX ((size_t)64 * 1024 * 1024)

#define KINDS NOTES_SQL_NOTES /* of the tables here */

const char *const notes_sql_table_names[] = {"md_links", "md_headings", "md_tasks",
                                             "read_markdown"};
static const char *const schemas[] = {
    "CREATE TABLE x(line INTEGER, text TEXT, target TEXT, kind TEXT, content HIDDEN)",
    "CREATE TABLE x(line INTEGER, level INTEGER, text TEXT, slug TEXT, content HIDDEN)",
    "CREATE TABLE x(line INTEGER, done INTEGER, text TEXT, content HIDDEN)",
    "CREATE TABLE x(file_path TEXT, title TEXT, content TEXT, metadata TEXT, tags TEXT, "
    "created TEXT, modified TEXT, size INTEGER, word_count INTEGER, glob HIDDEN)",
};
/* The column of the argument. */
static const int contents[KINDS] = {4, 4, 3};

struct row {
    struct row *next;
    int64_t numbers[2]; /* of the columns that are numbers, in order */
    struct ng_str texts[3];
};

struct markdown_cursor {
    sqlite3_vtab_cursor base;
    struct notes_sql_table *table;
    struct arena arena;
    struct row *first, **end;
    struct row *at;
    int64_t number;
    struct ng_str content; /* in the arena */
};

static struct markdown_cursor *cursor_of(sqlite3_vtab_cursor *cursor)
{
    return (struct markdown_cursor *)(void *)cursor;
}

int notes_sql_connect(sqlite3 *db, void *user, int count, const char *const *arguments,
                      sqlite3_vtab **ret_table, char **ret_error)
{
    (void)count;
    (void)ret_error;
    int kind = NOTES_SQL_LINKS;
    while (kind < NOTES_SQL_NOTES && strcmp(arguments[0], notes_sql_table_names[kind]) != 0) {
        kind++;
    }
    int rc = sqlite3_declare_vtab(db, schemas[kind]);
    if (rc != SQLITE_OK) {
        return rc;
    }
    struct notes_sql_table *table = sqlite3_malloc64(sizeof(*table));
    if (table == NULL) {
        return SQLITE_NOMEM;
    }
    *table = (struct notes_sql_table){.guard = user, .kind = (enum notes_sql_kind)kind};
    (void)sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *ret_table = &table->base;
    return SQLITE_OK;
}

int notes_sql_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

static int markdown_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct notes_sql_table *table = (struct notes_sql_table *)(void *)base;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn != contents[table->kind] ||
            info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) {
            continue;
        }
        if (!info->aConstraint[i].usable) {
            return SQLITE_CONSTRAINT;
        }
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->idxNum = 1;
    }
    info->estimatedCost = 1000.0;
    info->estimatedRows = 20;
    return SQLITE_OK;
}

static int markdown_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    struct markdown_cursor *cursor = sqlite3_malloc64(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *cursor = (struct markdown_cursor){.table = (struct notes_sql_table *)(void *)table};
    arena_init(&cursor->arena, ROWS_BYTES_MAX);
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static int markdown_close(sqlite3_vtab_cursor *base)
{
    struct markdown_cursor *cursor = cursor_of(base);
    arena_done(&cursor->arena);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* ---- rows ---- */

static struct row *add_row(struct markdown_cursor *cursor)
{
    struct row *row = arena_zalloc(&cursor->arena, sizeof(*row));
    if (row != NULL) {
        *cursor->end = row;
        cursor->end = &row->next;
    }
    return row;
}

static int set_text(struct markdown_cursor *cursor, struct row *row, int at, struct ng_str text)
{
    row->texts[at] = arena_copy(&cursor->arena, text);
    if (row->texts[at].data == NULL) {
        return NG_ETOOLARGE;
    }
    if (notes_sql_guard_over(cursor->table->guard)) {
        return NG_ECANCELLED;
    }
    return NG_OK;
}

static int take_link(void *user, const struct notes_link *link)
{
    struct row *row = add_row(user);
    if (row == NULL) {
        return NG_ETOOLARGE;
    }
    row->numbers[0] = link->line;
    row->texts[2] = ng_str_of(notes_link_kind_name(link->kind));
    int rc = set_text(user, row, 0, link->text);
    if (rc != NG_OK) {
        return rc;
    }
    return set_text(user, row, 1, link->target);
}

static int take_heading(void *user, const struct notes_heading *heading)
{
    struct row *row = add_row(user);
    if (row == NULL) {
        return NG_ETOOLARGE;
    }
    row->numbers[0] = heading->line;
    row->numbers[1] = heading->level;
    int rc = set_text(user, row, 0, heading->text);
    if (rc != NG_OK) {
        return rc;
    }
    return set_text(user, row, 1, heading->slug);
}

static int take_task(void *user, const struct notes_task *task)
{
    struct row *row = add_row(user);
    if (row == NULL) {
        return NG_ETOOLARGE;
    }
    row->numbers[0] = task->line;
    row->numbers[1] = task->done;
    return set_text(user, row, 0, task->text);
}

static const struct notes_markdown_events events[KINDS] = {
    {.link = take_link},
    {.heading = take_heading},
    {.task = take_task},
};

static int markdown_failed(struct markdown_cursor *cursor, int code)
{
    struct notes_sql_table *table = cursor->table;
    if (code == NG_ECANCELLED) {
        return SQLITE_INTERRUPT;
    }
    sqlite3_free(table->base.zErrMsg);
    table->base.zErrMsg = sqlite3_mprintf("%s(): a text with more rows than fit into memory",
                                          notes_sql_table_names[table->kind]);
    return SQLITE_ERROR;
}

static int markdown_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text,
                           int count, sqlite3_value **values)
{
    struct markdown_cursor *cursor = cursor_of(base);
    (void)index_text;
    (void)count;
    arena_reset(&cursor->arena);
    cursor->first = NULL;
    cursor->end = &cursor->first;
    cursor->at = NULL;
    cursor->number = 1;
    struct ng_str text = index_number == 1 ? notes_value_text(values[0]) : str_make(NULL, 0);
    if (text.data == NULL) {
        return SQLITE_OK; /* no text, no rows */
    }
    if (notes_sql_guard_over(cursor->table->guard)) {
        return SQLITE_INTERRUPT;
    }
    cursor->content = arena_copy(&cursor->arena, text);
    struct ng_str clean = cursor->content.data != NULL
                              ? notes_utf8_clean(&cursor->arena, cursor->content)
                              : cursor->content;
    int rc = clean.data != NULL
                 ? notes_markdown_parse(clean, &events[cursor->table->kind], cursor, NULL)
                 : NG_ETOOLARGE;
    if (rc != NG_OK) {
        return markdown_failed(cursor, rc);
    }
    cursor->at = cursor->first;
    return SQLITE_OK;
}

static int markdown_next(sqlite3_vtab_cursor *base)
{
    struct markdown_cursor *cursor = cursor_of(base);
    cursor->at = cursor->at->next;
    cursor->number++;
    return SQLITE_OK;
}

static int markdown_eof(sqlite3_vtab_cursor *base)
{
    return cursor_of(base)->at == NULL;
}

static int markdown_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct markdown_cursor *cursor = cursor_of(base);
    enum notes_sql_kind kind = cursor->table->kind;
    int numbers = kind == NOTES_SQL_LINKS ? 1 : 2;
    if (column < numbers) {
        sqlite3_result_int64(context, cursor->at->numbers[column]);
        return SQLITE_OK;
    }
    struct ng_str text =
        column == contents[kind] ? cursor->content : cursor->at->texts[column - numbers];
    sqlite3_result_text64(context, text.data, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    return SQLITE_OK;
}

static int markdown_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = cursor_of(base)->number;
    return SQLITE_OK;
}

static const sqlite3_module markdown_module = {
    .xConnect = notes_sql_connect,
    .xBestIndex = markdown_best_index,
    .xDisconnect = notes_sql_disconnect,
    .xOpen = markdown_open,
    .xClose = markdown_close,
    .xFilter = markdown_filter,
    .xNext = markdown_next,
    .xEof = markdown_eof,
    .xColumn = markdown_column,
    .xRowid = markdown_rowid,
};

int notes_sql_markdown_tables(struct notes_sql_guard *guard)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < KINDS && rc == SQLITE_OK; i++) {
        rc = sqlite3_create_module_v2(guard->db, notes_sql_table_names[i], &markdown_module,
                                      guard, NULL);
    }
    return rc;
}
