/* SPDX-License-Identifier: MIT */
/* memory_summary.c - memory_summary, and the prompt memory_context: the long-term summary with
 * the latest of the day, for an agent's context. */
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
    if (writer == NULL) {
        return memory_no_room(call);
    }
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
    if (mode.data != NULL && memory_is(mode, "set") != (text.data != NULL)) {
        return text.data == NULL
                   ? entry_invalid(call, "/text",
                                   ng_str_of("the new summary, as `mode` is set"),
                                   ng_str_of("nothing"))
                   : entry_invalid(call, "/mode", ng_str_of("set with `text`, or no `text`"),
                                   mode);
    }
    if (text.data == NULL) {
        int rc = journal->summary(handle, call, call->caller->space, &text);
        return rc != NG_OK
                   ? rc
                   : memory_summary_reply(call, text, text.data == NULL ? "none" : "read");
    }
    if (text.len > MEMORY_SUMMARY_MAX) {
        return ng_fail(call, NG_ETOOLARGE,
                       "`text` has %zu bytes, a summary holds at most %zu; shorten it",
                       text.len, MEMORY_SUMMARY_MAX);
    }
    int rc = journal->set_summary(handle, call, call->caller->space, text);
    return rc != NG_OK ? rc : memory_summary_reply(call, text, "set");
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

/* Beginning of a text as one line: a line of its own would read as another event. */
static struct ng_str memory_context_text(struct ng_call *call, struct ng_str text)
{
    struct ng_str cut = memory_cut(text, MEMORY_CONTEXT_LINE);
    char *line = ng_alloc(call, cut.len + 1);
    for (size_t i = 0; line != NULL && i < cut.len; i++) {
        line[i] = (unsigned char)cut.data[i] < ' ' ? ' ' : cut.data[i];
    }
    return (struct ng_str){line == NULL ? "" : line, line == NULL ? 0 : cut.len};
}

/* "- TIME ada (message): what" of a memory; of an entry "- TIME ada updated pages/ID: title",
 * and its summary where it is new. */
static struct ng_str memory_context_line(struct ng_call *call, const struct ng_entry *entry)
{
    bool is_memory = entry->kind == NG_ENTRY_MEMORY;
    bool is_new = !is_memory && entry->content.len > 0 && !memory_is(entry->action, "opened");
    struct ng_str when = memory_time(call, entry->time_ms);
    struct ng_str how = memory_context_text(call, is_memory ? entry->source : entry->action);
    struct ng_str what = memory_context_text(call, is_memory ? entry->content : entry->title);
    struct ng_str more = memory_context_text(call, is_new ? entry->content : ng_str_of(""));
    struct ng_str where = ng_str_of("");
    if (!is_memory) {
        where = call->host->format(call, " %.*s/%.*s", (int)entry->collection.len,
                                   entry->collection.data, (int)entry->id.len, entry->id.data);
    }
    return call->host->format(
        call, "- %.*s %.*s %s%.*s%s%.*s: %.*s%s%.*s\n", (int)when.len,
        when.data == NULL ? "" : when.data, (int)entry->agent.len,
        entry->agent.data == NULL ? "" : entry->agent.data, is_memory ? "(" : "", (int)how.len,
        how.data, is_memory ? ")" : "", (int)where.len, where.data == NULL ? "" : where.data,
        (int)what.len, what.data, is_new ? " - " : "", (int)more.len, more.data);
}

static int memory_context_row(void *user, const struct ng_entry *entry)
{
    struct memory_context *context = user;
    struct ng_call *call = context->call;
    struct ng_str line = memory_context_line(call, entry);
    if (line.data == NULL || context->count == context->room) {
        context->rc = line.data == NULL ? memory_no_room(call) : NG_OK;
        return 1;
    }
    context->lines[context->count++] = line;
    return 0;
}

/* Prompts have no tool's space: what the caller names, else the one that agents share. */
static int memory_context_space(struct ng_call *call, struct ng_str *ret)
{
    const struct ng_caller *caller = call->caller;
    struct ng_str space = caller->space_named ? caller->space : ng_str_of("shared");
    bool may = caller->all_spaces || caller->space_named;
    for (size_t i = 0; i < caller->space_count; i++) {
        may = may || memory_same(caller->spaces[i], space);
    }
    *ret = space;
    return may ? NG_OK
               : ng_fail(call, NG_EFORBIDDEN, "the key does not allow the space '%.*s'",
                         (int)space.len, space.data);
}

static uint32_t memory_context_rows(struct ng_str text)
{
    uint32_t rows = 0;
    for (size_t i = 0; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        rows = rows * 10 + (uint32_t)(text.data[i] - '0');
        rows = rows > MEMORY_CONTEXT_ROWS_MAX ? MEMORY_CONTEXT_ROWS_MAX : rows;
    }
    return rows == 0 ? MEMORY_CONTEXT_ROWS : rows;
}

int memory_context_get(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct ng_str summary = {NULL, 0};
    struct memory_context context = {.call = call};
    struct ng_timeline timeline = {
        .size = sizeof(timeline),
        .agent = memory_agent_name(ng_arg_text(call, "agent")),
        .limit = memory_context_rows(ng_arg_text(call, "limit")),
    };
    (void)self;
    (void)args;
    context.room = timeline.limit;
    context.lines = ng_alloc(call, context.room * sizeof(*context.lines));
    int rc = context.lines == NULL ? memory_no_room(call)
                                   : memory_context_space(call, &timeline.space);
    uint64_t backlog = 0;
    rc = rc != NG_OK ? rc : memory_flush(call, &backlog);
    rc = rc != NG_OK ? rc : journal->summary(handle, call, timeline.space, &summary);
    rc = rc != NG_OK ? rc
                     : journal->timeline(handle, call, &timeline, memory_context_row, &context);
    rc = rc != NG_OK ? rc : context.rc;
    struct ng_str *pieces =
        rc != NG_OK ? NULL : ng_alloc(call, (context.count + 4) * sizeof(*pieces));
    if (pieces == NULL) {
        return rc != NG_OK ? rc : memory_no_room(call);
    }
    size_t count = 0;
    pieces[count++] = ng_str_of("# What is known\n\n");
    pieces[count++] = summary.len > 0 ? summary : ng_str_of("There is no summary yet.");
    pieces[count++] = ng_str_of(context.count > 0 ? "\n\n# Today, the latest last\n\n"
                                                  : "\n\nNothing was logged today.\n");
    for (size_t i = context.count; i > 0; i--) {
        pieces[count++] = context.lines[i - 1];
    }
    return call->host->reply_parts(call, pieces, count);
}
