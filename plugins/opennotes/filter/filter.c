/* SPDX-License-Identifier: MIT */
/* filter.c - compiles filter conditions into SQL over the tables of the index. */
#include "filter.h"

#include <stdio.h>
#include <string.h>

#include "filter_parse.h"
#include "index/index.h"
#include "index/link_sql.h"

#define SQL_MAX ((size_t)1024 * 1024)
#define VALUES_PER_CONDITION 4 /* parameters that one condition takes at most */
#define SHOWN_VALUE_MAX 200

/* Rank of the kinds in `names`: if several notes match a link, the lowest rank wins. */
#define KIND_RANK(kind)                                                                        \
    "CASE " kind " WHEN 'path' THEN 0 WHEN 'wikipath' THEN 1 WHEN 'file' THEN 2 "              \
    "WHEN 'suffix' THEN 3 WHEN 'title' THEN 4 ELSE 5 END"

struct compiler {
    struct ng_call *call;
    struct arena *arena;
    struct buf sql, shown;
    struct notes_filter *filter;
    size_t conditions;
    int code;
};

/* ---- parameters ---- */

static void add_text(struct compiler *compiler, struct ng_str text)
{
    struct notes_filter_value *value = &compiler->filter->values[compiler->filter->count++];
    char *copy = ng_alloc(compiler->call, text.len + 1);
    if (text.data == NULL || copy == NULL) {
        compiler->sql.rc = NG_EINTERNAL;
        return;
    }
    memcpy(copy, text.data, text.len);
    *value = (struct notes_filter_value){.text = str_make(copy, text.len)};
}

static void add_number(struct compiler *compiler, double number)
{
    compiler->filter->values[compiler->filter->count++] =
        (struct notes_filter_value){.is_number = true, .number = number};
}

static struct ng_str nfc(struct compiler *compiler, struct ng_str text)
{
    return notes_nfc(compiler->arena, notes_utf8_clean(compiler->arena, text));
}

static struct ng_str fold(struct compiler *compiler, struct ng_str text)
{
    return notes_fold(compiler->arena, notes_utf8_clean(compiler->arena, text));
}

/* ---- one condition; != is written as the negation of = around it ---- */

static void add_data(struct compiler *compiler, const struct notes_filter_condition *condition)
{
    struct buf *sql = &compiler->sql;
    const char *name = notes_operator_name(condition->op);
    buf_add_c(sql, "EXISTS(SELECT 1 FROM fields f WHERE f.note=n.id AND f.key=? AND ");
    add_text(compiler, nfc(compiler, condition->key));
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(sql, "on_contains(f.text,?))");
        add_text(compiler, fold(compiler, condition->value));
    } else if (condition->op == NOTES_EQUAL || condition->op == NOTES_UNEQUAL) {
        buf_add_c(sql, condition->is_number ? "(f.text=? OR f.number=?))" : "f.text=?)");
        add_text(compiler, nfc(compiler, condition->value));
        if (condition->is_number) {
            add_number(compiler, condition->number);
        }
    } else if (condition->is_number) {
        buf_printf(sql, "f.number%s?)", name);
        add_number(compiler, condition->number);
    } else {
        buf_printf(sql, "f.number IS NULL AND f.text%s?)", name);
        add_text(compiler, nfc(compiler, condition->value));
    }
}

static void add_tags(struct compiler *compiler, const struct notes_filter_condition *condition)
{
    bool equal = condition->op == NOTES_EQUAL || condition->op == NOTES_UNEQUAL;
    struct ng_str value = condition->value;
    if (str_begins(value, "#")) {
        value = str_make(value.data + 1, value.len - 1);
    }
    buf_add_c(&compiler->sql, "EXISTS(SELECT 1 FROM tags t WHERE t.note=n.id AND ");
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "instr(t.fold,?))");
    } else {
        buf_printf(&compiler->sql, "t.fold%s?)",
                   equal ? "=" : notes_operator_name(condition->op));
    }
    add_text(compiler, fold(compiler, value));
}

