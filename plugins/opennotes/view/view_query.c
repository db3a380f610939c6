/* SPDX-License-Identifier: MIT */
/* view_query.c - views that users define: filters with an order and a group, or a statement.
 * Values of parameters are bound or compared; they never become syntax. */
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "sql/sql.h"
#include "text/codes.h"
#include "view.h"

#define SQL_BYTES_MAX 262144
#define KEYS_MAX 64 /* fields of front matter in one query */

int notes_view_fail(struct notes_view *view, const char *what, struct ng_str text)
{
    struct ng_str shown = utf8_cut(text, 100);
    return ng_fail(view->call, NOTES_ECONFIG,
                   "The view '%.*s' in %s cannot be used: %s%s%.*s%s", (int)view->name.len,
                   view->name.data,
                   view->origin == NOTES_VIEW_NOTEBOOK ? NOTES_CONFIG_NAME : "opennotes.views",
                   what, shown.len > 0 ? " ('" : "", (int)shown.len,
                   shown.data != NULL ? shown.data : "", shown.len > 0 ? "')." : ".");
}

/* ---- {{variables}} */

/* Does the place behind `text` lie inside quotes of SQL? */
static bool in_quotes(struct ng_str text)
{
    char quote = '\0';
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == quote) {
            quote = '\0';
        }
    }
    return quote != '\0';
}

static int expand_one(struct notes_view *view, struct buf *out, struct ng_str name,
                      enum notes_view_vars mode, bool quoted)
{
    char time[RFC3339_SIZE];
    if (str_begins(name, "env:")) {
        return notes_view_fail(view, "views may not read the environment", name);
    }
    for (size_t i = 0; mode == NOTES_VARS_PARAMS && i < view->count; i++) {
        if (str_equal(view->names[i], name)) {
            buf_add_str(out, view->values[i]);
            return NG_OK;
        }
    }
    if (!notes_view_time(name, view->now_ms, time)) {
        return notes_view_fail(view, "it names an unknown variable", name);
    }
    notes_add_if(out, mode == NOTES_VARS_SQL && !quoted, "'");
    buf_add_c(out, time);
    notes_add_if(out, mode == NOTES_VARS_SQL && !quoted, "'");
    return NG_OK;
}

int notes_view_expand(struct notes_view *view, struct ng_str text, enum notes_view_vars mode,
                      struct ng_str *ret)
{
    struct buf out;
    size_t copied = 0;
    int rc = NG_OK;
    buf_init(&out, SQL_BYTES_MAX);
    for (size_t at = str_find(text, ng_str_of("{{"), 0); rc == NG_OK && at != SIZE_MAX;
         at = str_find(text, ng_str_of("{{"), copied)) {
        size_t close = str_find(text, ng_str_of("}}"), at + 2);
        if (close == SIZE_MAX) {
            break;
        }
        buf_add_str(&out, str_make(text.data + copied, at - copied));
        rc = expand_one(view, &out, notes_trim(str_make(text.data + at + 2, close - at - 2)),
                        mode, mode == NOTES_VARS_SQL && in_quotes(str_make(text.data, at)));
        copied = close + 2;
    }
    buf_add_str(&out, str_make(text.data + copied, text.len - copied));
    if (rc == NG_OK) {
        *ret = arena_copy(view->arena, notes_buf_str(&out));
        rc = notes_memory(view->call, out.rc == NG_OK && ret->data != NULL);
    }
    buf_done(&out);
    return rc;
}

/* ---- a statement */

/* A list as a JSON array, for `IN (SELECT value FROM json_each(:name))`. */
struct ng_str notes_view_list_json(struct notes_view *view, struct ng_str list, bool fold)
{
    struct buf json;
    struct ng_str item;
    buf_init(&json, SQL_BYTES_MAX);
    notes_json_begin(&json, '[');
    while (notes_view_next(&list, &item)) {
        if (fold) {
            item = notes_fold(view->arena, notes_nfc(view->arena, item));
        }
        notes_json_text(&json, item);
    }
    notes_json_end(&json, ']');
    struct ng_str copy = arena_copy(view->arena, notes_buf_str(&json));
    buf_done(&json);
    return copy;
}

