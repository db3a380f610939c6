/* SPDX-License-Identifier: MIT */
/* move_changes.c - finds the notes that a move changes: those with a link by a name that leads
 * elsewhere afterwards, those with links to files of a moved folder, and the moved ones. No
 * note is read for it. */
#include "move_changes.h"

#include <stdlib.h>
#include <string.h>

#include "index/index.h"
#include "index/index_link.h"

static const char names_sql[] =
    "SELECT DISTINCT key, kind <> 'path' FROM names WHERE note = ?1";

static const char links_sql[] =
    "SELECT note FROM links WHERE key = ?1 AND kind <> 'auto' AND (kind = 'wiki') = ?2";

static const char own_sql[] =
    "SELECT target, kind = 'wiki' FROM links WHERE note = ?1 AND kind <> 'auto'"
    " UNION SELECT target, kind = 'wiki' FROM images WHERE note = ?1";

/* ?1: the key of a folder; ?2, ?3: those of files in it; ?4: of wiki links. */
#define IN_FOLDER "(key = ?1 OR (key >= ?2 AND key < ?3)) AND (kind = 'wiki') = ?4"
static const char files_sql[] =
    "SELECT note, target, kind = 'wiki' FROM links WHERE " IN_FOLDER " AND kind <> 'auto'"
    " UNION SELECT note, target, kind = 'wiki' FROM images WHERE " IN_FOLDER;

static const char note_sql[] =
    "SELECT path, ifnull(file, CAST(path AS BLOB)) FROM notes WHERE id = ?1";

enum statement { NAMES, LINKS, OWN, FILES, NOTE, STATEMENTS };

struct changes {
    struct notes_facts *facts;
    sqlite3_stmt *statements[STATEMENTS];
    int64_t *notes; /* with a link that changes, some of them repeatedly */
    size_t count, room;
    uint64_t broken;
};

static int fail_sql(const struct changes *changes)
{
    return notes_notebook_fail(changes->facts->notebook, changes->facts->call);
}

/* The end of a statement's rows. */
static int end_rows(const struct changes *changes, enum statement number, int rc, int step)
{
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = fail_sql(changes);
    }
    (void)sqlite3_reset(changes->statements[number]);
    (void)sqlite3_clear_bindings(changes->statements[number]);
    return rc == NG_OK ? changes->facts->rc : rc;
}

static int add_note(struct changes *changes, int64_t id)
{
    if (changes->count > 0 && changes->notes[changes->count - 1] == id) {
        return NG_OK;
    }
    if (!notes_grow(changes->facts->arena, (void **)&changes->notes, changes->count,
                    &changes->room, sizeof(*changes->notes))) {
        return notes_fail_memory(changes->facts->call);
    }
    changes->notes[changes->count++] = id;
    return NG_OK;
}

/* ---- links by a name of a moved note */

static bool is_broken(struct notes_facts *facts, bool wiki, struct ng_str key)
{
    const struct notes_link_move *move = &facts->move;
    return facts->removes && move->leads(move->user, NOTES_AFTER, wiki, key).data == NULL;
}

static int take_key(struct changes *changes, bool wiki, struct ng_str key)
{
    sqlite3_stmt *rows = changes->statements[LINKS];
    int step = SQLITE_DONE;
    int rc = NG_OK;
    if (!notes_facts_differ(changes->facts, wiki, key)) {
        return changes->facts->rc;
    }
    bool broken = is_broken(changes->facts, wiki, key);
    (void)notes_bind_text(rows, 1, key);
    (void)sqlite3_bind_int(rows, 2, wiki);
    while (rc == NG_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        int64_t note = sqlite3_column_int64(rows, 0);
        if (!notes_facts_moves(changes->facts, note)) {
            changes->broken += broken;
            rc = broken ? NG_OK : add_note(changes, note);
        }
    }
    return end_rows(changes, LINKS, rc, step);
}

