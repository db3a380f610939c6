/* SPDX-License-Identifier: MIT */
/* sql.c - statements that are put together at run time. Only fixed words and numbers go into
 * the text; whatever a caller gave is bound. */
#include "db.h"

#include <inttypes.h>
#include <stdio.h>

void sql_add(struct sql *sql, const char *text)
{
    if (sql->rc == NG_OK) {
        sql->rc = bytes_add(&sql->text, text, strlen(text));
    }
}

void sql_add_int(struct sql *sql, int64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%" PRId64, number);
    sql_add(sql, digits);
}

void sql_bind(struct sql *sql, const struct bound *bound)
{
    if (sql->rc == NG_OK && sql->count == sql->cap) {
        size_t cap = sql->cap == 0 ? 16 : sql->cap * 2;
        struct bound *grown = realloc(sql->bounds, cap * sizeof(*grown));
        if (grown == NULL) {
            sql->rc = NG_EINTERNAL;
            free(bound->owned);
            return;
        }
        sql->bounds = grown;
        sql->cap = cap;
    }
    if (sql->rc != NG_OK) {
        free(bound->owned);
        return;
    }
    sql->bounds[sql->count++] = *bound;
    sql_add(sql, "?");
    sql_add_int(sql, (int64_t)sql->count);
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

int sql_prepare(struct conn *conn, struct sql *sql, sqlite3_stmt **ret)
{
    *ret = NULL;
    if (sql->rc != NG_OK || sql->text.len > INT32_MAX) {
        return SQLITE_NOMEM;
    }
    int rc = sqlite3_prepare_v2(conn->sql, sql->text.data, (int)sql->text.len, ret, NULL);
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
        (void)sqlite3_finalize(*ret);
        *ret = NULL;
    }
    return rc;
}
