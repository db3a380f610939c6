/* SPDX-License-Identifier: MIT */
/* rest_backup.h - the archive of a running gateway, as a stream. */
#ifndef NOTEGATE_API_REST_BACKUP_H
#define NOTEGATE_API_REST_BACKUP_H

#include <stdbool.h>

struct call;
struct http_stream;

/*
 * Starts it, and waits for its first bytes. Nothing is written to disk, and memory holds no
 * more than a piece: the archive is made as fast as it is taken. files: with those of the
 * roots. NG_OK: *ret is for the reply. Else the call carries the sentence. On a worker.
 */
int rest_backup_begin(struct call *call, bool files, struct http_stream **ret);

#endif