static int take_old_names(struct changes *changes, struct notes_keys *seen, int64_t note)
{
    sqlite3_stmt *rows = changes->statements[NAMES];
    struct arena *arena = changes->facts->arena;
    int step = SQLITE_DONE;
    int rc = NG_OK;
    (void)sqlite3_bind_int64(rows, 1, note);
    while (rc == NG_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        struct ng_str key = notes_column_text(rows, 0);
        bool wiki = sqlite3_column_int(rows, 1) != 0;
        struct ng_str name =
            arena_printf(arena, "%c%.*s", wiki ? 'w' : 'p', (int)key.len, key.data);
        if (name.data == NULL) {
            rc = notes_fail_memory(changes->facts->call);
        } else if (notes_keys_find(seen, name) == NULL) {
            bool added = notes_keys_add(seen, name) != NULL;
            key = str_make(name.data + 1, name.len - 1);
            rc = added ? take_key(changes, wiki, key) : notes_fail_memory(changes->facts->call);
        }
    }
    return end_rows(changes, NAMES, rc, step);
}

/* Their names of now, then those of afterwards. */
static int take_names(struct changes *changes)
{
    struct notes_facts *facts = changes->facts;
    struct notes_keys seen = {.table = {.size = 0}};
    int rc = NG_OK;
    for (size_t i = 0; i < facts->moved_count && rc == NG_OK; i++) {
        if (facts->moved[i].id != 0) {
            rc = take_old_names(changes, &seen, facts->moved[i].id);
        }
    }
    notes_keys_done(&seen);
    const struct hash_table *table = &facts->names.table;
    for (struct hash_link *link = hash_table_first(table); link != NULL && rc == NG_OK;
         link = hash_table_next(table, link)) {
        struct ng_str name = HASH_ITEM(link, struct notes_key, link)->text;
        rc = take_key(changes, name.data[1] == 'w', str_make(name.data + 2, name.len - 2));
    }
    return rc;
}

/* ---- links of a note, and links to files */

static int take_link(struct changes *changes, int64_t note, struct ng_str path, bool wiki,
                     struct ng_str target)
{
    struct notes_facts *facts = changes->facts;
    struct notes_link_target made;
    struct notes_link_use use = {.move = &facts->move, .before = path};
    use.after = notes_move_path(facts->arena, &facts->move, path);
    target = arena_copy(facts->arena, target);
    if (use.after.data == NULL || target.data == NULL) {
        return notes_fail_memory(facts->call);
    }
    enum notes_link_change change =
        notes_link_retarget(facts->arena, &use, wiki, target, &made);
    if (change == NOTES_LINK_OOM) {
        return notes_fail_memory(facts->call);
    }
    return change == NOTES_LINK_STAYS ? facts->rc : add_note(changes, note);
}

static int take_own_links(struct changes *changes, const struct notes_moved *moved)
{
    sqlite3_stmt *rows = changes->statements[OWN];
    int step = SQLITE_DONE;
    int rc = NG_OK;
    (void)sqlite3_bind_int64(rows, 1, moved->id);
    while (rc == NG_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        rc = take_link(changes, moved->id, moved->from, sqlite3_column_int(rows, 1) != 0,
                       notes_column_text(rows, 0));
    }
    return end_rows(changes, OWN, rc, step);
}

static int find_path(struct changes *changes, int64_t note, struct notes_changed *ret)
{
    sqlite3_stmt *row = changes->statements[NOTE];
    struct arena *arena = changes->facts->arena;
    int rc = NG_OK;
    *ret = (struct notes_changed){.moved = notes_facts_moves(changes->facts, note)};
    (void)sqlite3_bind_int64(row, 1, note);
    int step = sqlite3_step(row);
    if (step == SQLITE_ROW) {
        const char *file = sqlite3_column_blob(row, 1);
        ret->path = arena_copy(arena, notes_column_text(row, 0));
        ret->file = arena_copy(arena, str_make(file, (size_t)sqlite3_column_bytes(row, 1)));
        if (ret->path.data == NULL || ret->file.data == NULL) {
            rc = notes_fail_memory(changes->facts->call);
        }
        step = SQLITE_DONE;
    }
    return end_rows(changes, NOTE, rc, step);
}

