/* SPDX-License-Identifier: MIT */
/* filter.c - compiles filter conditions. */
#include "filter.h"
int on_filter_compile(struct ng_call *call, const struct ng_value *filters, int code,
                      struct on_filter **ret_filter)
{
    (void)filters;
    (void)ret_filter;
    return ng_fail(call, code, "Filters are not there yet.");
}
int on_filter_functions(sqlite3 *db)
{
    (void)db;
    return SQLITE_OK;
}
int on_filter_bind(const struct on_filter *filter, sqlite3_stmt *statement, int first,
                   int *ret_next)
{
    (void)filter;
    (void)statement;
    *ret_next = first;
    return SQLITE_OK;
}
