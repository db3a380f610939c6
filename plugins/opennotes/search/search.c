/* SPDX-License-Identifier: MIT */
/* search.c - the tool that searches a notebook: by text, typo-tolerant, by filters, by SQL. */
#include "search.h"

#include "notebook/notebook.h"
#include "sql/sql.h"

#define EXECUTED_MAX 1000 /* bytes of a statement or condition that the answer repeats */
#define SHOWN_MAX ((size_t)4 * EXECUTED_MAX + 1024)

/* At most 1,024 characters: OpenAI refuses a request with a longer description. */
const char notes_search_summary[] =
    "Search the Markdown notes of an OpenNotes notebook, when the path of a note is not "
    "known:\n\n"
    "1. Text: 'query', a substring of titles, aliases and text: notes with all of "
    "it first, then those with any of its words\n"
    "2. Fuzzy: 'query' and 'fuzzy: true' for typo-tolerant search\n"
    "3. SQL: 'sql' (SQLite; one SELECT or WITH statement)\n"
    "4. Filters: 'filters' for AND/OR/NOT conditions, alone or with 'query'\n\n"
    "Filter fields: data.KEY (data.tag: frontmatter and #tags), path, title, links-to, "
    "linked-by; operators: = != < > <= >= ~ (contains)\n\n"
    "Example SQL: SELECT * FROM read_markdown('**/*.md') WHERE content LIKE '%TODO%' LIMIT 10\n"
    "Columns: file_path, title, content, metadata (JSON: metadata ->> 'status'), tags (JSON), "
    "created, modified, size, word_count. Tables of a note n: "
    "md_tasks(n.content): " NOTES_SQL_TASK_COLUMNS "; md_links: " NOTES_SQL_LINK_COLUMNS
    "; md_headings: " NOTES_SQL_HEADING_COLUMNS "\n\n"
    "Returns notes; with 'query' each has an 'excerpt' around the first hit and its "
    "'line' in the file ('startLine' of get with 'raw').";

#define CONDITIONS(name, what)                                                                 \
    "\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":100,"       \
    "\"description\":\"" what "\"}"

#define ALL_OF CONDITIONS("and", "AND conditions: field=value pairs (all must match)")
#define ANY_OF CONDITIONS("or", "OR conditions: field=value pairs (any must match)")
#define NONE_OF CONDITIONS("not", "NOT conditions: field=value pairs (exclusions)")

const char notes_search_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"query\":{\"type\":\"string\","
    "\"description\":\"Text to search for in note titles and content\"},"
    "\"sql\":{\"type\":\"string\",\"description\":\"Raw SQL query (SELECT/WITH only). "
    "Use read_markdown('**/*.md') to access notes. Times and date('now') are UTC; the day of "
    "opennotes_daily is date('now','localtime').\"},"
    "\"fuzzy\":{\"type\":\"boolean\",\"default\":false,"
    "\"description\":\"Enable fuzzy matching (typo-tolerant, ranked results)\"},"
    "\"filters\":{\"type\":\"object\",\"description\":\"Conditions on fields\","
    "\"additionalProperties\":false,\"properties\":{" ALL_OF "," ANY_OF "," NONE_OF
    "}}," NOTES_PARAM_NOTEBOOK "," NOTES_PARAM_LIMIT "," NOTES_PARAM_OFFSET "}}";

const char notes_search_result[] =
    "{\"type\":\"object\",\"required\":[\"results\",\"pagination\",\"query\"],\"properties\":{"
    "\"results\":{\"type\":\"array\",\"items\":{\"type\":\"object\"},"
    "\"description\":\"Note summaries (path, title, tags, created, modified; line and excerpt "
    "of the first hit); rows of an SQL query as objects\"},"
    "\"pagination\":" NOTES_SCHEMA_PAGINATION ","
    "\"query\":{\"type\":\"object\",\"required\":[\"type\",\"executed\"],\"properties\":{"
    "\"type\":{\"type\":\"string\",\"enum\":[\"text\",\"fuzzy\",\"sql\",\"boolean\"]},"
    "\"executed\":{\"type\":\"string\"}}},\"leftOut\":" NOTES_SCHEMA_LEFT_OUT
    ",\"_guidance\":{\"type\":\"string\"}}}";

