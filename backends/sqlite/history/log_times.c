/* SPDX-License-Identifier: MIT */
/*
 * log_times.c - the rows of a document around a time. No index has the times, so each step of a
 * search reads a row. Many changes have one time and then there is none for months: guesses by
 * the distance are no better than halves. Each step goes to the revision between the ends that
 * the highest power of two divides: searches in one document meet at the same rows, which each
 * connection keeps.
 */
#include "revision_at.h"

/* The rows that a connection keeps: 64 KiB. A prime, as powers of two divide the revisions. */
#define PROBES 2039

/* A row of `log`. Its number and its time never change. */
struct probe {
    int64_t doc; /* 0: none */
    uint64_t revision, seq;
    int64_t time_ms;
};

/* `low` is before the point (revision 0: before all rows), `high` is not, and no row between
 * `low` and `floor` is there. */
struct times {
    struct conn *conn;
    int64_t doc;
    const struct log_point *point;
    struct log_row low, high;
    uint64_t floor;
};

static struct probe *probe_at(const struct times *times, uint64_t revision)
{
    if (times->conn->probes == NULL) {
        times->conn->probes = calloc(PROBES, sizeof(struct probe));
    }
    if (times->conn->probes == NULL) {
        return NULL; /* slower, no failure */
    }
    return &times->conn->probes[((uint64_t)times->doc * 31 + revision) % PROBES];
}

/* The newest row up to this revision, from the connection or the file; revision 0: none. */
static int times_read(const struct times *times, sqlite3_stmt *stmt, uint64_t revision,
                      struct log_row *ret)
{
    struct probe *probe = probe_at(times, revision);
    if (probe != NULL && probe->doc == times->doc && probe->revision == revision) {
        *ret = (struct log_row){revision, probe->seq, probe->time_ms, false};
        return SQLITE_OK;
    }
    int rc = log_step(stmt, times->floor, revision, ret);
    if (rc == SQLITE_OK && probe != NULL && ret->revision == revision) {
        *probe = (struct probe){times->doc, revision, ret->seq, ret->time_ms};
    }
    return rc;
}

/* Of the revisions above `floor` and below `high` the one that the highest power of two
 * divides. */
static uint64_t times_next(const struct times *times)
{
    uint64_t last = times->high.revision - 1;
    unsigned bits = 63 - (unsigned)__builtin_clzll(times->floor ^ last);
    return last >> bits << bits;
}

static int times_step(struct times *times, sqlite3_stmt *stmt, uint64_t revision)
{
    struct log_row row;
    int rc = times_read(times, stmt, revision, &row);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (row.revision != 0 && log_is_after(times->point, row.seq, row.time_ms)) {
        times->high = row;
        return SQLITE_OK;
    }
    times->floor = revision;
    if (row.revision != 0) {
        times->low = row;
    }
    return SQLITE_OK;
}

int log_find_time(struct conn *conn, int64_t doc, const struct log_row *top,
                  const struct log_point *point, struct log_rows *ret)
{
    struct times times = {.conn = conn, .doc = doc, .point = point, .high = *top};
    sqlite3_stmt *stmt = NULL;
    int rc = log_prepare(conn, LOG_ROWS("kind,time_ms", LOG_NEWEST), doc, &stmt);
    while (rc == SQLITE_OK && times.high.revision - times.floor > LOG_NEAR) {
        rc = times_step(&times, stmt, times_next(&times));
    }
    (void)sql_release(conn, stmt);
    *ret = (struct log_rows){times.low, times.high};
    return rc;
}
