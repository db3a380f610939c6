/* SPDX-License-Identifier: MIT */
/* metrics.c - counters in fixed tables of atomics: an update finds its cell by hash or pointer
 * and adds; only a new cell is claimed with compare-and-swap. */
#include "metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

/* Tools counted; further ones share the last slot. Outcomes of one tool; further ones count as
 * "other". Places of the agents' table: twice what it holds, so that probing stays short. */
#define METRICS_TOOLS_MAX 512
#define METRICS_OUTCOMES_MAX 32
#define METRICS_AGENT_PLACES (METRICS_AGENTS_MAX * 2)
/* Longest agent name (see call.h); longer ones are cut. */
#define METRICS_AGENT_NAME_MAX 64
#define METRICS_OTHER "other"
/* The outcome of a call that asks the user something first: no failure. */
#define METRICS_ASKED "INPUT_REQUIRED"

/* Upper bounds of the histogram's buckets, as they are printed, and in nanoseconds. */
static const struct {
    const char *label;
    int64_t ns;
} metrics_bounds[] = {
    {"0.0001", 100000},  {"0.00025", 250000},   {"0.0005", 500000},  {"0.001", 1000000},
    {"0.0025", 2500000}, {"0.005", 5000000},    {"0.01", 10000000},  {"0.025", 25000000},
    {"0.05", 50000000},  {"0.1", 100000000},    {"0.25", 250000000}, {"0.5", 500000000},
    {"1", 1000000000},   {"2.5", 2500000000},   {"5", 5000000000},   {"10", 10000000000},
    {"30", 30000000000}, {"120", 120000000000},
};
#define METRICS_BOUNDS NG_COUNT(metrics_bounds)

static const char *const metrics_limit_names[METRICS_LIMITS] = {
    [METRICS_CONNECTIONS] = "connections",
    [METRICS_STREAMS] = "streams",
    [METRICS_QUEUE] = "queue",
    [METRICS_WORKERS] = "workers",
    [METRICS_BUFFERED] = "buffered",
    [METRICS_BODY] = "body",
    [METRICS_RESULT] = "result",
    [METRICS_DEPTH] = "depth",
    [METRICS_CALL_TIMEOUT] = "call_timeout",
    [METRICS_STREAM_BACKLOG] = "stream_backlog",
};

struct metrics_outcome {
    _Atomic(const char *) name; /* static text; NULL: free */
    atomic_uint_fast64_t count;
};

struct metrics_histogram {
    atomic_uint_fast64_t buckets[METRICS_BOUNDS + 1]; /* the last: above all bounds */
    atomic_uint_fast64_t ns;
};

struct metrics_tool {
    _Atomic(const char *) name; /* NULL: it is just being added */
    struct metrics_outcome outcomes[METRICS_OUTCOMES_MAX];
    atomic_uint_fast64_t other;
    struct metrics_histogram durations;
};

enum metrics_place_state { PLACE_FREE = 0, PLACE_CLAIMED = 1, PLACE_READY = 2 };

struct metrics_agent {
    atomic_int state; /* enum metrics_place_state; the name is written before READY */
    uint8_t len;
    char name[METRICS_AGENT_NAME_MAX];
    atomic_uint_fast64_t count, errors;
};