static void add_path(struct compiler *compiler, const struct notes_filter_condition *condition)
{
    struct ng_str value = condition->value;
    while (str_begins(value, "./")) {
        value = str_make(value.data + 2, value.len - 2);
    }
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "instr(n.path_fold,?)>0");
        add_text(compiler, fold(compiler, value));
    } else if (condition->op == NOTES_EQUAL || condition->op == NOTES_UNEQUAL) {
        buf_add_c(&compiler->sql, "on_glob(?,n.path)");
        add_text(compiler, nfc(compiler, value));
    } else {
        buf_printf(&compiler->sql, "n.path%s?", notes_operator_name(condition->op));
        add_text(compiler, nfc(compiler, value));
    }
}

static void add_title(struct compiler *compiler, const struct notes_filter_condition *condition)
{
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "ifnull(instr(n.title_fold,?)>0,0)");
        add_text(compiler, fold(compiler, condition->value));
        return;
    }
    bool equal = condition->op == NOTES_EQUAL || condition->op == NOTES_UNEQUAL;
    buf_printf(&compiler->sql, "ifnull(n.title%s?,0)",
               equal ? "=" : notes_operator_name(condition->op));
    add_text(compiler, nfc(compiler, condition->value));
}

/* The notes that a value of links-to or linked-by matches: by a part of the path, by a glob,
 * else by path, name, title or alias (lowest rank wins). */
static void add_named(struct compiler *compiler, const struct notes_filter_condition *condition)
{
    struct ng_str value = condition->value;
    while (str_begins(value, "./")) {
        value = str_make(value.data + 2, value.len - 2);
    }
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "SELECT id FROM notes WHERE instr(path_fold,?)>0");
        add_text(compiler, fold(compiler, value));
        return;
    }
    if (memchr(value.data, '*', value.len) != NULL) {
        buf_add_c(&compiler->sql, "SELECT id FROM notes WHERE on_glob(?,path)");
        add_text(compiler, nfc(compiler, value));
        return;
    }
    struct ng_str stem = fold(compiler, value);
    if (str_ends(stem, ".md")) {
        stem.len -= 3;
    }
    buf_add_c(&compiler->sql,
              "SELECT note FROM names WHERE key IN(?,?) AND " KIND_RANK(
                  "kind") "=("
                          "SELECT min(" KIND_RANK("kind") ") FROM names WHERE key IN(?,?))");
    for (int i = 0; i < 2; i++) {
        add_text(compiler, nfc(compiler, value));
        add_text(compiler, stem);
    }
}

/* A link resolves to one note at most, as in every other tool. */
static void add_links(struct compiler *compiler, const struct notes_filter_condition *condition)
{
    buf_add_c(&compiler->sql, "ifnull(n.id IN(WITH named(id) AS MATERIALIZED(");
    add_named(compiler, condition);
    buf_add_c(&compiler->sql,
              condition->field == NOTES_FIELD_LINKS_TO
                  ? ") SELECT l.note FROM links l WHERE l.key IN(SELECT key FROM names "
                    "WHERE note IN(SELECT id FROM named)) AND " NOTES_LINK_TARGET(
                        "m.id") " IN(SELECT id FROM named)),0)"
                  : ") SELECT " NOTES_LINK_TARGET(
                        "m.id") " FROM links l WHERE l.note IN(SELECT id FROM named)),0)");
}

static void show(struct compiler *compiler, const struct notes_filter_condition *condition)
{
    struct ng_str value =
        utf8_cut(notes_utf8_clean(compiler->arena, condition->value), SHOWN_VALUE_MAX);
    buf_add_str(&compiler->shown, notes_utf8_clean(compiler->arena, condition->name));
    buf_printf(&compiler->shown, " %s '", notes_operator_name(condition->op));
    buf_add_str(&compiler->shown, value);
    buf_add_c(&compiler->shown, "'");
}

static int fail_condition(struct compiler *compiler, struct ng_str text, const char *wrong)
{
    struct ng_str clean = notes_utf8_clean(compiler->arena, text);
    struct ng_str cut = utf8_cut(clean, SHOWN_VALUE_MAX);
    struct ng_call *call = compiler->call;
    call->host->hint(call, "Write conditions as data.status=open, data.priority>=2, "
                           "title~meeting, path=projects/**, links-to=a.md");
    return call->host->fail_text(
        call, compiler->code,
        call->host->format(call, "The filter condition \"%.*s\" is not understood. %s",
                           (int)cut.len, cut.data, wrong));
}