static int run_sql(struct notes_view *view, struct ng_str sql)
{
    struct notes_sql_param params[NOTES_VIEW_PARAMS_MAX];
    struct notes_sql statement = {.timeout_ms = view->notebook->self->query_timeout_ms,
                                  .params = params,
                                  .param_count = view->count,
                                  .left_out = &view->left_out};
    for (size_t i = 0; i < view->count; i++) {
        params[i] = (struct notes_sql_param){.name = view->names[i], .text = view->values[i]};
        params[i].is_number = str_is(view->types[i], "number");
        if (str_is(view->types[i], "list") && params[i].text.data != NULL) {
            params[i].text = notes_view_list_json(view, params[i].text, false);
        }
    }
    int rc = notes_view_expand(view, sql, NOTES_VARS_SQL, &statement.text);
    if (rc != NG_OK) {
        return rc;
    }
    return notes_sql_run(view->call, view->notebook->db, &statement, view->answer,
                         &view->answer->rows);
}

/* ---- filters */

/* A query under construction. */
struct query {
    struct notes_view *view;
    struct buf sql;
    struct notes_filter *filter;
    struct ng_str keys[KEYS_MAX]; /* of front matter, in the order of their parameters */
    size_t key_count;
    size_t keys_before; /* parameters before those of the filter */
};

/* The parameter of type list that a condition uses; view->count: none. */
static size_t list_param(const struct notes_view *view, struct ng_str condition)
{
    for (size_t at = str_find(condition, ng_str_of("{{"), 0); at != SIZE_MAX;
         at = str_find(condition, ng_str_of("{{"), at + 2)) {
        size_t close = str_find(condition, ng_str_of("}}"), at);
        struct ng_str name;
        if (close == SIZE_MAX) {
            name = str_make("", 0);
        } else {
            name = notes_trim(str_make(condition.data + at + 2, close - at - 2));
        }
        for (size_t i = 0; i < view->count; i++) {
            if (str_equal(view->names[i], name) && str_is(view->types[i], "list")) {
                return i;
            }
        }
    }
    return view->count;
}

/* A condition may have variables in its value only, and a value never begins the operator. */
static int expand_condition(struct notes_view *view, struct ng_str condition,
                            struct notes_filter_compiler *compiler)
{
    size_t at = 0;
    while (at < condition.len && memchr("=!<>~{", condition.data[at], 6) == NULL) {
        at++;
    }
    while (at < condition.len && memchr("=!<>~", condition.data[at], 5) != NULL) {
        at++;
    }
    struct ng_str value = str_make(condition.data + at, condition.len - at);
    bool early = at == 0 || memchr("=!<>~", condition.data[at - 1], 5) == NULL;
    struct ng_str expanded;
    if (early && str_find(condition, ng_str_of("{{"), 0) != SIZE_MAX) {
        return notes_view_fail(view, "variables are allowed only after the operator",
                               condition);
    }
    int rc = notes_view_expand(view, value, NOTES_VARS_PARAMS, &expanded);
    if (rc != NG_OK) {
        return rc;
    }
    struct buf whole;
    buf_init(&whole, SQL_BYTES_MAX);
    buf_add_str(&whole, str_make(condition.data, at));
    notes_add_if(&whole, str_begins(value, "{{"), " ");
    buf_add_str(&whole, expanded);
    rc = notes_filter_add(compiler, notes_buf_str(&whole));
    buf_done(&whole);
    return rc;
}

/* Every element of a list parameter makes its own condition. */
static int add_conditions(struct notes_filter_compiler *compiler, struct ng_str condition,
                          void *user)
{
    struct notes_view *view = user;
    size_t i = list_param(view, condition);
    if (i == view->count) {
        return expand_condition(view, condition, compiler);
    }
    struct ng_str all = view->values[i];
    struct ng_str rest = all;
    struct ng_str item;
    int rc = NG_OK;
    while (rc == NG_OK && notes_view_next(&rest, &item)) {
        view->values[i] = item;
        rc = expand_condition(view, condition, compiler);
    }
    view->values[i] = all;
    return rc;
}

static int fail_filters(void *user, const char *what, struct ng_str list)
{
    return notes_view_fail(user, what, list);
}

/* ---- order and group */

static int add_key(struct query *query, const char *before, struct ng_str key,
                   const char *behind)
{
    if (query->key_count == KEYS_MAX) {
        return notes_view_fail(query->view, "it sorts by too many fields", str_make(NULL, 0));
    }
    buf_add_c(&query->sql, before);
    buf_add_c(&query->sql, "? ORDER BY f.rowid LIMIT 1)");
    buf_add_c(&query->sql, behind);
    query->keys[query->key_count++] = key;
    return NG_OK;
}

