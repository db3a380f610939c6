/* SPDX-License-Identifier: MIT */
/* view_builtin.c - the built-in views. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"
#include "index/link_sql.h"
#include "text/codes.h"
#include "tree/attachments.h"
#include "tree/tree.h"
#include "view.h"

#define RECENT_MAX "20"
#define KANBAN_ROWS_MAX 1000000

/* ---- today, recent, untagged */

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
        notes_view_prepare(view, "SELECT id FROM notes WHERE (created >= ?1 AND created < ?2)"
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
    sqlite3_stmt *statement = notes_view_prepare(view, sql);
    if (statement == NULL) {
        return NG_EINTERNAL;
    }
    return notes_view_add_all(view, statement);
}

static int run_recent(struct notes_view *view)
{
    return run_sql(view, "SELECT id FROM notes ORDER BY modified DESC, path LIMIT " RECENT_MAX);
}

static int run_untagged(struct notes_view *view)
{
    return run_sql(view, "SELECT id FROM notes n WHERE NOT EXISTS"
                         " (SELECT 1 FROM tags t WHERE t.note = n.id)"
                         " ORDER BY created DESC, path");
}

/* ---- kanban */

struct card {
    int64_t note;
    size_t column; /* place of its status in the parameter */
    struct ng_str status, priority;
    int kind; /* of the priority: 0 number, 1 word, 2 none */
    double number;
    int64_t modified;
    struct ng_str path;
};

static int compare_cards(const void *a, const void *b)
{
    const struct card *left = a;
    const struct card *right = b;
    if (left->column != right->column) {
        return (left->column > right->column) - (left->column < right->column);
    }
    if (left->kind != right->kind) {
        return (left->kind > right->kind) - (left->kind < right->kind);
    }
    if (left->kind == 0 && (left->number < right->number || left->number > right->number)) {
        return (left->number > right->number) - (left->number < right->number);
    }
    int order = 0;
    if (left->kind == 1) {
        order = str_compare(left->priority, right->priority);
    }
    if (order != 0) {
        return order;
    }
    if (left->modified != right->modified) {
        return (left->modified < right->modified) - (left->modified > right->modified);
    }
    return str_compare(left->path, right->path);
}

/* The column of a status, ignoring case; SIZE_MAX: none. */
static size_t column_of(struct notes_view *view, struct ng_str status)
{
    struct ng_str rest = notes_view_param(view, "status");
    struct ng_str fold = notes_fold(view->arena, notes_trim(status));
    struct ng_str item;
    for (size_t column = 0; notes_view_next(&rest, &item); column++) {
        if (str_equal(notes_fold(view->arena, notes_nfc(view->arena, item)), fold)) {
            return column;
        }
    }
    return SIZE_MAX;
}

static int read_card(struct notes_view *view, sqlite3_stmt *row, struct card *card)
{
    *card = (struct card){.note = sqlite3_column_int64(row, 0)};
    card->column = column_of(view, notes_column_text(row, 1));
    card->status = arena_copy(view->arena, notes_column_text(row, 1));
    card->priority = arena_copy(view->arena, notes_column_text(row, 2));
    card->path = arena_copy(view->arena, notes_column_text(row, 5));
    if (sqlite3_column_type(row, 3) != SQLITE_NULL) {
        card->kind = 0;
    } else if (sqlite3_column_type(row, 2) != SQLITE_NULL) {
        card->kind = 1;
    } else {
        card->kind = 2;
    }
    card->number = sqlite3_column_double(row, 3);
    card->modified = sqlite3_column_int64(row, 4);
    return notes_memory(view->call, card->path.data != NULL &&
                                        (card->priority.data != NULL || card->kind != 1));
}

static const char kanban_sql[] =
    "SELECT n.id, s.text, p.text, p.number, n.modified, n.path FROM notes n"
    " JOIN fields s ON s.note = n.id AND s.key = 'status' AND s.text IS NOT NULL"
    " LEFT JOIN fields p ON p.rowid = (SELECT min(q.rowid) FROM fields q"
    " WHERE q.note = n.id AND q.key = 'priority')"
    " ORDER BY n.id, s.rowid";

