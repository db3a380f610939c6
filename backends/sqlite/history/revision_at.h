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

/* Finds the newest row of the document that is before the point, among those with revisions
 * below `top`, which is not. Times are read only where the point has one. SQLITE_OK or the
 * error. */
int log_find(struct conn *conn, int64_t doc, const struct log_row *top,
             const struct log_point *point, struct log_row *ret);

#endif
