/* SPDX-License-Identifier: MIT */
/* memory_recall.c - memory_recall and memory_timeline: entries of the journal by words or by
 * day. */
#include "core/base/str.h"
#include "core/base/text/json_writer.h"
#include "core/base/text/rfc3339.h"
#include "entry/entry.h"
#include "memory.h"
#include "memory_tools.h"

#define MEMORY_RECALL_ROWS 10
#define MEMORY_TIMELINE_ROWS 50

/* Bytes of an answer behind its rows, and of a row without its texts. */
#define MEMORY_END_MAX 200
#define MEMORY_ROW_MAX 600
/* Texts of a row that does not fit alone are cut to this share of the answer. */
#define MEMORY_CUT_SHARE 32

struct memory_rows {
    struct ng_call *call;
    struct ng_writer *writer;
    uint64_t count;
    bool is_cut; /* the next row did not fit */
};

/* Bytes of the texts of an entry. */
static size_t memory_row_texts(const struct ng_entry *entry)
{
    size_t size = entry->event_id.len * 3 + entry->agent.len + entry->action.len +
                  entry->collection.len + entry->id.len + entry->title.len + entry->status.len +
                  entry->content.len + entry->source.len + entry->data.len + entry->tag_count;
    for (size_t i = 0; i < entry->tag_count; i++) {
        size += entry->tags[i].len;
    }
    return size;
}

static bool memory_row_fits(const struct memory_rows *rows, const struct ng_entry *entry)
{
    const struct ng_host *host = rows->call->host;
    size_t room = host->answer_room(rows->call);
    room -= size_min(room, MEMORY_END_MAX);
    if (JSON_GROWTH_MAX * memory_row_texts(entry) + MEMORY_ROW_MAX <= room) {
        return true;
    }
    struct ng_writer *writer = host->json_writer(rows->call);
    if (writer == NULL) {
        return true; /* the call fails */
    }
    memory_write_entry(rows->call, writer, entry);
    return host->json_result(writer).len < room;
}

/* The first row of an answer that is too small for it. */
static void memory_row_cut(const struct memory_rows *rows, const struct ng_entry *entry)
{
    struct ng_call *call = rows->call;
    size_t max = call->host->answer_room(call) / MEMORY_CUT_SHARE;
    struct ng_entry cut = *entry;
    size_t left = max;
    cut.title = entry_cut(call, entry->title, max);
    cut.content = entry_cut(call, entry->content, max);
    cut.source = entry_cut(call, entry->source, max);
    cut.data = str_make(NULL, 0);
    cut.tag_count = 0;
    while (cut.tag_count < entry->tag_count && entry->tags[cut.tag_count].len < left) {
        left -= entry->tags[cut.tag_count++].len + 1;
    }
    memory_write_entry(call, rows->writer, &cut);
}

static int memory_row(void *user, const struct ng_entry *entry)
{
    struct memory_rows *rows = user;
    bool fits = memory_row_fits(rows, entry);
    rows->is_cut = !fits && rows->count > 0;
    if (rows->is_cut) {
        return 1;
    }
    if (fits) {
        memory_write_entry(rows->call, rows->writer, entry);
    } else {
        memory_row_cut(rows, entry);
    }
    rows->count++;
    return 0;
}

/* Begins the answer, up to its rows. */
static void memory_rows_begin(struct ng_call *call, struct memory_rows *rows, const char *name)
{
    rows->call = call;
    rows->writer = call->host->reply_json(call);
    call->host->json_object(rows->writer);
    call->host->json_name(rows->writer, name);
    call->host->json_array(rows->writer);
}

static void memory_rows_end(const struct memory_rows *rows, uint64_t backlog)
{
    rows->call->host->json_end(rows->writer);
    entry_put_int(rows->call, rows->writer, "count", rows->count);
    if (backlog > 0) {
        entry_put_int(rows->call, rows->writer, "backlog", backlog);
    }
    if (rows->is_cut) {
        rows->call->host->json_name(rows->writer, "has_more");
        rows->call->host->json_bool(rows->writer, true);
    }
}

int memory_recall_run(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct memory_rows rows = {0};
    const char *engine = "scan";
    uint64_t backlog = 0;
    struct ng_str since = ng_arg_text(call, "since");
    struct ng_recall recall = {
        .size = sizeof(recall),
        .space = call->caller->space,
        .text = ng_arg_text(call, "query"),
        .source = ng_arg_text(call, "source"),
        .limit = (uint32_t)ng_arg_int(call, "limit", MEMORY_RECALL_ROWS),
        .min_score = call->host->json_double(ng_arg(call, "min_score")),
    };
    (void)self;
    (void)args;
    if (since.data != NULL && !memory_time_read(since, &recall.since_ms)) {
        return entry_invalid(call, "/since",
                             ng_str_of("a day as YYYY-MM-DD or a time as 2026-02-16T10:30:00Z"),
                             since);
    }
    int rc = entry_strings(call, "tags", &recall.tags, &recall.tag_count);
    if (rc != NG_OK) {
        return rc;
    }
    rc = memory_flush(call, &backlog);
    if (rc != NG_OK) {
        return rc;
    }
    memory_rows_begin(call, &rows, "results");
    rc = journal->recall(handle, call, &recall, memory_row, &rows, &engine);
    if (rc != NG_OK) {
        return rc;
    }
    memory_rows_end(&rows, backlog);
    memory_put(call, rows.writer, "engine", ng_str_of(engine));
    call->host->json_end(rows.writer);
    return NG_OK;
}

int memory_timeline_run(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct memory_rows rows = {0};
    uint64_t backlog = 0;
    struct ng_timeline timeline = {
        .size = sizeof(timeline),
        .space = call->caller->space,
        .date = ng_arg_text(call, "date"),
        .agent = entry_agent_name(ng_arg_text(call, "agent")),
        .limit = (uint32_t)ng_arg_int(call, "limit", MEMORY_TIMELINE_ROWS),
        .offset = (uint64_t)ng_arg_int(call, "offset", 0),
    };
    (void)self;
    (void)args;
    if (timeline.date.data != NULL && !rfc3339_is_day(timeline.date)) {
        return entry_invalid(call, "/date", ng_str_of("a day as YYYY-MM-DD"), timeline.date);
    }
    /* The day must not change while the call runs. */
    if (timeline.date.data == NULL) {
        timeline.date = call->host->day(call, call->host->now_ms());
    }
    int rc = memory_flush(call, &backlog);
    if (rc != NG_OK) {
        return rc;
    }
    memory_rows_begin(call, &rows, "events");
    rc = journal->timeline(handle, call, &timeline, memory_row, &rows);
    if (rc != NG_OK) {
        return rc;
    }
    memory_rows_end(&rows, backlog);
    if (rows.is_cut) {
        entry_put_int(call, rows.writer, "next_offset", timeline.offset + rows.count);
    }
    memory_put(call, rows.writer, "date", timeline.date);
    call->host->json_end(rows.writer);
    return NG_OK;
}
