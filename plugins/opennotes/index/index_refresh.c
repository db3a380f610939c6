/* SPDX-License-Identifier: MIT */
/* index_refresh.c - brings an index up to date: finds changes by inotify or by a walk, then
 * writes note by note in batches. One refresh at a time. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"
#include "core/base/text_choice.h"
#include "index_rows.h"
#include "index_state.h"
#include "text/codes.h"

#define NOTE_ARENA_MAX ((size_t)512 * 1024 * 1024) /* memory for parsing one note */
#define PROGRESS_NOTES 100                         /* with fewer notes no progress is shown */

/* One refresh. */
struct work {
    struct notes_index *index;
    struct ng_call *call;
    struct notes_changes changes;
    bool batch; /* a transaction is open */
    size_t batch_notes, batch_bytes;
    int rc;
    int64_t began_ms; /* remaining time of the call at the beginning */
    size_t before;    /* notes that needed no change */
};

/* ---- lists of paths ---- */

void notes_paths_done(struct notes_paths *paths)
{
    arena_done(&paths->arena);
    free(paths->items);
    memset(paths, 0, sizeof(*paths));
}

int notes_paths_add(struct notes_paths *paths, struct ng_str path)
{
    struct ng_str copy = arena_copy(&paths->arena, path);
    if (copy.data == NULL ||
        array_reserve((void **)&paths->items, &paths->cap, paths->count + 1,
                      sizeof(*paths->items), NOTES_TREE_FILES_MAX) != NG_OK) {
        return NG_EINTERNAL;
    }
    paths->items[paths->count++] = copy;
    return NG_OK;
}

/* Sorts the paths and removes duplicates. */
static void sort_paths(struct notes_paths *paths)
{
    size_t count = 0;
    if (paths->count > 1) {
        qsort(paths->items, paths->count, sizeof(*paths->items), notes_compare);
    }
    for (size_t i = 0; i < paths->count; i++) {
        if (count == 0 || !str_equal(paths->items[i], paths->items[count - 1])) {
            paths->items[count++] = paths->items[i];
        }
    }
    paths->count = count;
}

/* ---- changes found by a walk ---- */

static bool is_same(const struct notes_known *known, const struct notes_stat *now)
{
    const struct notes_stat *then = &known->stat;
    return then->size == now->size && then->mtime_ns == now->mtime_ns &&
           then->ctime_ns == now->ctime_ns && then->inode == now->inode &&
           then->device == now->device &&
           now->ctime_ns + NOTES_INDEX_YOUNG_NS < known->checked_ns;
}

static void walk_folder(void *user, int fd, struct ng_str path)
{
    struct work *work = user;
    notes_watch_folder(&work->index->watch, fd, path);
}

static bool walk_stop(void *user)
{
    struct work *work = user;
    notes_wait_tick(work->index, 0, 0);
    return work->call->host->cancelled(work->call);
}

/* Compares the rows with the files; both are sorted by the files' bytes. */
static int compare_all(struct work *work, const struct notes_tree *tree, sqlite3_stmt *rows)
{
    size_t at = 0;
    int rc = NG_OK;
    int row = sqlite3_step(rows);
    while (rc == NG_OK && (row == SQLITE_ROW || at < tree->file_count)) {
        struct ng_str stored = {NULL, 0};
        int order = 1;
        if (row == SQLITE_ROW) {
            stored.data = sqlite3_column_blob(rows, 8);
            stored.len = (size_t)sqlite3_column_bytes(rows, 8);
            order = at < tree->file_count ? str_compare(stored, tree->files[at].file) : -1;
        } else if (row != SQLITE_DONE) {
            return notes_schema_fail(work->index, work->call, "read");
        }
        struct notes_known known = {.id = 0};
        if (order <= 0) {
            notes_write_known(rows, &known);
            row = sqlite3_step(rows);
        }
        const struct notes_tree_file *file = order < 0 ? NULL : &tree->files[at++];
        if (order < 0) {
            rc = notes_changes_gone(&work->changes, &known);
        } else if (order > 0) {
            rc = notes_changes_new(&work->changes, file->file, &file->stat);
        } else if (is_same(&known, &file->stat)) {
            work->before++;
        } else {
            rc = notes_paths_add(&work->changes.changed, file->file);
        }
    }
    if (rc == NG_OK) {
        rc = notes_changes_match(&work->changes);
    }
    if (rc != NG_OK) {
        return notes_fail_memory(work->call);
    }
    if (rc == NG_OK && row != SQLITE_DONE) {
        rc = notes_schema_fail(work->index, work->call, "read");
    }
    return rc;
}

