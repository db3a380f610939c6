/* SPDX-License-Identifier: MIT */
/* revision_at.h - the rows of `log` of one document, by a search over its revisions. */
#ifndef NOTEGATE_SQLITE_REVISION_AT_H
#define NOTEGATE_SQLITE_REVISION_AT_H

#include "../store/db.h"

/* A row of `log`; revision 0: none. */
struct log_row {
    uint64_t revision, seq;
    int64_t time_ms;
    bool kept; /* its content */
};

/* A point: rows up to this number and this time are before it. */
struct log_point {
    uint64_t seq;    /* UINT64_MAX: any */
    int64_t time_ms; /* INT64_MAX: any */
};

bool log_is_after(const struct log_point *point, uint64_t seq, int64_t time_ms);

/* Rows around a point. */
struct log_rows {
    struct log_row before; /* revision 0: none */
    struct log_row after;
};

/* Rows of one document above one revision and up to another. */
#define LOG_ROWS(columns, rest)                                                                \
    "SELECT revision,seq," columns                                                             \
    " FROM log WHERE doc=?1 AND revision>?2 AND revision<=?3 " rest
#define LOG_NEWEST "ORDER BY revision DESC LIMIT 1"

int log_prepare(struct conn *conn, const char *text, int64_t doc, sqlite3_stmt **ret);
/* The row of a prepared statement that stands on one. */
struct log_row log_row_of(sqlite3_stmt *stmt);
/* The first row of the statement above `floor` and up to `top`. SQLITE_OK or the error. */
int log_step(sqlite3_stmt *stmt, uint64_t floor, uint64_t top, struct log_row *ret);

/* Finds the rows of the document around a number, among those with revisions below `top`, which
 * is above it, and `top` itself. Times are not read. SQLITE_OK or the error. */
int log_find_number(struct conn *conn, int64_t doc, const struct log_row *top, uint64_t seq,
                    struct log_rows *ret);

/* Finds rows around a point at most LOG_NEAR revisions from each other. They may be gone by
 * now, and whether they are kept is not read. */
#define LOG_NEAR 16
int log_find_time(struct conn *conn, int64_t doc, const struct log_row *top,
                  const struct log_point *point, struct log_rows *ret);

#endif