#define FIELD_TEXT "(SELECT f.text FROM fields f WHERE f.note = n.id AND f.key = "
#define FIELD_NUMBER "(SELECT f.number FROM fields f WHERE f.note = n.id AND f.key = "
#define FIELD_JSON                                                                             \
    "ifnull((SELECT CASE WHEN f.number IS NULL THEN json_quote(f.text) ELSE f.text END"        \
    " FROM fields f WHERE f.note = n.id AND f.key = "

/* Numbers before words, missing values last; then by value. */
static int order_by_field(struct query *query, struct ng_str key, const char *direction)
{
    int rc = add_key(query, FIELD_TEXT, key, " IS NULL, ");
    if (rc == NG_OK) {
        rc = add_key(query, FIELD_NUMBER, key, " IS NULL, ");
    }
    if (rc == NG_OK) {
        rc = add_key(query, FIELD_NUMBER, key, direction);
    }
    buf_add_c(&query->sql, ", ");
    if (rc == NG_OK) {
        rc = add_key(query, FIELD_TEXT, key, direction);
    }
    buf_add_c(&query->sql, ", ");
    return rc;
}

static const char *column_of(struct ng_str field)
{
    static const char *const columns[][2] = {
        {"title", "ifnull(n.title_fold, n.path_fold)"},
        {"path", "n.path"},
        {"created", "n.created"},
        {"modified", "n.modified"},
        {"size", "n.size"},
        {"words", "n.words"},
    };
    for (size_t i = 0; i < NG_COUNT(columns); i++) {
        if (str_is(field, columns[i][0])) {
            return columns[i][1];
        }
    }
    return NULL;
}

/* "title", "-data.rank": one field of an order. */
static int order_by(struct query *query, struct ng_str field)
{
    bool down = str_begins(field, "-");
    struct ng_str name = field;
    if (down) {
        name = str_make(field.data + 1, field.len - 1);
    }
    const char *direction = " ASC";
    if (down) {
        direction = " DESC";
    }
    const char *column = column_of(name);
    if (column != NULL) {
        buf_add_c(&query->sql, column);
        buf_add_c(&query->sql, direction);
        buf_add_c(&query->sql, ", ");
        return NG_OK;
    }
    if (str_begins(name, "data.") && name.len > 5) {
        return order_by_field(query, str_make(name.data + 5, name.len - 5), direction);
    }
    return notes_view_fail(
        query->view,
        "it sorts or groups by title, path, created, modified, size, words or "
        "data.KEY only",
        field);
}

static int order_all(struct query *query, const struct ng_value *sort, struct ng_str group)
{
    const struct ng_host *host = query->view->call->host;
    int rc = NG_OK;
    buf_add_c(&query->sql, " ORDER BY ");
    if (group.data != NULL) {
        rc = order_by(query, group);
    }
    if (rc == NG_OK && host->json_type(sort) == NG_TYPE_STRING) {
        rc = order_by(query, host->json_text(sort));
    }
    for (const struct ng_value *item = host->json_first(sort); rc == NG_OK && item != NULL;
         item = host->json_next(item)) {
        rc = order_by(query, host->json_text(item));
    }
    buf_add_c(&query->sql, "n.path");
    return rc;
}

static int select_group(struct query *query, struct ng_str group)
{
    buf_add_c(&query->sql, "SELECT n.id");
    if (group.data == NULL) {
        return NG_OK;
    }
    buf_add_c(&query->sql, ", ");
    const char *column = column_of(group);
    if (column != NULL) {
        buf_add_c(&query->sql, "json_quote(");
        buf_add_c(&query->sql, str_is(group, "title") ? "n.title" : column);
        buf_add_c(&query->sql, ") AS \"group\"");
        return NG_OK;
    }
    if (!str_begins(group, "data.")) {
        return notes_view_fail(query->view, "it groups by a field such as data.status", group);
    }
    return add_key(query, FIELD_JSON, str_make(group.data + 5, group.len - 5),
                   ", 'null') AS \"group\"");
}

/* ---- the whole */