static int add_condition(struct compiler *compiler, struct ng_str text)
{
    struct notes_filter_condition condition;
    const char *wrong = notes_filter_parse(text, &condition);
    if (wrong != NULL) {
        return fail_condition(compiler, text, wrong);
    }
    buf_add_c(&compiler->sql, condition.op == NOTES_UNEQUAL ? "(NOT " : "(");
    switch (condition.field) {
    case NOTES_FIELD_DATA:
        add_data(compiler, &condition);
        break;
    case NOTES_FIELD_TAGS:
        add_tags(compiler, &condition);
        break;
    case NOTES_FIELD_PATH:
        add_path(compiler, &condition);
        break;
    case NOTES_FIELD_TITLE:
        add_title(compiler, &condition);
        break;
    default:
        add_links(compiler, &condition);
    }
    buf_add_c(&compiler->sql, ")");
    show(compiler, &condition);
    return NG_OK;
}

/* ---- groups ---- */

struct group {
    const char *name, *before, *between;
};

static const struct group groups[] = {
    {"and", "", " AND "},
    {"or", "", " OR "},
    {"not", "NOT ", " OR "},
};

static int add_group(struct compiler *compiler, const struct ng_value *filters,
                     const struct group *group)
{
    const struct ng_host *host = compiler->call->host;
    const struct ng_value *list = host->json_get(filters, group->name);
    const struct ng_value *item = host->json_first(list);
    if (list != NULL && host->json_type(list) != NG_TYPE_ARRAY) {
        return ng_fail(compiler->call, compiler->code,
                       "The filter `%s` is not a list of conditions.", group->name);
    }
    if (item == NULL) {
        return NG_OK;
    }
    struct buf *bufs[] = {&compiler->sql, &compiler->shown};
    for (size_t i = 0; i < NG_COUNT(bufs); i++) {
        notes_add_if(bufs[i], bufs[i]->len > 0, " AND ");
        buf_add_c(bufs[i], group->before);
        buf_add_c(bufs[i], "(");
    }
    for (bool first = true; item != NULL; item = host->json_next(item), first = false) {
        if (host->json_type(item) != NG_TYPE_STRING) {
            return ng_fail(compiler->call, compiler->code,
                           "A condition in the filter `%s` is not a string.", group->name);
        }
        if (compiler->conditions++ == NOTES_FILTER_CONDITIONS_MAX) {
            return ng_fail(compiler->call, compiler->code,
                           "The filters have more than %d conditions.",
                           NOTES_FILTER_CONDITIONS_MAX);
        }
        notes_add_if(&compiler->sql, !first, group->between);
        notes_add_if(&compiler->shown, !first, group->between);
        int rc = add_condition(compiler, host->json_text(item));
        if (rc != NG_OK) {
            return rc;
        }
    }
    buf_add_c(&compiler->sql, ")");
    buf_add_c(&compiler->shown, ")");
    return NG_OK;
}

static int check_members(struct compiler *compiler, const struct ng_value *filters)
{
    const struct ng_host *host = compiler->call->host;
    const struct ng_value *member = host->json_first(filters);
    if (host->json_type(filters) != NG_TYPE_OBJECT) {
        return ng_fail(compiler->call, compiler->code,
                       "`filters` is not an object of the lists and, or, not.");
    }
    for (; member != NULL; member = host->json_next(member)) {
        struct ng_str key = host->json_key(member);
        if (!str_is(key, "and") && !str_is(key, "or") && !str_is(key, "not")) {
            return ng_fail(compiler->call, compiler->code,
                           "`filters` has the member `%.*s`; it may have and, or, not.",
                           (int)key.len, key.data);
        }
    }
    return NG_OK;
}

