/* SPDX-License-Identifier: MIT */
/* sql.c - dynamic statements. Only constants and numbers become part of the text; values from a
 * caller are bound. */
#include "db.h"

#include "core/base/array.h"
#include "core/base/minmax.h"

/* More values than sqlite binds. */
#define BOUNDS_MAX ((size_t)1 << 20)

void sql_add(struct sql *sql, const char *text)
{
    if (sql->rc == NG_OK) {
        sql->rc = bytes_add(&sql->text, text, strlen(text));
    }
}

void sql_printf(struct sql *sql, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = sqlite3_vmprintf(format, args);
    va_end(args);
    if (text == NULL) {
        sql->rc = NG_EINTERNAL;
    } else {
        sql_add(sql, text);
    }
    sqlite3_free(text);
}

void sql_bind(struct sql *sql, const struct bound *bound)
{
    if (sql->rc == NG_OK) {
        sql->rc = array_reserve((void **)&sql->bounds, &sql->cap, sql->count + 1,
                                sizeof(*sql->bounds), BOUNDS_MAX);
    }
    if (sql->rc != NG_OK) {
        free(bound->owned);
        return;
    }
    sql->bounds[sql->count++] = *bound;
    sql_printf(sql, "?%d", (int)sql->count);
}

void sql_bind_int(struct sql *sql, int64_t number)
{
    struct bound bound = {.kind = BOUND_INTEGER, .integer = number};
    sql_bind(sql, &bound);
}

void sql_done(struct sql *sql)
{
    for (size_t i = 0; i < sql->count; i++) {
        free(sql->bounds[i].owned);
    }
    bytes_done(&sql->text);
    free(sql->bounds);
    memset(sql, 0, sizeof(*sql));
}

/* A cached statement of this text, or the slot for a new one. NULL: all are in use. */
static struct kept_stmt *kept_find(struct conn *conn, struct ng_str text)
{
    struct kept_stmt *oldest = NULL;
    for (size_t i = 0; i < KEPT_STATEMENTS; i++) {
        struct kept_stmt *kept = &conn->kept[i];
        if (kept->in_use) {
            continue;
        }
        const char *sql = NULL;
        if (kept->stmt != NULL) {
            sql = sqlite3_sql(kept->stmt);
        }
        if (sql != NULL && strlen(sql) == text.len && memcmp(sql, text.data, text.len) == 0) {
            return kept;
        }
        if (oldest == NULL || kept->used < oldest->used) {
            oldest = kept;
        }
    }
    if (oldest != NULL) {
        (void)sqlite3_finalize(oldest->stmt);
        oldest->stmt = NULL;
    }
    return oldest;
}

static int prepare(struct conn *conn, struct ng_str text, sqlite3_stmt **ret)
{
    struct kept_stmt *kept = NULL;
    if (text.len <= KEPT_SQL_MAX) {
        kept = kept_find(conn, text);
    }
    if (kept != NULL && kept->stmt != NULL) {
        *ret = kept->stmt;
    } else {
        unsigned flags = 0;
        if (kept != NULL) {
            flags = SQLITE_PREPARE_PERSISTENT;
        }
        int rc = sqlite3_prepare_v3(conn->sql, text.data, (int)text.len, flags, ret, NULL);
        if (rc != SQLITE_OK || *ret == NULL) {
            return rc;
        }
    }
    if (kept != NULL) {
        kept->stmt = *ret;
        kept->in_use = true;
        kept->used = ++conn->kept_uses;
    }
    return SQLITE_OK;
}

int sql_release(struct conn *conn, sqlite3_stmt *stmt)
{
    for (size_t i = 0; i < KEPT_STATEMENTS; i++) {
        if (stmt != NULL && conn->kept[i].stmt == stmt) {
            int rc = sqlite3_reset(stmt);
            (void)sqlite3_clear_bindings(stmt); /* the bound values are borrowed */
            conn->kept[i].in_use = false;
            return rc;
        }
    }
    return sqlite3_finalize(stmt);
}

int sql_prepare(struct conn *conn, struct sql *sql, sqlite3_stmt **ret)
{
    *ret = NULL;
    if (sql->rc != NG_OK || sql->text.len > INT32_MAX) {
        return SQLITE_NOMEM;
    }
    int rc = prepare(conn, bytes_str(&sql->text), ret);
    for (size_t i = 0; i < sql->count && rc == SQLITE_OK; i++) {
        const struct bound *bound = &sql->bounds[i];
        int index = (int)i + 1;
        switch (bound->kind) {
        case BOUND_BLOB:
            rc = bind_blob(*ret, index, bound->bytes);
            break;
        case BOUND_TEXT:
            rc = bind_text(*ret, index, bound->bytes);
            break;
        case BOUND_NUMBER:
            rc = sqlite3_bind_double(*ret, index, bound->number);
            break;
        case BOUND_INTEGER:
            rc = sqlite3_bind_int64(*ret, index, bound->integer);
            break;
        }
    }
    if (rc != SQLITE_OK) {
        (void)sql_release(conn, *ret);
        *ret = NULL;
    }
    return rc;
}

int sql_run(struct conn *conn, struct sql *sql)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sql_prepare(conn, sql, &stmt);
    if (rc == SQLITE_OK) {
        rc = conn_run(conn, stmt);
    }
    (void)sql_release(conn, stmt);
    sql_done(sql);
    if (rc != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}

int64_t sql_number(struct conn *conn, struct sql *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number = -1;
    if (sql_prepare(conn, sql, &stmt) == SQLITE_OK) {
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            number = sqlite3_column_int64(stmt, 0);
        }
        if (sql_release(conn, stmt) != SQLITE_OK) {
            number = -1;
        }
    }
    sql_done(sql);
    return number;
}

int sql_each(struct conn *conn, const char *text, int (*row)(void *user, sqlite3_stmt *stmt),
             void *user)
{
    sqlite3_stmt *stmt = NULL;
    int rc = NG_OK;
    int step = sqlite3_prepare_v2(conn->sql, text, -1, &stmt, NULL);
    if (step == SQLITE_OK) {
        while (rc == NG_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
            rc = row(user, stmt);
        }
    }
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = NG_EINTERNAL;
    }
    (void)sqlite3_finalize(stmt);
    return int_min(rc, NG_OK);
}
