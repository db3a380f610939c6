/* SPDX-License-Identifier: MIT */
/* tags.c - the tool that counts the tags of a notebook. */
#include "answer/answer.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "read.h"

const char on_tags_summary[] =
    "List the tags of the Markdown notes of an OpenNotes notebook with how many notes have "
    "each, most used first, before a note gets one. They are those of the frontmatter ('tag', "
    "'tags') and the #tags in the text together. A tag 'a/b' counts for 'a' too. 'prefix' "
    "keeps the tags that begin with it.";

const char on_tags_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"prefix\":{\"type\":\"string\","
    "\"description\":\"Only tags that begin with this\"}," ON_PARAM_NOTEBOOK "," ON_PARAM_LIMIT
    "," ON_PARAM_OFFSET "}}";

const char on_tags_result[] =
    "{\"type\":\"object\",\"required\":[\"tags\",\"pagination\"],\"properties\":{"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"required\":[\"tag\",\"count\"],\"properties\":{\"tag\":{\"type\":\"string\"},"
    "\"count\":{\"type\":\"integer\"},\"truncated\":{\"type\":\"boolean\"}}}},"
    "\"pagination\":" ON_SCHEMA_PAGINATION ",\"_guidance\":{\"type\":\"string\"}}}";

/* rtrim(t, what t has beside slashes) ends behind the last slash: the tag above. */
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

static int write_tags(struct on_answer *answer, sqlite3_stmt *statement, int64_t *ret_total)
{
    int64_t row = 0;
    int step = SQLITE_DONE;
    on_answer_list(answer, "tags");
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        *ret_total = sqlite3_column_int64(statement, 2);
        if (row++ < answer->offset) {
            continue;
        }
        if (!on_answer_more(answer)) {
            break;
        }
        struct on_buf *item = on_answer_item(answer);
        on_json_begin(item, '{');
        on_json_name_c(item, "tag");
        on_json_text(item, on_column(statement, 0));
        on_json_name_c(item, "count");
        on_json_int(item, sqlite3_column_int64(statement, 1));
        on_json_end(item, '}');
        (void)on_answer_add(answer);
    }
    on_answer_list_end(answer);
    return step;
}

static int reply_tags(struct opennotes *self, const struct on_notebook *notebook,
                      struct ng_call *call, sqlite3 *db, struct ng_str prefix)
{
    struct on_budget budget = {(size_t)self->max_bytes, (size_t)self->max_lines};
    sqlite3_stmt *statement = NULL;
    struct on_answer answer;
    int64_t total = 0;
    if (sqlite3_prepare_v2(db, tags_sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_text(statement, 1, prefix.data, (int)prefix.len, SQLITE_STATIC) !=
            SQLITE_OK) {
        int rc = on_index_fail(notebook->index, call, db);
        (void)sqlite3_finalize(statement);
        return rc;
    }
    on_answer_begin(&answer, call, &budget, ng_arg_int(call, "limit", ON_LIMIT_DEFAULT),
                    ng_arg_int(call, "offset", 0));
    int step = write_tags(&answer, statement, &total);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        int rc = on_index_fail(notebook->index, call, db);
        (void)sqlite3_finalize(statement);
        on_answer_drop(&answer);
        return rc;
    }
    (void)sqlite3_finalize(statement);
    return on_answer_end(&answer, total);
}

int on_tags_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct on_notebook *notebook = NULL;
    struct on_arena arena;
    sqlite3 *db = NULL;
    (void)args;
    int rc = on_notebook_pick(self, call, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    on_arena_init(&arena, 0);
    struct ng_str prefix = ng_arg_text(call, "prefix");
    if (prefix.len > 0 && prefix.data[0] == '#') {
        prefix = on_str(prefix.data + 1, prefix.len - 1);
    }
    prefix = on_fold(&arena, prefix.data != NULL ? prefix : on_str("", 0));
    rc =
        prefix.data != NULL ? on_index_begin(notebook->index, call, &db) : on_fail_memory(call);
    if (rc == NG_OK) {
        rc = reply_tags(self, notebook, call, db, prefix);
        on_index_end(notebook->index, db);
    }
    on_arena_done(&arena);
    on_notebook_done(notebook);
    return rc;
}
