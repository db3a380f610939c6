/* SPDX-License-Identifier: MIT */
/* checkpoint_diff.c - checkpoint_diff: the difference between a checkpoint and the present, or
 * between two checkpoints. */
#include "checkpoint.h"
#include "core/base/str.h"
#include "core/base/text/json_writer.h"
#include "core/base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Memories of each kind that an answer lists; all are counted. */
#define CHECKPOINT_MEMORIES_MAX 100
/* Characters that are shown of a memory. */
#define CHECKPOINT_MEMORY_CHARS 200
/* With this much memory left, a call is not near its limit. */
#define CHECKPOINT_ROOM ((size_t)16 * 1024 * 1024)
/* Days that an answer lists. */
#define CHECKPOINT_DAYS_MAX 400

/* The entries of one part of a journal, sorted by event. */
struct checkpoint_events {
    struct checkpoint_event {
        struct ng_str id;
        const struct ng_value *item;
    } * list;
    size_t count;
};

static int checkpoint_event_sort(const void *one, const void *other)
{
    const struct checkpoint_event *a = one;
    const struct checkpoint_event *b = other;
    return str_compare(a->id, b->id);
}

static int checkpoint_events_of(struct ng_call *call, const struct checkpoint_view *view,
                                const char *part, struct checkpoint_events *ret)
{
    const struct ng_host *host = call->host;
    const struct ng_value *array = host->json_get(view->journal, part);
    ret->count = 0;
    ret->list = ng_alloc(call, (host->json_count(array) + 1) * sizeof(*ret->list));
    if (ret->list == NULL) {
        return entry_no_memory(call);
    }
    for (const struct ng_value *item = host->json_first(array); item != NULL;
         item = host->json_next(item)) {
        ret->list[ret->count].id = memory_text(call, item, "event_id");
        ret->list[ret->count++].item = item;
    }
    qsort(ret->list, ret->count, sizeof(*ret->list), checkpoint_event_sort);
    return NG_OK;
}

static bool checkpoint_events_have(const struct checkpoint_events *events,
                                   const struct checkpoint_event *event)
{
    return events->count > 0 && bsearch(event, events->list, events->count,
                                        sizeof(*events->list), checkpoint_event_sort) != NULL;
}

/* ---- memories ---- */

/* Writes "name": the entries of `from` that are missing in `to`, while the answer has `room`;
 * returns their number. */
static uint64_t checkpoint_memories_missing(struct ng_call *call, struct ng_writer *writer,
                                            const char *name,
                                            const struct checkpoint_events *from,
                                            const struct checkpoint_events *to, size_t room)
{
    const struct ng_host *host = call->host;
    uint64_t count = 0;
    host->json_name(writer, name);
    host->json_array(writer);
    for (size_t i = 0; i < from->count; i++) {
        const struct ng_value *item = from->list[i].item;
        if (checkpoint_events_have(to, &from->list[i])) {
            continue;
        }
        if (count++ >= CHECKPOINT_MEMORIES_MAX || host->answer_room(call) < room) {
            continue;
        }
        host->json_object(writer);
        memory_put(call, writer, "memory_id", from->list[i].id);
        memory_put(call, writer, "content",
                   utf8_cut_count(memory_text(call, item, "content"), CHECKPOINT_MEMORY_CHARS));
        memory_put(call, writer, "source", memory_text(call, item, "source"));
        memory_put(call, writer, "agent",
                   entry_agent_of(call, memory_text(call, item, "agent")));
        host->json_end(writer);
    }
    host->json_end(writer);
    return count;
}

static int checkpoint_diff_memories(struct ng_call *call, struct ng_writer *writer,
                                    const struct checkpoint_view *then,
                                    const struct checkpoint_view *now)
{
    struct checkpoint_events old = {0};
    struct checkpoint_events new = {0};
    int rc = checkpoint_events_of(call, then, "memories", &old);
    if (rc != NG_OK) {
        return rc;
    }
    rc = checkpoint_events_of(call, now, "memories", &new);
    if (rc != NG_OK) {
        return rc;
    }
    call->host->json_name(writer, "memories");
    call->host->json_object(writer);
    /* Half of what is left is for the rest of the answer. */
    size_t room = call->host->answer_room(call);
    uint64_t added =
        checkpoint_memories_missing(call, writer, "added", &new, &old, room / 4 * 3);
    uint64_t removed =
        checkpoint_memories_missing(call, writer, "removed", &old, &new, room / 2);
    entry_put_int(call, writer, "added_count", added);
    entry_put_int(call, writer, "removed_count", removed);
    call->host->json_end(writer);
    return NG_OK;
}

/* ---- days ---- */

struct checkpoint_day {
    struct ng_str date;
    uint64_t added, removed;
};

static int checkpoint_day_sort(const void *one, const void *other)
{
    const struct checkpoint_day *a = one;
    const struct checkpoint_day *b = other;
    return str_compare(a->date, b->date);
}

/* Adds a line for each event of `from` that is missing in `to`; returns their number. */
static size_t checkpoint_days_missing(struct ng_call *call, struct checkpoint_day *lines,
                                      const struct checkpoint_events *from,
                                      const struct checkpoint_events *to, bool added)
{
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) {
        if (!checkpoint_events_have(to, &from->list[i])) {
            lines[count].date = memory_text(call, from->list[i].item, "date");
            lines[count].added = added;
            lines[count++].removed = !added;
        }
    }
    return count;
}

