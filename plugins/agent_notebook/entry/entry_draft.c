/* SPDX-License-Identifier: MIT */
/* entry_draft.c - the next state of an entry: members that stay, members that the caller sets,
 * derived members (summary, word count, sections, history), and its event. */
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "entry.h"
#include "entry_text.h"

#define ENTRY_SOURCE "notebook"
#define ENTRY_SCORE 0.8

const struct entry_own entry_own[ENTRY_COLLECTIONS][ENTRY_OWN_MAX] = {
    [ENTRY_PAGES] = {{"sections", false}},
    [ENTRY_CODE] = {{"language", false}, {"description", false}, {"related_page", true}},
    [ENTRY_RESEARCH] = {{"source_url", false},
                        {"key_findings", false},
                        {"confidence", true},
                        {"related_pages", true}},
};

/* ---- from the present state and the arguments ---- */

static struct ng_str draft_text(struct ng_call *call, const struct ng_value *body,
                                const char *a, const char *b)
{
    return call->host->json_text(entry_member(call, body, a, b));
}

static bool draft_bool(struct ng_call *call, const struct ng_value *body, const char *name)
{
    return call->host->json_type(call->host->json_get(body, name)) == NG_TYPE_TRUE;
}

void entry_draft_load(struct ng_call *call, struct entry_draft *draft,
                      const struct ng_value *body)
{
    const struct ng_host *host = call->host;
    int64_t words = 0;
    draft->title = draft_text(call, body, "title", NULL);
    draft->summary = draft_text(call, body, "summary", NULL);
    draft->summary_given = draft_bool(call, body, "summary_given");
    draft->status = draft_text(call, body, "metadata", "status");
    draft->tags = entry_member(call, body, "metadata", "tags");
    draft->created_by = draft_text(call, body, "metadata", "created_by");
    draft->created_at = draft_text(call, body, "metadata", "created_at");
    draft->history = host->json_get(body, "history");
    draft->sections = host->json_get(body, "sections");
    draft->sections_given = draft_bool(call, body, "sections_given");
    (void)host->json_integer(entry_member(call, body, "metadata", "word_count"), &words);
    draft->words = (uint64_t)i64_max(words, 0);
    for (size_t i = 0; i < ENTRY_OWN_MAX; i++) {
        const struct entry_own *own = &entry_own[draft->collection][i];
        if (own->name != NULL && own->in_metadata) {
            draft->own[i] = entry_member(call, body, "metadata", own->name);
        } else if (own->name != NULL) {
            draft->own[i] = host->json_get(body, own->name);
        }
    }
    draft->same_headings = true;
}

void entry_draft_args(struct ng_call *call, struct entry_draft *draft)
{
    const struct ng_value *tags = ng_arg(call, "tags");
    if (ng_has_arg(call, "title")) {
        draft->title = ng_arg_text(call, "title");
    }
    if (ng_has_arg(call, "status")) {
        draft->status = ng_arg_text(call, "status");
    }
    if (tags != NULL) {
        draft->tags = tags;
    }
    if (ng_has_arg(call, "summary")) {
        /* An empty argument asks for the derived value. */
        draft->summary = ng_arg_text(call, "summary");
        draft->summary_given = draft->summary.len > 0;
        draft->text_changed = draft->text_changed || !draft->summary_given;
    }
    for (size_t i = 0; i < ENTRY_OWN_MAX; i++) {
        const char *name = entry_own[draft->collection][i].name;
        if (name != NULL && ng_has_arg(call, name)) {
            draft->own[i] = ng_arg(call, name);
        }
    }
    if (draft->collection == ENTRY_PAGES && ng_has_arg(call, "sections")) {
        draft->sections = ng_arg(call, "sections");
        draft->sections_given = call->host->json_count(draft->sections) > 0;
        draft->same_headings = draft->sections_given;
    }
}

/* ---- what a schema cannot check ---- */

