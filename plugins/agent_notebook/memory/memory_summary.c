/* SPDX-License-Identifier: MIT */
/* memory_summary.c - memory_summary, and the prompt memory_context: the long-term summary with
 * the latest entries of the day. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "entry/entry.h"
#include "memory.h"
#include "memory_tools.h"

#include <string.h>

#define MEMORY_CONTEXT_ROWS 20
#define MEMORY_CONTEXT_ROWS_MAX 200
/* Characters of one line of the context. */
#define MEMORY_CONTEXT_LINE 300

static int memory_summary_reply(struct ng_call *call, struct ng_str text, const char *status)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    host->json_name(writer, "summary");
    if (text.data == NULL) {
        host->json_null(writer);
    } else {
        host->json_string(writer, text);
    }
    memory_put(call, writer, "status", ng_str_of(status));
    host->json_end(writer);
    return NG_OK;
}

int memory_summary_run(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct ng_str text = ng_arg_text(call, "text");
    struct ng_str mode = ng_arg_text(call, "mode");
    (void)self;
    (void)args;
    if (mode.data != NULL && str_is(mode, "set") != (text.data != NULL)) {
        if (text.data == NULL) {
            return entry_invalid(call, "/text", ng_str_of("the new summary, as `mode` is set"),
                                 ng_str_of("nothing"));
        }
        return entry_invalid(call, "/mode", ng_str_of("set with `text`, or no `text`"), mode);
    }
    if (text.data == NULL) {
        int rc = journal->summary(handle, call, call->caller->space, &text);
        if (rc != NG_OK) {
            return rc;
        }
        const char *status = "read";
        if (text.data == NULL) {
            status = "none";
        }
        return memory_summary_reply(call, text, status);
    }
    if (text.len > MEMORY_SUMMARY_MAX) {
        return ng_fail(call, NG_ETOOLARGE,
                       "`text` has %zu bytes, a summary holds at most %zu; shorten it",
                       text.len, MEMORY_SUMMARY_MAX);
    }
    int rc = journal->set_summary(handle, call, call->caller->space, text);
    if (rc != NG_OK) {
        return rc;
    }
    return memory_summary_reply(call, text, "set");
}

/* ---- the prompt ---- */

const char memory_context_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"limit\":{\"type\":\"string\",\"description\":\"Lines of today, 20 where left out\"},"
    "\"agent\":{\"type\":\"string\",\"description\":\"Only of this agent\"}}}";

struct memory_context {
    struct ng_call *call;
    struct ng_str *lines; /* newest first */
    size_t count, room;
    int rc;
};

/* The beginning of a text as one line: a second line would read as another event. */
static struct ng_str memory_context_text(struct ng_call *call, struct ng_str text)
{
    struct ng_str cut = utf8_cut_count(text, MEMORY_CONTEXT_LINE);
    char *line = ng_alloc(call, cut.len + 1);
    if (line == NULL) {
        return ng_str_of("");
    }
    for (size_t i = 0; i < cut.len; i++) {
        line[i] = cut.data[i];
        if ((unsigned char)line[i] < ' ') {
            line[i] = ' ';
        }
    }
    return str_make(line, cut.len);
}

/* "- TIME ada (message): content" of a memory; of an entry "- TIME ada updated pages/ID:
 * title", and its summary where it is new. */
static struct ng_str memory_context_line(struct ng_call *call, const struct ng_entry *entry)
{
    struct ng_str when = entry_time(call, entry->time_ms);
    if (entry->kind == NG_ENTRY_MEMORY) {
        struct ng_str source = memory_context_text(call, entry->source);
        struct ng_str content = memory_context_text(call, entry->content);
        return call->host->format(call, "- %.*s %.*s (%.*s): %.*s\n", (int)when.len, when.data,
                                  (int)entry->agent.len, entry->agent.data, (int)source.len,
                                  source.data, (int)content.len, content.data);
    }
    const char *dash = "";
    struct ng_str action = memory_context_text(call, entry->action);
    struct ng_str title = memory_context_text(call, entry->title);
    struct ng_str summary = ng_str_of("");
    if (entry->content.len > 0 && !str_is(entry->action, "opened")) {
        dash = " - ";
        summary = memory_context_text(call, entry->content);
    }
    return call->host->format(call, "- %.*s %.*s %.*s %.*s/%.*s: %.*s%s%.*s\n", (int)when.len,
                              when.data, (int)entry->agent.len, entry->agent.data,
                              (int)action.len, action.data, (int)entry->collection.len,
                              entry->collection.data, (int)entry->id.len, entry->id.data,
                              (int)title.len, title.data, dash, (int)summary.len, summary.data);
}

