/* SPDX-License-Identifier: MIT */
/* backup_check.h - reads an archive while it goes elsewhere: a backup that cannot be restored
 * is none, also where it cannot be read back. */
#ifndef NOTEGATE_API_BACKUP_CHECK_H
#define NOTEGATE_API_BACKUP_CHECK_H

#include <pthread.h>

#include "core/archive/archive.h"

/* Longest sentence. */
#define BACKUP_CHECK_TEXT 4096

struct backup_check {
    pthread_t thread;
    int write_fd, read_fd; /* of a pipe; -1: none */
    int rc;
    struct archive_sink sink; /* of the reader */
    struct archive_counts counts;
    struct buf error;
};

/* sink: receives what is read, on another thread. NG_OK, or NG_EFAILED with errno.
 * backup_check_end() once after NG_OK. */
int backup_check_begin(struct backup_check *check, struct archive_sink sink);
void backup_check_put(struct backup_check *check, struct ng_str bytes);
/* Ends the check. NG_OK: it was a whole archive, with these counts; else `error` has a sentence
 * until backup_check_done(). */
int backup_check_end(struct backup_check *check);
void backup_check_done(struct backup_check *check);

#endif
