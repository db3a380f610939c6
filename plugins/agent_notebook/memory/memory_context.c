/* SPDX-License-Identifier: MIT */
/* memory_context.c - the prompt memory_context: the long-term summary with the latest entries
 * of the day. Beside others, no agent has more than a third of the lines. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "entry/entry.h"
#include "memory.h"
#include "memory_tools.h"

#define MEMORY_CONTEXT_ROWS 20
#define MEMORY_CONTEXT_ROWS_MAX 200
/* Characters of one line of the context. */
#define MEMORY_CONTEXT_LINE 300
/* One agent has this part of the lines. */
#define MEMORY_CONTEXT_SHARE 3
/* Entries that are looked at: at once, and together, with the bytes of their texts. */
#define MEMORY_CONTEXT_PAGE 1000
#define MEMORY_CONTEXT_SCAN_MAX 10000
#define MEMORY_CONTEXT_BYTES_MAX ((size_t)16 * 1024 * 1024)

const char memory_context_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"limit\":{\"type\":\"string\",\"description\":\"Lines of today, 20 where left out\"},"
    "\"agent\":{\"type\":\"string\",\"description\":\"Only of this agent\"}}}";

/* A line of the context, and the entry that it is of. Call memory. */
struct memory_context_line {
    struct ng_str text, agent, event;
};

/* Newest first. */
struct memory_context_lines {
    struct memory_context_line *items;
    size_t count;
};

struct memory_context {
    struct ng_call *call;
    struct memory_context_lines shown;
    struct memory_context_lines spare; /* over the share of their agent; shown if it is alone */
    size_t room;                       /* of each list */
    size_t share;                      /* lines of one agent beside others */
    struct ng_str agent;               /* of the newest entry */
    bool has_others;
    size_t scanned, bytes; /* of the present page; of all */
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

/* The entries of a page may have moved to the next one meanwhile. */
static bool memory_context_has(const struct memory_context_lines *lines, struct ng_str event)
{
    size_t i = 0;
    while (i < lines->count && !str_equal(lines->items[i].event, event)) {
        i++;
    }
    return i < lines->count;
}

static size_t memory_context_of(const struct memory_context_lines *lines, struct ng_str agent)
{
    size_t count = 0;
    for (size_t i = 0; i < lines->count; i++) {
        count += str_equal(lines->items[i].agent, agent);
    }
    return count;
}

static int memory_context_add(struct memory_context *context,
                              struct memory_context_lines *lines, const struct ng_entry *entry)
{
    struct ng_call *call = context->call;
    struct memory_context_line line = {
        .text = memory_context_line(call, entry),
        .agent = entry_join(call, &entry->agent, 1),
        .event = entry_join(call, &entry->event_id, 1),
    };
    if (line.text.data == NULL || line.agent.data == NULL || line.event.data == NULL) {
        context->rc = entry_no_memory(call);
        return 1;
    }
    lines->items[lines->count++] = line;
    return 0;
}

static int memory_context_row(void *user, const struct ng_entry *entry)
{
    struct memory_context *context = user;
    context->scanned++;
    context->bytes += entry->content.len;
    if (memory_context_has(&context->shown, entry->event_id) ||
        memory_context_has(&context->spare, entry->event_id)) {
        return 0;
    }
    if (context->agent.data == NULL) {
        context->agent = entry_join(context->call, &entry->agent, 1);
    }
    context->has_others = context->has_others || !str_equal(entry->agent, context->agent);
    struct memory_context_lines *lines = &context->shown;
    if (memory_context_of(&context->shown, entry->agent) >= context->share) {
        lines = &context->spare;
    }
    if (lines->count < context->room && memory_context_add(context, lines, entry) != 0) {
        return 1;
    }
    return context->shown.count == context->room;
}

/* The entries of the day page by page, until there are enough lines. */
static int memory_context_read(struct memory_context *context, struct ng_timeline *timeline)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(context->call, &handle);
    bool go_on = true;
    timeline->limit = MEMORY_CONTEXT_PAGE;
    while (go_on) {
        context->scanned = 0;
        int rc =
            journal->timeline(handle, context->call, timeline, memory_context_row, context);
        if (rc != NG_OK || context->rc != NG_OK) {
            return rc != NG_OK ? rc : context->rc;
        }
        timeline->offset += context->scanned;
        go_on = context->scanned == MEMORY_CONTEXT_PAGE &&
                context->shown.count < context->room &&
                timeline->offset < MEMORY_CONTEXT_SCAN_MAX &&
                context->bytes < MEMORY_CONTEXT_BYTES_MAX;
    }
    return NG_OK;
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

/* The newest entries: of one agent alone all of them. */
static void memory_context_fill(struct memory_context *context)
{
    struct memory_context_lines *shown = &context->shown;
    for (size_t i = 0; !context->has_others && i < context->spare.count; i++) {
        if (shown->count < context->room) {
            shown->items[shown->count++] = context->spare.items[i];
        }
    }
}

static int memory_context_reply(struct ng_call *call, const struct memory_context *context,
                                struct ng_str summary)
{
    const struct memory_context_lines *lines = &context->shown;
    struct ng_str *pieces = ng_alloc(call, (lines->count + 4) * sizeof(*pieces));
    size_t count = 0;
    if (pieces == NULL) {
        return entry_no_memory(call);
    }
    pieces[count++] = ng_str_of("# What is known\n\n");
    pieces[count++] = str_or(summary, ng_str_of("There is no summary yet."));
    if (lines->count == 0) {
        pieces[count++] = ng_str_of("\n\nNothing was logged today.\n");
    } else if (context->has_others && context->spare.count > 0) {
        pieces[count++] =
            call->host->format(call,
                               "\n\n# Today, the latest last\n\nOf each agent at most %zu; "
                               "memory_timeline has the others.\n\n",
                               context->share);
    } else {
        pieces[count++] = ng_str_of("\n\n# Today, the latest last\n\n");
    }
    for (size_t i = lines->count; i > 0; i--) {
        pieces[count++] = lines->items[i - 1].text;
    }
    return call->host->reply_parts(call, pieces, count);
}

int memory_context_get(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct ng_str summary = {NULL, 0};
    struct memory_context context = {
        .call = call,
        .room = memory_context_rows(ng_arg_text(call, "limit")),
    };
    struct ng_timeline timeline = {
        .size = sizeof(timeline),
        .agent = entry_agent_name(ng_arg_text(call, "agent")),
        .date = call->host->day(call, call->host->now_ms()),
    };
    (void)self;
    (void)args;
    context.share = size_max(context.room / MEMORY_CONTEXT_SHARE, 1);
    context.shown.items = ng_alloc(call, context.room * sizeof(*context.shown.items));
    context.spare.items = ng_alloc(call, context.room * sizeof(*context.spare.items));
    if (context.shown.items == NULL || context.spare.items == NULL) {
        return entry_no_memory(call);
    }
    int rc = memory_context_space(call, &timeline.space);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t backlog = 0;
    rc = memory_flush(call, &backlog);
    if (rc == NG_OK) {
        rc = journal->summary(handle, call, timeline.space, &summary);
    }
    if (rc == NG_OK) {
        rc = memory_context_read(&context, &timeline);
    }
    if (rc != NG_OK) {
        return rc;
    }
    memory_context_fill(&context);
    return memory_context_reply(call, &context, summary);
}
