/* SPDX-License-Identifier: MIT */
/* list.c - the tool that lists the notes of a notebook. */
#include "answer/answer.h"
#include "answer/summary.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "read.h"

const char notes_list_summary[] =
    "List the Markdown notes of an OpenNotes notebook (a folder of .md files) with "
    "metadata, to see what there is.\n\n"
    "Use 'sortBy' to order by: modified (default), created, title, or path.\n"
    "Use 'pattern' to filter: e.g., 'tasks/*.md' for only task notes.\n\n"
    "Returns note summaries with pagination. For full content, use opennotes_get.";

const char notes_list_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" NOTES_PARAM_NOTEBOOK
    ","
    "\"sortBy\":{\"type\":\"string\",\"enum\":[\"modified\",\"created\",\"title\",\"path\"],"
    "\"default\":\"modified\",\"description\":\"Sort field (default: modified)\"},"
    "\"sortOrder\":{\"type\":\"string\",\"enum\":[\"asc\",\"desc\"],"
    "\"description\":\"Sort order (default: desc for dates, asc for text)\"}," NOTES_PARAM_LIMIT
    "," NOTES_PARAM_OFFSET ","
    "\"pattern\":{\"type\":\"string\",\"default\":\"**/*.md\","
    "\"description\":\"Glob pattern to filter paths (default: **/*.md)\"}}}";

const char notes_list_result[] =
    "{\"type\":\"object\",\"required\":[\"notes\",\"notebook\",\"pagination\"],\"properties\":{"
    "\"notes\":{\"type\":\"array\",\"items\":" NOTES_SCHEMA_SUMMARY "},"
    "\"notebook\":" NOTES_SCHEMA_NOTEBOOK ",\"pagination\":" NOTES_SCHEMA_PAGINATION ","
    "\"_guidance\":{\"type\":\"string\"}}}";

#define PATTERN_MAX 1000 /* bytes */

struct note_list {
    const struct notes_notebook *notebook;
    struct ng_call *call;
    sqlite3 *db;
    struct ng_str pattern; /* NFC; {NULL, 0}: all */
    int64_t offset;
    int64_t total;
    struct notes_answer answer;
};

static const char *order_of(struct ng_call *call)
{
    struct ng_str by = ng_arg_text(call, "sortBy");
    struct ng_str order = ng_arg_text(call, "sortOrder");
    bool text = str_is(by, "title") || str_is(by, "path");
    bool down = order.data != NULL ? str_is(order, "desc") : !text;
    if (str_is(by, "title")) {
        if (down) {
            return "title_fold DESC, path";
        }
        return "title_fold, path";
    }
    if (str_is(by, "path")) {
        if (down) {
            return "path DESC";
        }
        return "path";
    }
    if (str_is(by, "created")) {
        if (down) {
            return "created DESC, path";
        }
        return "created, path";
    }
    if (down) {
        return "modified DESC, path";
    }
    return "modified, path";
}

static bool matches(const struct note_list *list, struct ng_str path)
{
    return list->pattern.data == NULL || notes_glob(list->pattern, path);
}

/* All matches are counted; those of the page are written. */
static int write_notes(struct note_list *list)
{
    struct notes_answer *answer = &list->answer;
    struct notes_summary summary;
    sqlite3_stmt *rows = NULL;
    struct ng_str sql = list->call->host->format(
        list->call, "SELECT id, path FROM notes ORDER BY %s", order_of(list->call));
    int rc = notes_summary_open(&summary, list->db);
    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(list->db, sql.data, (int)sql.len, &rows, NULL);
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (!matches(list, notes_column_text(rows, 1)) || list->total++ < list->offset ||
            !notes_answer_more(answer)) {
            continue;
        }
        struct buf *item = notes_answer_item(answer);
        notes_json_begin(item, '{');
        rc = notes_summary_write(&summary, sqlite3_column_int64(rows, 0), item);
        notes_json_end(item, '}');
        (void)notes_answer_add(answer);
    }
    int failed = rc == SQLITE_DONE
                     ? NG_OK
                     : notes_index_fail(list->notebook->index, list->call, list->db);
    (void)sqlite3_finalize(rows);
    notes_summary_done(&summary);
    return failed;
}

static int reply(struct note_list *list, struct opennotes *self, int64_t limit)
{
    struct notes_budget budget = {(size_t)self->max_bytes, (size_t)self->max_lines};
    notes_answer_begin(&list->answer, list->call, &budget, limit, list->offset);
    notes_notebook_write(list->notebook, &list->answer.json);
    notes_answer_list(&list->answer, "notes");
    int rc = write_notes(list);
    if (rc != NG_OK) {
        notes_answer_drop(&list->answer);
        return rc;
    }
    notes_answer_list_end(&list->answer);
    return notes_answer_end(&list->answer, list->total);
}

int notes_list_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct note_list list = {.call = call, .offset = ng_arg_int(call, "offset", 0)};
    struct notes_notebook *notebook = NULL;
    struct arena arena;
    struct ng_str pattern = ng_arg_text(call, "pattern");
    (void)args;
    if (pattern.len > PATTERN_MAX) {
        return ng_fail(call, NG_EINVAL, "`pattern` has %zu bytes, it may have %d.", pattern.len,
                       PATTERN_MAX);
    }
    if (notes_glob_is_wide(pattern)) {
        return ng_fail(call, NG_EINVAL,
                       "`pattern` stands for more than %d patterns; it has too "
                       "many braces.",
                       NOTES_GLOB_WAYS_MAX);
    }
    if (pattern.len > 0 && notes_glob_leaves(pattern)) {
        return notes_index_fail_traversal(call, pattern);
    }
    int rc = notes_notebook_pick(user, call, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    arena_init(&arena, 0);
    if (pattern.data != NULL && !str_is(pattern, "**/*.md")) {
        list.pattern = notes_nfc(&arena, pattern);
    }
    list.notebook = notebook;
    rc = notes_index_begin(notebook->index, call, &list.db);
    if (rc == NG_OK) {
        rc = reply(&list, user, ng_arg_int(call, "limit", NOTES_LIMIT_DEFAULT));
        notes_index_end(notebook->index, list.db);
    }
    notes_notebook_done(notebook);
    arena_done(&arena);
    return rc;
}
