/* SPDX-License-Identifier: MIT */
/* view_builtin.c - the built-in views. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer/summary.h"
#include "filter/filter.h"
#include "index/link_sql.h"
#include "text/codes.h"
#include "tree/attachments.h"
#include "tree/tree.h"
#include "view.h"

/* ---- today */

static int run_today(struct notes_view *view)
{
    char day[RFC3339_SIZE];
    char next[RFC3339_SIZE];
    int64_t from = 0;
    int64_t to = 0;
    if (!notes_view_time(ng_str_of("today"), view->now_ms, day) ||
        !notes_view_time(ng_str_of("tomorrow"), view->now_ms, next) ||
        !notes_time_parse(ng_str_of(day), &from) || !notes_time_parse(ng_str_of(next), &to)) {
        return ng_fail(view->call, NG_EINTERNAL, "The system's time is not known.");
    }
    sqlite3_stmt *statement =
        notes_notebook_prepare(view->notebook, view->call,
                               "SELECT id FROM notes WHERE (created >= ?1 AND created < ?2)"
                               " OR (modified >= ?1 AND modified < ?2)"
                               " ORDER BY modified DESC, path");
    if (statement == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(statement, 1, from);
    (void)sqlite3_bind_int64(statement, 2, to);
    return notes_view_add_all(view, statement);
}

static int run_sql(struct notes_view *view, const char *sql)
{
    sqlite3_stmt *statement = notes_notebook_prepare(view->notebook, view->call, sql);
    if (statement == NULL) {
        return NG_EINTERNAL;
    }
    return notes_view_add_all(view, statement);
}

/* ---- kanban */

/* ?1: the statuses wanted, folded, as a JSON array. A note with several statuses is in the
 * first column that it has. Numbers come before words, notes without priority last. */
static const char kanban_sql[] =
    "WITH wanted(fold, place) AS MATERIALIZED (SELECT value, min(key) FROM json_each(?1)"
    " GROUP BY value), cards AS (SELECT f.note AS note, f.text AS text, w.place AS place,"
    " row_number() OVER (PARTITION BY f.note ORDER BY w.place, f.rowid) AS number"
    " FROM fields f JOIN wanted w ON w.fold = on_fold(f.text)"
    " WHERE f.key = 'status' AND f.text IS NOT NULL)"
    " SELECT n.id, json_quote(c.text) AS status, CASE WHEN p.text IS NULL THEN NULL"
    " WHEN p.number IS NULL THEN json_quote(p.text) ELSE p.text END AS priority"
    " FROM cards c JOIN notes n ON n.id = c.note"
    " LEFT JOIN fields p ON p.rowid = (SELECT min(q.rowid) FROM fields q"
    " WHERE q.note = n.id AND q.key = 'priority') WHERE c.number = 1"
    " ORDER BY c.place, p.text IS NULL, p.number IS NULL, p.number,"
    " iif(p.number IS NULL, p.text, NULL), n.modified DESC, n.path";

static int run_kanban(struct notes_view *view)
{
    struct ng_str wanted = notes_view_list_json(view, notes_view_param(view, "status"), true);
    if (wanted.data == NULL) {
        return notes_fail_memory(view->call);
    }
    if (notes_filter_functions(view->notebook->db) != SQLITE_OK) {
        return notes_notebook_fail(view->notebook, view->call);
    }
    sqlite3_stmt *broken = notes_notebook_prepare(
        view->notebook, view->call,
        "SELECT id FROM notes WHERE front_error IS NOT NULL ORDER BY id");
    int rc = broken != NULL ? notes_view_leave_out(view, broken) : NG_EINTERNAL;
    if (rc != NG_OK) {
        return rc;
    }
    sqlite3_stmt *statement = notes_notebook_prepare(view->notebook, view->call, kanban_sql);
    if (statement == NULL) {
        return NG_EINTERNAL;
    }
    (void)notes_bind_text(statement, 1, wanted);
    return notes_view_add_all(view, statement);
}

/* ---- the graph */

#define INNER_LINKS                                                                            \
    " FROM links l JOIN resolved r ON " NOTES_IS_RESOLVED                                      \
    " WHERE r.id IS NOT NULL AND r.id <> l.note)"
#define NO_INCOMING                                                                            \
    NOTES_RESOLVED "SELECT n.id FROM notes n WHERE n.id NOT IN (SELECT r.id" INNER_LINKS
#define NO_OUTGOING " AND n.id NOT IN (SELECT l.note" INNER_LINKS
#define NO_TAGS " AND NOT EXISTS (SELECT 1 FROM tags t WHERE t.note = n.id)"
#define ORDER " ORDER BY created DESC, path"

static int run_orphans(struct notes_view *view)
{
    struct ng_str definition = notes_view_param(view, "definition");
    static const char *const definitions[][2] = {
        {"no-incoming", NO_INCOMING ORDER},
        {"no-links", NO_INCOMING NO_OUTGOING ORDER},
        {"isolated", NO_INCOMING NO_OUTGOING NO_TAGS ORDER},
    };
    for (size_t i = 0; i < NG_COUNT(definitions); i++) {
        if (str_is(definition, definitions[i][0])) {
            return run_sql(view, definitions[i][1]);
        }
    }
    return ng_fail(view->call, NOTES_EVIEWPARAMS,
                   "The view 'orphans': parameter 'definition' is 'no-incoming', 'no-links' or "
                   "'isolated', and not '%.*s'.",
                   (int)definition.len, definition.data);
}

/* Does a link that resolves to no note lead to another file or folder, or out of the notebook?
 */
static bool leads_elsewhere(struct notes_attachments *files, int root, bool wiki,
                            struct ng_str key)
{
    static const char *const endings[] = {".png",  ".jpg", ".jpeg", ".gif", ".svg",    ".webp",
                                          ".bmp",  ".pdf", ".mp3",  ".wav", ".ogg",    ".m4a",
                                          ".flac", ".mp4", ".webm", ".mov", ".canvas", ".base"};
    char path[4096];
    for (size_t i = 0; wiki && i < NG_COUNT(endings); i++) {
        if (str_ends(key, endings[i])) {
            return notes_attachments_have(files, root, key); /* they may be in any folder */
        }
    }
    if (str_is(key, "..") || str_begins(key, "../")) {
        return true;
    }
    if (wiki || key.len == 0 || key.len >= sizeof(path) || root < 0 ||
        memchr(key.data, '\0', key.len) != NULL) {
        return false;
    }
    memcpy(path, key.data, key.len);
    path[key.len] = '\0';
    int fd = notes_tree_open(root, path, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static int run_broken_links(struct notes_view *view)
{
    int root = notes_index_root(view->notebook->index);
    sqlite3_stmt *row = notes_notebook_prepare(
        view->notebook, view->call,
        NOTES_RESOLVED "SELECT s.path AS path, l.line AS line, l.target AS target, l.text AS "
                       "text, l.key, l.kind = 'wiki' FROM links l"
                       " JOIN notes s ON s.id = l.note JOIN resolved r ON " NOTES_IS_RESOLVED
                       " WHERE r.id IS NULL ORDER BY s.path, l.line, l.rowid");
    if (row == NULL) {
        return NG_EINTERNAL;
    }
    struct notes_attachments files = {.read = false};
    int step = SQLITE_DONE;
    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        if (!leads_elsewhere(&files, root, sqlite3_column_int(row, 5) != 0,
                             notes_column_text(row, 4)) &&
            notes_answer_row(view->answer)) {
            notes_answer_columns(view->answer, row, 4);
        }
    }
    int rc = NG_OK;
    if (step != SQLITE_DONE) {
        rc = notes_notebook_fail(view->notebook, view->call);
    }
    (void)sqlite3_finalize(row);
    notes_attachments_done(&files);
    return rc;
}

/* ---- */

int notes_view_run_builtin(struct notes_view *view)
{
    static const struct {
        const char *name;
        int (*run)(struct notes_view *view);
        const char *sql; /* if it has no function */
    } views[] = {
        {"today", run_today, NULL},
        {"recent", NULL, "SELECT id FROM notes ORDER BY modified DESC, path LIMIT 20"},
        {"kanban", run_kanban, NULL},
        {"untagged", NULL,
         "SELECT id FROM notes n WHERE NOT EXISTS"
         " (SELECT 1 FROM tags t WHERE t.note = n.id) ORDER BY created DESC, path"},
        {"orphans", run_orphans, NULL},
        {"broken-links", run_broken_links, NULL},
    };
    for (size_t i = 0; i < NG_COUNT(views); i++) {
        if (str_is(view->name, views[i].name)) {
            return views[i].run != NULL ? views[i].run(view) : run_sql(view, views[i].sql);
        }
    }
    return ng_fail(view->call, NG_EINTERNAL, "The view is not built in.");
}
