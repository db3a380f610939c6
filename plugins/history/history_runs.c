/* SPDX-License-Identifier: MIT */
/* history_runs.c - history_log by run: the runs, the one with the newest change first. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/utf8.h"
#include "history.h"

/* Runs that one answer looks at, and agents of a run that it names. */
#define RUNS_MAX ((size_t)100000)
#define RUN_AGENTS_MAX 16
/* Bytes of a run in the answer without its texts, and of what follows the runs. */
#define RUN_ROW_MAX ((size_t)256)
#define RUNS_END_MAX ((size_t)100)

struct run {
    struct hash_link link;
    uint64_t first_seq, last_seq, changes;
    struct ng_str agents[RUN_AGENTS_MAX]; /* call memory */
    size_t agent_count;
    size_t name_len;
    char name[];
};

struct runs {
    struct ng_call *call;
    struct ng_trail trail;
    struct hash_table table;
    uint64_t limit;
    int rc;
};

static struct ng_str run_name(const struct run *run)
{
    return str_make(run->name, run->name_len);
}

static bool run_is(const struct hash_link *link, const void *key)
{
    const struct ng_str *name = key;
    return str_equal(run_name(HASH_ITEM(link, struct run, link)), *name);
}

/* The run with this name; a new one is added. NULL: out of memory. */
static struct run *run_find(struct runs *runs, struct ng_str name)
{
    uint64_t hash = hash_fnv(HASH_FNV_BASIS, name);
    struct hash_link *link = hash_table_find(&runs->table, hash, run_is, &name);
    if (link != NULL) {
        return HASH_ITEM(link, struct run, link);
    }
    struct run *run = calloc(1, sizeof(*run) + name.len);
    if (run == NULL || hash_table_add(&runs->table, &run->link, hash) != NG_OK) {
        free(run);
        return NULL;
    }
    memcpy(run->name, name.data, name.len);
    run->name_len = name.len;
    run->first_seq = UINT64_MAX;
    return run;
}

static int run_add_agent(struct runs *runs, struct run *run, struct ng_str agent)
{
    for (size_t i = 0; i < run->agent_count; i++) {
        if (str_equal(run->agents[i], agent)) {
            return NG_OK;
        }
    }
    if (run->agent_count == RUN_AGENTS_MAX || agent.len == 0) {
        return NG_OK;
    }
    struct ng_str copy = history_copy(runs->call, agent);
    if (copy.data == NULL) {
        return history_no_memory(runs->call);
    }
    run->agents[run->agent_count++] = copy;
    return NG_OK;
}

static int take_row(void *user, const struct ng_run *row)
{
    struct runs *runs = user;
    struct run *run = runs->table.count < RUNS_MAX ? run_find(runs, row->run) : NULL;
    if (run == NULL) {
        runs->rc = runs->table.count < RUNS_MAX
                       ? history_no_memory(runs->call)
                       : ng_fail(runs->call, NG_ETOOLARGE,
                                 "there are more than %zu runs: set `since` to see the newest",
                                 RUNS_MAX);
        return 1;
    }
    run->first_seq = u64_min(run->first_seq, row->first_seq);
    run->last_seq = u64_max(run->last_seq, row->last_seq);
    run->changes += row->changes;
    runs->rc = run_add_agent(runs, run, row->agent);
    return runs->rc != NG_OK;
}

static int newest_first(const void *left, const void *right)
{
    const struct run *a = *(const struct run *const *)left;
    const struct run *b = *(const struct run *const *)right;
    return (a->last_seq < b->last_seq) - (a->last_seq > b->last_seq);
}

/* ---- the answer ---- */

static int take_time(void *user, const struct ng_event *event)
{
    *(int64_t *)user = event->time_ms;
    return 1;
}

/* The time of a change of the run; it is left out if the change was purged. */
static int put_time(struct runs *runs, struct ng_writer *writer, const char *name, uint64_t seq)
{
    const struct ng_trail one = {
        .size = sizeof(one), .spaces = runs->trail.spaces, .since = seq - 1, .until = seq};
    int64_t time_ms = -1;
    uint64_t next = 0;
    int rc = runs->call->host->trail(runs->call, &one, take_time, &time_ms, &next);
    if (rc == NG_OK && time_ms >= 0) {
        history_put_time(writer, name, time_ms);
    }
    return rc;
}

static int put_run(struct runs *runs, struct ng_writer *writer, const struct run *run)
{
    json_object(writer);
    json_member_string(writer, "run", run_name(run));
    json_member_strings(writer, "agents", run->agents, run->agent_count);
    json_member_int(writer, "changes", (int64_t)run->changes);
    json_member_int(writer, "first_seq", (int64_t)run->first_seq);
    json_member_int(writer, "last_seq", (int64_t)run->last_seq);
    int rc = put_time(runs, writer, "from", run->first_seq);
    if (rc == NG_OK) {
        rc = put_time(runs, writer, "to", run->last_seq);
    }
    json_end(writer);
    return rc;
}