/* notegate_http_responses_total{status}: the first digit; 0 for clients that left. */
static const char *const metrics_statuses[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

static const struct {
    const char *name, *help;
} metrics_counter_names[METRICS_COUNTERS] = {
    [METRICS_AUTH_FAILURES] = {"notegate_auth_failures_total",
                               "Requests of callers that were refused."},
    [METRICS_RATE_LIMITED] = {"notegate_rate_limited_total",
                              "Calls over the rate of their key."},
    [METRICS_REFUSED_CONNECTIONS] = {"notegate_refused_connections_total",
                                     "Connections over limits.connections."},
    [METRICS_RELOADS] = {"notegate_reloads_total", "Reloads that took effect."},
    [METRICS_RELOAD_FAILURES] = {"notegate_reload_failures_total",
                                 "Reloads that failed and changed nothing."},
    [METRICS_BLOCKED_LOOPS] =
        {"notegate_blocked_loops_total",
         "Tools that blocked an event loop and lost the right to run there"},
};

struct metrics {
    atomic_int_fast64_t limits[METRICS_LIMITS];
    atomic_int_fast64_t uses[METRICS_LIMITS];
    atomic_size_t tool_count;
    struct metrics_tool *tools; /* METRICS_TOOLS_MAX */
    struct metrics_histogram commits;
    atomic_uint_fast64_t failed_commits;
    atomic_uint_fast64_t counters[METRICS_COUNTERS];
    atomic_uint_fast64_t statuses[NG_COUNT(metrics_statuses)];
    atomic_size_t agent_count;
    struct metrics_agent *agents; /* METRICS_AGENT_PLACES */
    atomic_uint_fast64_t other_agents, other_errors;
};

struct metrics *metrics_new(void)
{
    struct metrics *metrics = alloc_zeroed(1, sizeof(*metrics));
    if (metrics == NULL) {
        return NULL;
    }
    /* Zeroed memory of this size stays untouched, and thus costs nothing, until it is used. */
    metrics->tools = alloc_zeroed(METRICS_TOOLS_MAX, sizeof(*metrics->tools));
    metrics->agents = alloc_zeroed(METRICS_AGENT_PLACES, sizeof(*metrics->agents));
    if (metrics->tools == NULL || metrics->agents == NULL) {
        metrics_free(metrics);
        return NULL;
    }
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    if (metrics != NULL) {
        free(metrics->tools);
        free(metrics->agents);
        free(metrics);
    }
}

void metrics_limit(struct metrics *metrics, enum metrics_limit limit, int64_t value)
{
    atomic_store_explicit(&metrics->limits[limit], value, memory_order_relaxed);
}

int64_t metrics_use(struct metrics *metrics, enum metrics_limit limit, int64_t change)
{
    return atomic_fetch_add(&metrics->uses[limit], change) + change;
}

size_t metrics_tool(struct metrics *metrics, const char *name)
{
    size_t slot = atomic_fetch_add(&metrics->tool_count, 1);
    if (slot >= METRICS_TOOLS_MAX - 1) {
        atomic_store(&metrics->tool_count, METRICS_TOOLS_MAX);
        slot = METRICS_TOOLS_MAX - 1;
        name = METRICS_OTHER;
    }
    atomic_store_explicit(&metrics->tools[slot].name, name, memory_order_release);
    return slot;
}

static void metrics_count_outcome(struct metrics_tool *tool, const char *outcome)
{
    for (size_t i = 0; i < METRICS_OUTCOMES_MAX; i++) {
        struct metrics_outcome *cell = &tool->outcomes[i];
        const char *name = atomic_load_explicit(&cell->name, memory_order_acquire);
        /* If another thread was quicker, `name` becomes the text that it stored. */
        if (name == NULL && atomic_compare_exchange_strong(&cell->name, &name, outcome)) {
            name = outcome;
        }
        if (name == outcome || strcmp(name, outcome) == 0) {
            metrics_add(&cell->count, 1);
            return;
        }
    }
    metrics_add(&tool->other, 1);
}

/* A free place becomes the agent's. False: another thread was quicker. */
static bool metrics_claim(struct metrics_agent *place, struct ng_str name, bool failed)
{
    int unclaimed = PLACE_FREE;
    if (!atomic_compare_exchange_strong(&place->state, &unclaimed, PLACE_CLAIMED)) {
        return false;
    }
    if (name.len > 0) {
        memcpy(place->name, name.data, name.len);
    }
    place->len = (uint8_t)name.len;
    metrics_add(&place->count, 1);
    metrics_add(&place->errors, failed ? 1 : 0);
    atomic_store_explicit(&place->state, PLACE_READY, memory_order_release);
    return true;
}

static void metrics_count_agent(struct metrics *metrics, struct ng_str agent, bool failed)
{
    agent = utf8_cut(agent, METRICS_AGENT_NAME_MAX);
    size_t first = (size_t)(str_hash(agent) % METRICS_AGENT_PLACES);
    for (size_t i = 0; i < METRICS_AGENT_PLACES; i++) {
        struct metrics_agent *place = &metrics->agents[(first + i) % METRICS_AGENT_PLACES];
        int state;
        do { /* another thread writes the name just now */
            state = atomic_load_explicit(&place->state, memory_order_acquire);
        } while (state == PLACE_CLAIMED);
        if (state == PLACE_FREE) {
            if (atomic_fetch_add(&metrics->agent_count, 1) >= METRICS_AGENTS_MAX) {
                (void)atomic_fetch_sub(&metrics->agent_count, 1);
                break;
            }
            if (metrics_claim(place, agent, failed)) {
                return;
            }
            (void)atomic_fetch_sub(&metrics->agent_count, 1);
            i--; /* it is another agent's, or this one's, by now */
            continue;
        }
        if (str_equal(str_make(place->name, place->len), agent)) {
            metrics_add(&place->count, 1);
            metrics_add(&place->errors, failed ? 1 : 0);
            return;
        }
    }
    metrics_add(&metrics->other_agents, 1);
    metrics_add(&metrics->other_errors, failed ? 1 : 0);
}

static void metrics_observe(struct metrics_histogram *histogram, int64_t ns)
{
    size_t bucket = 0;
    ns = i64_max(ns, 0);
    while (bucket < METRICS_BOUNDS && ns > metrics_bounds[bucket].ns) {
        bucket++;
    }
    metrics_add(&histogram->buckets[bucket], 1);
    metrics_add(&histogram->ns, (uint64_t)ns);
}

void metrics_call(struct metrics *metrics, size_t tool_slot, const char *outcome,
                  struct ng_str agent, int64_t duration_ns)
{
    bool failed =
        outcome != NULL && strcmp(outcome, "ok") != 0 && strcmp(outcome, METRICS_ASKED) != 0;
    if (tool_slot < METRICS_TOOLS_MAX) {
        metrics_count_outcome(&metrics->tools[tool_slot], outcome != NULL ? outcome : "ok");
        metrics_observe(&metrics->tools[tool_slot].durations, duration_ns);
    }
    metrics_count_agent(metrics, agent, failed);
}

void metrics_count(struct metrics *metrics, enum metrics_counter counter)
{
    metrics_add(&metrics->counters[counter], 1);
}

void metrics_http(struct metrics *metrics, int status)
{
    size_t class = 0;
    if (status >= 0) {
        class = (size_t)status / 100;
    }
    metrics_add(&metrics->statuses[class < NG_COUNT(metrics_statuses) ? class : 0], 1);
}

void metrics_commit(struct metrics *metrics, bool good, int64_t duration_ns)
{
    metrics_observe(&metrics->commits, duration_ns);
    metrics_add(&metrics->failed_commits, good ? 0 : 1);
}

/* ---- printing ---- */

void metrics_head(struct buf *out, const char *name, const char *type, const char *help)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* `name="value"` with the value escaped as the text format wants it. */
static void metrics_label(struct buf *out, const char *name, struct ng_str value)
{
    (void)buf_printf(out, "%s=\"", name);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.data[i];
        if (c == '\n') {
            (void)buf_add_c(out, "\\n");
        } else if (c == '"' || c == '\\') {
            (void)buf_add_char(out, '\\');
            (void)buf_add_char(out, c);
        } else {
            (void)buf_add_char(out, c);
        }
    }
    (void)buf_add_char(out, '"');
}