static int memory_context_row(void *user, const struct ng_entry *entry)
{
    struct memory_context *context = user;
    struct ng_call *call = context->call;
    struct ng_str line = memory_context_line(call, entry);
    if (line.data == NULL) {
        context->rc = entry_no_memory(call);
        return 1;
    }
    if (context->count == context->room) {
        return 1;
    }
    context->lines[context->count++] = line;
    return 0;
}

/* A prompt has no space of a tool: use the space that the caller names, else the shared one. */
static int memory_context_space(struct ng_call *call, struct ng_str *ret)
{
    const struct ng_caller *caller = call->caller;
    struct ng_str space = ng_str_of("shared");
    if (caller->space_named) {
        space = caller->space;
    }
    bool may = caller->all_spaces || caller->space_named;
    for (size_t i = 0; i < caller->space_count; i++) {
        may = may || str_equal(caller->spaces[i], space);
    }
    *ret = space;
    if (may) {
        return NG_OK;
    }
    return ng_fail(call, NG_EFORBIDDEN, "the key does not allow the space '%.*s'",
                   (int)space.len, space.data);
}

static uint32_t memory_context_rows(struct ng_str text)
{
    uint32_t rows = 0;
    for (size_t i = 0; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        rows = rows * 10 + (uint32_t)(text.data[i] - '0');
        rows = u32_min(rows, MEMORY_CONTEXT_ROWS_MAX);
    }
    if (rows != 0) {
        return rows;
    }
    return MEMORY_CONTEXT_ROWS;
}

static int memory_context_reply(struct ng_call *call, const struct memory_context *context,
                                struct ng_str summary)
{
    struct ng_str *pieces = ng_alloc(call, (context->count + 4) * sizeof(*pieces));
    size_t count = 0;
    if (pieces == NULL) {
        return entry_no_memory(call);
    }
    pieces[count++] = ng_str_of("# What is known\n\n");
    if (summary.len == 0) {
        summary = ng_str_of("There is no summary yet.");
    }
    pieces[count++] = summary;
    if (context->count > 0) {
        pieces[count++] = ng_str_of("\n\n# Today, the latest last\n\n");
    } else {
        pieces[count++] = ng_str_of("\n\nNothing was logged today.\n");
    }
    for (size_t i = context->count; i > 0; i--) {
        pieces[count++] = context->lines[i - 1];
    }
    return call->host->reply_parts(call, pieces, count);
}

int memory_context_get(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct ng_str summary = {NULL, 0};
    struct memory_context context = {.call = call};
    struct ng_timeline timeline = {
        .size = sizeof(timeline),
        .agent = entry_agent_name(ng_arg_text(call, "agent")),
        .limit = memory_context_rows(ng_arg_text(call, "limit")),
    };
    (void)self;
    (void)args;
    context.room = timeline.limit;
    context.lines = ng_alloc(call, context.room * sizeof(*context.lines));
    if (context.lines == NULL) {
        return entry_no_memory(call);
    }
    int rc = memory_context_space(call, &timeline.space);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t backlog = 0;
    rc = memory_flush(call, &backlog);
    if (rc != NG_OK) {
        return rc;
    }
    rc = journal->summary(handle, call, timeline.space, &summary);
    if (rc != NG_OK) {
        return rc;
    }
    rc = journal->timeline(handle, call, &timeline, memory_context_row, &context);
    if (rc != NG_OK) {
        return rc;
    }
    if (context.rc != NG_OK) {
        return context.rc;
    }
    return memory_context_reply(call, &context, summary);
}