static int check_tags(const struct agent_notebook *self, struct ng_call *call)
{
    const struct ng_host *host = call->host;
    const struct ng_value *tags = ng_arg(call, "tags");
    size_t index = 0;
    if (host->json_count(tags) > self->max_tags) {
        return entry_invalid(call, "/tags",
                             host->format(call, "at most %u tags", (unsigned)self->max_tags),
                             host->format(call, "%zu", host->json_count(tags)));
    }
    for (const struct ng_value *tag = host->json_first(tags); tag != NULL;
         tag = host->json_next(tag)) {
        struct ng_str text = host->json_text(tag);
        if (text.len > 0 && memchr(text.data, ',', text.len) != NULL) {
            struct ng_str path = host->format(call, "/tags/%zu", index);
            return entry_invalid(
                call, path.data == NULL ? "/tags" : path.data,
                ng_str_of("a tag without a comma (tags are joined by commas; give several)"),
                text);
        }
        index++;
    }
    return NG_OK;
}

/* A member of another collection is an error that the caller should see. */
static int check_own(struct ng_call *call, unsigned collection)
{
    for (unsigned other = 0; other < ENTRY_COLLECTIONS; other++) {
        for (size_t i = 0; i < ENTRY_OWN_MAX && other != collection; i++) {
            const char *name = entry_own[other][i].name;
            if (name == NULL || !ng_has_arg(call, name)) {
                continue;
            }
            struct ng_str path = call->host->format(call, "/%s", name);
            return entry_invalid(call, path.data == NULL ? "/" : path.data,
                                 call->host->format(call, "nothing: only entries of %s have it",
                                                    entry_collections[other]),
                                 call->host->format(call, "a value for an entry of %s",
                                                    entry_collections[collection]));
        }
    }
    return NG_OK;
}

int entry_check_args(const struct agent_notebook *self, struct ng_call *call,
                     unsigned collection)
{
    struct ng_str title = ng_arg_text(call, "title");
    if (ng_has_arg(call, "title") && entry_trim(title).len == 0) {
        return entry_invalid(call, "/title",
                             ng_str_of("at least one character that is not white space"),
                             ng_str_of("none"));
    }
    if (utf8_count(title) > self->max_title) {
        return entry_invalid(
            call, "/title",
            call->host->format(call, "at most %u characters", (unsigned)self->max_title),
            call->host->format(call, "%zu", utf8_count(title)));
    }
    int rc = check_tags(self, call);
    if (rc != NG_OK) {
        return rc;
    }
    return check_own(call, collection);
}

/* ---- new entries ---- */

static void draft_make_summary(struct ng_call *call, struct entry_draft *draft)
{
    struct ng_str head = utf8_cut_count(draft->text, ENTRY_SUMMARY_CHARS);
    const struct ng_str pieces[] = {entry_trim(head),
                                    ng_str_of(text_if(head.len < draft->text.len, "..."))};
    draft->summary = entry_join(call, pieces, NG_COUNT(pieces));
}

void entry_put_sections(struct ng_call *call, struct ng_writer *writer, struct ng_str text,
                        bool with_content)
{
    const struct ng_host *host = call->host;
    struct entry_scan scan = {.text = text};
    struct entry_heading heading;
    struct entry_heading next = {0};
    host->json_array(writer);
    bool more = entry_next_heading(&scan, &heading);
    for (int i = 0; i < ENTRY_SECTIONS_MAX && more; i++) {
        more = entry_next_heading(&scan, &next);
        size_t end = text.len;
        if (more) {
            end = next.at;
        }
        host->json_object(writer);
        entry_put(call, writer, "heading", entry_heading_text(call, &heading));
        entry_put_int(call, writer, "level", heading.level);
        if (with_content) {
            struct ng_str below = {text.data + heading.body, end - heading.body};
            entry_put(call, writer, "content", entry_trim(below));
        }
        host->json_end(writer);
        heading = next;
    }
    host->json_end(writer);
}

