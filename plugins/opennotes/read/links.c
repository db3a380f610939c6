/* SPDX-License-Identifier: MIT */
/* links.c - the tool for the links of a note: incoming, outgoing, and mentions without a link.
 */
#include "index/link_sql.h"
#include "read.h"

#include <string.h>

#include "answer/summary.h"
#include "index/index.h"
#include "notebook/notebook.h"

#define NAMES_MAX 20
/* Names with fewer letters are too common to be mentions. */
#define NAME_CHARS_MIN 3
#define CONTEXT_BYTES 240
/* Scripts from this character on have no blanks between words. */
#define CJK_FIRST 0x2e80

const char notes_links_summary[] =
    "Get how a Markdown note of an OpenNotes notebook is linked, to find what belongs to "
    "it.\n\n"
    "- 'incoming': links in other notes that lead to it, with the line around each\n"
    "- 'outgoing': its own links; 'resolved' is the note that one leads to\n"
    "- 'unlinked': lines of other notes that name it (title, alias or file name) without a "
    "link\n"
    "'kind' chooses one of them (default: all). The lists are paged together, in this order.";

const char notes_links_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\"],"
    "\"properties\":{"
    "\"path\":{\"type\":\"string\","
    "\"description\":\"Path to the note file (relative to notebook root)\"},"
    "\"kind\":{\"type\":\"string\",\"default\":\"all\",\"description\":\"Which links\","
    "\"enum\":[\"incoming\",\"outgoing\",\"unlinked\",\"all\"]}," NOTES_PARAM_NOTEBOOK
    "," NOTES_PARAM_LIMIT "," NOTES_PARAM_OFFSET "}}";

#define MENTION                                                                                \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"path\",\"line\","      \
    "\"context\"],\"properties\":{\"path\":{\"type\":\"string\"},"                             \
    "\"line\":{\"type\":\"integer\"},\"context\":{\"type\":\"string\"},"                       \
    "\"truncated\":{\"type\":\"boolean\"}}}}"

const char notes_links_result[] =
    "{\"type\":\"object\",\"required\":[\"path\",\"pagination\"],\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"incoming\":" MENTION ",\"unlinked\":" MENTION ","
    "\"outgoing\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"line\","
    "\"target\",\"text\"],\"properties\":{\"line\":{\"type\":\"integer\"},"
    "\"target\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"},"
    "\"resolved\":{\"type\":\"string\"},\"truncated\":{\"type\":\"boolean\"}}}},"
    "\"pagination\":" NOTES_SCHEMA_PAGINATION ",\"_guidance\":{\"type\":\"string\"}}}";

static const char incoming_sql[] =
    "SELECT s.path AS path, l.line AS line, l.context AS context FROM links l JOIN notes s ON "
    "s.id = l.note"
    " WHERE l.key IN (SELECT key FROM names WHERE note = ?1) AND l.note <> ?1"
    " AND " NOTES_LINK_TARGET("m.id") " = ?1 ORDER BY s.path, l.line, l.rowid";

static const char outgoing_sql[] =
    "SELECT l.line AS line, l.target AS target, l.text AS text, " NOTES_LINK_TARGET(
        "m.path") " AS resolved FROM links l WHERE l.note = ?1 ORDER BY l.line, l.rowid";

static const char linked_sql[] =
    "SELECT l.line FROM links l WHERE l.note = ?2 AND " NOTES_LINK_TARGET("m.id") " = ?1";

static const char names_sql[] =
    "SELECT DISTINCT key FROM names WHERE note = ?1 AND kind IN ('file', 'title', 'alias')";

/* State of one call. */
struct links {
    struct ng_call *call;
    const struct notes_notebook *notebook;
    struct arena *arena;
    struct notes_answer answer;
    int64_t note;
    struct ng_str names[NAMES_MAX];
    size_t name_count;
};

static sqlite3_stmt *prepare(const struct links *links, const char *sql)
{
    sqlite3_stmt *statement = notes_notebook_prepare(links->notebook, links->call, sql);
    if (statement != NULL) {
        (void)sqlite3_bind_int64(statement, 1, links->note);
    }
    return statement;
}