static void metrics_print_outcome(struct buf *out, const char *tool, const char *outcome,
                                  uint64_t count)
{
    if (count == 0) {
        return;
    }
    (void)buf_add_c(out, "notegate_calls_total{");
    metrics_label(out, "tool", ng_str_of(tool));
    (void)buf_add_char(out, ',');
    metrics_label(out, "outcome", ng_str_of(outcome));
    (void)buf_printf(out, "} %llu\n", (unsigned long long)count);
}

static bool metrics_shows(const struct metrics_reader *reader, const char *tool)
{
    return reader == NULL || tool == NULL || reader->sees(reader->user, tool);
}

static void metrics_print_calls(struct metrics *metrics, const struct metrics_reader *reader,
                                struct buf *out)
{
    metrics_head(out, "notegate_calls_total", "counter", "Finished calls by tool and outcome.");
    size_t count = atomic_load(&metrics->tool_count);
    for (size_t i = 0; i < count && i < METRICS_TOOLS_MAX; i++) {
        struct metrics_tool *tool = &metrics->tools[i];
        const char *called = atomic_load_explicit(&tool->name, memory_order_acquire);
        if (!metrics_shows(reader, called)) {
            continue;
        }
        for (size_t j = 0; called != NULL && j < METRICS_OUTCOMES_MAX; j++) {
            const char *name = atomic_load(&tool->outcomes[j].name);
            if (name == NULL) {
                break;
            }
            metrics_print_outcome(out, called, name, atomic_load(&tool->outcomes[j].count));
        }
        metrics_print_outcome(out, called != NULL ? called : METRICS_OTHER, METRICS_OTHER,
                              atomic_load(&tool->other));
    }
}

