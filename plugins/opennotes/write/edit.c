/* SPDX-License-Identifier: MIT */
/* edit.c - the tool that edits one place of a note and leaves the rest byte for byte. */
#include "edit.h"
#include "write.h"

#include <string.h>

#include "index/index.h"
#include "note/revision.h"
#include "notebook/notebook.h"
#include "text/codes.h"

const char notes_edit_summary[] =
    "Change a Markdown note of an OpenNotes notebook without sending it whole, to correct or "
    "extend it.\n\n"
    "operation:\n"
    "- 'append': 'content' becomes the note's last lines\n"
    "- 'prepend': 'content' becomes its first lines, behind the frontmatter\n"
    "- 'replace_section': 'content' replaces what is below the heading 'section', up to the "
    "next heading of the same or a higher level; the heading stays. Headings in list items and "
    "quotes cannot be used\n"
    "- 'set': sets the frontmatter fields in 'data' and keeps the layout of all others; null "
    "removes a field\n"
    "- 'replace_frontmatter': 'content' (YAML) replaces the frontmatter, also one that does "
    "not parse, or only its line 'line'\n\n"
    "'expectedRevision' (from get or an earlier edit) makes it fail with CONFLICT where the "
    "note was changed meanwhile. Returns the note's new revision.";

const char notes_edit_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\",\"operation\"],"
    "\"properties\":{"
    "\"path\":{\"type\":\"string\","
    "\"description\":\"Path to the note file (relative to notebook root)\"},"
    "\"operation\":{\"type\":\"string\",\"description\":\"What to do with the note\","
    "\"enum\":[\"append\",\"prepend\",\"replace_section\",\"replace_frontmatter\",\"set\"]},"
    "\"content\":{\"type\":\"string\","
    "\"description\":\"Markdown; YAML for replace_frontmatter\"},"
    "\"section\":{\"type\":\"string\","
    "\"description\":\"Heading (or its anchor), for replace_section\"},"
    "\"line\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991,"
    "\"description\":\"Line of the file, for replace_frontmatter: replace only this one\"},"
    "\"data\":{\"type\":\"object\",\"additionalProperties\":true,"
    "\"description\":\"Frontmatter fields, for set; null removes one\"},"
    "\"expectedRevision\":{\"type\":\"string\","
    "\"description\":\"Revision that the note must have\"}," NOTES_PARAM_NOTEBOOK "}}";

const char notes_edit_result[] =
    "{\"type\":\"object\",\"required\":[\"path\",\"revision\"],\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"revision\":{\"type\":\"string\"}}}";

enum operation { APPEND = 0, PREPEND, REPLACE_SECTION, REPLACE_FRONTMATTER, SET };

/* In call memory. Arguments are lent for the call, which outlives the tool's run. */
struct edit_job {
    const struct notes_notebook *notebook;
    struct ng_str path;
    enum operation operation;
    struct ng_str content, section;
    int64_t line; /* of the file; 0: none */
    const struct ng_value *data;
};

int notes_edit_draft(struct ng_call *call, struct ng_draft *next, struct ng_str old,
                     struct ng_str made)
{
    size_t head = 0;
    size_t least = size_min(old.len, made.len);
    while (head < least && old.data[head] == made.data[head]) {
        head++;
    }
    size_t tail = 0;
    while (tail < least - head &&
           old.data[old.len - 1 - tail] == made.data[made.len - 1 - tail]) {
        tail++;
    }
    if (old.len == made.len && head == old.len) {
        return NG_OK;
    }
    return call->host->draft_splice(next, head, old.len - head - tail,
                                    str_make(made.data + head, made.len - head - tail));
}

static int set_fields(struct ng_call *call, struct arena *arena, const struct edit_job *job,
                      struct ng_str bytes, struct notes_change *change)
{
    struct ng_str error = str_make(NULL, 0);
    struct notes_frontmatter frontmatter;
    const struct notes_value *set = notes_value_from(arena, call, job->data, 0);
    if (set == NULL) {
        return notes_fail_memory(call);
    }
    notes_frontmatter_find(bytes, &frontmatter);
    *change = (struct notes_change){.old = bytes, .made = bytes, .to = frontmatter.body};
    int rc = notes_frontmatter_set(arena, bytes, set, &change->made, &error);
    if (rc == NG_EINVAL) {
        return ng_fail(call, NG_EFAILED, "The note %.*s is unchanged: %.*s", (int)job->path.len,
                       job->path.data, (int)error.len, error.data);
    }
    return rc;
}

