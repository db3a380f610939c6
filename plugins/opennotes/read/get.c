/* SPDX-License-Identifier: MIT */
/* get.c - the tool that returns one note, or a part of it. */
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "core/base/minmax.h"
#include "index/index.h"
#include "markdown/outline.h"
#include "note/revision.h"
#include "notebook/notebook.h"
#include "read.h"

const char notes_get_summary[] =
    "Get the content and metadata of one Markdown note of an OpenNotes notebook, by path, "
    "when a list or search has named it.\n\n"
    "The path should be relative to the notebook root (e.g., 'tasks/task-001.md').\n\n"
    "Set 'includeContent: false' to get only metadata without the full body (faster for large "
    "notes).\n\n"
    "A large note comes in parts: follow 'nextLine' with 'startLine' (a line too long for one "
    "answer goes on with 'startByte'). 'section' gives what is below one heading.";

const char notes_get_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\"],"
    "\"properties\":{"
    "\"path\":{\"type\":\"string\","
    "\"description\":\"Path to the note file (relative to notebook "
    "root)\"}," NOTES_PARAM_NOTEBOOK ","
    "\"includeContent\":{\"type\":\"boolean\",\"default\":true,"
    "\"description\":\"Whether to include full markdown content (default: true)\"},"
    "\"raw\":{\"type\":\"boolean\",\"default\":false,"
    "\"description\":\"The file as it is, front matter included (default: false)\"},"
    "\"section\":{\"type\":\"string\","
    "\"description\":\"A heading, or its anchor: only its part of the note\"},"
    "\"startLine\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991,"
    "\"description\":\"First line of content to return, from 1; with raw of the file\"},"
    "\"maxLines\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991,"
    "\"description\":\"Lines to return at most\"},"
    "\"startByte\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740991,"
    "\"description\":\"First byte of the line startLine to return: nextByte of the answer "
    "before\"}}}";

const char notes_get_result[] =
    "{\"type\":\"object\",\"required\":[\"note\",\"notebook\"],\"properties\":{"
    "\"note\":{\"type\":\"object\",\"required\":[\"path\"],\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"content\":{\"type\":\"string\"},\"frontmatter\":{\"type\":\"object\"},"
    "\"frontmatterError\":{\"type\":\"string\"},"
    "\"frontmatterTruncated\":{\"type\":\"boolean\"},\"raw\":{\"type\":\"boolean\"},"
    "\"wordCount\":{\"type\":\"integer\"},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"created\":{\"type\":\"string\",\"format\":\"date-time\"},\"modified\":{\"type\":"
    "\"string\",\"format\":\"date-time\"},"
    "\"size\":{\"type\":\"integer\"},\"lines\":{\"type\":\"integer\"},"
    "\"revision\":{\"type\":\"string\"},\"truncated\":{\"type\":\"boolean\"},"
    "\"startLine\":{\"type\":\"integer\"},\"nextLine\":{\"type\":\"integer\"},"
    "\"nextByte\":{\"type\":\"integer\"}}},"
    "\"notebook\":" NOTES_SCHEMA_NOTEBOOK ",\"_guidance\":{\"type\":\"string\"}}}";

#define FRONTMATTER_SHARE                                                                      \
    2 /* share of an answer that front matter may take: one part of so many */

/* The arguments. */
struct want {
    struct ng_str path, section;
    bool content, raw;
    int64_t start_line, max_lines, start_byte;
};

/* The note. */
struct found {
    struct notes_location at;
    struct ng_str bytes; /* malloc'd */
    char revision[NOTES_REVISION_SIZE];
    struct notes_note note;
    struct ng_str text; /* the text whose lines are counted */
    int64_t lines;
};

/* The part of the text that is returned. */
struct part {
    struct ng_str text;
    int64_t start_line; /* 0: there is none */
    int64_t next_line;  /* 0: it goes to the end */
    int64_t next_byte;  /* offset in next_line; 0: its beginning */
    bool truncated;     /* the text continues behind the answer */
};

/* ---- lines ---- */

static int64_t count_lines(struct ng_str text)
{
    int64_t lines = 0;
    for (size_t at = 0; at < text.len; at = notes_next_line(text, at)) {
        lines++;
    }
    return lines;
}

static size_t skip_lines(struct ng_str text, size_t at, int64_t lines)
{
    for (; lines > 0 && at < text.len; lines--) {
        at = notes_next_line(text, at);
    }
    return at;
}

/* ---- a section ---- */

struct section {
    int64_t first, last; /* lines; last 0: to the end */
};

