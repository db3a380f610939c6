/* SPDX-License-Identifier: MIT */
/*
 * audit_names.h - the values that entries do not show: agents, addresses, clients, spaces and
 * ids of documents.
 *
 * An entry has "~" and 32 digits of HMAC-SHA-256(salt, value). The value and its random salt
 * are a line of `names/YYYY-MM.jsonl`, outside the tree: without the line, no guess of the
 * value can be checked. A value keeps its salt within a month.
 */
#ifndef NOTEGATE_CORE_AUDIT_NAMES_H
#define NOTEGATE_CORE_AUDIT_NAMES_H

#include "core/base/buf.h"

#define AUDIT_NAMES_FOLDER "names"
#define AUDIT_NAME_DIGITS 32
#define AUDIT_NAME_SIZE (1 + AUDIT_NAME_DIGITS + 1) /* with a NUL */
#define AUDIT_SALT_BYTES 16
/* Bytes of a value; a longer one is cut. */
#define AUDIT_NAMED_MAX ((size_t)1024)
/* Values of a month that are remembered: of more, those that are not used get new salts. */
#define AUDIT_NAMES_MAX 65536
/* Bytes at the end of a month's file that a start reads; and of its lines that wait. */
#define AUDIT_NAMES_LOAD_MAX ((uint64_t)16 * 1024 * 1024)
#define AUDIT_NAMES_WAIT_MAX ((size_t)16 * 1024 * 1024)

struct audit_names;

/* dir: the folder of the log, lent until audit_names_close(). NULL: out of memory. */
struct audit_names *audit_names_open(int dir);
void audit_names_close(struct audit_names *names);

/* The name of a value in an entry of this time. NG_OK; NG_EBUSY: AUDIT_NAMES_WAIT_MAX of lines
 * wait; NG_EUNAVAILABLE: the month's file cannot be read; NG_EINTERNAL. The sentence is in
 * error. */
int audit_names_get(struct audit_names *names, int64_t time_ms, struct ng_str value,
                    char out[AUDIT_NAME_SIZE], struct buf *error);
/* Makes the lines of all names durable: before the entries that show them. NG_OK,
 * NG_EUNAVAILABLE; then they wait for the next time. */
int audit_names_sync(struct audit_names *names, struct buf *error);

/* Drops what is remembered, once the lines that waited are durable: files were changed. */
void audit_names_forget(struct audit_names *names);

/* ---- the files ---- */

#define AUDIT_MONTH_LEN 7 /* of "2026-11-30" */
#define AUDIT_NAMES_FILE_SIZE sizeof(AUDIT_NAMES_FOLDER "/2026-11.jsonl")

/* The path below the log's folder of a month's file; returns `out`. */
const char *audit_names_file(const char *month, char out[AUDIT_NAMES_FILE_SIZE]);

/* A line: its name and value are lent for the call. NG_OK to go on. */
typedef int audit_names_fn(void *user, struct ng_str line, struct ng_str name,
                           struct ng_str value);

struct audit_names_told {
    uint64_t count; /* lines */
    uint64_t bad;   /* the first of them that is no name of its value and salt; 0: all are */
    uint64_t cut;   /* bytes behind the last line end: of a line that is being written */
};

/* Each line of a month's file that is a name of its value and salt, in pieces: a file may have
 * any length. from: the first byte; above 0 it begins behind the next line end. fn NULL: only a
 * check. NG_OK, fn's result; NG_ENOTFOUND; NG_EUNAVAILABLE with errno, NG_EINTERNAL. */
int audit_names_read(int dir, const char *month, uint64_t from, audit_names_fn *fn, void *user,
                     struct audit_names_told *ret);
/* fn for the file of each month. NG_OK, fn's result, NG_EUNAVAILABLE with the sentence. */
int audit_names_months(int dir, int (*fn)(void *user, const char *month), void *user,
                       struct buf *error);

/* Checks the files of all months: each line is a name that follows from its value and salt.
 * NG_OK; NG_EFAILED: one does not; NG_EUNAVAILABLE, NG_EINTERNAL. *ret_count: lines. */
int audit_names_check(int dir, uint64_t *ret_count, struct buf *problem);

#endif
