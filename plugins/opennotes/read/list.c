/* SPDX-License-Identifier: MIT */
/* list.c - the tool that lists the notes of a notebook. */
#include "answer/answer.h"
#include "answer/summary.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "read.h"

const char on_list_summary[] =
    "List the Markdown notes of an OpenNotes notebook (a folder of .md files) with "
    "metadata, to see what there is.\n\n"
    "Use 'sortBy' to order by: modified (default), created, title, or path.\n"
    "Use 'pattern' to filter: e.g., 'tasks/*.md' for only task notes.\n\n"
    "Returns note summaries with pagination. For full content, use opennotes_get.";

const char on_list_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" ON_PARAM_NOTEBOOK ","
    "\"sortBy\":{\"type\":\"string\",\"enum\":[\"modified\",\"created\",\"title\",\"path\"],"
    "\"default\":\"modified\",\"description\":\"Sort field (default: modified)\"},"
    "\"sortOrder\":{\"type\":\"string\",\"enum\":[\"asc\",\"desc\"],"
    "\"description\":\"Sort order (default: desc for dates, asc for text)\"}," ON_PARAM_LIMIT
    "," ON_PARAM_OFFSET ","
    "\"pattern\":{\"type\":\"string\",\"default\":\"**/*.md\","
    "\"description\":\"Glob pattern to filter paths (default: **/*.md)\"}}}";

const char on_list_result[] =
    "{\"type\":\"object\",\"required\":[\"notes\",\"notebook\",\"pagination\"],\"properties\":{"
    "\"notes\":{\"type\":\"array\",\"items\":" ON_SCHEMA_SUMMARY "},"
    "\"notebook\":" ON_SCHEMA_NOTEBOOK ",\"pagination\":" ON_SCHEMA_PAGINATION ","
    "\"_guidance\":{\"type\":\"string\"}}}";

#define PATTERN_MAX 1000 /* bytes */

struct listing {
    const struct on_notebook *notebook;
    struct ng_call *call;
    sqlite3 *db;
    struct ng_str pattern; /* NFC; {NULL, 0}: all */
    int64_t offset;
    int64_t total;
    struct on_answer answer;
};

static const char *order_of(struct ng_call *call)
{
    struct ng_str by = ng_arg_text(call, "sortBy");
    struct ng_str order = ng_arg_text(call, "sortOrder");
    bool text = on_is(by, "title") || on_is(by, "path");
    bool down = order.data != NULL ? on_is(order, "desc") : !text;
    if (on_is(by, "title")) {
        return down ? "title_fold DESC, path" : "title_fold, path";
    }
    if (on_is(by, "path")) {
        return down ? "path DESC" : "path";
    }
    if (on_is(by, "created")) {
        return down ? "created DESC, path" : "created, path";
    }
    return down ? "modified DESC, path" : "modified, path";
}

static bool matches(const struct listing *listing, struct ng_str path)
{
    return listing->pattern.data == NULL || on_glob(listing->pattern, path);
}

/* All matches are counted, those of the page are written. */
static int write_notes(struct listing *listing)
{
    struct on_answer *answer = &listing->answer;
    struct on_summary summary;
    sqlite3_stmt *rows = NULL;
    struct ng_str sql = listing->call->host->format(
        listing->call, "SELECT id, path FROM notes ORDER BY %s", order_of(listing->call));
    int rc = on_summary_open(&summary, listing->db);
    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(listing->db, sql.data, (int)sql.len, &rows, NULL);
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (!matches(listing, on_column(rows, 1)) || listing->total++ < listing->offset ||
            !on_answer_more(answer)) {
            continue;
        }
        struct on_buf *item = on_answer_item(answer);
        on_json_begin(item, '{');
        rc = on_summary_write(&summary, sqlite3_column_int64(rows, 0), item);
        on_json_end(item, '}');
        (void)on_answer_add(answer);
    }
    int failed = rc == SQLITE_DONE
                     ? NG_OK
                     : on_index_fail(listing->notebook->index, listing->call, listing->db);
    (void)sqlite3_finalize(rows);
    on_summary_done(&summary);
    return failed;
}

static int reply(struct listing *listing, struct opennotes *self, int64_t limit)
{
    struct on_budget budget = {(size_t)self->max_bytes, (size_t)self->max_lines};
    on_answer_begin(&listing->answer, listing->call, &budget, limit, listing->offset);
    on_notebook_write(listing->notebook, &listing->answer.json);
    on_answer_list(&listing->answer, "notes");
    int rc = write_notes(listing);
    if (rc != NG_OK) {
        on_answer_drop(&listing->answer);
        return rc;
    }
    on_answer_list_end(&listing->answer);
    return on_answer_end(&listing->answer, listing->total);
}

int on_list_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct listing listing = {.call = call, .offset = ng_arg_int(call, "offset", 0)};
    struct on_notebook *notebook = NULL;
    struct on_arena arena;
    struct ng_str pattern = ng_arg_text(call, "pattern");
    (void)args;
    if (pattern.len > PATTERN_MAX) {
        return ng_fail(call, NG_EINVAL, "`pattern` has %zu bytes, it may have %d.", pattern.len,
                       PATTERN_MAX);
    }
    if (on_glob_is_wide(pattern)) {
        return ng_fail(call, NG_EINVAL,
                       "`pattern` stands for more than %d patterns; it has too "
                       "many braces.",
                       ON_GLOB_WAYS_MAX);
    }
    if (pattern.len > 0 && on_glob_leaves(pattern)) {
        return on_index_fail_traversal(call, pattern);
    }
    int rc = on_notebook_pick(user, call, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    on_arena_init(&arena, 0);
    if (pattern.data != NULL && !on_is(pattern, "**/*.md")) {
        listing.pattern = on_nfc(&arena, pattern);
    }
    listing.notebook = notebook;
    rc = on_index_begin(notebook->index, call, &listing.db);
    if (rc == NG_OK) {
        rc = reply(&listing, user, ng_arg_int(call, "limit", ON_LIMIT_DEFAULT));
        on_index_end(notebook->index, listing.db);
    }
    on_notebook_done(notebook);
    on_arena_done(&arena);
    return rc;
}