static int find_section(struct ng_call *call, const struct want *want,
                        const struct found *found, struct arena *arena, struct section *section)
{
    struct notes_outline outline;
    size_t heading = 0;
    size_t matches = 0;
    *section = (struct section){.first = 1};
    if (want->section.data == NULL) {
        return NG_OK;
    }
    if (notes_outline_read(arena, found->text, &outline) != NG_OK ||
        !notes_outline_find(&outline, want->section, &heading, &matches)) {
        return notes_fail_memory(call);
    }
    if (matches == 0) {
        return notes_outline_fail(call, &outline, want->section);
    }
    const struct notes_outline_heading *next = notes_outline_next(&outline, heading);
    section->first = outline.items[heading].line;
    if (next != NULL) {
        section->last = (int64_t)next->line - 1;
    }
    return NG_OK;
}

/* ---- the part that is requested and fits ---- */

static int fail_start(struct ng_call *call, int64_t line, int64_t first, int64_t last)
{
    return ng_fail(call, NG_EINVAL, "`startLine` is %lld; there are lines %lld to %lld.",
                   (long long)line, (long long)first, (long long)last);
}

/* The start of the requested part, and the rest of the text from there. */
static int begin_part(struct ng_call *call, const struct want *want, const struct found *found,
                      const struct section *section, struct part *part)
{
    int64_t last;
    if (section->last > 0) {
        last = section->last;
    } else {
        last = found->lines;
    }
    int64_t line = i64_max(want->start_line, section->first);
    if (line > last && (line > 1 || want->start_byte > 0)) {
        return fail_start(call, line, section->first, last);
    }
    size_t at = skip_lines(found->text, 0, line - 1);
    size_t end = skip_lines(found->text, at, last - line + 1);
    if (want->max_lines > 0 && want->max_lines < last - line + 1) {
        end = skip_lines(found->text, at, want->max_lines);
        part->next_line = line + want->max_lines;
    }
    size_t first_end = notes_next_line(found->text, at);
    if (want->start_byte > 0 && (uint64_t)want->start_byte >= first_end - at) {
        return ng_fail(call, NG_EINVAL, "`startByte` is %lld; line %lld has %zu bytes.",
                       (long long)want->start_byte, (long long)line, first_end - at);
    }
    at += (size_t)want->start_byte;
    at = utf8_cut(found->text, at).len;
    part->start_line = line;
    part->text = str_make(found->text.data + at, end - at);
    return NG_OK;
}

/* Cuts the part to the room left: behind a line if one fits, else inside it. */
static void cut_part(struct part *part, int64_t start_byte, size_t bytes, size_t lines)
{
    struct ng_str whole = part->text;
    size_t one = 0;
    if (whole.len > 0) {
        (void)notes_next(whole, &one);
    }
    /* Returns at least one character, so that a client that continues reaches the end. */
    size_t fits = notes_json_cut(whole, bytes, lines).len;
    size_t cut = size_max(fits, one);
    if (cut == whole.len) {
        return;
    }
    size_t line = cut;
    while (line > 0 && whole.data[line - 1] != '\n') {
        line--;
    }
    part->truncated = true;
    part->next_line = part->start_line;
    if (line > 0) {
        part->text.len = line;
        part->next_line += count_lines(part->text);
        part->next_byte = 0;
    } else {
        part->text.len = cut;
        part->next_byte = start_byte + (int64_t)cut;
    }
}

/* ---- the answer ---- */

static void write_tags(struct buf *json, const struct notes_note *note, size_t most)
{
    notes_json_member_begin(json, "tags", '[');
    for (size_t i = 0; i < note->tag_count && json->len + note->tags[i].len < most; i++) {
        notes_json_text(json, note->tags[i]);
    }
    notes_json_end(json, ']');
}

/* As many members as fit. */
static void write_frontmatter(struct buf *json, const struct notes_note *note, size_t most)
{
    bool all = true;
    if (!note->has_frontmatter || note->frontmatter_error.data != NULL) {
        return;
    }
    notes_json_member_begin(json, "frontmatter", '{');
    for (const struct notes_value *member = note->frontmatter->first; member != NULL;
         member = member->next) {
        size_t len = json->len;
        notes_json_name(json, member->key);
        notes_value_json(json, member);
        if (json->len > most) {
            buf_cut(json, len);
            all = false;
        }
    }
    notes_json_end(json, '}');
    if (!all) {
        notes_json_member_bool(json, "frontmatterTruncated", true);
    }
}

static void write_meta(struct buf *json, const struct found *found, size_t most)
{
    const struct notes_note *note = &found->note;
    notes_json_member(json, "path", found->at.path);
    notes_json_member(json, "title",
                      utf8_cut(notes_note_title(note, found->at.path), most / 8));
    notes_json_member(json, "revision", ng_str_of(found->revision));
    notes_json_member_int(json, "size", (int64_t)found->bytes.len);
    notes_json_member_int(json, "lines", found->lines);
    notes_json_member_int(json, "wordCount", (int64_t)note->words);
    notes_json_member_time(json, "created",
                           note->has_created ? note->created_ms : found->at.created_ms);
    notes_json_member_time(json, "modified",
                           note->has_modified ? note->modified_ms : found->at.modified_ms);
    if (note->tag_count > 0) {
        write_tags(json, note, most / 4);
    }
    if (note->frontmatter_error.data != NULL) {
        notes_json_member(json, "frontmatterError", note->frontmatter_error);
    }
    write_frontmatter(json, note, most);
}