/* Stored without the text below the headings: it is in the content, so a page would need twice
 * the space, and an append would rewrite a section. */
static void write_sections(struct ng_call *call, const struct entry_draft *draft,
                           struct ng_writer *writer)
{
    const struct ng_host *host = call->host;
    host->json_name(writer, "sections");
    if (draft->sections != NULL && (draft->sections_given || draft->same_headings)) {
        host->json_copy(writer, draft->sections);
        return;
    }
    entry_put_sections(call, writer, draft->text, false);
}

static void write_history(struct ng_call *call, const struct entry_draft *draft,
                          struct ng_writer *writer, struct ng_str now)
{
    const struct ng_host *host = call->host;
    size_t there = host->json_count(draft->history);
    bool full = there >= ENTRY_HISTORY_MAX + ENTRY_HISTORY_SLACK;
    size_t skip = 0;
    if (full) {
        skip = there - ENTRY_HISTORY_MAX + 1;
    }
    const struct ng_value *item = host->json_first(draft->history);
    host->json_name(writer, "history");
    host->json_array(writer);
    for (; item != NULL; item = host->json_next(item)) {
        if (skip > 0) {
            skip--;
            continue;
        }
        host->json_copy(writer, item);
    }
    host->json_object(writer);
    entry_put_int(call, writer, "version", draft->version);
    entry_put(call, writer, "timestamp", now);
    entry_put(call, writer, "summary", draft->did);
    entry_put(call, writer, "changed_by", draft->change_by);
    host->json_end(writer);
    host->json_end(writer);
}

static void write_tags(struct ng_call *call, const struct entry_draft *draft,
                       struct ng_writer *writer)
{
    call->host->json_name(writer, "tags");
    if (draft->tags != NULL) {
        call->host->json_copy(writer, draft->tags);
    } else {
        call->host->json_array(writer);
        call->host->json_end(writer);
    }
}

static void write_own(struct ng_call *call, const struct entry_draft *draft,
                      struct ng_writer *writer, bool in_metadata)
{
    for (size_t i = 0; i < ENTRY_OWN_MAX; i++) {
        const struct entry_own *own = &entry_own[draft->collection][i];
        if (own->name == NULL || own->in_metadata != in_metadata || draft->own[i] == NULL ||
            strcmp(own->name, "sections") == 0) {
            continue;
        }
        call->host->json_name(writer, own->name);
        call->host->json_copy(writer, draft->own[i]);
    }
}

static void write_metadata(struct ng_call *call, const struct entry_draft *draft,
                           struct ng_writer *writer, struct ng_str now)
{
    const struct ng_host *host = call->host;
    host->json_name(writer, "metadata");
    host->json_object(writer);
    entry_put(call, writer, "created_by", draft->created_by);
    entry_put(call, writer, "created_at",
              draft->created_at.data == NULL ? now : draft->created_at);
    entry_put(call, writer, "updated_at", now);
    entry_put_int(call, writer, "version", draft->version);
    write_tags(call, draft, writer);
    entry_put_int(call, writer, "word_count", draft->words);
    entry_put(call, writer, "status", draft->status);
    write_own(call, draft, writer, true);
    host->json_end(writer);
}

/* `history` comes early: members that change together are then adjacent, at its end and behind
 * it, and the stored splice of the version is short. */
