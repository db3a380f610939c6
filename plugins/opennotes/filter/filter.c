/* SPDX-License-Identifier: MIT */
/* filter.c - compiles filter conditions into SQL over the tables of the index. */
#include "filter.h"

#include <stdio.h>
#include <string.h>

#include "filter_parse.h"
#include "index/index.h"
#include "index/link_sql.h"
#include "note/note.h"

#define SQL_MAX ((size_t)1024 * 1024)
#define DOUBTS_MAX (2 * SQL_MAX)
#define SHOWN_VALUE_MAX 200
/* Stands in the SQL behind a condition that is false without front matter: see spell(). */
#define DOUBT '\x01'
#define DOUBT_SQL " OR iif(n.front_error IS NULL,0,NULL)"

/* Rank of the kinds in `names`: if several notes match a link, the lowest rank wins. */
#define KIND_RANK(kind)                                                                        \
    "CASE " kind " WHEN 'path' THEN 0 WHEN 'wikipath' THEN 1 WHEN 'file' THEN 2 "              \
    "WHEN 'suffix' THEN 3 WHEN 'title' THEN 4 ELSE 5 END"

struct notes_filter_compiler {
    struct ng_call *call;
    struct arena *arena;
    struct buf sql, shown;
    struct notes_filter *filter;
    struct notes_filter_value **next;       /* link of the next value */
    const struct notes_filter_owner *owner; /* NULL: conditions are compiled as written */
    size_t conditions;
    size_t alternatives; /* conditions of the written one */
    bool doubts;         /* a condition depends on front matter */
    bool apart;          /* alternatives behind the first are no conditions of the list */
    int code;
};

/* ---- parameters ---- */

static void add_value(struct notes_filter_compiler *compiler, struct notes_filter_value value)
{
    struct notes_filter_value *copy = ng_alloc(compiler->call, sizeof(*copy));
    if (copy == NULL) {
        compiler->sql.rc = NG_EINTERNAL;
        return;
    }
    *copy = value;
    *compiler->next = copy;
    compiler->next = &copy->next;
}

static void add_text(struct notes_filter_compiler *compiler, struct ng_str text)
{
    struct ng_str copy = notes_call_copy(compiler->call, text);
    if (text.data == NULL || copy.data == NULL) {
        compiler->sql.rc = NG_EINTERNAL;
    }
    add_value(compiler, (struct notes_filter_value){.text = copy});
}

static void add_number(struct notes_filter_compiler *compiler, double number)
{
    add_value(compiler, (struct notes_filter_value){.is_number = true, .number = number});
}

static struct ng_str nfc(struct notes_filter_compiler *compiler, struct ng_str text)
{
    return notes_nfc(compiler->arena, notes_utf8_clean(compiler->arena, text));
}

static struct ng_str folded(struct notes_filter_compiler *compiler, struct ng_str text)
{
    return notes_fold(compiler->arena, notes_utf8_clean(compiler->arena, text));
}

/* ---- one condition; != is written as the negation of = around it ---- */

static void add_data(struct notes_filter_compiler *compiler,
                     const struct notes_filter_condition *condition)
{
    struct buf *sql = &compiler->sql;
    const char *name = notes_operator_name(condition->op);
    buf_add_c(sql, "EXISTS(SELECT 1 FROM fields f WHERE f.note=n.id AND f.key=?");
    notes_add_if(sql, notes_key_is_name(condition->key), " COLLATE NOCASE");
    buf_add_c(sql, " AND ");
    add_text(compiler, nfc(compiler, condition->key));
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(sql, "on_contains(f.text,?))");
        add_text(compiler, folded(compiler, condition->value));
    } else if (condition->op == NOTES_EQUAL) {
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

static void add_tags(struct notes_filter_compiler *compiler,
                     const struct notes_filter_condition *condition)
{
    struct ng_str value = condition->value;
    if (str_begins(value, "#")) {
        value = str_make(value.data + 1, value.len - 1);
    }
    buf_add_c(&compiler->sql, "EXISTS(SELECT 1 FROM tags t WHERE t.note=n.id AND ");
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "instr(t.fold,?))");
    } else {
        buf_printf(&compiler->sql, "t.fold%s?)", notes_operator_name(condition->op));
    }
    add_text(compiler, folded(compiler, value));
}

