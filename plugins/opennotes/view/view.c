/* SPDX-License-Identifier: MIT */
/* view.c - the tool that lists views and runs one. */
#include "view.h"

#include "answer/summary.h"

const char notes_views_summary[] =
    "List the views of an OpenNotes notebook of Markdown notes, or run one: ready queries such "
    "as today or orphans, for questions that come again.\n\n"
    "Without 'view': all views with descriptions and parameters. "
    "With 'view': its results.\n\n"
    "Built-in views: today, recent, kanban, untagged, orphans, broken-links\n\n"
    "Example: { view: 'kanban', params: { status: 'todo,in-progress,done' } }";

const char notes_views_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"view\":{\"type\":\"string\","
    "\"description\":\"View name to execute. Omit to list all views.\"},"
    "\"params\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"},"
    "\"description\":\"Parameters for the view (e.g., {'status': "
    "'todo,done'})\"}," NOTES_PARAM_NOTEBOOK ","
    "\"limit\":{\"type\":\"integer\",\"default\":50,\"minimum\":1,\"maximum\":1000,"
    "\"description\":\"Maximum results when executing view (default: 50)\"},"
    "\"offset\":{\"type\":\"integer\",\"default\":0,\"minimum\":0,"
    "\"maximum\":9007199254740991,"
    "\"description\":\"Offset for pagination when executing view\"}}}";

const char notes_views_result[] =
    "{\"type\":\"object\",\"required\":[\"notebook\",\"pagination\"],\"properties\":{"
    "\"views\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\","
    "\"origin\"],\"properties\":{\"name\":{\"type\":\"string\"},\"origin\":{\"type\":"
    "\"string\","
    "\"enum\":[\"built-in\",\"notebook\",\"global\"]},\"description\":{\"type\":\"string\"},"
    "\"parameters\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\","
    "\"type\",\"required\"],\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"type\":{\"type\":\"string\"},\"required\":{\"type\":\"boolean\"},"
    "\"default\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"}}}},"
    "\"truncated\":{\"type\":\"boolean\"}}}},"
    "\"view\":{\"type\":\"object\",\"required\":[\"name\",\"description\"],\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"}}},"
    "\"results\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"pagination\":" NOTES_SCHEMA_PAGINATION ",\"notebook\":" NOTES_SCHEMA_NOTEBOOK ","
    "\"leftOut\":" NOTES_SCHEMA_LEFT_OUT ",\"_guidance\":{\"type\":\"string\"}}}";

static int list_views(struct notes_view *view)
{
    notes_answer_list(view->answer, "views");
    return notes_view_list(view);
}

static int run_view(struct notes_view *view)
{
    const struct ng_host *host = view->call->host;
    struct buf *json = &view->answer->json;
    int rc = notes_view_find(view);
    if (rc != NG_OK) {
        return rc;
    }
    rc = notes_view_read_params(view);
    if (rc != NG_OK) {
        return rc;
    }
    rc = notes_notebook_begin(view->notebook, view->call);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str description =
        host->json_text(host->json_get(view->definition, "description"));
    notes_json_member_begin(json, "view", '{');
    notes_json_member(json, "name", view->name);
    notes_json_member(json, "description",
                      notes_json_cut(description, NOTES_VIEW_VALUE_MAX, SIZE_MAX));
    notes_json_end(json, '}');
    notes_answer_list(view->answer, "results");
    if (view->origin == NOTES_VIEW_BUILTIN) {
        return notes_view_run_builtin(view);
    }
    return notes_view_run_query(view);
}

int notes_view_add_all(struct notes_view *view, sqlite3_stmt *statement)
{
    struct notes_summary summary;
    int rc = notes_summary_open(&summary, view->notebook->db, false);
    if (rc == SQLITE_OK) {
        rc = notes_summary_rows(&summary, statement, view->answer);
    }
    int failed = rc == SQLITE_OK ? NG_OK : notes_notebook_fail(view->notebook, view->call);
    notes_summary_done(&summary);
    (void)sqlite3_finalize(statement);
    return failed;
}

int notes_view_leave_out(struct notes_view *view, sqlite3_stmt *statement)
{
    int rc = notes_left_out_rows(&view->left_out, view->notebook->db, statement);
    (void)sqlite3_finalize(statement);
    notes_left_out_reserve(&view->left_out, view->answer);
    return rc == SQLITE_OK ? NG_OK : notes_notebook_fail(view->notebook, view->call);
}

int notes_views_check(struct ng_call *call)
{
    if (ng_has_arg(call, "params") && !ng_has_arg(call, "view")) {
        return ng_fail(call, NG_EINVAL, "`params` has no meaning without `view`.");
    }
    return NG_OK;
}

int notes_views_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct notes_answer answer;
    struct notes_view view = {
        .notebook = notebook,
        .call = call,
        .arena = arena,
        .answer = &answer,
        .name = ng_arg_text(call, "view"),
        .now_ms = call->host->now_ms(),
    };
    notes_answer_begin(&answer, call, &notebook->self->budget,
                       ng_arg_int(call, "limit", NOTES_LIMIT_DEFAULT),
                       ng_arg_int(call, "offset", 0));
    notes_notebook_write(notebook, &answer.json);
    int rc = view.name.data == NULL ? list_views(&view) : run_view(&view);
    notes_answer_list_end(&answer);
    notes_left_out_end(&view.left_out, &answer);
    return notes_answer_finish(&answer, rc);
}
