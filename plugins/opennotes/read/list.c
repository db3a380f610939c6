/* SPDX-License-Identifier: MIT */
/* list.c - the tool that lists the notes of a notebook. */
#include "answer/answer.h"
#include "answer/summary.h"
#include "filter/filter.h"
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

static int write_notes(const struct notes_notebook *notebook, struct ng_call *call,
                       struct ng_str pattern, struct notes_answer *answer)
{
    struct notes_summary summary;
    sqlite3_stmt *rows = NULL;
    struct ng_str sql = call->host->format(
        call, "SELECT id FROM notes WHERE ?1 IS NULL OR on_glob(?1, path) ORDER BY %s",
        order_of(call));
    int rc = notes_summary_open(&summary, notebook->db, true);
    if (rc == SQLITE_OK) {
        rc = notes_filter_functions(notebook->db);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(notebook->db, sql.data, (int)sql.len, &rows, NULL);
    }
    if (rc == SQLITE_OK) {
        (void)notes_bind_text(rows, 1, pattern);
        rc = notes_summary_rows(&summary, rows, answer);
    }
    int failed = rc == SQLITE_OK ? NG_OK : notes_notebook_fail(notebook, call);
    (void)sqlite3_finalize(rows);
    notes_summary_done(&summary);
    return failed;
}

int notes_list_check(struct ng_call *call)
{
    struct ng_str pattern = ng_arg_text(call, "pattern");
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
    if (notes_glob_leaves(pattern)) {
        return notes_index_fail_traversal(call, pattern);
    }
    return NG_OK;
}

int notes_list_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct ng_str pattern = ng_arg_text(call, "pattern");
    struct notes_answer answer;
    if (str_is(pattern, "**/*.md")) {
        pattern = str_make(NULL, 0); /* all notes */
    }
    int rc = notes_notebook_begin(notebook, call);
    if (rc != NG_OK) {
        return rc;
    }
    notes_answer_begin(&answer, call, &notebook->self->budget,
                       ng_arg_int(call, "limit", NOTES_LIMIT_DEFAULT),
                       ng_arg_int(call, "offset", 0));
    notes_notebook_write(notebook, &answer.json);
    notes_answer_list(&answer, "notes");
    rc = write_notes(notebook, call, notes_nfc(arena, pattern), &answer);
    notes_answer_list_end(&answer);
    return notes_answer_finish(&answer, rc);
}