int notes_search_take(struct notes_search *search, int64_t note)
{
    struct notes_answer *answer = &search->answer;
    struct ng_call *call = search->call;
    if (search->left_out != NULL) {
        return notes_left_out_add(search->left_out, search->db, note);
    }
    if (search->finding != NULL) {
        return notes_search_found(search, note);
    }
    if (answer->rows % 1024 == 1023 && call->host->cancelled(call)) {
        return SQLITE_INTERRUPT;
    }
    if (!notes_answer_row(answer)) {
        return SQLITE_OK;
    }
    struct buf *item = notes_answer_item(answer);
    notes_json_begin(item, '{');
    int rc = notes_summary_write(&search->board->summary, note, item);
    if (rc == SQLITE_ROW || rc == SQLITE_OK) {
        rc = notes_search_hit(search, note, item);
    }
    notes_json_end(item, '}');
    if (rc == SQLITE_OK) {
        (void)notes_answer_add(answer);
    }
    return rc;
}

bool notes_search_has_board(const struct notes_search *search)
{
    return search->board->known && str_is(search->filter->sql, "1");
}

int notes_search_rows(struct notes_search *search, const struct buf *sql,
                      const struct ng_str params[3])
{
    sqlite3_stmt *statement = NULL;
    int next = 0;
    int rc = notes_prepare_buf(search->db, sql, &statement);
    for (int i = 0; i < 3 && rc == SQLITE_OK; i++) {
        rc = notes_bind_text(statement, i + 1, params[i]);
    }
    if (rc == SQLITE_OK) {
        rc = notes_filter_bind(search->filter, statement, 4, &next);
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = notes_search_take(search, sqlite3_column_int64(statement, 0));
    }
    (void)sqlite3_finalize(statement);
    return notes_done(rc);
}

/* ---- the executed query in the answer ---- */

/* The search of notes as a statement; `fuzzy`: with words that are similar. */
static void show_search(const struct notes_search *search, bool fuzzy, struct buf *out)
{
    struct ng_str query = utf8_cut(search->query, EXECUTED_MAX);
    struct ng_str shown = utf8_cut(search->filter->shown, EXECUTED_MAX);
    buf_add_c(out, "SELECT ...");
    notes_add_if(out, query.len > 0 || shown.len > 0, " WHERE ");
    if (query.len > 0) {
        buf_printf(out, "content %s '%.*s'", fuzzy ? "SIMILAR TO" : "CONTAINS", (int)query.len,
                   query.data);
        notes_add_if(out, shown.len > 0, " AND ");
    }
    buf_add_str(out, shown);
    buf_printf(out, " LIMIT %lld OFFSET %lld", (long long)search->answer.limit,
               (long long)search->answer.offset);
}

static void write_query(struct notes_search *search, const char *type, struct ng_str executed)
{
    struct buf *json = &search->answer.json;
    notes_json_member_begin(json, "query", '{');
    notes_json_member(json, "type", ng_str_of(type));
    notes_json_member(json, "executed", executed);
    notes_json_end(json, '}');
    notes_answer_list(&search->answer, "results");
}

/* ---- kinds of searches ---- */

int notes_search_fail(const struct notes_search *search, int rc)
{
    switch (rc) {
    case SQLITE_OK:
        return NG_OK;
    case SQLITE_NOMEM:
        return notes_fail_memory(search->call);
    case SQLITE_INTERRUPT:
        return ng_fail(search->call, NG_ECANCELLED,
                       "The call was cancelled while notes were searched.");
    default:
        return notes_notebook_fail(search->notebook, search->call);
    }
}

static int find_notes(struct notes_search *search, bool fuzzy)
{
    bool done = false;
    int rc = SQLITE_OK;
    if (fuzzy) {
        rc = notes_search_fuzzy(search, &done);
    }
    if (rc == SQLITE_OK && !done) {
        rc = notes_search_text(search);
    }
    return rc;
}

