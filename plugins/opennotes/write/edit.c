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
    "- 'append': 'content' becomes the last lines of the note, or of 'section'\n"
    "- 'prepend': 'content' becomes its first lines, behind the frontmatter, or those below "
    "the "
    "heading 'section'\n"
    "- 'replace_section': 'content' replaces what is below the heading 'section' (not one in a "
    "list or quote), sub-headings included; the heading stays\n"
    "- 'str_replace': 'newStr' replaces 'oldStr', which must occur exactly once\n"
    "- 'set': sets the frontmatter fields in 'data' and keeps the layout of others; null "
    "removes a field\n"
    "- 'replace_frontmatter': 'content' (YAML) replaces the frontmatter, also one that does "
    "not parse, or only its line 'line'\n"
    "- 'undo': takes your last change of the note back, of any tool; also of a moved folder\n\n"
    "'expectedRevision' (from get or an edit) makes it fail with CONFLICT where the note was "
    "changed meanwhile. Returns the new revision.";

const char notes_edit_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\",\"operation\"],"
    "\"properties\":{"
    "\"path\":{\"type\":\"string\","
    "\"description\":\"Path to the note file (relative to notebook root)\"},"
    "\"operation\":{\"type\":\"string\",\"description\":\"What to do with the note\","
    "\"enum\":[\"append\",\"prepend\",\"replace_section\",\"replace_frontmatter\",\"set\","
    "\"str_replace\",\"undo\"]},"
    "\"content\":{\"type\":\"string\","
    "\"description\":\"Markdown; YAML for replace_frontmatter\"},"
    "\"section\":{\"type\":\"string\","
    "\"description\":\"Heading (or its anchor), for replace_section, append, prepend\"},"
    "\"oldStr\":{\"type\":\"string\",\"description\":\"Text to replace, for str_replace\"},"
    "\"newStr\":{\"type\":\"string\",\"description\":\"Text instead of it\"},"
    "\"line\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991,"
    "\"description\":\"Line of the file, for replace_frontmatter: replace only this one\"},"
    "\"data\":{\"type\":\"object\",\"additionalProperties\":true,"
    "\"description\":\"Frontmatter fields, for set; null removes one\"},"
    "\"expectedRevision\":{\"type\":\"string\","
    "\"description\":\"Revision that the note must have\"}," NOTES_PARAM_NOTEBOOK "}}";

const char notes_edit_result[] =
    "{\"type\":\"object\",\"required\":[\"path\",\"added\",\"removed\"],\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"revision\":{\"type\":\"string\"},"
    "\"added\":{\"type\":\"integer\",\"description\":\"Lines\"},"
    "\"removed\":{\"type\":\"integer\",\"description\":\"Lines\"},"
    "\"undone\":{\"type\":\"string\",\"enum\":[\"edit\",\"creation\",\"move\"],"
    "\"description\":\"The change that was taken back; after that of a move the note is at "
    "'path' again\"},"
    "\"deleted\":{\"type\":\"boolean\","
    "\"description\":\"The note is gone: the change had made it\"}}}";

enum operation {
    APPEND = 0,
    PREPEND,
    REPLACE_SECTION,
    REPLACE_FRONTMATTER,
    SET,
    STR_REPLACE,
    UNDO
};

static const char *const operations[] = {
    "append", "prepend", "replace_section", "replace_frontmatter", "set", "str_replace", "undo",
};

#define OF(operation) (1U << (operation))
#define WITH_CONTENT (OF(APPEND) | OF(PREPEND) | OF(REPLACE_SECTION) | OF(REPLACE_FRONTMATTER))

/* The members, by the sets of operations that need or take them. */
static const struct edit_member {
    const char *name;
    unsigned need, take;
    const char *job;     /* of the member, in a refusal without it */
    const char *instead; /* in a refusal of it */
} members[] = {
    {"data", OF(SET), 0, "sets the fields in it", "; use 'set' for it"},
    {"content", WITH_CONTENT, 0, "writes it", ""},
    {"section", OF(REPLACE_SECTION), OF(APPEND) | OF(PREPEND), "wants a heading", ""},
    {"oldStr", OF(STR_REPLACE), 0, "replaces it", "; use 'str_replace' for it"},
    {"newStr", OF(STR_REPLACE), 0, "writes it (\"\" removes `oldStr`)", ""},
    {"line", 0, OF(REPLACE_FRONTMATTER), "", ""},
};

/* In call memory. Arguments are lent for the call, which outlives the tool's run. */
struct edit_job {
    const struct notes_notebook *notebook;
    struct ng_str path;
    enum operation operation;
    struct ng_str content, section;
    struct ng_str old_str, new_str;
    int64_t line; /* of the file; 0: none */
    const struct ng_value *data;
};