static void metrics_print_agent(struct buf *out, const char *series, struct ng_str name,
                                uint64_t count)
{
    (void)buf_printf(out, "%s{", series);
    metrics_label(out, "agent", name);
    (void)buf_printf(out, "} %llu\n", (unsigned long long)count);
}

static void metrics_print_agents(struct metrics *metrics, const struct metrics_reader *reader,
                                 struct buf *out, bool errors)
{
    const char *series = "notegate_agent_calls_total";
    if (errors) {
        series = "notegate_agent_errors_total";
    }
    uint64_t other = atomic_load(errors ? &metrics->other_errors : &metrics->other_agents);
    metrics_head(out, series, "counter",
                 errors ? "Failed calls by agent; agents over a bound count as other."
                        : "Finished calls by agent; agents over a bound count as other.");
    for (size_t i = 0; i < METRICS_AGENT_PLACES; i++) {
        struct metrics_agent *place = &metrics->agents[i];
        if (atomic_load_explicit(&place->state, memory_order_acquire) != PLACE_READY) {
            continue;
        }
        struct ng_str name = str_make(place->name, place->len);
        uint64_t count = atomic_load(errors ? &place->errors : &place->count);
        bool hidden = reader != NULL && !str_equal(name, reader->agent);
        if (hidden || str_is(name, METRICS_OTHER)) {
            other += count; /* one series, also for an agent of that name */
        } else {
            metrics_print_agent(out, series, name, count);
        }
    }
    if (other > 0) {
        metrics_print_agent(out, series, ng_str_of(METRICS_OTHER), other);
    }
}

/* label: `tool="x",` or "". */
static void metrics_print_histogram(struct metrics_histogram *histogram, struct buf *out,
                                    const char *series, const char *tool)
{
    char label[128] = "";
    char only[130] = "";
    uint64_t total = 0;
    if (tool != NULL) { /* a tool's name needs no escapes, and is short */
        (void)snprintf(label, sizeof(label), "tool=\"%s\",", tool);
        (void)snprintf(only, sizeof(only), "{tool=\"%s\"}", tool);
    }
    for (size_t i = 0; i <= METRICS_BOUNDS; i++) {
        total += atomic_load(&histogram->buckets[i]);
        (void)buf_printf(out, "%s_bucket{%sle=\"%s\"} %llu\n", series, label,
                         i < METRICS_BOUNDS ? metrics_bounds[i].label : "+Inf",
                         (unsigned long long)total);
    }
    uint64_t ns = atomic_load(&histogram->ns);
    (void)buf_printf(out, "%s_sum%s %llu.%09llu\n", series, only,
                     (unsigned long long)(ns / 1000000000),
                     (unsigned long long)(ns % 1000000000));
    (void)buf_printf(out, "%s_count%s %llu\n", series, only, (unsigned long long)total);
}

