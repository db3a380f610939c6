/* SPDX-License-Identifier: MIT */
/* daily.c - the tool for the note of a day: creates it if it is missing, appends to it. */
#include <string.h>

#include "answer/answer.h"
#include "edit.h"
#include "index/index.h"
#include "note/revision.h"
#include "notebook/notebook.h"
#include "text/codes.h"
#include "write.h"

#define TEMPLATE "daily"
#define NOON_MS ((int64_t)12 * 3600 * 1000)
#define PATH_BYTES_MAX 4096

const char notes_daily_summary[] =
    "Get the Markdown note of a day in an OpenNotes notebook, for a journal or to-do list: "
    "made "
    "where it is missing (from the template 'daily', if there is one), and returned.\n\n"
    "- 'date': the day, YYYY-MM-DD (default: today)\n"
    "- 'content': markdown that becomes the last lines of the note, or of 'section', which is "
    "made if it is missing";

const char notes_daily_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"date\":{\"type\":\"string\",\"description\":\"Day, YYYY-MM-DD (default: today)\"},"
    "\"content\":{\"type\":\"string\","
    "\"description\":\"Markdown to append\"},"
    "\"section\":{\"type\":\"string\","
    "\"description\":\"Heading to append below\"}," NOTES_PARAM_NOTEBOOK "}}";

const char notes_daily_result[] =
    "{\"type\":\"object\",\"required\":[\"note\",\"created\",\"notebook\"],\"properties\":{"
    "\"note\":{\"type\":\"object\",\"required\":[\"path\",\"content\",\"revision\"],"
    "\"properties\":{\"path\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"content\":{\"type\":\"string\"},\"frontmatter\":{\"type\":\"object\"},"
    "\"frontmatterError\":{\"type\":\"string\"},\"wordCount\":{\"type\":\"integer\"},"
    "\"size\":{\"type\":\"integer\"},\"revision\":{\"type\":\"string\"},"
    "\"truncated\":{\"type\":\"boolean\"}}},"
    "\"created\":{\"type\":\"boolean\",\"description\":\"The note was made by this call\"},"
    "\"notebook\":" NOTES_SCHEMA_NOTEBOOK ",\"_guidance\":{\"type\":\"string\"}}}";

/* In call memory. */
struct daily_job {
    const struct notes_notebook *notebook;
    struct ng_str path, content;
    struct ng_str section; /* {NULL, 0}: none */
    struct ng_str fresh;   /* content of a new note */
};

/* ---- the answer */

static void write_note(struct notes_answer *answer, const struct daily_job *job,
                       const struct notes_note *note, struct ng_str bytes, const char *revision)
{
    struct buf *json = &answer->json;
    notes_json_member_begin(json, "note", '{');
    notes_json_member(json, "path", job->path);
    notes_json_member(json, "title", notes_note_title(note, job->path));
    struct buf *frontmatter = notes_answer_item(answer);
    notes_value_json(frontmatter, note->frontmatter);
    if (frontmatter->rc == NG_EINTERNAL) {
        json->rc = NG_EINTERNAL;
    }
    bool whole = frontmatter->rc == NG_OK && frontmatter->len < notes_answer_room(answer) / 2;
    if (whole) {
        notes_json_name_c(json, "frontmatter");
        notes_json_raw(json, notes_buf_str(frontmatter));
    }
    if (note->frontmatter_error.data != NULL) {
        notes_json_member(json, "frontmatterError", note->frontmatter_error);
    }
    notes_json_member_int(json, "wordCount", (int64_t)note->words);
    notes_json_member_int(json, "size", (int64_t)bytes.len);
    notes_json_member(json, "revision", ng_str_of(revision));
    struct ng_str content =
        notes_json_cut(note->body, notes_answer_room(answer), answer->lines_max);
    notes_json_member(json, "content", content);
    whole = whole && content.len == note->body.len;
    if (!whole) {
        notes_json_member_bool(json, "truncated", true);
    }
    notes_json_end(json, '}');
    if (!whole) {
        notes_json_member(json, "_guidance",
                          ng_str_of("The note is longer than one answer. Get it by its path "
                                    "to read on."));
    }
}

static int reply(struct ng_call *call, const struct daily_job *job, struct arena *arena,
                 struct ng_str bytes, bool created)
{
    struct notes_answer answer;
    struct notes_note note;
    char revision[NOTES_REVISION_SIZE];
    if (notes_note_parse(arena, bytes, &note) != NG_OK ||
        notes_revision(bytes, -1, revision) != NG_OK) {
        return notes_fail_memory(call);
    }
    notes_answer_begin(&answer, call, &job->notebook->self->budget, 1, 0);
    notes_json_member_bool(&answer.json, "created", created);
    notes_notebook_write(job->notebook, &answer.json);
    write_note(&answer, job, &note, bytes, revision);
    return notes_answer_end_plain(&answer);
}

/* ---- */

