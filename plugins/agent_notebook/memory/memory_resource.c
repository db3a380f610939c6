/* SPDX-License-Identifier: MIT */
/* memory_resource.c - memories as resources: notegate://SPACE/memory/ID, where ID is the `id`
 * that memory_recall gives, and their search. */
#include <string.h>

#include "core/base/find/find_words.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "entry/entry.h"
#include "memory.h"
#include "memory_tools.h"

/* Bytes of a memory's first line that are its title. */
#define MEMORY_TITLE_MAX 80
/* How long a search waits for memories that were logged just before it. */
#define MEMORY_FIND_FLUSH_MS 500

/* ---- reading ---- */

struct memory_reading {
    struct ng_call *call;
    bool found;
    int rc;
};

static int memory_reading_row(void *user, const struct ng_entry *entry)
{
    struct memory_reading *reading = user;
    reading->found = entry->kind == NG_ENTRY_MEMORY;
    if (reading->found) {
        reading->rc = ng_reply(reading->call, str_or(entry->content, ng_str_of("")));
    }
    return 1;
}

int memory_resource_read(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_str id, uint64_t revision)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct memory_reading reading = {.call = call};
    uint64_t backlog = 0;
    (void)self;
    if (revision > 0) {
        return ng_fail(call, NG_EINVAL, "Memories have no revisions; leave ?revision out.");
    }
    if (!NG_HAS(journal, memory) || journal->memory == NULL) {
        return ng_fail(call, NG_ENOTFOUND, "the journal in use gives no single memories");
    }
    int rc = memory_flush(call, &backlog);
    if (rc == NG_OK) {
        rc = journal->memory(handle, call, space, id, memory_reading_row, &reading);
    }
    if (rc == NG_ENOTFOUND || (rc == NG_OK && !reading.found)) {
        return ng_fail(call, NG_ENOTFOUND, "there is no such memory in this space");
    }
    return rc != NG_OK ? rc : reading.rc;
}

/* ---- searching ---- */

struct memory_hits {
    struct ng_call *call;
    struct ng_find *find;
    struct find_words words;
    int rc;
};

static struct ng_str memory_title(struct ng_str content)
{
    const char *end = content.len > 0 ? memchr(content.data, '\n', content.len) : NULL;
    if (end != NULL) {
        content.len = (size_t)(end - content.data);
    }
    return utf8_cut(content, MEMORY_TITLE_MAX);
}

static int memory_hit(void *user, const struct ng_entry *entry)
{
    struct memory_hits *hits = user;
    struct find_place place = {.line = 0};
    /* A memory that another program wrote has no id. */
    if (entry->kind != NG_ENTRY_MEMORY || entry->event_id.len == 0) {
        return 0;
    }
    if (find_words_place(&hits->words, entry->content, &place) == NG_EINTERNAL) {
        hits->rc = entry_no_memory(hits->call);
        return 1;
    }
    struct ng_str title = memory_title(entry->content);
    const struct ng_hit hit = {
        .size = sizeof(hit),
        .id = entry->event_id,
        .title = title,
        .agent = entry->agent,
        .excerpt = place.line > 0 ? place.excerpt : title,
        .updated_ms = entry->time_ms,
        .line = place.line,
    };
    return hits->find->hit(hits->find->user, &hit);
}

int memory_resource_find(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_find *find)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct memory_hits hits = {.call = call, .find = find};
    const struct ng_recall recall = {
        .size = sizeof(recall),
        .space = space,
        .text = find->text,
        .limit = find->limit,
        .memories = true,
    };
    uint64_t backlog = 0;
    const char *engine = NULL;
    (void)self;
    int rc = journal->flush(handle, call, MEMORY_FIND_FLUSH_MS, &backlog);
    if (rc != NG_OK) {
        return rc;
    }
    find->incomplete = backlog > 0;
    rc = find_words_open(&hits.words, find->text);
    if (rc == NG_EINTERNAL) {
        rc = entry_no_memory(call);
    } else {
        rc = journal->recall(handle, call, &recall, memory_hit, &hits, &engine);
    }
    find_words_done(&hits.words);
    return rc != NG_OK ? rc : hits.rc;
}