static struct ng_str draft_json(struct ng_call *call, const struct entry_draft *draft)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str now = entry_time(call, host->now_ms());
    struct ng_str none = {NULL, 0};
    struct ng_str title_key = entry_title_key(call, draft->title);
    if (writer == NULL || now.data == NULL || title_key.data == NULL) {
        return none;
    }
    host->json_object(writer);
    entry_put(call, writer, "title", draft->title);
    entry_put(call, writer, ENTRY_TITLE_KEY, title_key);
    entry_put(call, writer, "collection_type", ng_str_of(entry_collections[draft->collection]));
    write_history(call, draft, writer, now);
    entry_put(call, writer, "summary", draft->summary);
    host->json_name(writer, "summary_given");
    host->json_bool(writer, draft->summary_given);
    write_own(call, draft, writer, false);
    if (draft->collection == ENTRY_PAGES) {
        write_sections(call, draft, writer);
        host->json_name(writer, "sections_given");
        host->json_bool(writer, draft->sections_given);
    }
    write_metadata(call, draft, writer, now);
    if (draft->undos > 0) {
        entry_put_int(call, writer, ENTRY_UNDO_BASE, draft->undo_base);
        entry_put_int(call, writer, ENTRY_UNDOS, draft->undos);
    }
    host->json_end(writer);
    return host->json_result(writer);
}

/* ---- sizes and the event ---- */

static int draft_too_large(struct ng_call *call, const struct entry_draft *draft,
                           uint64_t bytes, uint64_t most, const char *what)
{
    const struct ng_host *host = call->host;
    (void)ng_fail(call, NG_ETOOLARGE, "the %s would have %llu bytes, the most are %llu", what,
                  (unsigned long long)bytes, (unsigned long long)most);
    host->hint(call, "Split it into several entries that name each other.");
    struct ng_writer *writer = host->details(call);
    host->json_object(writer);
    entry_put(call, writer, "notebook_id", draft->key.id);
    entry_put_int(call, writer, "size", bytes);
    entry_put_int(call, writer, "limit", most);
    host->json_end(writer);
    return NG_ETOOLARGE;
}

void entry_event(struct ng_call *call, struct ng_draft *next, const struct entry_draft *draft)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    if (writer == NULL) {
        return;
    }
    struct ng_str summary = utf8_cut_count(draft->summary, ENTRY_SUMMARY_CHARS);
    host->json_object(writer);
    entry_put(call, writer, "title", draft->title);
    entry_put(call, writer, "summary", summary);
    entry_put(call, writer, "status", draft->status);
    entry_put_int(call, writer, "version", draft->version);
    entry_put(call, writer, "source", ng_str_of(ENTRY_SOURCE));
    host->json_name(writer, "tags");
    host->json_array(writer);
    host->json_string(writer, ng_str_of(entry_collections[draft->collection]));
    host->json_end(writer);
    host->json_name(writer, "score");
    host->json_number(writer, ENTRY_SCORE);
    if (draft->restored_from > 0) {
        entry_put_int(call, writer, "restored_from", draft->restored_from);
    }
    host->json_end(writer);
    host->draft_event(next, host->json_result(writer));
}

int entry_draft_store(struct ng_call *call, struct entry_draft *draft, struct ng_draft *next)
{
    if (draft->bytes > draft->self->max_size) {
        return draft_too_large(call, draft, draft->bytes, draft->self->max_size, "content");
    }
    if (!draft->summary_given && draft->text_changed) {
        draft_make_summary(call, draft);
    }
    struct ng_str json = draft_json(call, draft);
    if (json.data == NULL) {
        return entry_no_memory(call);
    }
    uint64_t bytes = json.len + draft->bytes;
    if (bytes > ENTRY_BYTES_MAX) {
        return draft_too_large(call, draft, bytes, ENTRY_BYTES_MAX,
                               "entry with all of its members");
    }
    entry_event(call, next, draft);
    return call->host->draft_json(next, json);
}

int entry_draft_reply(struct ng_call *call, const struct entry_draft *draft, const char *status)
{
    struct ng_writer *writer = call->host->reply_json(call);
    call->host->json_object(writer);
    entry_put(call, writer, "notebook_id", draft->key.id);
    entry_put(call, writer, "collection", draft->key.collection);
    entry_put(call, writer, "status", ng_str_of(status));
    entry_put_int(call, writer, "version", draft->version);
    if (draft->restored_from > 0) {
        entry_put_int(call, writer, "restored_from", draft->restored_from);
    }
    call->host->json_end(writer);
    return NG_OK;
}
