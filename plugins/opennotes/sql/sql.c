/* SPDX-License-Identifier: MIT */
/* sql.c - runs an agent's statement: prepared under the authorizer, with limits, its rows into
 * an answer. */
#include "sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql_parts.h"
#include "text/codes.h"

#define MIB (1024 * 1024)
#define ONLY_READS "Only one statement that reads is allowed: SELECT or WITH ... SELECT"
#define TABLES_HINT                                                                            \
    "Example: SELECT file_path, title FROM read_markdown('**/*.md') WHERE content LIKE "       \
    "'%TODO%' LIMIT 10"

static int fail_sql(struct ng_call *call, const char *message, struct ng_str hint)
{
    if (hint.data != NULL) {
        call->host->hint(call, "%.*s", (int)hint.len, hint.data);
    }
    return ng_fail(call, NOTES_ESQL, "Invalid SQL query: %s", message);
}

/* ---- failures ---- */

static int fail_stopped(struct ng_call *call, const struct notes_sql_guard *guard,
                        const struct notes_sql *sql)
{
    switch (guard->stop) {
    case NOTES_SQL_TIME:
        call->host->hint(call, "Simplify query or add LIMIT");
        return ng_fail(call, NG_EQUERYTIMEOUT, "Query timed out after %gs",
                       (double)sql->timeout_ms / 1000.0);
    case NOTES_SQL_CANCELLED:
        return ng_fail(call, NG_ECANCELLED, "The call was cancelled.");
    case NOTES_SQL_MEMORY:
    case NOTES_SQL_TEMPORARY:
        return fail_sql(call,
                        call->host
                            ->format(call, "it takes more than %lld MiB of memory",
                                     (long long)guard->bytes_max / MIB)
                            .data,
                        ng_str_of("Select fewer or shorter columns, or sort and group less"));
    case NOTES_SQL_TRAVERSAL:
        call->host->hint(call, "Use paths relative to notebook");
        return ng_fail(call, NG_ETRAVERSAL, "Path traversal blocked: %s", guard->what);
    default: {
        struct ng_str hint = notes_sql_hint(call, sql->text, guard->what);
        return fail_sql(call, guard->what, hint.data != NULL ? hint : ng_str_of(ONLY_READS));
    }
    }
}

static struct ng_str usual_hint(struct ng_str sql)
{
    size_t at = 0;
    struct notes_token first = notes_token_next(sql, &at);
    bool reads = notes_token_is(&first, "SELECT") || notes_token_is(&first, "WITH") ||
                 notes_token_is(&first, "VALUES");
    return ng_str_of(reads ? TABLES_HINT : ONLY_READS);
}

/* The error of SQLite while preparing or running. */
static int fail_engine(struct ng_call *call, struct notes_sql_guard *guard,
                       const struct notes_sql *sql, int rc)
{
    if (guard->stop != NOTES_SQL_RUNS) {
        return fail_stopped(call, guard, sql);
    }
    if (rc == SQLITE_INTERRUPT) {
        return ng_fail(call, NG_ECANCELLED, "The call was cancelled.");
    }
    if (rc == SQLITE_NOMEM || rc == SQLITE_FULL) {
        return fail_sql(call, "it needs more memory than is free", str_make(NULL, 0));
    }
    const char *message = sqlite3_errmsg(guard->db);
    struct ng_str hint = notes_sql_hint(call, sql->text, message);
    return fail_sql(call, message, hint.data != NULL ? hint : usual_hint(sql->text));
}

/* ---- before it runs ---- */

static bool is_empty(struct ng_str sql)
{
    struct notes_token token;
    size_t at = 0;
    do {
        token = notes_token_next(sql, &at);
    } while (notes_token_is(&token, ";"));
    return token.kind == NOTES_TOKEN_END;
}

static int check_text(struct ng_call *call, struct ng_str sql)
{
    struct ng_str message;
    struct ng_str hint;
    if (is_empty(sql)) {
        return fail_sql(call, "there is no statement in it", ng_str_of(TABLES_HINT));
    }
    if (sql.len >= NOTES_SQL_LENGTH_MAX) {
        return fail_sql(call, "it is longer than 100,000 bytes",
                        ng_str_of("Shorten it: select with LIKE, GLOB or a subquery instead of "
                                  "listing values, or run it in parts"));
    }
    if (memchr(sql.data, '\0', sql.len) != NULL) {
        return fail_sql(call, "there is a NUL character in it", str_make(NULL, 0));
    }
    if (notes_sql_is_foreign(call, sql, &message, &hint)) {
        call->host->hint(call, "%.*s", (int)hint.len, hint.data);
        return ng_fail(call, NOTES_ESQL, "%.*s", (int)message.len, message.data);
    }
    if (notes_sql_weight(sql) > NOTES_SQL_WEIGHT_MAX) {
        return fail_sql(call, "it is too complex",
                        ng_str_of("Use fewer common table expressions inside each other, and "
                                  "shorter lists of expressions"));
    }
    return NG_OK;
}

