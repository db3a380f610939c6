/* SPDX-License-Identifier: MIT */
/* tags.c - the tool that counts the tags of a notebook. */
#include "answer/answer.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "read.h"

const char notes_tags_summary[] =
    "List the tags of the Markdown notes of an OpenNotes notebook with how many notes have "
    "each, most used first, before a note gets one. They are those of the frontmatter ('tag', "
    "'tags') and the #tags in the text together. A tag 'a/b' counts for 'a' too. 'prefix' "
    "keeps the tags that begin with it.";

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
static const char tags_sql[] =
    "WITH RECURSIVE up(note, tag, fold) AS ("
    " SELECT note, tag, fold FROM tags"
    " UNION"
    " SELECT note, rtrim(rtrim(tag, replace(tag, '/', '')), '/'),"
    " rtrim(rtrim(fold, replace(fold, '/', '')), '/')"
    " FROM up WHERE instr(fold, '/') > 0)"
    " SELECT min(tag), count(DISTINCT note) AS n, count(*) OVER () FROM up"
    " WHERE fold <> '' AND substr(fold, 1, length(?1)) = ?1"
    " GROUP BY fold ORDER BY n DESC, fold";

static int write_tags(struct notes_answer *answer, sqlite3_stmt *statement, int64_t *ret_total)
{
    int64_t row = 0;
    int step = SQLITE_DONE;
    notes_answer_list(answer, "tags");
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        *ret_total = sqlite3_column_int64(statement, 2);
        if (row++ < answer->offset) {
            continue;
        }
        if (!notes_answer_more(answer)) {
            break;
        }
        struct buf *item = notes_answer_item(answer);
        notes_json_begin(item, '{');
        notes_json_member(item, "tag", notes_column_text(statement, 0));
        notes_json_member_int(item, "count", sqlite3_column_int64(statement, 1));
        notes_json_end(item, '}');
        (void)notes_answer_add(answer);
    }
    notes_answer_list_end(answer);
    return step;
}

static int reply_tags(struct opennotes *self, const struct notes_notebook *notebook,
                      struct ng_call *call, sqlite3 *db, struct ng_str prefix)
{
    struct notes_budget budget = {(size_t)self->max_bytes, (size_t)self->max_lines};
    sqlite3_stmt *statement = NULL;
    struct notes_answer answer;
    int64_t total = 0;
    if (sqlite3_prepare_v2(db, tags_sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_text(statement, 1, prefix.data, (int)prefix.len, SQLITE_STATIC) !=
            SQLITE_OK) {
        int rc = notes_index_fail(notebook->index, call, db);
        (void)sqlite3_finalize(statement);
        return rc;
    }
    notes_answer_begin(&answer, call, &budget, ng_arg_int(call, "limit", NOTES_LIMIT_DEFAULT),
                       ng_arg_int(call, "offset", 0));
    int step = write_tags(&answer, statement, &total);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        int rc = notes_index_fail(notebook->index, call, db);
        (void)sqlite3_finalize(statement);
        notes_answer_drop(&answer);
        return rc;
    }
    (void)sqlite3_finalize(statement);
    return notes_answer_end(&answer, total);
}

int notes_tags_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct notes_notebook *notebook = NULL;
    struct arena arena;
    sqlite3 *db = NULL;
    (void)args;
    int rc = notes_notebook_pick(self, call, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    arena_init(&arena, 0);
    struct ng_str prefix = ng_arg_text(call, "prefix");
    if (prefix.len > 0 && prefix.data[0] == '#') {
        prefix = str_make(prefix.data + 1, prefix.len - 1);
    }
    prefix = notes_fold(&arena, prefix.data != NULL ? prefix : str_make("", 0));
    if (prefix.data != NULL) {
        rc = notes_index_begin(notebook->index, call, &db);
    } else {
        rc = notes_fail_memory(call);
    }
    if (rc == NG_OK) {
        rc = reply_tags(self, notebook, call, db, prefix);
        notes_index_end(notebook->index, db);
    }
    arena_done(&arena);
    notes_notebook_done(notebook);
    return rc;
}