static int fail_step(const struct links *links, sqlite3_stmt *statement, int step)
{
    int rc = NG_OK;
    if (step != SQLITE_DONE) {
        rc = notes_notebook_fail(links->notebook, links->call);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

/* A list of the rows of a statement. */
static int list_rows(struct links *links, const char *name, const char *sql)
{
    sqlite3_stmt *statement = prepare(links, sql);
    int step = SQLITE_ERROR;
    notes_answer_list(&links->answer, name);
    while (statement != NULL && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        if (notes_answer_row(&links->answer)) {
            notes_answer_columns(&links->answer, statement, sqlite3_column_count(statement));
        }
    }
    notes_answer_list_end(&links->answer);
    return fail_step(links, statement, step);
}

/* ---- mentions without a link */

static bool is_cjk(int32_t c)
{
    return c >= CJK_FIRST;
}

/* Long enough to search for. */
static bool is_name(struct ng_str name)
{
    size_t count = 0;
    for (size_t at = 0; at < name.len; count++) {
        if (is_cjk(notes_next(name, &at)) && count > 0) {
            return true;
        }
    }
    return count >= NAME_CHARS_MIN;
}

static int read_names(struct links *links)
{
    sqlite3_stmt *statement = prepare(links, names_sql);
    int step = SQLITE_ERROR;
    while (statement != NULL && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        struct ng_str name = arena_copy(links->arena, notes_column_text(statement, 0));
        if (links->name_count < NAMES_MAX && name.data != NULL && is_name(name)) {
            links->names[links->name_count++] = name;
        }
    }
    return fail_step(links, statement, step);
}

/* Is the name at `at` a whole word? */
static bool stands_alone(struct ng_str line, size_t at, struct ng_str name)
{
    size_t zero = 0;
    size_t end = at + name.len;
    int32_t first = notes_next(name, &zero);
    int32_t last = notes_char_before(name, name.len);
    bool begins = at == 0 || is_cjk(first) || !notes_is_word(first) ||
                  !notes_is_word(notes_char_before(line, at));
    return begins && (end == line.len || is_cjk(last) || !notes_is_word(last) ||
                      !notes_is_word(notes_next(line, &end)));
}

static bool is_mentioned(const struct links *links, struct ng_str line)
{
    for (size_t i = 0; i < links->name_count; i++) {
        struct ng_str name = links->names[i];
        for (size_t at = str_find(line, name, 0); at != SIZE_MAX;
             at = str_find(line, name, at + name.len)) {
            if (stands_alone(line, at, name)) {
                return true;
            }
        }
    }
    return false;
}

/* Does the note `from` link to ours in this line? */
static bool is_linked(sqlite3_stmt *linked, int64_t from, int64_t line)
{
    bool found = false;
    (void)sqlite3_reset(linked);
    (void)sqlite3_bind_int64(linked, 2, from);
    while (!found && sqlite3_step(linked) == SQLITE_ROW) {
        found = sqlite3_column_int64(linked, 0) == line;
    }
    return found;
}

/* The lines of one note. Folding keeps line ends, so both texts have the same lines. */
static void scan_note(struct links *links, sqlite3_stmt *linked, sqlite3_stmt *row)
{
    struct ng_str path = notes_column_text(row, 1);
    struct ng_str content = notes_column_text(row, 2);
    struct ng_str folded = notes_column_text(row, 3);
    size_t at = 0;
    size_t shown = 0;
    for (int64_t line = sqlite3_column_int64(row, 4) + 1;
         at < folded.len && shown < content.len; line++) {
        struct ng_str text = notes_line(folded, at, &at);
        struct ng_str context = notes_line(content, shown, &shown);
        if (is_mentioned(links, text) &&
            !is_linked(linked, sqlite3_column_int64(row, 0), line) &&
            notes_answer_row(&links->answer)) {
            struct buf *item = notes_answer_item(&links->answer);
            notes_json_begin(item, '{');
            notes_json_member(item, "path", path);
            notes_json_member_int(item, "line", line);
            notes_json_member(item, "context", utf8_cut(notes_trim(context), CONTEXT_BYTES));
            notes_json_end(item, '}');
            (void)notes_answer_add(&links->answer);
        }
    }
}

/* Candidates come from the trigrams; for short names, which have none, from all texts. */
static sqlite3_stmt *prepare_mentions(struct links *links)
{
    struct buf sql;
    struct buf match;
    bool grams = true;
    buf_init(&sql, 16384);
    buf_init(&match, 1048576);
    buf_add_c(&sql, "SELECT n.id, n.path, b.content, b.folded, n.body_line FROM notes n"
                    " JOIN bodies b ON b.note = n.id WHERE n.id <> ?1 AND ");
    for (size_t i = 0; i < links->name_count; i++) {
        struct ng_str name = notes_index_grams(links->arena, links->names[i]);
        buf_add_c(&match, i > 0 ? " OR (" : "(");
        buf_add_str(&match, name);
        buf_add_char(&match, ')');
        grams = grams && name.len > 0;
    }
    if (grams) {
        buf_add_c(&sql, "n.id IN (SELECT rowid FROM grams WHERE grams MATCH ?2)");
    } else {
        buf_add_char(&sql, '(');
        for (size_t i = 0; i < links->name_count; i++) {
            buf_printf(&sql, "%sinstr(b.folded, ?%zu) > 0", i > 0 ? " OR " : "", i + 2);
        }
        buf_add_char(&sql, ')');
    }
    buf_add_c(&sql, " ORDER BY n.path");
    buf_add_char(&sql, '\0');
    sqlite3_stmt *statement = NULL;
    if (sql.rc == NG_OK && match.rc == NG_OK) {
        statement = prepare(links, sql.data);
    }
    for (size_t i = 0; statement != NULL && i < (grams ? 1 : links->name_count); i++) {
        struct ng_str text;
        if (grams) {
            text = notes_buf_str(&match);
        } else {
            text = links->names[i];
        }
        if (sqlite3_bind_text(statement, (int)i + 2, text.data, (int)text.len,
                              SQLITE_TRANSIENT) != SQLITE_OK) {
            (void)sqlite3_finalize(statement);
            statement = NULL;
        }
    }
    buf_done(&sql);
    buf_done(&match);
    return statement;
}

static int list_unlinked(struct links *links)
{
    int rc = read_names(links);
    notes_answer_list(&links->answer, "unlinked");
    if (rc == NG_OK && links->name_count > 0) {
        sqlite3_stmt *linked = prepare(links, linked_sql);
        sqlite3_stmt *statement = prepare_mentions(links);
        int step = SQLITE_ERROR;
        if (linked != NULL && statement != NULL) {
            step = SQLITE_ROW;
        }
        while (step == SQLITE_ROW && !links->call->host->cancelled(links->call) &&
               (step = sqlite3_step(statement)) == SQLITE_ROW) {
            scan_note(links, linked, statement);
        }
        bool cancelled = step == SQLITE_ROW;
        rc = fail_step(links, statement, cancelled ? SQLITE_DONE : step);
        (void)sqlite3_finalize(linked);
        if (cancelled) {
            rc = ng_fail(links->call, NG_ECANCELLED, "The call was cancelled.");
        }
    }
    notes_answer_list_end(&links->answer);
    return rc;
}

/* ---- */

int notes_links_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct links links = {.call = call, .notebook = notebook, .arena = arena};
    struct ng_str kind = ng_arg_text(call, "kind");
    struct notes_location note;
    bool all = kind.data == NULL || str_is(kind, "all");
    int rc = notes_notebook_begin(notebook, call);
    if (rc == NG_OK) {
        rc = notes_index_find(notebook->index, call, notebook->db, ng_arg_text(call, "path"),
                              &note);
    }
    if (rc != NG_OK) {
        return rc;
    }
    links.note = note.id;
    notes_answer_begin(&links.answer, call, &notebook->self->budget,
                       ng_arg_int(call, "limit", NOTES_LIMIT_DEFAULT),
                       ng_arg_int(call, "offset", 0));
    notes_json_member(&links.answer.json, "path", note.path);
    notes_answer_reserve(&links.answer,
                         sizeof("\"incoming\":[],\"outgoing\":[],\"unlinked\":[]"));
    if (all || str_is(kind, "incoming")) {
        rc = list_rows(&links, "incoming", incoming_sql);
    }
    if (rc == NG_OK && (all || str_is(kind, "outgoing"))) {
        rc = list_rows(&links, "outgoing", outgoing_sql);
    }
    if (rc == NG_OK && (all || str_is(kind, "unlinked"))) {
        rc = list_unlinked(&links);
    }
    return notes_answer_finish(&links.answer, rc);
}