static int make(struct ng_call *call, struct arena *arena, const struct edit_job *job,
                struct ng_str bytes, struct notes_change *change)
{
    switch (job->operation) {
    case APPEND:
        return notes_text_append(arena, bytes, job->content, change);
    case PREPEND:
        return notes_text_prepend(arena, bytes, job->content, change);
    case REPLACE_SECTION:
        return notes_text_section(call, arena, bytes, job->section, job->content, change);
    case REPLACE_FRONTMATTER:
        return notes_text_frontmatter(call, arena, bytes, job->line, job->content, change);
    case SET:
        break;
    }
    return set_fields(call, arena, job, bytes, change);
}

static int reply(struct ng_call *call, struct ng_str path, struct ng_str made)
{
    char revision[NOTES_REVISION_SIZE];
    if (notes_revision(made, -1, revision) != NG_OK) {
        return notes_fail_memory(call);
    }
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    if (writer == NULL) {
        return notes_fail_memory(call);
    }
    host->json_object(writer);
    host->json_name(writer, "path");
    host->json_string(writer, path);
    host->json_name(writer, "revision");
    host->json_string(writer, ng_str_of(revision));
    host->json_end(writer);
    return NG_OK;
}

static int edit_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                   void *user)
{
    const struct edit_job *job = user;
    struct arena arena;
    struct notes_change change = {.level = 0};
    int rc = notes_write_inside(job->notebook, call, present, job->path);
    if (rc == NG_OK && present->type != NG_FILE_REGULAR) {
        rc = ng_fail(call, NOTES_ENOTE, "Note not found: %.*s", (int)job->path.len,
                     job->path.data);
    }
    struct ng_str bytes = notes_present(present->data);
    if (rc == NG_OK) {
        rc = notes_edit_text(call, job->path, bytes);
    }
    if (rc != NG_OK) {
        return rc;
    }
    arena_init(&arena, 0);
    rc = make(call, &arena, job, bytes, &change);
    rc = notes_edit_check(call, &arena, job->path, rc, &change);
    if (rc == NG_OK) {
        rc = notes_edit_draft(call, next, bytes, change.made);
    }
    if (rc == NG_OK) {
        rc = reply(call, job->path, change.made);
    }
    arena_done(&arena);
    return rc;
}

/* Checks that all arguments of the operation are given, and none that it would ignore. */
static int check_args(struct ng_call *call, struct edit_job *job)
{
    static const char *const names[] = {"append", "prepend", "replace_section",
                                        "replace_frontmatter", "set"};
    struct ng_str operation = ng_arg_text(call, "operation");
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        if (str_is(operation, names[i])) {
            job->operation = (enum operation)i;
        }
    }
    const char *name = names[job->operation];
    bool is_set = job->operation == SET;
    bool is_section = job->operation == REPLACE_SECTION;
    if (ng_has_arg(call, "data") != is_set) {
        return ng_fail(call, NG_EINVAL,
                       is_set ? "`data` is missing: operation '%s' sets the fields in it."
                              : "`data` has no meaning for operation '%s'; use 'set' for it.",
                       name);
    }
    if (ng_has_arg(call, "content") == is_set) {
        return ng_fail(call, NG_EINVAL,
                       is_set ? "`content` has no meaning for operation '%s'."
                              : "`content` is missing: operation '%s' writes it.",
                       name);
    }
    if (ng_has_arg(call, "section") != is_section) {
        return ng_fail(call, NG_EINVAL,
                       is_section ? "`section` is missing: operation '%s' wants a heading."
                                  : "`section` has no meaning for operation '%s'.",
                       name);
    }
    if (ng_has_arg(call, "line") && job->operation != REPLACE_FRONTMATTER) {
        return ng_fail(call, NG_EINVAL, "`line` has no meaning for operation '%s'.", name);
    }
    job->content = ng_arg_text(call, "content");
    job->line = ng_arg_int(call, "line", 0);
    job->section = ng_arg_text(call, "section");
    job->data = ng_arg(call, "data");
    if (job->content.len > 0 && memchr(job->content.data, '\0', job->content.len) != NULL) {
        return ng_fail(call, NG_EINVAL, "`content` holds NUL characters; notes are text.");
    }
    return notes_data_check(call, job->data);
}

int notes_edit_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct edit_job *job = ng_alloc(call, sizeof(*job));
    struct notes_location at;
    struct ng_str absolute;
    (void)arena;
    if (job == NULL) {
        return notes_fail_memory(call);
    }
    *job = (struct edit_job){.notebook = notebook};
    int rc = check_args(call, job);
    if (rc == NG_OK) {
        rc = notes_index_locate(notebook->index, call, ng_arg_text(call, "path"), &at);
    }
    if (rc == NG_OK) {
        job->path = at.path;
        rc = notes_write_place(notebook, call, at.file, &absolute);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = absolute,
        .fn = edit_fn,
        .user = job,
        .expected_revision = ng_arg_text(call, "expectedRevision"),
        .max_bytes = NOTES_NOTE_EDIT_MAX,
        .collection = NOTES_COLLECTION,
    };
    return call->host->file_edit(call, &edit);
}