static int prepare(struct ng_call *call, struct notes_sql_guard *guard,
                   const struct notes_sql *sql, sqlite3_stmt **ret_statement)
{
    const char *rest = NULL;
    /* SQLite reads one byte beyond the text. */
    struct ng_str text = call->host->format(call, "%.*s", (int)sql->text.len, sql->text.data);
    if (text.data == NULL) {
        return notes_fail_memory(call);
    }
    int rc = sqlite3_prepare_v2(guard->db, text.data, -1, ret_statement, &rest);
    if (rc != SQLITE_OK) {
        return fail_engine(call, guard, sql, rc);
    }
    struct ng_str tail = ng_str_of(rest);
    if (*ret_statement == NULL || !is_empty(tail)) {
        return fail_sql(call, "there is more than one statement in it", ng_str_of(ONLY_READS));
    }
    if (!sqlite3_stmt_readonly(*ret_statement) || sqlite3_stmt_isexplain(*ret_statement) != 0 ||
        sqlite3_column_count(*ret_statement) == 0) {
        return fail_sql(call, "it is not a SELECT", ng_str_of(ONLY_READS));
    }
    return NG_OK;
}

static const struct notes_sql_param *find_param(const struct notes_sql *sql, const char *name)
{
    for (size_t i = 0; name != NULL && i < sql->param_count; i++) {
        if (str_is(sql->params[i].name, name + 1)) {
            return &sql->params[i];
        }
    }
    return NULL;
}

static int bind_param(sqlite3_stmt *statement, int number, const struct notes_sql_param *param)
{
    if (param->text.data == NULL) {
        return sqlite3_bind_null(statement, number);
    }
    if (param->is_number) {
        char *end = NULL;
        char text[64];
        (void)snprintf(text, sizeof(text), "%.*s", (int)param->text.len, param->text.data);
        long long integer = strtoll(text, &end, 10);
        if (*end == '\0' && integer > INT64_MIN && integer < INT64_MAX) {
            return sqlite3_bind_int64(statement, number, integer);
        }
        double real = strtod(text, &end);
        if (*end == '\0') {
            return sqlite3_bind_double(statement, number, real);
        }
    }
    return sqlite3_bind_text64(statement, number, param->text.data, param->text.len,
                               SQLITE_TRANSIENT, SQLITE_UTF8);
}

static int bind_params(struct ng_call *call, const struct notes_sql *sql,
                       sqlite3_stmt *statement)
{
    int count = sqlite3_bind_parameter_count(statement);
    for (int i = 1; i <= count; i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        const struct notes_sql_param *param = find_param(sql, name);
        if (param == NULL) {
            return fail_sql(call,
                            call->host
                                ->format(call, "its parameter %.100s has no value",
                                         name != NULL ? name : "?")
                                .data,
                            ng_str_of("Write the value into the statement, texts in single "
                                      "quotes"));
        }
        if (bind_param(statement, i, param) != SQLITE_OK) {
            return notes_fail_memory(call);
        }
    }
    return NG_OK;
}

/* ---- running ---- */

static int run_rows(struct ng_call *call, struct notes_sql_guard *guard,
                    const struct notes_sql *sql, sqlite3_stmt *statement,
                    struct notes_answer *answer, int64_t *ret_total)
{
    struct notes_sql_names names;
    int64_t rows = 0;
    int64_t bytes = 0;
    if (notes_sql_names(call, statement, &names) != NG_OK) {
        return notes_fail_memory(call);
    }
    for (;;) {
        int rc = sqlite3_step(statement);
        if (rc == SQLITE_DONE) {
            *ret_total = rows;
            return NG_OK;
        }
        if (rc != SQLITE_ROW) {
            return fail_engine(call, guard, sql, rc);
        }
        bytes += notes_sql_row_bytes(statement);
        if (rows == NOTES_SQL_ROWS_MAX) {
            return fail_sql(call, "it has more than 100,000 rows",
                            ng_str_of("Add LIMIT, or a condition"));
        }
        if (bytes > guard->bytes_max) {
            return fail_sql(call,
                            call->host
                                ->format(call, "its rows are larger than %lld MiB",
                                         (long long)guard->bytes_max / MIB)
                                .data,
                            ng_str_of("Select fewer or shorter columns, or add LIMIT"));
        }
        notes_sql_broken_row(guard, statement);
        if (rows++ >= answer->offset && notes_answer_more(answer)) {
            notes_sql_row(notes_answer_item(answer), statement, &names);
            (void)notes_answer_add(answer);
        }
    }
}

int notes_sql_run(struct ng_call *call, sqlite3 *index, const struct notes_sql *sql,
                  struct notes_answer *answer, int64_t *ret_total)
{
    struct notes_sql_guard guard;
    sqlite3_stmt *statement = NULL;
    int rc = check_text(call, sql->text);
    if (rc != NG_OK) {
        return rc;
    }
    if (notes_sql_guard_open(&guard, call, index, sql) != SQLITE_OK) {
        rc = notes_fail_memory(call);
    }
    if (rc == NG_OK) {
        rc = prepare(call, &guard, sql, &statement);
    }
    if (rc == NG_OK) {
        rc = bind_params(call, sql, statement);
    }
    if (rc == NG_OK && notes_sql_broken_begin(&guard, sql, answer) != SQLITE_OK) {
        rc = notes_fail_memory(call);
    }
    if (rc == NG_OK) {
        rc = run_rows(call, &guard, sql, statement, answer, ret_total);
    }
    if (rc == NG_OK && sql->left_out != NULL &&
        notes_sql_broken_end(&guard, sql->left_out) != SQLITE_OK) {
        rc = notes_fail_memory(call);
    }
    (void)sqlite3_finalize(statement);
    notes_sql_guard_close(&guard);
    return rc;
}