/* Tools that were never called have no series yet: there may be hundreds. */
static bool metrics_was_called(struct metrics_tool *tool)
{
    for (size_t i = 0; i <= METRICS_BOUNDS; i++) {
        if (atomic_load(&tool->durations.buckets[i]) > 0) {
            return true;
        }
    }
    return false;
}

static void metrics_print_durations(struct metrics *metrics,
                                    const struct metrics_reader *reader, struct buf *out)
{
    metrics_head(out, "notegate_call_duration_seconds", "histogram",
                 "Time from a call's arrival to its end, by tool.");
    size_t count = atomic_load(&metrics->tool_count);
    for (size_t i = 0; i < count && i < METRICS_TOOLS_MAX; i++) {
        struct metrics_tool *tool = &metrics->tools[i];
        const char *name = atomic_load_explicit(&tool->name, memory_order_acquire);
        if (name != NULL && metrics_was_called(tool) && metrics_shows(reader, name)) {
            metrics_print_histogram(&tool->durations, out, "notegate_call_duration_seconds",
                                    name);
        }
    }
    metrics_head(out, "notegate_store_commit_duration_seconds", "histogram",
                 "Time of a change from the queue to the disk.");
    metrics_print_histogram(&metrics->commits, out, "notegate_store_commit_duration_seconds",
                            NULL);
    metrics_head(out, "notegate_store_commit_failures_total", "counter",
                 "Changes that could not be stored.");
    (void)buf_printf(out, "notegate_store_commit_failures_total %llu\n",
                     (unsigned long long)atomic_load(&metrics->failed_commits));
}

static void metrics_print_counters(struct metrics *metrics, struct buf *out)
{
    for (size_t i = 0; i < METRICS_COUNTERS; i++) {
        metrics_head(out, metrics_counter_names[i].name, "counter",
                     metrics_counter_names[i].help);
        (void)buf_printf(out, "%s %llu\n", metrics_counter_names[i].name,
                         (unsigned long long)atomic_load(&metrics->counters[i]));
    }
    metrics_head(
        out, "notegate_http_responses_total", "counter",
        "HTTP requests by the class of their status; none: the client had disconnected.");
    for (size_t i = 0; i < NG_COUNT(metrics_statuses); i++) {
        (void)buf_printf(out, "notegate_http_responses_total{status=\"%s\"} %llu\n",
                         metrics_statuses[i],
                         (unsigned long long)atomic_load(&metrics->statuses[i]));
    }
}

static void metrics_print_limits(struct metrics *metrics, struct buf *out)
{
    metrics_head(out, "notegate_limit", "gauge",
                 "Limits in force: counts, bytes, or seconds for call_timeout.");
    for (size_t i = 0; i < METRICS_LIMITS; i++) {
        (void)buf_printf(out, "notegate_limit{name=\"%s\"} %lld\n", metrics_limit_names[i],
                         (long long)atomic_load(&metrics->limits[i]));
    }
    metrics_head(out, "notegate_in_use", "gauge", "Current use of each limit.");
    for (size_t i = 0; i < METRICS_LIMITS; i++) {
        (void)buf_printf(out, "notegate_in_use{name=\"%s\"} %lld\n", metrics_limit_names[i],
                         (long long)atomic_load(&metrics->uses[i]));
    }
}

int metrics_print(struct metrics *metrics, const struct metrics_reader *reader, struct buf *out)
{
    metrics_print_calls(metrics, reader, out);
    metrics_print_agents(metrics, reader, out, false);
    metrics_print_agents(metrics, reader, out, true);
    metrics_print_durations(metrics, reader, out);
    metrics_print_counters(metrics, out);
    metrics_print_limits(metrics, out);
    return out->rc;
}