/* The same search, of the notes that the filter leaves out because of their front matter. */
static int find_left_out(struct notes_search *search, bool fuzzy, struct notes_left_out *left)
{
    const struct notes_filter *filter = search->filter;
    struct notes_filter *other = NULL;
    int rc = notes_filter_left_out(search->call, search->db, filter, &other);
    if (rc == SQLITE_OK && other != NULL) {
        search->filter = other;
        search->left_out = left;
        rc = find_notes(search, fuzzy);
        search->left_out = NULL;
        search->filter = filter;
        notes_left_out_reserve(left, &search->answer);
    }
    return rc;
}

static int search_notes(struct notes_search *search, bool fuzzy)
{
    struct notes_left_out left = {.count = 0};
    struct buf shown;
    const char *type = fuzzy ? "fuzzy" : "text";
    if (search->query.len == 0 && search->filter->values != NULL) {
        type = "boolean";
    }
    buf_init(&shown, SHOWN_MAX);
    show_search(search, fuzzy, &shown);
    write_query(search, type, notes_buf_str(&shown));
    if (shown.rc != NG_OK) {
        search->answer.json.rc = shown.rc;
    }
    buf_done(&shown);
    int rc = notes_board_open(search);
    if (rc == SQLITE_OK) {
        rc = find_left_out(search, fuzzy, &left);
    }
    if (rc == SQLITE_OK) {
        rc = find_notes(search, fuzzy);
    }
    notes_answer_list_end(&search->answer);
    notes_left_out_end(&left, &search->answer);
    return notes_search_fail(search, rc);
}

static int search_sql(struct notes_search *search, struct opennotes *self, struct ng_str text)
{
    struct notes_left_out left = {.count = 0};
    const struct notes_sql sql = {
        .text = text, .timeout_ms = self->query_timeout_ms, .left_out = &left};
    write_query(search, "sql", utf8_cut(text, EXECUTED_MAX));
    int rc =
        notes_sql_run(search->call, search->db, &sql, &search->answer, &search->answer.rows);
    notes_answer_list_end(&search->answer);
    notes_left_out_end(&left, &search->answer);
    return rc;
}

/* ---- */

static bool is_fuzzy(struct ng_call *call)
{
    return call->host->json_type(ng_arg(call, "fuzzy")) == NG_TYPE_TRUE;
}

int notes_search_check(struct ng_call *call)
{
    struct notes_filter *filter = NULL;
    struct ng_str sql = ng_arg_text(call, "sql");
    struct ng_str query = ng_arg_text(call, "query");
    bool fuzzy = is_fuzzy(call);
    if (sql.data != NULL && (query.data != NULL || ng_has_arg(call, "filters") || fuzzy)) {
        call->host->hint(call, "Give `sql` alone, or `query` and `filters` together");
        return ng_fail(call, NG_EINVAL,
                       "`sql` cannot be combined with `query`, `fuzzy` or `filters`.");
    }
    if (fuzzy && query.data == NULL) {
        return ng_fail(call, NG_EINVAL, "`fuzzy` needs a `query`.");
    }
    if (query.len > NOTES_QUERY_MAX) {
        return ng_fail(call, NG_EINVAL, "`query` has %zu bytes, it may have %d.", query.len,
                       NOTES_QUERY_MAX);
    }
    return notes_filter_compile(call, ng_arg(call, "filters"), NG_EINVAL, &filter);
}

int notes_search_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct notes_filter *filter = NULL;
    struct notes_search search = {.call = call, .arena = arena, .notebook = notebook};
    struct ng_str sql = ng_arg_text(call, "sql");
    int rc = notes_filter_compile(call, ng_arg(call, "filters"), NG_EINVAL, &filter);
    if (rc != NG_OK) {
        return rc;
    }
    search.filter = filter;
    search.query = ng_arg_text(call, "query");
    search.folded = notes_fold(arena, notes_present(search.query));
    rc = notes_memory(call, search.folded.data != NULL);
    if (rc == NG_OK) {
        rc = notes_notebook_begin(notebook, call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    search.db = notebook->db;
    notes_answer_begin(&search.answer, call, &notebook->self->budget,
                       ng_arg_int(call, "limit", NOTES_LIMIT_DEFAULT),
                       ng_arg_int(call, "offset", 0));
    rc = sql.data != NULL ? search_sql(&search, notebook->self, sql)
                          : search_notes(&search, is_fuzzy(call));
    return notes_answer_finish(&search.answer, rc);
}