static void write_part(struct buf *json, const struct part *part, bool raw)
{
    notes_json_member(json, "content", part->text);
    if (raw) {
        notes_json_member_bool(json, "raw", true);
    }
    if (part->start_line > 1) {
        notes_json_member_int(json, "startLine", part->start_line);
    }
    if (part->next_line > 0) {
        notes_json_member_int(json, "nextLine", part->next_line);
    }
    if (part->next_byte > 0) {
        notes_json_member_int(json, "nextByte", part->next_byte);
    }
    notes_json_member_bool(json, "truncated", part->truncated);
}

static void write_guidance(struct buf *json, const struct part *part)
{
    if (part->next_line > 0) {
        notes_json_name_c(json, "_guidance");
        buf_printf(json, "\"More of this note available. To read on: { startLine: %lld",
                   (long long)part->next_line);
        if (part->next_byte > 0) {
            buf_printf(json, ", startByte: %lld", (long long)part->next_byte);
        }
        buf_add_c(json, " }\"");
    }
}

static int reply(struct ng_call *call, const struct notes_notebook *notebook,
                 const struct want *want, const struct found *found, struct arena *arena)
{
    const struct notes_budget *budget = &notebook->self->budget;
    struct notes_answer answer;
    struct section section;
    struct part part = {.text = {"", 0}};
    int rc = NG_OK;
    if (want->content) {
        rc = find_section(call, want, found, arena, &section);
    }
    if (rc == NG_OK && want->content) {
        rc = begin_part(call, want, found, &section, &part);
    }
    if (rc != NG_OK) {
        return rc;
    }
    notes_answer_begin(&answer, call, budget, 1, 0);
    notes_notebook_write(notebook, &answer.json);
    notes_json_member_begin(&answer.json, "note", '{');
    write_meta(&answer.json, found, answer.bytes_max / FRONTMATTER_SHARE);
    if (want->content) {
        /* Line ends in the front matter's JSON are not counted. */
        cut_part(&part, want->start_byte, notes_answer_room(&answer),
                 budget->max_lines * NOTES_ANSWER_PERCENT / 100);
        write_part(&answer.json, &part, want->raw);
    }
    notes_json_end(&answer.json, '}');
    write_guidance(&answer.json, &part);
    return notes_answer_end_plain(&answer);
}

/* ---- finding it ---- */

static int read_note(const struct notes_notebook *notebook, struct ng_call *call,
                     const struct want *want, struct arena *arena)
{
    struct found found = {.bytes = {NULL, 0}};
    int rc = notes_index_locate(notebook->index, call, want->path, &found.at);
    if (rc == NG_OK) {
        rc = notes_index_read(notebook->index, call, found.at.file, &found.bytes);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (notes_note_parse(arena, found.bytes, &found.note) != NG_OK ||
        !notes_note_tags(arena, &found.note) ||
        notes_revision(found.bytes, -1, found.revision) != NG_OK) {
        rc = notes_fail_memory(call);
    }
    if (want->raw) {
        found.text = notes_utf8_clean(arena, found.bytes);
    } else {
        found.text = found.note.body;
    }
    if (rc == NG_OK && found.text.data == NULL) {
        found.text = str_make("", 0);
    }
    found.lines = count_lines(found.text);
    if (rc == NG_OK) {
        rc = call->host->revision_text(call, ng_str_of(found.revision));
    }
    if (rc == NG_OK) {
        rc = reply(call, notebook, want, &found, arena);
    }
    free((void *)(uintptr_t)found.bytes.data);
    return rc;
}

static bool is_true(struct ng_call *call, const char *name, bool fallback)
{
    enum ng_type type = call->host->json_type(ng_arg(call, name));
    if (type == NG_TYPE_ABSENT) {
        return fallback;
    }
    return type == NG_TYPE_TRUE;
}

int notes_get_check(struct ng_call *call)
{
    if (is_true(call, "raw", false) && ng_has_arg(call, "section")) {
        return ng_fail(call, NG_EINVAL, "`section` is a part of the content; leave `raw` out.");
    }
    return NG_OK;
}

int notes_get_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct want want = {
        .path = ng_arg_text(call, "path"),
        .section = ng_arg_text(call, "section"),
        .content = is_true(call, "includeContent", true),
        .raw = is_true(call, "raw", false),
        .start_line = ng_arg_int(call, "startLine", 1),
        .max_lines = ng_arg_int(call, "maxLines", 0),
        .start_byte = ng_arg_int(call, "startByte", 0),
    };
    return read_note(notebook, call, &want, arena);
}