int notes_edit_draft(struct ng_call *call, struct ng_draft *next, struct ng_str old,
                     struct ng_str made)
{
    size_t head = 0;
    size_t tail = 0;
    notes_edit_place(old, made, &head, &tail);
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
    struct ng_str section = job->section;
    switch (job->operation) {
    case APPEND:
        if (section.data != NULL) {
            return notes_text_section(call, arena, bytes, section, NOTES_SECTION_APPEND,
                                      job->content, change);
        }
        return notes_text_append(arena, bytes, job->content, change);
    case PREPEND:
        if (section.data != NULL) {
            return notes_text_section(call, arena, bytes, section, NOTES_SECTION_PREPEND,
                                      job->content, change);
        }
        return notes_text_prepend(arena, bytes, job->content, change);
    case REPLACE_SECTION:
        return notes_text_section(call, arena, bytes, section, NOTES_SECTION_REPLACE,
                                  job->content, change);
    case REPLACE_FRONTMATTER:
        return notes_text_frontmatter(call, arena, bytes, job->line, job->content, change);
    case STR_REPLACE:
        return notes_text_replace(call, arena, job->path, bytes, job->old_str, job->new_str,
                                  change);
    case SET:
    case UNDO:
        break;
    }
    return set_fields(call, arena, job, bytes, change);
}

int notes_edit_reply(struct ng_call *call, const struct notes_edited *edited)
{
    char revision[NOTES_REVISION_SIZE];
    uint64_t added = 0;
    uint64_t removed = 0;
    if (notes_revision(edited->made, -1, revision) != NG_OK ||
        notes_edit_count(edited->old, edited->made, &added, &removed) != NG_OK) {
        return notes_fail_memory(call);
    }
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    if (writer == NULL) {
        return notes_fail_memory(call);
    }
    host->json_object(writer);
    host->json_name(writer, "path");
    host->json_string(writer, edited->path);
    if (!edited->deleted && !edited->folder) {
        host->json_name(writer, "revision");
        host->json_string(writer, str_or(edited->revision, ng_str_of(revision)));
    }
    host->json_name(writer, "added");
    host->json_int(writer, (int64_t)added);
    host->json_name(writer, "removed");
    host->json_int(writer, (int64_t)removed);
    if (edited->undone != NULL) {
        host->json_name(writer, "undone");
        host->json_string(writer, ng_str_of(edited->undone));
    }
    if (edited->deleted) {
        host->json_name(writer, "deleted");
        host->json_bool(writer, edited->deleted);
    }
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
        struct notes_edited edited = {.path = job->path, .old = bytes, .made = change.made};
        rc = notes_edit_reply(call, &edited);
    }
    arena_done(&arena);
    return rc;
}

/* Checks that all arguments of the operation are given, and none that it would ignore. */
static int check_members(struct ng_call *call, enum operation operation)
{
    for (size_t i = 0; i < NG_COUNT(members); i++) {
        const struct edit_member *member = &members[i];
        bool given = ng_has_arg(call, member->name);
        if (!given && (member->need & OF(operation)) != 0) {
            return ng_fail(call, NG_EINVAL, "`%s` is missing: operation '%s' %s.", member->name,
                           operations[operation], member->job);
        }
        if (given && ((member->need | member->take) & OF(operation)) == 0) {
            return ng_fail(call, NG_EINVAL, "`%s` has no meaning for operation '%s'%s.",
                           member->name, operations[operation], member->instead);
        }
    }
    return NG_OK;
}

static int check_text(struct ng_call *call, const char *name, struct ng_str text)
{
    if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
        return ng_fail(call, NG_EINVAL, "`%s` holds NUL characters; notes are text.", name);
    }
    return NG_OK;
}

static int check_args(struct ng_call *call, struct edit_job *job)
{
    struct ng_str operation = ng_arg_text(call, "operation");
    for (size_t i = 0; i < NG_COUNT(operations); i++) {
        if (str_is(operation, operations[i])) {
            job->operation = (enum operation)i;
        }
    }
    int rc = check_members(call, job->operation);
    if (rc != NG_OK) {
        return rc;
    }
    job->content = ng_arg_text(call, "content");
    job->line = ng_arg_int(call, "line", 0);
    job->section = ng_arg_text(call, "section");
    job->data = ng_arg(call, "data");
    job->old_str = ng_arg_text(call, "oldStr");
    job->new_str = ng_arg_text(call, "newStr");
    if (job->operation == STR_REPLACE && job->old_str.len == 0) {
        return ng_fail(call, NG_EINVAL,
                       "`oldStr` is empty: give the text that `newStr` replaces.");
    }
    rc = check_text(call, "content", job->content);
    if (rc == NG_OK) {
        rc = check_text(call, "newStr", job->new_str);
    }
    return rc == NG_OK ? notes_data_check(call, job->data) : rc;
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
    if (rc == NG_OK && job->operation == UNDO) {
        return notes_edit_undo(notebook, call, ng_arg_text(call, "path"));
    }
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
