/* SPDX-License-Identifier: MIT */
/*
 * log_queue.h - lines on their way to stderr.
 *
 * A reader of stderr that stops reading must not stop the gateway: once started, lines go
 * through a bounded queue and one thread writes them. What does not fit is dropped and counted.
 */
#ifndef NOTEGATE_CORE_LOG_QUEUE_H
#define NOTEGATE_CORE_LOG_QUEUE_H

#include "notegate/abi.h"

/* Bytes that wait to be written. */
#define LOG_QUEUE_BYTES ((size_t)1024 * 1024)
/* Share of the access log: a flood of requests must not displace errors and audit lines. */
#define LOG_QUEUE_MINOR_BYTES (LOG_QUEUE_BYTES / 4 * 3)
/* How long log_queue_stop() waits for a reader that does not read. */
#define LOG_QUEUE_STOP_MS 1000

/* Process-wide. Before it, and where it fails (NG_EINTERNAL), lines are written by the thread
 * that logs. */
int log_queue_start(void);
/* Writes what waits, as far as the reader takes it, and ends the thread: lines are written by
 * the thread that logs again. A no-op where it was not started. */
void log_queue_stop(void);
/* Waits until the present queue is written, at most wait_ms. */
void log_queue_flush(int64_t wait_ms);
/* One whole line, written or queued or dropped. minor: of the access log. Any thread. */
void log_queue_put(const char *line, size_t len, bool minor);
/* Lines that were dropped since the start of the process. */
uint64_t log_queue_dropped(void);

#endif