static int remember_loose(struct notes_index *index, const struct notes_tree *tree)
{
    notes_paths_done(&index->loose);
    for (size_t i = 0; i < tree->file_count && index->loose.count <= NOTES_INDEX_LOOSE_MAX;
         i++) {
        if (tree->files[i].loose &&
            notes_paths_add(&index->loose, tree->files[i].file) != NG_OK) {
            return NG_EINTERNAL;
        }
    }
    return NG_OK;
}

static int fail_walk(struct work *work, int rc)
{
    switch (rc) {
    case NG_ECANCELLED:
        return ng_fail(work->call, rc, "The call was cancelled while notes were searched.");
    case NG_EBUSY:
        return ng_fail(work->call, rc,
                       "The notes cannot be searched: too many files are open, or memory is "
                       "exhausted. Try again in a moment.");
    case NG_ENOTFOUND:
        return ng_fail(work->call, NOTES_ENOTEBOOK, "The folder of the notebook is gone: %s",
                       work->index->path);
    default:
        return notes_fail_memory(work->call);
    }
}

static int find_all(struct work *work)
{
    struct notes_index *index = work->index;
    struct notes_tree_walk walk = {
        .root_fd = index->root_fd, .folder = walk_folder, .stop = walk_stop, .user = work};
    struct notes_tree tree;
    sqlite3_stmt *rows = NULL;
    notes_watch_drop(&index->watch);
    int rc = notes_tree_read(&walk, &tree);
    if (rc != NG_OK) {
        notes_watch_drop(&index->watch);
        return fail_walk(work, rc);
    }
    if (tree.cut) {
        work->call->host->log(work->call, NG_LOG_WARNING,
                              "opennotes: %s has too many folders or files; some are left out",
                              index->path);
    }
    notes_watch_commit(&index->watch, tree.linked_dirs > 0);
    if (sqlite3_prepare_v2(index->writer.db,
                           "SELECT id,size,mtime_ns,ctime_ns,inode,device,checked_ns,revision,"
                           "ifnull(file,CAST(path AS BLOB)) AS bytes FROM notes ORDER BY bytes",
                           -1, &rows, NULL) == SQLITE_OK) {
        rc = compare_all(work, &tree, rows);
    } else {
        rc = notes_schema_fail(index, work->call, "read");
    }
    (void)sqlite3_finalize(rows);
    if (rc == NG_OK && remember_loose(index, &tree) != NG_OK) {
        rc = notes_fail_memory(work->call);
    }
    notes_tree_done(&tree);
    return rc;
}

/* ---- changes reported by inotify ---- */

static int told_file(void *user, struct ng_str path)
{
    struct work *work = user;
    if (work->changes.changed.count >= NOTES_INDEX_DIRTY_MAX) {
        return 1;
    }
    return notes_paths_add(&work->changes.changed, path) != NG_OK;
}