static size_t run_bytes(const struct run *run)
{
    size_t texts = run->name_len;
    for (size_t i = 0; i < run->agent_count; i++) {
        texts += run->agents[i].len + 3;
    }
    return RUN_ROW_MAX + texts;
}

/* The cursor is the last change of the last run of the page before. */
static int put_runs(struct runs *runs, struct run *const *sorted, uint64_t before)
{
    struct ng_call *call = runs->call;
    struct ng_writer *writer = call->host->reply_json(call);
    size_t count = runs->table.count;
    uint64_t shown = 0;
    uint64_t last = 0;
    size_t at = 0;
    int rc = NG_OK;
    while (at < count && sorted[at]->last_seq >= before) {
        at++;
    }
    json_object(writer);
    rc = history_put_unfinished(call, writer);
    json_name(writer, "runs");
    json_array(writer);
    while (
        rc == NG_OK && at < count && shown < runs->limit &&
        (shown == 0 || run_bytes(sorted[at]) + RUNS_END_MAX <= call->host->answer_room(call))) {
        rc = put_run(runs, writer, sorted[at]);
        last = sorted[at]->last_seq;
        shown++;
        at++;
    }
    json_end(writer);
    json_member_bool(writer, "has_more", at < count);
    if (at < count) {
        json_member_string(writer, "cursor",
                           call->host->format(call, "%llu", (unsigned long long)last));
    }
    json_end(writer);
    return rc;
}

static int sort_runs(struct runs *runs, uint64_t before)
{
    struct run **sorted = calloc(runs->table.count + 1, sizeof(struct run *));
    if (sorted == NULL) {
        return history_no_memory(runs->call);
    }
    size_t count = 0;
    for (struct hash_link *link = hash_table_first(&runs->table); link != NULL;
         link = hash_table_next(&runs->table, link)) {
        sorted[count++] = HASH_ITEM(link, struct run, link);
    }
    qsort(sorted, count, sizeof(struct run *), newest_first);
    int rc = put_runs(runs, sorted, before);
    free(sorted);
    return rc;
}

static void runs_done(struct runs *runs)
{
    struct hash_link *link = hash_table_first(&runs->table);
    while (link != NULL) {
        struct hash_link *next = hash_table_next(&runs->table, link);
        hash_table_remove(&runs->table, link);
        free(HASH_ITEM(link, struct run, link));
        link = next;
    }
    hash_table_done(&runs->table);
}

int history_runs(struct ng_call *call, const struct ng_trail *trail, uint64_t before)
{
    struct runs runs = {
        .call = call,
        .trail = *trail,
        .limit = (uint64_t)ng_arg_int(call, "limit", HISTORY_LOG_LIMIT),
    };
    int rc = NG_OK;
    if (trail->tools.count + trail->actions.count > 0 || trail->id.data != NULL) {
        return ng_fail(call, NG_EINVAL,
                       "`by` run takes agent, run, collection, space, since and until");
    }
    rc = call->host->runs(call, &runs.trail, take_row, &runs);
    if (rc == NG_OK) {
        rc = runs.rc;
    }
    if (rc == NG_OK) {
        rc = sort_runs(&runs, before);
    }
    runs_done(&runs);
    return rc;
}

/* ---- a run that is not there ---- */

struct nearest {
    const struct ng_names *wanted;
    bool found;
    size_t distance;
    size_t len;
    char name[HISTORY_SHOWN];
};

static int take_near(void *user, const struct ng_run *row)
{
    struct nearest *nearest = user;
    for (size_t i = 0; i < nearest->wanted->count; i++) {
        size_t distance = edit_distance(row->run, nearest->wanted->items[i], nearest->distance);
        nearest->found = nearest->found || distance == 0;
        if (distance < nearest->distance && row->run.len <= sizeof(nearest->name)) {
            nearest->distance = distance;
            nearest->len = row->run.len;
            memcpy(nearest->name, row->run.data, row->run.len);
        }
    }
    return nearest->found;
}

int history_check_runs(struct ng_call *call, const struct ng_trail *trail)
{
    const struct ng_trail all = {.size = sizeof(all), .until = UINT64_MAX};
    struct nearest nearest = {.wanted = &trail->runs, .distance = SIZE_MAX};
    if (trail->runs.count == 0) {
        return NG_OK;
    }
    int rc = call->host->runs(call, &all, take_near, &nearest);
    if (rc != NG_OK || nearest.found) {
        return rc;
    }
    struct ng_str name = utf8_cut(trail->runs.items[0], HISTORY_SHOWN);
    if (nearest.len > 0) {
        call->host->hint(call, "The nearest is \"%.*s\"", (int)nearest.len, nearest.name);
    }
    return ng_fail(call, NG_ENOTFOUND, "no change is of the run \"%.*s\"", (int)name.len,
                   name.data);
}
