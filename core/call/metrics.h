/* SPDX-License-Identifier: MIT */
/* metrics.h - counters of the gateway, written as Prometheus text. Any thread; updating takes
 * no lock. */
#ifndef NOTEGATE_CORE_METRICS_H
#define NOTEGATE_CORE_METRICS_H

#include <stdatomic.h>

#include "core/base/buf.h"

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

/* Things that are only counted: notegate_<name>_total. */
enum metrics_counter {
    METRICS_AUTH_FAILURES, /* requests with a missing, wrong, expired or revoked key */
    METRICS_RATE_LIMITED,  /* calls over the rate of their key */
    METRICS_REFUSED_CONNECTIONS,
    METRICS_RELOADS,
    METRICS_RELOAD_FAILURES, /* nothing was changed */
    METRICS_BLOCKED_LOOPS,   /* tools caught blocking an event loop (watchdog.h) */
    METRICS_COUNTERS
};

static inline void metrics_add(atomic_uint_fast64_t *counter, uint64_t add)
{
    (void)atomic_fetch_add_explicit(counter, add, memory_order_relaxed);
}

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);
void metrics_limit(struct metrics *metrics, enum metrics_limit limit, int64_t value);
/* Adds to the use and returns the new value. */
int64_t metrics_use(struct metrics *metrics, enum metrics_limit limit, int64_t change);
/* Slot of a tool (its name is lent for good); call once per tool. */
size_t metrics_tool(struct metrics *metrics, const char *name);
/* One finished call. outcome: "ok" or an error code's name, static text. */
void metrics_call(struct metrics *metrics, size_t tool_slot, const char *outcome,
                  struct ng_str agent, int64_t duration_ns);
void metrics_count(struct metrics *metrics, enum metrics_counter counter);
/* An answered HTTP request; status 0: its client had left. */
void metrics_http(struct metrics *metrics, int status);
/* A commit has ended, so long after it was handed to the backend. */
void metrics_commit(struct metrics *metrics, bool good, int64_t duration_ns);
/* A reader with restricted rights: it gets only the sum of other agents, and only the tools
 * that `sees` allows. */
struct metrics_reader {
    struct ng_str agent;
    bool (*sees)(void *user, const char *tool);
    void *user;
};
/* All of the above as text; the caller appends its own figures (store, backlog). reader
 * NULL: all of it. */
int metrics_print(struct metrics *metrics, const struct metrics_reader *reader,
                  struct buf *out);
/* process_...: memory, processor time, descriptors, since when (metrics_process.c). */
void metrics_print_process(struct buf *out);
/* "# HELP" and "# TYPE". */
void metrics_head(struct buf *out, const char *name, const char *type, const char *help);

#endif