static void add_path(struct notes_filter_compiler *compiler,
                     const struct notes_filter_condition *condition)
{
    struct ng_str value = notes_without_dot(condition->value);
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "instr(n.path_fold,?)>0");
        add_text(compiler, folded(compiler, value));
    } else if (condition->op == NOTES_EQUAL) {
        buf_add_c(&compiler->sql, "on_glob(?,n.path)");
        add_text(compiler, nfc(compiler, value));
    } else {
        buf_printf(&compiler->sql, "n.path%s?", notes_operator_name(condition->op));
        add_text(compiler, nfc(compiler, value));
    }
}

static void add_title(struct notes_filter_compiler *compiler,
                      const struct notes_filter_condition *condition)
{
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "ifnull(instr(n.title_fold,?)>0,0)");
        add_text(compiler, folded(compiler, condition->value));
        return;
    }
    buf_printf(&compiler->sql, "ifnull(n.title%s?,0)", notes_operator_name(condition->op));
    add_text(compiler, nfc(compiler, condition->value));
}

/* The notes that a value of links-to or linked-by matches: by a part of the path, by a glob,
 * else by path, name, title or alias (lowest rank wins). */
static void add_named(struct notes_filter_compiler *compiler,
                      const struct notes_filter_condition *condition)
{
    struct ng_str value = notes_without_dot(condition->value);
    if (condition->op == NOTES_CONTAINS) {
        buf_add_c(&compiler->sql, "SELECT id FROM notes WHERE instr(path_fold,?)>0");
        add_text(compiler, folded(compiler, value));
        return;
    }
    if (memchr(value.data, '*', value.len) != NULL) {
        buf_add_c(&compiler->sql, "SELECT id FROM notes WHERE on_glob(?,path)");
        add_text(compiler, nfc(compiler, value));
        return;
    }
    struct ng_str stem = folded(compiler, value);
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
static void add_links(struct notes_filter_compiler *compiler,
                      const struct notes_filter_condition *condition)
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

static void show(struct notes_filter_compiler *compiler,
                 const struct notes_filter_condition *condition)
{
    struct ng_str value =
        utf8_cut(notes_utf8_clean(compiler->arena, condition->value), SHOWN_VALUE_MAX);
    buf_add_str(&compiler->shown, notes_utf8_clean(compiler->arena, condition->name));
    buf_printf(&compiler->shown, " %s '", notes_operator_name(condition->op));
    buf_add_str(&compiler->shown, value);
    buf_add_c(&compiler->shown, "'");
}

static int fail_condition(struct notes_filter_compiler *compiler, struct ng_str text,
                          const char *wrong)
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

static int fail_count(struct notes_filter_compiler *compiler)
{
    const struct notes_filter_owner *owner = compiler->owner;
    if (owner != NULL) {
        return owner->fail(owner->user, "its filters have more than 100 conditions", STR_NONE);
    }
    return ng_fail(compiler->call, compiler->code, "The filters have more than %d conditions.",
                   NOTES_FILTER_CONDITIONS_MAX);
}

int notes_filter_add(struct notes_filter_compiler *compiler, struct ng_str text)
{
    struct notes_filter_condition condition;
    bool another = compiler->alternatives++ > 0;
    compiler->conditions += !(another && compiler->apart);
    /* Each chain of AND or OR is as deep as it is long, and SQLite takes a depth of 1000. */
    if (compiler->conditions > NOTES_FILTER_CONDITIONS_MAX ||
        compiler->alternatives > NOTES_FILTER_CONDITIONS_MAX) {
        return fail_count(compiler);
    }
    const char *wrong = notes_filter_parse(text, &condition);
    if (wrong != NULL) {
        return fail_condition(compiler, text, wrong);
    }
    notes_add_if(&compiler->sql, another, " OR ");
    notes_add_if(&compiler->shown, another, " OR ");
    show(compiler, &condition);
    bool negated = condition.op == NOTES_UNEQUAL;
    buf_add_c(&compiler->sql, negated ? "(NOT(" : "(");
    if (negated) {
        condition.op = NOTES_EQUAL;
    }
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
    if (condition.field != NOTES_FIELD_PATH) {
        buf_add_char(&compiler->sql, DOUBT);
        compiler->doubts = true;
    }
    buf_add_c(&compiler->sql, negated ? "))" : ")");
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

static int fail_item(struct notes_filter_compiler *compiler, const char *list)
{
    const struct notes_filter_owner *owner = compiler->owner;
    if (owner != NULL) {
        return owner->fail(owner->user, "a condition of its filters is not a string",
                           ng_str_of(list));
    }
    return ng_fail(compiler->call, compiler->code,
                   "A condition in the filter `%s` is not a string.", list);
}

/* A condition as it is written, behind `between`. */
static int add_written(struct notes_filter_compiler *compiler, struct ng_str text,
                       const char *between)
{
    size_t sql_len = compiler->sql.len;
    size_t shown_len = compiler->shown.len;
    compiler->alternatives = 0;
    buf_add_c(&compiler->sql, between);
    buf_add_c(&compiler->shown, between);
    if (compiler->owner == NULL) {
        return notes_filter_add(compiler, text);
    }
    buf_add_c(&compiler->sql, "(");
    int rc = compiler->owner->expand(compiler, text, compiler->owner->user);
    buf_add_c(&compiler->sql, ")");
    if (compiler->alternatives == 0) {
        buf_cut(&compiler->sql, sql_len);
        buf_cut(&compiler->shown, shown_len);
    }
    return rc;
}

static int add_group(struct notes_filter_compiler *compiler, const struct ng_value *filters,
                     const struct group *group)
{
    const struct ng_host *host = compiler->call->host;
    const struct ng_value *list = host->json_get(filters, group->name);
    struct buf *bufs[] = {&compiler->sql, &compiler->shown};
    size_t lens[] = {compiler->sql.len, compiler->shown.len};
    size_t before = compiler->conditions;
    compiler->apart = group == groups; /* only an OR inside of ANDs is a chain of its own */
    if (list != NULL && host->json_type(list) != NG_TYPE_ARRAY && compiler->owner == NULL) {
        return ng_fail(compiler->call, compiler->code,
                       "The filter `%s` is not a list of conditions.", group->name);
    }
    for (size_t i = 0; i < NG_COUNT(bufs); i++) {
        notes_add_if(bufs[i], bufs[i]->len > 0, " AND ");
        buf_add_c(bufs[i], group->before);
        buf_add_c(bufs[i], "(");
    }
    for (const struct ng_value *item = host->json_first(list); item != NULL;
         item = host->json_next(item)) {
        if (host->json_type(item) != NG_TYPE_STRING) {
            return fail_item(compiler, group->name);
        }
        int rc = add_written(compiler, host->json_text(item),
                             compiler->conditions > before ? group->between : "");
        if (rc != NG_OK) {
            return rc;
        }
    }
    for (size_t i = 0; i < NG_COUNT(bufs); i++) {
        buf_add_c(bufs[i], ")");
        if (compiler->conditions == before) {
            buf_cut(bufs[i], lens[i]);
        }
    }
    return NG_OK;
}

static int check_members(struct notes_filter_compiler *compiler, const struct ng_value *filters)
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

/* The SQL with each DOUBT replaced, in call memory. {NULL, 0}: out of memory. */
static struct ng_str spell(struct notes_filter_compiler *compiler, const char *doubt)
{
    struct ng_str sql = notes_buf_str(&compiler->sql);
    struct buf out;
    buf_init(&out, DOUBTS_MAX);
    for (size_t at = 0; at < sql.len; at++) {
        size_t stop = notes_find_char(sql, at, DOUBT);
        buf_add_str(&out, str_make(sql.data + at, stop - at));
        notes_add_if(&out, stop < sql.len, doubt);
        at = stop;
    }
    struct ng_str spelled = STR_NONE;
    if (compiler->sql.rc == NG_OK && out.rc == NG_OK) {
        spelled = notes_call_copy(compiler->call, notes_buf_str(&out));
    }
    buf_done(&out);
    return spelled;
}

static int compile(struct notes_filter_compiler *compiler, const struct ng_value *filters)
{
    struct ng_call *call = compiler->call;
    int rc = NG_OK;
    if (compiler->owner == NULL) {
        rc = check_members(compiler, filters);
    }
    for (size_t i = 0; i < NG_COUNT(groups) && rc == NG_OK; i++) {
        rc = add_group(compiler, filters, &groups[i]);
    }
    if (rc != NG_OK || compiler->conditions == 0) {
        return rc;
    }
    struct notes_filter *filter = compiler->filter;
    filter->sql = spell(compiler, "");
    filter->shown = notes_call_copy(call, notes_buf_str(&compiler->shown));
    if (compiler->doubts) {
        filter->doubt = spell(compiler, DOUBT_SQL);
    }
    return notes_memory(call, compiler->shown.rc == NG_OK && filter->sql.data != NULL &&
                                  filter->shown.data != NULL &&
                                  (filter->doubt.data != NULL || !compiler->doubts));
}

static int compile_all(struct notes_filter_compiler *compiler, const struct ng_value *filters,
                       struct notes_filter **ret_filter)
{
    struct arena arena;
    struct notes_filter *filter = ng_alloc(compiler->call, sizeof(*filter));
    if (filter == NULL) {
        return notes_fail_memory(compiler->call);
    }
    *filter = (struct notes_filter){.sql = ng_str_of("1"), .shown = ng_str_of("")};
    *ret_filter = filter;
    if (filters == NULL) {
        return NG_OK;
    }
    compiler->filter = filter;
    compiler->next = &filter->values;
    compiler->arena = &arena;
    arena_init(&arena, 0);
    buf_init(&compiler->sql, SQL_MAX);
    buf_init(&compiler->shown, SQL_MAX);
    int rc = compile(compiler, filters);
    buf_done(&compiler->sql);
    buf_done(&compiler->shown);
    arena_done(&arena);
    compiler->arena = NULL;
    return rc;
}

int notes_filter_compile(struct ng_call *call, const struct ng_value *filters, int code,
                         struct notes_filter **ret_filter)
{
    struct notes_filter_compiler compiler = {.call = call, .code = code};
    return compile_all(&compiler, filters, ret_filter);
}

int notes_filter_expand(struct ng_call *call, const struct ng_value *filters, int code,
                        const struct notes_filter_owner *owner,
                        struct notes_filter **ret_filter)
{
    struct notes_filter_compiler compiler = {.call = call, .code = code, .owner = owner};
    return compile_all(&compiler, filters, ret_filter);
}

/* ---- running ---- */

static void sql_glob(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct ng_str pattern = notes_value_text(values[0]);
    struct ng_str path = notes_value_text(values[1]);
    sqlite3_result_int(context,
                       pattern.data != NULL && path.data != NULL && notes_glob(pattern, path));
}

/* Does the text, folded, hold the folded needle? */
static void sql_contains(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct arena arena;
    (void)count;
    struct ng_str text = notes_value_text(values[0]);
    struct ng_str needle = notes_value_text(values[1]);
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
    struct ng_str text = notes_value_text(values[0]);
    struct ng_str needle = notes_value_text(values[1]);
    sqlite3_result_int(context, str_find(text, needle, 0) != SIZE_MAX);
}

/* The text trimmed and folded. */
static void sql_fold(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct arena arena;
    (void)count;
    arena_init(&arena, 0);
    struct ng_str folded = notes_fold(&arena, notes_trim(notes_value_text(values[0])));
    sqlite3_result_text64(context, folded.data, folded.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    arena_done(&arena);
}

struct function {
    const char *name;
    int arguments;
    void (*run)(sqlite3_context *context, int count, sqlite3_value **values);
};

int notes_filter_functions(sqlite3 *db)
{
    static const struct function functions[] = {
        {"on_glob", 2, sql_glob},
        {"on_contains", 2, sql_contains},
        {"notes_has", 2, sql_has},
        {"on_fold", 1, sql_fold},
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; i < NG_COUNT(functions) && rc == SQLITE_OK; i++) {
        rc = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                        functions[i].run, NULL, NULL, NULL);
    }
    return rc;
}

int notes_filter_bind(const struct notes_filter *filter, sqlite3_stmt *statement, int first,
                      int *ret_next)
{
    int rc = SQLITE_OK;
    for (const struct notes_filter_value *value = filter->values;
         value != NULL && rc == SQLITE_OK; value = value->next) {
        if (value->is_number) {
            rc = sqlite3_bind_double(statement, first++, value->number);
        } else {
            rc = notes_bind_text(statement, first++, value->text);
        }
    }
    *ret_next = first;
    return rc;
}