static int take_files(struct changes *changes, bool wiki, struct ng_str folder)
{
    sqlite3_stmt *rows = changes->statements[FILES];
    struct arena *arena = changes->facts->arena;
    int step = SQLITE_DONE;
    int rc = NG_OK;
    struct ng_str from = arena_printf(arena, "%.*s/", (int)folder.len, folder.data);
    struct ng_str to = arena_printf(arena, "%.*s0", (int)folder.len, folder.data);
    if (folder.data == NULL || from.data == NULL || to.data == NULL) {
        return notes_fail_memory(changes->facts->call);
    }
    (void)notes_bind_text(rows, 1, folder);
    (void)notes_bind_text(rows, 2, from);
    (void)notes_bind_text(rows, 3, to);
    (void)sqlite3_bind_int(rows, 4, wiki);
    while (rc == NG_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        struct notes_changed note;
        int64_t id = sqlite3_column_int64(rows, 0);
        if (!notes_facts_moves(changes->facts, id)) {
            rc = find_path(changes, id, &note);
            if (rc == NG_OK) {
                rc = take_link(changes, id, note.path, wiki, notes_column_text(rows, 1));
            }
        }
    }
    return end_rows(changes, FILES, rc, step);
}

/* ---- */

static int prepare(struct changes *changes)
{
    static const char *const sql[STATEMENTS] = {names_sql, links_sql, own_sql, files_sql,
                                                note_sql};
    for (size_t i = 0; i < STATEMENTS; i++) {
        changes->statements[i] =
            notes_notebook_prepare(changes->facts->notebook, changes->facts->call, sql[i]);
        if (changes->statements[i] == NULL) {
            return NG_EINTERNAL;
        }
    }
    return NG_OK;
}

static int find_changes(struct changes *changes)
{
    struct notes_facts *facts = changes->facts;
    int rc = take_names(changes);
    for (size_t i = 0; i < facts->moved_count && rc == NG_OK && !facts->removes; i++) {
        if (facts->moved[i].id != 0) {
            rc = take_own_links(changes, &facts->moved[i]);
        }
    }
    bool folder = !facts->removes && !notes_tree_is_note(facts->move.from);
    if (rc == NG_OK && folder) {
        rc = take_files(changes, false, facts->move.from);
    }
    if (rc == NG_OK && folder) {
        rc = take_files(changes, true, notes_fold(facts->arena, facts->move.from));
    }
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a;
    int64_t other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static int compare_paths(const void *a, const void *b)
{
    return str_compare(((const struct notes_changed *)a)->path,
                       ((const struct notes_changed *)b)->path);
}

static int list_notes(struct changes *changes, struct notes_changes_of_move *ret)
{
    if (changes->count > 0) {
        qsort(changes->notes, changes->count, sizeof(*changes->notes), compare_ids);
    }
    for (size_t i = 0; i < changes->count; i++) {
        if (i > 0 && changes->notes[i] == changes->notes[i - 1]) {
            continue;
        }
        if (!notes_grow(changes->facts->arena, (void **)&ret->items, ret->count, &ret->room,
                        sizeof(*ret->items))) {
            return notes_fail_memory(changes->facts->call);
        }
        int rc = find_path(changes, changes->notes[i], &ret->items[ret->count]);
        if (rc != NG_OK) {
            return rc;
        }
        ret->count++;
    }
    if (ret->count > 0) {
        qsort(ret->items, ret->count, sizeof(*ret->items), compare_paths);
    }
    return NG_OK;
}

int notes_move_changes(struct notes_facts *facts, struct notes_changes_of_move *ret)
{
    struct changes changes = {.facts = facts};
    *ret = (struct notes_changes_of_move){.count = 0};
    int rc = prepare(&changes);
    if (rc == NG_OK) {
        rc = find_changes(&changes);
    }
    if (rc == NG_OK) {
        rc = list_notes(&changes, ret);
    }
    ret->broken = changes.broken;
    for (size_t i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(changes.statements[i]);
    }
    return rc;
}