static int compile(struct compiler *compiler, const struct ng_value *filters)
{
    struct ng_call *call = compiler->call;
    int rc = check_members(compiler, filters);
    for (size_t i = 0; i < NG_COUNT(groups) && rc == NG_OK; i++) {
        rc = add_group(compiler, filters, &groups[i]);
    }
    if (rc != NG_OK || compiler->conditions == 0) {
        return rc;
    }
    struct ng_str sql = notes_buf_str(&compiler->sql);
    struct ng_str shown = notes_buf_str(&compiler->shown);
    if (compiler->sql.rc == NG_OK && compiler->shown.rc == NG_OK) {
        compiler->filter->sql = call->host->format(call, "%.*s", (int)sql.len, sql.data);
        compiler->filter->shown = call->host->format(call, "%.*s", (int)shown.len, shown.data);
    }
    return notes_memory(call, compiler->sql.rc == NG_OK && compiler->shown.rc == NG_OK &&
                                  compiler->filter->sql.data != NULL &&
                                  compiler->filter->shown.data != NULL);
}

int notes_filter_compile(struct ng_call *call, const struct ng_value *filters, int code,
                         struct notes_filter **ret_filter)
{
    struct arena arena;
    struct compiler compiler = {.call = call, .arena = &arena, .code = code};
    struct notes_filter *filter = ng_alloc(call, sizeof(*filter));
    size_t values = (size_t)NOTES_FILTER_CONDITIONS_MAX * VALUES_PER_CONDITION;
    struct notes_filter_value *list = ng_alloc(call, values * sizeof(*list));
    if (filter == NULL || list == NULL) {
        return notes_fail_memory(call);
    }
    *filter =
        (struct notes_filter){.sql = ng_str_of("1"), .shown = ng_str_of(""), .values = list};
    *ret_filter = filter;
    if (filters == NULL) {
        return NG_OK;
    }
    compiler.filter = filter;
    arena_init(&arena, 0);
    buf_init(&compiler.sql, SQL_MAX);
    buf_init(&compiler.shown, SQL_MAX);
    int rc = compile(&compiler, filters);
    buf_done(&compiler.sql);
    buf_done(&compiler.shown);
    arena_done(&arena);
    return rc;
}

/* ---- running ---- */

static struct ng_str text_of(sqlite3_value *value)
{
    const char *data = (const char *)sqlite3_value_text(value);
    return str_make(data, (size_t)sqlite3_value_bytes(value));
}

static void sql_glob(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct ng_str pattern = text_of(values[0]);
    struct ng_str path = text_of(values[1]);
    sqlite3_result_int(context,
                       pattern.data != NULL && path.data != NULL && notes_glob(pattern, path));
}

/* Does the text, folded, hold the folded needle? */
static void sql_contains(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct arena arena;
    (void)count;
    struct ng_str text = text_of(values[0]);
    struct ng_str needle = text_of(values[1]);
    if (text.data == NULL || needle.len == 0) {
        sqlite3_result_int(context, text.data != NULL);
        return;
    }
    arena_init(&arena, 0);
    struct ng_str folded = notes_fold(&arena, text);
    if (folded.data == NULL) {
        sqlite3_result_error_nomem(context);
    } else {
        sqlite3_result_int(context, str_find(folded, needle, 0) != SIZE_MAX);
    }
    arena_done(&arena);
}

/* Does the text hold the needle, byte for byte? NULL holds nothing. */
static void sql_has(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct ng_str text = text_of(values[0]);
    struct ng_str needle = text_of(values[1]);
    sqlite3_result_int(context, str_find(text, needle, 0) != SIZE_MAX);
}

struct function {
    const char *name;
    void (*run)(sqlite3_context *context, int count, sqlite3_value **values);
};

int notes_filter_functions(sqlite3 *db)
{
    static const struct function functions[] = {
        {"on_glob", sql_glob},
        {"on_contains", sql_contains},
        {"notes_has", sql_has},
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; i < NG_COUNT(functions) && rc == SQLITE_OK; i++) {
        rc = sqlite3_create_function_v2(db, functions[i].name, 2,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                        functions[i].run, NULL, NULL, NULL);
    }
    return rc;
}

int notes_filter_bind(const struct notes_filter *filter, sqlite3_stmt *statement, int first,
                      int *ret_next)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < filter->count && rc == SQLITE_OK; i++) {
        const struct notes_filter_value *value = &filter->values[i];
        if (value->is_number) {
            rc = sqlite3_bind_double(statement, first + (int)i, value->number);
        } else {
            rc = notes_bind_text(statement, first + (int)i, value->text);
        }
    }
    *ret_next = first + (int)filter->count;
    return rc;
}