/* A note with several statuses is in the first column that it has. */
static int read_cards(struct notes_view *view, struct card **ret_cards, size_t *ret_count)
{
    sqlite3_stmt *row = notes_view_prepare(view, kanban_sql);
    struct card *cards = NULL;
    size_t count = 0;
    size_t room = 0;
    int rc = NG_EINTERNAL;
    if (row != NULL) {
        rc = NG_OK;
    }
    while (rc == NG_OK && sqlite3_step(row) == SQLITE_ROW) {
        struct card card;
        rc = read_card(view, row, &card);
        if (rc != NG_OK || card.column == SIZE_MAX) {
            continue;
        }
        if (count > 0 && cards[count - 1].note == card.note) {
            if (card.column < cards[count - 1].column) {
                cards[count - 1] = card;
            }
            continue;
        }
        if (array_reserve((void **)&cards, &room, count + 1, sizeof(*cards), KANBAN_ROWS_MAX) !=
            NG_OK) {
            rc = notes_fail_memory(view->call);
            break;
        }
        cards[count++] = card;
    }
    (void)sqlite3_finalize(row);
    *ret_cards = cards;
    *ret_count = count;
    return rc;
}

static int run_kanban(struct notes_view *view)
{
    struct card *cards = NULL;
    size_t count = 0;
    int rc = read_cards(view, &cards, &count);
    if (rc == NG_OK && count > 0) {
        qsort(cards, count, sizeof(*cards), compare_cards);
    }
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        struct notes_view_extra extras[] = {
            {.name = "status", .text = cards[i].status},
            {.name = "priority",
             .text = cards[i].kind == 2 ? str_make(NULL, 0) : cards[i].priority,
             .json = cards[i].kind == 0},
        };
        rc = notes_view_add(view, cards[i].note, extras, NG_COUNT(extras));
    }
    free(cards);
    return rc;
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
    if (str_is(definition, "no-incoming")) {
        return run_sql(view, NO_INCOMING ORDER);
    }
    if (str_is(definition, "no-links")) {
        return run_sql(view, NO_INCOMING NO_OUTGOING ORDER);
    }
    if (str_is(definition, "isolated")) {
        return run_sql(view, NO_INCOMING NO_OUTGOING NO_TAGS ORDER);
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

static void add_broken(struct notes_view *view, sqlite3_stmt *row)
{
    int64_t number = view->total++;
    if (number < view->answer->offset || !notes_answer_more(view->answer)) {
        return;
    }
    struct buf *item = notes_answer_item(view->answer);
    notes_json_begin(item, '{');
    notes_json_member(item, "path", notes_column_text(row, 0));
    notes_json_member_int(item, "line", sqlite3_column_int64(row, 1));
    notes_json_member(item, "target", notes_column_text(row, 2));
    notes_json_member(item, "text", notes_column_text(row, 3));
    notes_json_end(item, '}');
    (void)notes_answer_add(view->answer);
}

static int run_broken_links(struct notes_view *view)
{
    int root = notes_index_root(view->notebook->index);
    sqlite3_stmt *row = notes_view_prepare(
        view, NOTES_RESOLVED
        "SELECT s.path, l.line, l.target, l.text, l.key, l.kind = 'wiki' FROM links l"
        " JOIN notes s ON s.id = l.note JOIN resolved r ON " NOTES_IS_RESOLVED
        " WHERE r.id IS NULL ORDER BY s.path, l.line, l.rowid");
    if (row == NULL) {
        return NG_EINTERNAL;
    }
    struct notes_attachments files = {.read = false};
    int step = SQLITE_DONE;
    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        if (!leads_elsewhere(&files, root, sqlite3_column_int(row, 5) != 0,
                             notes_column_text(row, 4))) {
            add_broken(view, row);
        }
    }
    int rc = NG_OK;
    if (step != SQLITE_DONE) {
        rc = notes_index_fail(view->notebook->index, view->call, view->db);
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
    } views[] = {
        {"today", run_today},     {"recent", run_recent},
        {"kanban", run_kanban},   {"untagged", run_untagged},
        {"orphans", run_orphans}, {"broken-links", run_broken_links},
    };
    for (size_t i = 0; i < NG_COUNT(views); i++) {
        if (str_is(view->name, views[i].name)) {
            return views[i].run(view);
        }
    }
    return ng_fail(view->call, NG_EINTERNAL, "The view is not built in.");
}
