/* SPDX-License-Identifier: MIT */
/* tags.c - the tool that counts the tags of a notebook. */
#include "answer/summary.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "read.h"

const char notes_tags_summary[] =
    "List the tags of the Markdown notes of an OpenNotes notebook with how many notes have "
    "each, most used first, before a note gets one. They are those of the frontmatter ('tag', "
    "'tags') and the #tags in the text together. A tag 'a/b' counts for 'a' too.";

const char notes_tags_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"prefix\":{\"type\":\"string\","
    "\"description\":\"Only tags that begin with this\"}," NOTES_PARAM_NOTEBOOK
    "," NOTES_PARAM_LIMIT "," NOTES_PARAM_OFFSET "}}";

const char notes_tags_result[] =
    "{\"type\":\"object\",\"required\":[\"tags\",\"pagination\"],\"properties\":{"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"required\":[\"tag\",\"count\"],\"properties\":{\"tag\":{\"type\":\"string\"},"
    "\"count\":{\"type\":\"integer\"},\"truncated\":{\"type\":\"boolean\"}}}},"
    "\"pagination\":" NOTES_SCHEMA_PAGINATION ",\"_guidance\":{\"type\":\"string\"}}}";

/* rtrim(t, all characters of t except slashes) ends behind the last slash: the parent tag. */
static const char tags_sql[] = "WITH RECURSIVE up(note, tag, fold) AS ("
                               " SELECT note, tag, fold FROM tags"
                               " UNION"
                               " SELECT note, rtrim(rtrim(tag, replace(tag, '/', '')), '/'),"
                               " rtrim(rtrim(fold, replace(fold, '/', '')), '/')"
                               " FROM up WHERE instr(fold, '/') > 0)"
                               " SELECT min(tag) AS tag, count(DISTINCT note) AS count FROM up"
                               " WHERE fold <> '' AND substr(fold, 1, length(?1)) = ?1"
                               " GROUP BY fold ORDER BY count DESC, fold";

int notes_tags_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct ng_str prefix = notes_present(ng_arg_text(call, "prefix"));
    struct notes_answer answer;
    if (str_begins(prefix, "#")) {
        prefix = str_make(prefix.data + 1, prefix.len - 1);
    }
    prefix = notes_fold(arena, prefix);
    int rc = notes_memory(call, prefix.data != NULL);
    if (rc == NG_OK) {
        rc = notes_notebook_begin(notebook, call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    sqlite3_stmt *row = notes_notebook_prepare(notebook, call, tags_sql);
    if (row == NULL) {
        return NG_EINTERNAL;
    }
    (void)notes_bind_text(row, 1, prefix);
    notes_answer_begin(&answer, call, &notebook->self->budget,
                       ng_arg_int(call, "limit", NOTES_LIMIT_DEFAULT),
                       ng_arg_int(call, "offset", 0));
    notes_answer_list(&answer, "tags");
    int step = SQLITE_DONE;
    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        if (notes_answer_row(&answer)) {
            notes_answer_columns(&answer, row, 2);
        }
    }
    notes_answer_list_end(&answer);
    if (step != SQLITE_DONE) {
        rc = notes_notebook_fail(notebook, call);
    }
    (void)sqlite3_finalize(row);
    return notes_answer_finish(&answer, rc);
}
