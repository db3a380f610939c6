/* SPDX-License-Identifier: MIT */
/* daily.c - the tool for the note of a day: made where it is missing, added to where it is
 * there. */
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

const char on_daily_summary[] =
    "Get the Markdown note of a day in an OpenNotes notebook, for a journal or to-do list: "
    "made "
    "where it is missing (from the template 'daily', if there is one), and returned.\n\n"
    "- 'date': the day, YYYY-MM-DD (default: today)\n"
    "- 'content': markdown that becomes the note's last lines";

const char on_daily_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"date\":{\"type\":\"string\",\"description\":\"Day, YYYY-MM-DD (default: today)\"},"
    "\"content\":{\"type\":\"string\","
    "\"description\":\"Markdown to append\"}," ON_PARAM_NOTEBOOK "}}";

const char on_daily_result[] =
    "{\"type\":\"object\",\"required\":[\"note\",\"created\",\"notebook\"],\"properties\":{"
    "\"note\":{\"type\":\"object\",\"required\":[\"path\",\"content\",\"revision\"],"
    "\"properties\":{\"path\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"content\":{\"type\":\"string\"},\"frontmatter\":{\"type\":\"object\"},"
    "\"frontmatterError\":{\"type\":\"string\"},\"wordCount\":{\"type\":\"integer\"},"
    "\"size\":{\"type\":\"integer\"},\"revision\":{\"type\":\"string\"},"
    "\"truncated\":{\"type\":\"boolean\"}}},"
    "\"created\":{\"type\":\"boolean\",\"description\":\"The note was made by this call\"},"
    "\"notebook\":" ON_SCHEMA_NOTEBOOK ",\"_guidance\":{\"type\":\"string\"}}}";

/* In call memory. */
struct daily_job {
    const struct opennotes *self;
    const struct on_notebook *notebook;
    struct ng_str path, content;
    struct ng_str fresh; /* the note as it is made where there is none */
};

/* ---- the answer */

static void write_note(struct on_answer *answer, const struct daily_job *job,
                       const struct on_note *note, struct ng_str bytes, const char *revision)
{
    struct on_buf *json = &answer->json;
    on_json_name_c(json, "note");
    on_json_begin(json, '{');
    on_json_name_c(json, "path");
    on_json_text(json, job->path);
    on_json_name_c(json, "title");
    on_json_text(json, on_note_title(note, job->path));
    struct on_buf *front = on_answer_item(answer);
    on_value_json(front, note->front);
    if (front->rc == NG_EINTERNAL) {
        json->rc = NG_EINTERNAL;
    }
    bool whole = front->rc == NG_OK && front->len < on_answer_room(answer) / 2;
    if (whole) {
        on_json_name_c(json, "frontmatter");
        on_json_raw(json, on_buf_str(front));
    }
    if (note->front_error.data != NULL) {
        on_json_name_c(json, "frontmatterError");
        on_json_text(json, note->front_error);
    }
    on_json_name_c(json, "wordCount");
    on_json_int(json, (int64_t)note->words);
    on_json_name_c(json, "size");
    on_json_int(json, (int64_t)bytes.len);
    on_json_name_c(json, "revision");
    on_json_text(json, ng_str_of(revision));
    struct ng_str content = on_json_cut(note->body, on_answer_room(answer), answer->lines_max);
    on_json_name_c(json, "content");
    on_json_text(json, content);
    whole = whole && content.len == note->body.len;
    if (!whole) {
        on_json_name_c(json, "truncated");
        on_json_bool(json, true);
    }
    on_json_end(json, '}');
    if (!whole) {
        on_json_name_c(json, "_guidance");
        on_json_text(json, ng_str_of("The note is longer than one answer. Get it by its path "
                                     "to read on."));
    }
}

static int reply(struct ng_call *call, const struct daily_job *job, struct on_arena *arena,
                 struct ng_str bytes, bool created)
{
    struct on_budget budget = {(size_t)job->self->max_bytes, (size_t)job->self->max_lines};
    struct on_answer answer;
    struct on_note note;
    char revision[ON_REVISION_SIZE];
    if (on_note_parse(arena, bytes, &note) != NG_OK ||
        on_revision(bytes, -1, revision) != NG_OK) {
        return on_fail_memory(call);
    }
    on_answer_begin(&answer, call, &budget, 1, 0);
    on_json_name_c(&answer.json, "created");
    on_json_bool(&answer.json, created);
    on_notebook_write(job->notebook, &answer.json);
    write_note(&answer, job, &note, bytes, revision);
    return on_answer_end_plain(&answer);
}

/* ---- */

static int append(struct ng_call *call, struct on_arena *arena, const struct daily_job *job,
                  struct ng_str *text)
{
    struct on_change change = {.level = 0};
    int rc = on_text_append(arena, *text, job->content, &change);
    if (rc != NG_OK) {
        return rc == NG_ETOOLARGE
                   ? ng_fail(call, NG_ETOOLARGE, "The note %.*s would be too large.",
                             (int)job->path.len, job->path.data)
                   : on_fail_memory(call);
    }
    *text = change.made;
    return on_edit_check(call, arena, job->path, &change);
}