static int checkpoint_diff_days(struct ng_call *call, struct ng_writer *writer,
                                const struct checkpoint_view *then,
                                const struct checkpoint_view *now)
{
    const struct ng_host *host = call->host;
    struct checkpoint_events lists[2];
    int rc = checkpoint_events_of(call, then, "days", &lists[0]);
    if (rc != NG_OK) {
        return rc;
    }
    rc = checkpoint_events_of(call, now, "days", &lists[1]);
    if (rc != NG_OK) {
        return rc;
    }
    struct checkpoint_day *lines =
        ng_alloc(call, (lists[0].count + lists[1].count + 1) * sizeof(*lines));
    if (lines == NULL) {
        return entry_no_memory(call);
    }
    size_t count = checkpoint_days_missing(call, lines, &lists[1], &lists[0], true);
    count += checkpoint_days_missing(call, lines + count, &lists[0], &lists[1], false);
    qsort(lines, count, sizeof(*lines), checkpoint_day_sort);
    host->json_name(writer, "days");
    host->json_array(writer);
    /* Half of the answer is for its rest. */
    size_t room = host->answer_room(call) / 2;
    for (size_t i = 0, days = 0;
         i < count && days < CHECKPOINT_DAYS_MAX && host->answer_room(call) > room; days++) {
        struct checkpoint_day day = lines[i++];
        while (i < count && str_equal(lines[i].date, day.date)) {
            day.added += lines[i].added;
            day.removed += lines[i++].removed;
        }
        host->json_object(writer);
        memory_put(call, writer, "date", day.date);
        entry_put_int(call, writer, "added", day.added);
        entry_put_int(call, writer, "removed", day.removed);
        host->json_end(writer);
    }
    host->json_end(writer);
    return NG_OK;
}

/* ---- the summary, and all of it ---- */

/* At most a quarter of what is left of the answer. */
static void checkpoint_diff_text(struct ng_call *call, struct ng_writer *writer,
                                 const char *name, struct ng_str text)
{
    size_t room = call->host->answer_room(call) / 4;
    call->host->json_name(writer, name);
    if (text.data == NULL) {
        call->host->json_null(writer);
    } else {
        call->host->json_string(writer, entry_cut(call, text, json_cut(text, room).len));
    }
}

static void checkpoint_diff_summary(struct ng_call *call, struct ng_writer *writer,
                                    const struct checkpoint_view *then,
                                    const struct checkpoint_view *now)
{
    struct ng_str before = memory_text(call, then->journal, "summary");
    struct ng_str after = memory_text(call, now->journal, "summary");
    bool same = str_equal(before, after) && (before.data == NULL) == (after.data == NULL);
    call->host->json_name(writer, "summary");
    call->host->json_object(writer);
    call->host->json_name(writer, "changed");
    call->host->json_bool(writer, !same);
    if (!same) {
        checkpoint_diff_text(call, writer, "before", before);
        checkpoint_diff_text(call, writer, "after", after);
    }
    call->host->json_end(writer);
}

static int checkpoint_diff_write(struct ng_call *call, struct ng_str against,
                                 const struct checkpoint_view *then,
                                 const struct checkpoint_view *now)
{
    const struct ng_host *host = call->host;
    struct checkpoint_plan plan = {0};
    struct ng_writer *writer = host->reply_json(call);
    int rc = checkpoint_plan_make(call, then, now, &plan);
    if (rc != NG_OK) {
        return rc;
    }
    host->json_object(writer);
    memory_put(call, writer, "checkpoint_id", ng_arg_text(call, "checkpoint_id"));
    memory_put(call, writer, "against", against.data == NULL ? ng_str_of("present") : against);
    rc = checkpoint_diff_days(call, writer, then, now);
    if (rc == NG_OK) {
        rc = checkpoint_diff_memories(call, writer, then, now);
    }
    checkpoint_diff_summary(call, writer, then, now);
    checkpoint_plan_write(call, writer, &plan, CHECKPOINT_TOLD);
    host->json_end(writer);
    checkpoint_plan_free(&plan);
    return rc;
}

static int checkpoint_read_all(struct ng_call *call, struct ng_str json,
                               struct checkpoint_view *ret)
{
    int rc = checkpoint_read(call, json, ret);
    if (rc != NG_OK) {
        return rc;
    }
    return checkpoint_read_journal(call, ret);
}

int checkpoint_diff_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_str space = call->caller->space;
    struct ng_str against = ng_arg_text(call, "against");
    struct checkpoint_view then;
    struct checkpoint_view now;
    struct ng_str json = {NULL, 0};
    (void)self;
    (void)args;
    int rc = checkpoint_get(call, space, ng_arg_text(call, "checkpoint_id"), &json);
    if (rc == NG_OK) {
        rc = checkpoint_read_all(call, json, &then);
    }
    if (rc == NG_OK && against.data == NULL) {
        rc = checkpoint_make(call, space, ng_str_of(""), ng_str_of(""), &json);
    } else if (rc == NG_OK) {
        rc = checkpoint_get(call, space, against, &json);
    }
    if (rc == NG_OK) {
        rc = checkpoint_read_all(call, json, &now);
    }
    if (rc == NG_OK) {
        rc = checkpoint_diff_write(call, against, &then, &now);
    }
    if (rc == NG_EINTERNAL && ng_alloc(call, CHECKPOINT_ROOM) == NULL) {
        rc = ng_fail(call, NG_ETOOLARGE,
                     "the journals have more entries than one call can compare; set "
                     "journal.keep to remove old entries");
    }
    return rc;
}
