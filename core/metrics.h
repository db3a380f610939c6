/* SPDX-License-Identifier: MIT */
/* metrics.h - counters of the gateway, written as Prometheus text. Any thread; updating takes
 * no lock. */
#ifndef NOTEGATE_CORE_METRICS_H
#define NOTEGATE_CORE_METRICS_H

#include "buf.h"

struct metrics;

/* Agents counted by name; further ones count as "other". */
#define METRICS_AGENTS_MAX 256

/* Bounded things: each has a limit (notegate_limit) and a use (notegate_in_use). */
enum metrics_limit {
    METRICS_CONNECTIONS,
    METRICS_STREAMS,
    METRICS_QUEUE,
    METRICS_WORKERS,
    METRICS_BUFFERED,
    METRICS_BODY,
    METRICS_RESULT,
    METRICS_DEPTH,
    METRICS_CALL_TIMEOUT,
    METRICS_STREAM_BACKLOG,
    METRICS_LIMITS
};

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);
void metrics_limit(struct metrics *metrics, enum metrics_limit limit, int64_t value);
/* Adds to what is in use and returns the new value. */
int64_t metrics_use(struct metrics *metrics, enum metrics_limit limit, int64_t change);
/* Slot of a tool (its name is lent for good); call once per tool, at start. */
size_t metrics_tool(struct metrics *metrics, const char *name);
/* One finished call. outcome: "ok" or an error code's name, static text. */
void metrics_call(struct metrics *metrics, size_t tool_slot, const char *outcome,
                  struct ng_str agent, int64_t duration_ns);
/* All of the above as text; the caller adds what it knows (store, backlog) behind it. */
int metrics_print(struct metrics *metrics, struct buf *out);

#endif