static int daily_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                    void *user)
{
    const struct daily_job *job = user;
    struct on_arena arena;
    bool there = present->type == NG_FILE_REGULAR;
    int rc = on_write_inside(job->notebook, call, present, job->path);
    if (rc == NG_OK && present->type != NG_FILE_NONE && !there) {
        rc = ng_fail(call, ON_EPATH, "Invalid note path '%.*s': it is no regular file.",
                     (int)job->path.len, job->path.data);
    }
    struct ng_str old = there && present->data.data != NULL ? present->data : on_str("", 0);
    struct ng_str made = there ? old : job->fresh;
    rc = rc == NG_OK && job->content.len > 0 ? on_edit_text(call, job->path, old) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    on_arena_init(&arena, 0);
    if (job->content.len > 0) {
        rc = append(call, &arena, job, &made);
    }
    if (rc == NG_OK) {
        rc = there ? on_edit_draft(call, next, old, made)
                   : call->host->draft_text(next, &made, 1);
    }
    rc = rc == NG_OK ? reply(call, job, &arena, made, !there) : rc;
    on_arena_done(&arena);
    return rc;
}

/* Noon of the day, so that no zone's changes of the clock make it another. */
static int day_of(struct ng_call *call, char day[ON_DAY_SIZE], int64_t *ret_ms)
{
    struct ng_str given = ng_arg_text(call, "date");
    if (given.data == NULL) {
        *ret_ms = call->host->now_ms();
        on_day_write(*ret_ms, day);
        return NG_OK;
    }
    if (!on_day_valid(given) || !on_time_parse(given, ret_ms)) {
        return ng_fail(call, NG_EINVAL, "`date` is '%.*s'; write a day as YYYY-MM-DD.",
                       (int)on_utf8_cut(given, 40).len, given.data);
    }
    *ret_ms += NOON_MS;
    memcpy(day, given.data, given.len);
    day[given.len] = '\0';
    return NG_OK;
}

static int daily_path(const struct opennotes *self, struct ng_call *call, int64_t day_ms,
                      struct ng_str day, struct ng_str *ret_path)
{
    struct on_buf path;
    struct on_vars vars = {.title = day, .slug = day, .now_ms = day_ms};
    on_buf_init(&path, PATH_BYTES_MAX);
    on_template_fill(&path, ng_str_of(self->daily_path), &vars);
    struct ng_str made = on_buf_str(&path);
    int rc = path.rc == NG_OK ? on_write_path(call, made, ret_path) : on_fail_memory(call);
    if (rc == NG_OK && ret_path->data >= made.data && ret_path->data <= made.data + made.len) {
        /* It may be a part of what was given. */
        *ret_path = call->host->format(call, "%.*s", (int)ret_path->len, ret_path->data);
    }
    on_buf_done(&path);
    return rc;
}

/* The note of that day may be there in another form of Unicode: the file as it is on disk. */
static int daily_file(const struct on_notebook *notebook, struct ng_call *call,
                      struct ng_str path, struct ng_str *ret_file)
{
    sqlite3 *db = NULL;
    struct ng_str file = {NULL, 0};
    *ret_file = path;
    int rc = on_index_is_plain(path) ? NG_OK : on_index_begin(notebook->index, call, &db);
    if (rc != NG_OK || db == NULL) {
        return rc;
    }
    rc = on_index_file(notebook->index, call, db, path, &file);
    *ret_file = file.data != NULL ? file : path;
    on_index_end(notebook->index, db);
    return rc;
}

static int daily_note(const struct opennotes *self, struct on_notebook *notebook,
                      struct ng_call *call, struct on_arena *arena)
{
    struct daily_job *job = ng_alloc(call, sizeof(*job));
    struct on_value *none = on_arena_alloc(arena, sizeof(*none));
    char day[ON_DAY_SIZE];
    int64_t day_ms = 0;
    struct ng_str file;
    struct ng_str absolute;
    struct ng_str title;
    if (job == NULL || none == NULL) {
        return on_fail_memory(call);
    }
    none->type = ON_MAP;
    *job = (struct daily_job){.self = self, .notebook = notebook};
    job->content = ng_arg_text(call, "content");
    int rc = day_of(call, day, &day_ms);
    rc = rc == NG_OK ? daily_path(self, call, day_ms, ng_str_of(day), &job->path) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    bool has = on_template_known(notebook, call, ng_str_of(TEMPLATE));
    struct on_new_note note = {
        .path = job->path,
        .title = ng_str_of(day),
        .template_name = has ? ng_str_of(TEMPLATE) : on_str(NULL, 0),
        .data = none,
        .now_ms = call->host->now_ms(),
        .day_ms = day_ms,
    };
    rc = daily_file(notebook, call, job->path, &file);
    rc = rc == NG_OK ? on_write_place(notebook, call, file, &absolute) : rc;
    rc = rc == NG_OK ? on_compose(notebook, call, arena, &note, &job->fresh, &title) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = absolute,
        .fn = daily_fn,
        .user = job,
        .parents = true,
        .max_bytes = ON_NOTE_EDIT_MAX,
        .collection = ON_COLLECTION,
    };
    return call->host->file_edit(call, &edit);
}

int on_daily_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct on_notebook *notebook = NULL;
    struct on_arena arena;
    (void)args;
    int rc = on_notebook_pick(self, call, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    on_arena_init(&arena, ON_COMPOSE_MAX);
    rc = daily_note(self, notebook, call, &arena);
    on_arena_done(&arena);
    on_notebook_done(notebook);
    return rc;
}