static int find_loose(struct work *work)
{
    struct notes_index *index = work->index;
    for (size_t i = 0; i < index->loose.count; i++) {
        struct ng_str file = index->loose.items[i];
        struct notes_known known;
        struct notes_stat stat;
        bool loose = false;
        int rc = notes_write_find(index, work->call, file, &known);
        if (rc == NG_OK &&
            (notes_tree_stat(index->root_fd, file.data, &stat, &loose) != NG_OK ||
             known.id == 0 || !is_same(&known, &stat))) {
            rc = notes_memory(work->call,
                              notes_paths_add(&work->changes.changed, file) == NG_OK);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

/* Logs once that watching is off. */
static void tell_watch(struct notes_index *index, struct ng_call *call)
{
    if (index->watch.fd >= 0 || index->watch.error == 0 || index->watch_told) {
        return;
    }
    index->watch_told = true;
    call->host->log(
        call, NG_LOG_WARNING,
        "opennotes: changes in %s cannot be watched (%s); every call checks all its files "
        "instead. Raise fs.inotify.max_user_watches or max_user_instances.",
        index->path, text_errno(index->watch.error));
}

static int find_changes(struct work *work)
{
    struct notes_index *index = work->index;
    /* Drains inotify even if a walk follows: the walk sees these changes too. */
    enum notes_watch_news news =
        notes_watch_drain(&index->watch, index->root_fd, told_file, work);
    if (index->scan || news == NOTES_WATCH_ALL || index->loose.count > NOTES_INDEX_LOOSE_MAX) {
        notes_changes_done(&work->changes);
        index->scan = true;
        int rc = find_all(work);
        tell_watch(index, work->call);
        return rc;
    }
    /* If this fails, the drained events are lost: the next refresh walks the whole tree. */
    index->scan = news != NOTES_WATCH_NOTHING;
    return find_loose(work);
}

/* ---- writing ---- */

static int run_sql(struct work *work, const char *sql)
{
    if (sqlite3_exec(work->index->writer.db, sql, NULL, NULL, NULL) == SQLITE_OK) {
        return NG_OK;
    }
    return notes_schema_fail(work->index, work->call, "written");
}

static int run_with(struct work *work, enum notes_statement number, size_t value)
{
    (void)sqlite3_bind_int64(notes_statement(work->index, number), 1, (int64_t)value);
    return notes_statement_run(work->index, work->call, number);
}

static int end_batch(struct work *work)
{
    if (!work->batch) {
        return NG_OK;
    }
    size_t pages = size_max(work->batch_notes, 1) * NOTES_INDEX_MERGE_PAGES;
    work->batch_notes = 0;
    work->batch_bytes = 0;
    int rc = run_with(work, NOTES_CUT_CHANGES, NOTES_INDEX_CHANGES_MAX);
    if (rc == NG_OK) {
        rc = run_with(work, NOTES_MERGE_GRAMS, pages);
    }
    if (rc == NG_OK) {
        rc = run_with(work, NOTES_MERGE_TERMS, pages);
    }
    if (rc == NG_OK) {
        rc = run_sql(work, "COMMIT");
    }
    work->batch = rc != NG_OK;
    return rc;
}

static int begin_batch(struct work *work)
{
    if (work->batch) {
        return NG_OK;
    }
    int rc = run_sql(work, "BEGIN IMMEDIATE");
    work->batch = rc == NG_OK;
    return rc;
}

static void drop_batch(struct work *work)
{
    struct notes_writer *writer = &work->index->writer;
    if (work->batch && writer->db != NULL) {
        (void)sqlite3_exec(writer->db, "ROLLBACK", NULL, NULL, NULL);
        /* The rollback removed words that the cache still holds. */
        memset(writer->words, 0, NOTES_WORD_CACHE * sizeof(*writer->words));
    }
    work->batch = false;
}

/* At least one note is written in each call; else calls with little time would never finish the
 * index. */
static int check_over(struct work *work, size_t done)
{
    bool cancelled = work->call->host->cancelled(work->call);
    if (!cancelled && (done == 0 || !notes_wait_is_over(work->call, work->began_ms))) {
        return NG_OK;
    }
    int rc = end_batch(work); /* the next call continues after this batch */
    if (rc != NG_OK) {
        return rc;
    }
    return ng_fail(work->call, cancelled ? NG_ECANCELLED : NG_ETIMEOUT,
                   "The call's time was up while notes were indexed.");
}

static size_t count_of(const struct work *work)
{
    return work->changes.changed.count + work->changes.move_count;
}

static void show_progress(struct work *work, size_t done)
{
    size_t total = count_of(work);
    if (total >= PROGRESS_NOTES && (done % PROGRESS_NOTES == 0 || done == total)) {
        notes_wait_show(work->call, work->before + done, work->before + total);
    }
}

/* Note number `at`: renamed files first, then changed ones. */
static int apply_one(struct work *work, size_t at, struct arena *arena)
{
    const struct notes_changes *changes = &work->changes;
    if (at < changes->move_count) {
        const struct notes_move *move = &changes->moves[at];
        return notes_write_move(work->index, work->call, move->id, move->file, arena,
                                &work->batch_bytes);
    }
    return notes_write_note(work->index, work->call,
                            changes->changed.items[at - changes->move_count], arena,
                            &work->batch_bytes);
}

static int apply_changes(struct work *work, struct arena *arena)
{
    size_t total = count_of(work);
    int rc = NG_OK;
    for (size_t i = 0; i < total && rc == NG_OK; i++) {
        notes_wait_tick(work->index, work->before + i, work->before + total);
        rc = check_over(work, i);
        if (rc == NG_OK) {
            rc = begin_batch(work);
        }
        if (rc == NG_OK) {
            rc = apply_one(work, i, arena);
            arena_reset(arena);
        }
        work->batch_notes++;
        if (rc == NG_OK && (work->batch_notes >= NOTES_INDEX_BATCH_NOTES ||
                            work->batch_bytes >= NOTES_INDEX_BATCH_BYTES)) {
            rc = end_batch(work);
        }
        if (rc == NG_OK) {
            show_progress(work, i + 1);
        }
    }
    return rc;
}

static int apply(struct work *work)
{
    struct arena arena;
    int rc = NG_OK;
    for (size_t i = 0; i < work->changes.gone_count && rc == NG_OK; i++) {
        rc = begin_batch(work);
        if (rc == NG_OK) {
            rc = notes_write_drop(work->index, work->call, work->changes.gone[i].id);
        }
    }
    arena_init(&arena, NOTE_ARENA_MAX);
    if (rc == NG_OK) {
        rc = apply_changes(work, &arena);
    }
    arena_done(&arena);
    if (rc == NG_OK) {
        rc = end_batch(work);
    }
    drop_batch(work);
    return rc;
}

/* Opens the database, and checks that the file at its path is still the open one. */
static int ready_file(struct notes_index *index, struct ng_call *call)
{
    bool fresh = false;
    if (index->writer.db != NULL && !index->writer.damaged && !notes_schema_lost(index)) {
        return NG_OK;
    }
    bool damaged = index->writer.damaged;
    notes_schema_close(&index->writer);
    if (damaged) {
        call->host->log(call, NG_LOG_WARNING,
                        "opennotes: the index %s of %s is damaged; it is rebuilt", index->file,
                        index->path);
        notes_schema_remove(index);
    }
    index->scan = true;
    int rc = notes_schema_open(index, call, &fresh);
    notes_index_renewed(index);
    return rc;
}

int notes_refresh(struct notes_index *index, struct ng_call *call)
{
    int64_t began_ms = call->host->remaining_ms(call);
    bool anew = false;
    int rc = NG_OK;
    /* Repeated if the file is damaged, or if the index is built again. */
    for (int try = 0; try < 3; try++) {
        struct work work = {.index = index, .call = call, .began_ms = began_ms};
        rc = ready_file(index, call);
        if (rc == NG_OK) {
            rc = find_changes(&work);
        }
        bool again =
            rc == NG_OK && !anew &&
            notes_changes_are_most(index, call, &work.changes, work.before + count_of(&work));
        if (again) {
            /* To change the old index would cost more than to build it again. */
            notes_schema_close(&index->writer);
            notes_schema_remove(index);
            anew = true;
        } else if (rc == NG_OK) {
            sort_paths(&work.changes.changed);
            rc = apply(&work);
        }
        notes_changes_done(&work.changes);
        index->scan = rc != NG_OK || again || index->watch.fd < 0;
        if (!again && (rc == NG_OK || !index->writer.damaged)) {
            break;
        }
    }
    return rc;
}
