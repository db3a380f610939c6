/* SPDX-License-Identifier: MIT */
/* create.c - the tool that creates a note and never overwrites one. */
#include "create.h"
#include "write.h"

#include <string.h>

#include "answer/answer.h"
#include "core/base/text/random.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "text/codes.h"

#define REPLY_BYTES_MAX 65536

const char notes_create_summary[] =
    "Create a new Markdown note (a .md file) in an OpenNotes notebook, for "
    "knowledge that people read and edit too.\n\n"
    "Required: 'title' - becomes the note's title in frontmatter\n\n"
    "Optional:\n"
    "- 'path': Directory within notebook (e.g., 'tasks/' creates in tasks folder), or the file "
    "itself where it ends in '.md'\n"
    "- 'template': Use a template of the notebook\n"
    "- 'content': Initial markdown body; with a template it comes behind it\n"
    "- 'data': Additional frontmatter fields (e.g., {\"tag\": \"meeting\", \"priority\": "
    "\"high\"})\n\n"
    "Returns the created note path. Fails with NOTE_EXISTS where there is one already.";

const char notes_create_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"title\"],"
    "\"properties\":{"
    "\"title\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,"
    "\"description\":\"Note title (required)\"},"
    "\"path\":{\"type\":\"string\","
    "\"description\":\"Directory path within notebook (default: root)\"},"
    "\"template\":{\"type\":\"string\","
    "\"description\":\"Template name to use (must exist in notebook)\"},"
    "\"content\":{\"type\":\"string\","
    "\"description\":\"Initial markdown content (after frontmatter)\"},"
    "\"data\":{\"type\":\"object\",\"additionalProperties\":{"
    "\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"},{\"type\":\"boolean\"},"
    "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]},"
    "\"description\":\"Frontmatter fields as key-value pairs\"}," NOTES_PARAM_NOTEBOOK "}}";

const char notes_create_result[] =
    "{\"type\":\"object\",\"required\":[\"created\",\"notebook\"],\"properties\":{"
    "\"created\":{\"type\":\"object\",\"required\":[\"path\",\"absolutePath\",\"title\"],"
    "\"properties\":{\"path\":{\"type\":\"string\"},\"absolutePath\":{\"type\":\"string\"},"
    "\"title\":{\"type\":\"string\"}}},"
    "\"notebook\":" NOTES_SCHEMA_NOTEBOOK "}}";

/* In call memory: the file service runs the function after the tool returned. */
struct create_job {
    const struct notes_notebook *notebook;
    struct ng_str path, absolute, title, bytes;
};

static int fail_exists(struct ng_call *call, struct ng_str path)
{
    (void)ng_fail(call, NOTES_EEXISTS, "Note already exists: %.*s", (int)path.len, path.data);
    call->host->hint(call, "Change it with the tool that edits notes, or choose another title "
                           "or path.");
    struct ng_writer *details = call->host->details(call);
    if (details != NULL) {
        call->host->json_object(details);
        call->host->json_name(details, "path");
        call->host->json_string(details, path);
        call->host->json_end(details);
    }
    return NOTES_EEXISTS;
}

static int create_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    const struct create_job *job = user;
    int rc = notes_write_inside(job->notebook, call, present, job->path);
    if (rc == NG_OK && present->type != NG_FILE_NONE) {
        rc = fail_exists(call, job->path);
    }
    if (rc == NG_OK) {
        rc = call->host->draft_text(next, &job->bytes, 1);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct buf json;
    buf_init(&json, REPLY_BYTES_MAX);
    notes_json_begin(&json, '{');
    notes_json_member_begin(&json, "created", '{');
    notes_json_member(&json, "path", job->path);
    notes_json_member(&json, "absolutePath", job->absolute);
    notes_json_member(&json, "title", job->title);
    notes_json_end(&json, '}');
    notes_notebook_write(job->notebook, &json);
    notes_json_end(&json, '}');
    rc = notes_answer_reply(call, &json);
    buf_done(&json);
    return rc;
}

/* ---- the path of the note */

/* A name for a title without letters: the time and a random number. */
static struct ng_str name_by_time(struct ng_call *call)
{
    char now[RFC3339_SIZE];
    uint32_t number = 0;
    if (!random_bytes(&number, sizeof(number))) {
        return str_make(NULL, 0);
    }
    notes_time_write_local(call->host->now_ms(), now);
    return call->host->format(call, "%.4s%.2s%.2s-%.2s%.2s%.2s-%08x", now, now + 5, now + 8,
                              now + 11, now + 14, now + 17, number);
}

/* The folder of `path` without slashes at its end; absent: the root. */
static struct ng_str folder_of(struct ng_str path)
{
    while (path.len > 0 && path.data[path.len - 1] == '/') {
        path.len--;
    }
    if (str_is(path, ".")) {
        path.len = 0;
    }
    return path;
}

static int note_path(struct ng_call *call, struct arena *arena, struct ng_str title,
                     struct ng_str *ret_path)
{
    struct ng_str given = ng_arg_text(call, "path");
    if (str_ends(given, ".md")) {
        return notes_write_path(call, given, ret_path);
    }
    if (str_begins(given, "/") || notes_find_char(given, 0, '\0') < given.len) {
        return notes_write_path(call, given, ret_path); /* fails with the reason */
    }
    struct ng_str slug = notes_slug(arena, title);
    if (slug.data == NULL) {
        return notes_fail_memory(call);
    }
    if (slug.len == 0) {
        slug = name_by_time(call);
        if (slug.data == NULL) {
            return ng_fail(call, NG_EINTERNAL, "No memory or no random number for a name.");
        }
    }
    struct ng_str folder = folder_of(given);
    if (folder.len > 0) {
        slug = call->host->format(call, "%.*s/%.*s", (int)folder.len, folder.data,
                                  (int)slug.len, slug.data);
    }
    struct ng_str path = call->host->format(call, "%.*s.md", (int)slug.len, slug.data);
    if (slug.data == NULL || path.data == NULL) {
        return notes_fail_memory(call);
    }
    return notes_write_path(call, path, ret_path);
}

/* ---- */

/* The arguments as a note; its path is found later. */
static int read_args(struct ng_call *call, struct arena *arena, struct notes_new_note *ret)
{
    const struct ng_value *data = ng_arg(call, "data");
    struct ng_str title = notes_trim(ng_arg_text(call, "title"));
    struct notes_value *fields = arena_zalloc(arena, sizeof(*fields));
    if (fields == NULL) {
        return notes_fail_memory(call);
    }
    fields->type = NOTES_MAP;
    if (title.len == 0) {
        return ng_fail(call, NG_EINVAL, "`title` is empty; give the note a title.");
    }
    if (memchr(title.data, '\0', title.len) != NULL) {
        return ng_fail(call, NG_EINVAL, "`title` holds NUL characters; notes are text.");
    }
    int rc = notes_data_check(call, data);
    if (rc != NG_OK) {
        return rc;
    }
    if (data != NULL) {
        fields = notes_value_from(arena, call, data, 0);
    }
    if (fields == NULL) {
        return notes_fail_memory(call);
    }
    *ret = (struct notes_new_note){
        .title = title,
        .template_name = ng_arg_text(call, "template"),
        .content = ng_arg_text(call, "content"),
        .data = fields,
        .now_ms = call->host->now_ms(),
    };
    ret->day_ms = ret->now_ms;
    return NG_OK;
}

int notes_create_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct notes_new_note note = {0};
    bool exists = false;
    struct ng_str title;
    struct ng_str file;
    struct create_job *job = ng_alloc(call, sizeof(*job));
    if (job == NULL) {
        return notes_fail_memory(call);
    }
    arena->max = NOTES_COMPOSE_MAX;
    int rc = read_args(call, arena, &note);
    if (rc == NG_OK) {
        job->notebook = notebook;
        rc = note_path(call, arena, note.title, &note.path);
    }
    if (rc == NG_OK) {
        job->path = note.path;
        rc = notes_write_file(notebook, call, note.path, &file, &exists);
    }
    if (rc == NG_OK && exists) {
        rc = fail_exists(call, note.path);
    }
    if (rc == NG_OK) {
        rc = notes_write_place(notebook, call, file, &job->absolute);
    }
    if (rc == NG_OK) {
        rc = notes_compose(notebook, call, arena, &note, &job->bytes, &title);
    }
    if (rc == NG_OK && memchr(job->bytes.data, '\0', job->bytes.len) != NULL) {
        rc = ng_fail(call, NG_EINVAL,
                     "`content`, `data` or the template hold NUL characters; notes are text.");
    }
    if (rc != NG_OK) {
        return rc;
    }
    job->title = call->host->format(call, "%.*s", (int)title.len, title.data);
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = job->absolute,
        .fn = create_fn,
        .user = job,
        .parents = true,
        .collection = NOTES_COLLECTION,
        .exists_code = NOTES_EEXISTS,
    };
    return call->host->file_edit(call, &edit);
}