static int append(struct ng_call *call, struct arena *arena, const struct daily_job *job,
                  struct ng_str *text)
{
    struct notes_change change = {.level = 0};
    int rc = job->section.data == NULL
                 ? notes_text_append(arena, *text, job->content, &change)
                 : notes_text_section_or_new(call, arena, *text, job->section, job->content,
                                             &change);
    *text = change.made;
    return notes_edit_check(call, arena, job->path, rc, &change);
}

static int daily_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                    void *user)
{
    const struct daily_job *job = user;
    struct arena arena;
    bool there = present->type == NG_FILE_REGULAR;
    int rc = notes_write_inside(job->notebook, call, present, job->path);
    if (rc == NG_OK && present->type != NG_FILE_NONE && !there) {
        rc = ng_fail(call, NOTES_EPATH, "Invalid note path '%.*s': it is not a regular file.",
                     (int)job->path.len, job->path.data);
    }
    struct ng_str old = str_make("", 0);
    struct ng_str made = job->fresh;
    if (there) {
        old = notes_present(present->data);
        made = old;
    }
    if (rc == NG_OK && job->content.len > 0) {
        rc = notes_edit_text(call, job->path, old);
    }
    if (rc != NG_OK) {
        return rc;
    }
    arena_init(&arena, 0);
    if (job->content.len > 0) {
        rc = append(call, &arena, job, &made);
    }
    if (rc == NG_OK && there) {
        rc = notes_edit_draft(call, next, old, made);
    } else if (rc == NG_OK) {
        rc = call->host->draft_text(next, &made, 1);
    }
    if (rc == NG_OK) {
        rc = reply(call, job, &arena, made, !there);
    }
    arena_done(&arena);
    return rc;
}

/* Noon of the day, so that a change of the clock in any zone does not change the day. */
static int day_of(struct ng_call *call, char day[RFC3339_DAY_SIZE], int64_t *ret_ms)
{
    struct ng_str given = ng_arg_text(call, "date");
    if (given.data == NULL) {
        *ret_ms = call->host->now_ms();
        notes_day_write(*ret_ms, day);
        return NG_OK;
    }
    if (!rfc3339_is_day(given) || !notes_time_parse(given, ret_ms)) {
        return ng_fail(call, NG_EINVAL, "`date` is '%.*s'; write a day as YYYY-MM-DD.",
                       (int)utf8_cut(given, 40).len, given.data);
    }
    *ret_ms += NOON_MS;
    memcpy(day, given.data, given.len);
    day[given.len] = '\0';
    return NG_OK;
}

static int daily_path(const struct opennotes *self, struct ng_call *call, int64_t day_ms,
                      struct ng_str day, struct ng_str *ret_path)
{
    struct buf path;
    struct notes_vars vars = {.title = day, .slug = day, .now_ms = day_ms};
    buf_init(&path, PATH_BYTES_MAX);
    notes_template_fill(&path, ng_str_of(self->daily_path), &vars);
    struct ng_str made = notes_buf_str(&path);
    int rc = notes_memory(call, path.rc == NG_OK);
    if (rc == NG_OK) {
        rc = notes_write_path(call, made, ret_path);
    }
    buf_done(&path);
    return rc;
}

static int check_args(struct ng_call *call, struct daily_job *job)
{
    job->content = ng_arg_text(call, "content");
    job->section = ng_arg_text(call, "section");
    if (job->section.data != NULL && job->content.len == 0) {
        return ng_fail(call, NG_EINVAL,
                       "`section` has no meaning without `content`, which goes below it.");
    }
    return NG_OK;
}

int notes_daily_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct daily_job *job = ng_alloc(call, sizeof(*job));
    struct notes_value *none = arena_zalloc(arena, sizeof(*none));
    char day[RFC3339_DAY_SIZE] = "";
    int64_t day_ms = 0;
    bool exists = false;
    struct ng_str file;
    struct ng_str absolute;
    struct ng_str title;
    if (job == NULL || none == NULL) {
        return notes_fail_memory(call);
    }
    arena->max = NOTES_COMPOSE_MAX;
    none->type = NOTES_MAP;
    *job = (struct daily_job){.notebook = notebook};
    int rc = check_args(call, job);
    if (rc == NG_OK) {
        rc = day_of(call, day, &day_ms);
    }
    if (rc == NG_OK) {
        rc = daily_path(notebook->self, call, day_ms, ng_str_of(day), &job->path);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct notes_new_note note = {
        .path = job->path,
        .title = ng_str_of(day),
        .data = none,
        .now_ms = call->host->now_ms(),
        .day_ms = day_ms,
    };
    if (notes_template_known(notebook, call, ng_str_of(TEMPLATE))) {
        note.template_name = ng_str_of(TEMPLATE);
    }
    rc = notes_write_file(notebook, call, job->path, &file, &exists);
    if (rc == NG_OK) {
        rc = notes_write_place(notebook, call, file, &absolute);
    }
    if (rc == NG_OK) {
        rc = notes_compose(notebook, call, arena, &note, &job->fresh, &title);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = absolute,
        .fn = daily_fn,
        .user = job,
        .parents = true,
        .max_bytes = NOTES_NOTE_EDIT_MAX,
        .collection = NOTES_COLLECTION,
    };
    return call->host->file_edit(call, &edit);
}