static int bind_all(const struct query *query, sqlite3_stmt *statement)
{
    int next = 1;
    int rc = SQLITE_OK;
    for (size_t i = 0; i <= query->key_count && rc == SQLITE_OK; i++) {
        if (i == query->keys_before) {
            rc = notes_filter_bind(query->filter, statement, next, &next);
        }
        if (rc == SQLITE_OK && i < query->key_count) {
            rc = notes_bind_text(statement, next++, query->keys[i]);
        }
    }
    return rc;
}

static int build(struct query *query, const struct ng_value *definition)
{
    const struct ng_host *host = query->view->call->host;
    struct ng_str group = host->json_text(host->json_get(definition, "group"));
    const struct ng_value *limit = host->json_get(definition, "limit");
    const struct notes_filter_owner owner = {add_conditions, fail_filters, query->view};
    int64_t most = 0;
    int rc = notes_filter_expand(query->view->call, host->json_get(definition, "filters"),
                                 NOTES_ECONFIG, &owner, &query->filter);
    if (rc == NG_OK) {
        rc = select_group(query, group);
    }
    query->keys_before = query->key_count;
    if (rc == NG_OK) {
        buf_add_c(&query->sql, " FROM notes n WHERE ");
        buf_add_str(&query->sql, query->filter->sql);
        rc = order_all(query, host->json_get(definition, "sort"), group);
    }
    if (rc == NG_OK && limit != NULL) {
        if (host->json_integer(limit, &most) != NG_OK || most < 1) {
            return notes_view_fail(query->view, "its limit is a number from 1",
                                   str_make(NULL, 0));
        }
        buf_printf(&query->sql, " LIMIT %lld", (long long)most);
    }
    if (rc == NG_OK && query->sql.rc != NG_OK) {
        return notes_fail_memory(query->view->call);
    }
    return rc;
}

static int leave_out(struct notes_view *view, const struct notes_filter *filter)
{
    struct notes_filter *left = NULL;
    sqlite3_stmt *statement = NULL;
    int next = 0;
    int rc = notes_filter_left_out(view->call, view->notebook->db, filter, &left);
    if (rc == SQLITE_NOMEM) {
        return notes_fail_memory(view->call);
    }
    if (rc != SQLITE_OK) {
        return notes_notebook_fail(view->notebook, view->call);
    }
    if (left == NULL) {
        return NG_OK;
    }
    struct ng_str sql = view->call->host->format(
        view->call, "SELECT n.id FROM notes n WHERE %.*s ORDER BY n.id", (int)left->sql.len,
        left->sql.data);
    if (sql.data == NULL) {
        return notes_fail_memory(view->call);
    }
    if (notes_filter_functions(view->notebook->db) != SQLITE_OK ||
        sqlite3_prepare_v2(view->notebook->db, sql.data, (int)sql.len, &statement, NULL) !=
            SQLITE_OK ||
        notes_filter_bind(left, statement, 1, &next) != SQLITE_OK) {
        rc = notes_notebook_fail(view->notebook, view->call);
        (void)sqlite3_finalize(statement);
        return rc;
    }
    return notes_view_leave_out(view, statement);
}

static int run_filters(struct notes_view *view, const struct ng_value *definition)
{
    struct query query = {.view = view};
    sqlite3_stmt *statement = NULL;
    buf_init(&query.sql, SQL_BYTES_MAX);
    int rc = build(&query, definition);
    if (rc == NG_OK) {
        rc = leave_out(view, query.filter);
    }
    if (rc == NG_OK &&
        (notes_filter_functions(view->notebook->db) != SQLITE_OK ||
         notes_prepare_buf(view->notebook->db, &query.sql, &statement) != SQLITE_OK ||
         bind_all(&query, statement) != SQLITE_OK)) {
        rc = notes_notebook_fail(view->notebook, view->call);
        (void)sqlite3_finalize(statement);
    } else if (rc == NG_OK) {
        rc = notes_view_add_all(view, statement);
    }
    buf_done(&query.sql);
    return rc;
}

int notes_view_run_query(struct notes_view *view)
{
    const struct ng_host *host = view->call->host;
    const struct ng_value *sql = host->json_get(view->definition, "sql");
    const struct ng_value *query = host->json_get(view->definition, "query");
    if (host->json_type(sql) == NG_TYPE_STRING) {
        return run_sql(view, host->json_text(sql));
    }
    if (host->json_type(query) == NG_TYPE_OBJECT) {
        return run_filters(view, query);
    }
    return notes_view_fail(view, "it has neither `query` (an object) nor `sql` (a text)",
                           str_make(NULL, 0));
}
