/* SPDX-License-Identifier: MIT */
/* index_find.c - finds a note by the path that the caller gave, and reads its bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/lock.h"
#include "index_state.h"
#include "text/codes.h"

#define GRAMS_MAX 64 /* more trigrams do not narrow the candidates */
#define HINT_EDITS 3 /* largest edit distance of a path that is given as hint */
#define PATH_BYTES_MAX 4096
#define READ_MAX ((size_t)256 * 1024 * 1024) /* of one note */

static int fail_path(struct ng_call *call, int code, const char *before, struct ng_str path,
                     const char *after)
{
    struct buf text;
    buf_init(&text, 65536);
    buf_add_c(&text, before);
    buf_add_str(&text, path);
    buf_add_c(&text, after);
    int rc = notes_memory(call, text.rc == NG_OK);
    if (rc == NG_OK) {
        rc = call->host->fail_text(call, code, notes_buf_str(&text));
    }
    buf_done(&text);
    return rc;
}

int notes_index_fail_traversal(struct ng_call *call, struct ng_str path)
{
    (void)fail_path(call, NG_ETRAVERSAL, "Path traversal blocked: ", path, "");
    call->host->hint(call, "Use paths relative to notebook");
    return NG_ETRAVERSAL;
}

int notes_index_path(struct ng_call *call, struct ng_str given, struct ng_str *ret_path)
{
    struct arena arena;
    if (given.len > PATH_BYTES_MAX) {
        return ng_fail(call, NOTES_EPATH, "The path has %zu bytes; a path may have %d.",
                       given.len, PATH_BYTES_MAX);
    }
    if (given.len > 0 &&
        (given.data[0] == '/' || memchr(given.data, '\0', given.len) != NULL)) {
        return notes_index_fail_traversal(call, given);
    }
    char *out = ng_alloc(call, given.len + 1);
    size_t len = 0;
    for (size_t at = 0; out != NULL && at < given.len;) {
        size_t end = notes_find_char(given, at, '/');
        struct ng_str part = str_make(given.data + at, end - at);
        at = end + 1;
        if (str_is(part, "..")) {
            return notes_index_fail_traversal(call, given);
        }
        if (part.len == 0 || str_is(part, ".")) {
            continue;
        }
        if (len > 0) {
            out[len++] = '/';
        }
        memcpy(out + len, part.data, part.len);
        len += part.len;
    }
    arena_init(&arena, 0);
    struct ng_str form = notes_nfc(&arena, str_make(out, len));
    *ret_path = str_make(NULL, 0);
    if (form.data != NULL) {
        *ret_path = notes_call_copy(call, form);
    }
    arena_done(&arena);
    return notes_memory(call, ret_path->data != NULL);
}

/* Distance of a path from the requested one; SIZE_MAX: too far. */
static size_t distance(struct ng_str asked, struct ng_str path)
{
    struct ng_str stem = path;
    stem.len -= notes_tree_is_note(path) ? 3 : 0;
    if (str_equal(stem, asked)) {
        return 0;
    }
    struct ng_str asked_name = notes_file_name(asked);
    struct ng_str name = notes_file_name(path);
    struct ng_str name_stem = notes_file_name(stem);
    if (str_equal(asked_name, name) || str_equal(asked_name, name_stem)) {
        return 1;
    }
    /* Edits count double: of two paths at the same distance, the one in the requested folder
     * wins. */
    size_t whole = edit_distance(asked, path, HINT_EDITS);
    size_t named = edit_distance(asked_name, name, HINT_EDITS);
    size_t stems = edit_distance(asked_name, name_stem, HINT_EDITS);
    named = size_min(stems, named);
    if (whole != SIZE_MAX) {
        whole *= 2;
    }
    if (named != SIZE_MAX) {
        named = 2 * named + 1;
    }
    return size_min(whole, named);
}

static int fail_missing(struct notes_index *index, struct ng_call *call, sqlite3 *db,
                        struct ng_str path)
{
    sqlite3_stmt *rows = NULL;
    struct arena arena;
    struct ng_str best = {NULL, 0};
    size_t best_distance = SIZE_MAX;
    arena_init(&arena, 0);
    struct ng_str asked = notes_fold(&arena, path);
    int rc = NG_OK;
    if (asked.data == NULL ||
        sqlite3_prepare_v2(db, "SELECT path, path_fold FROM notes ORDER BY path", -1, &rows,
                           NULL) != SQLITE_OK) {
        rc = notes_index_fail(index, call, db);
    }
    while (rc == NG_OK && asked.data != NULL && sqlite3_step(rows) == SQLITE_ROW) {
        size_t away = distance(asked, notes_column_text(rows, 1));
        if (away < best_distance) {
            best_distance = away;
            best = arena_copy(&arena, notes_column_text(rows, 0));
        }
    }
    (void)sqlite3_finalize(rows);
    if (rc == NG_OK) {
        rc = fail_path(call, NOTES_ENOTE, "Note not found: ", path, "");
        if (best.data != NULL) {
            call->host->hint(call, "Did you mean %s? Check path is relative to notebook root",
                             best.data);
        } else {
            call->host->hint(call, "Check path is relative to notebook root");
        }
    }
    arena_done(&arena);
    return rc;
}

/* A column's bytes, NUL-terminated, for as long as the call. */
static int keep_column(struct ng_call *call, sqlite3_stmt *row, int column, struct ng_str *ret)
{
    const char *data = sqlite3_column_blob(row, column);
    *ret = notes_call_copy(call, str_make(data, (size_t)sqlite3_column_bytes(row, column)));
    return notes_memory(call, ret->data != NULL);
}

int notes_index_file(struct notes_index *index, struct ng_call *call, sqlite3 *db,
                     struct ng_str path, struct ng_str *ret_file)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db, "SELECT file FROM notes WHERE path = ?1 AND file IS NOT NULL",
                           -1, &row, NULL) != SQLITE_OK) {
        return notes_index_fail(index, call, db);
    }
    (void)notes_bind_text(row, 1, path);
    int rc = NG_OK;
    int found = sqlite3_step(row);
    if (found == SQLITE_ROW) {
        rc = keep_column(call, row, 0, ret_file);
    } else if (found != SQLITE_DONE) {
        rc = notes_index_fail(index, call, db);
    }
    (void)sqlite3_finalize(row);
    return rc;
}

int notes_index_find(struct notes_index *index, struct ng_call *call, sqlite3 *db,
                     struct ng_str given, struct notes_location *ret)
{
    sqlite3_stmt *row = NULL;
    int rc = notes_index_path(call, given, &ret->path);
    if (rc != NG_OK) {
        return rc;
    }
    if (sqlite3_prepare_v2(db,
                           "SELECT id, ifnull(file, CAST(path AS BLOB)), created, modified"
                           " FROM notes WHERE path = ?1",
                           -1, &row, NULL) != SQLITE_OK) {
        return notes_index_fail(index, call, db);
    }
    (void)notes_bind_text(row, 1, ret->path);
    int found = sqlite3_step(row);
    if (found == SQLITE_ROW) {
        ret->id = sqlite3_column_int64(row, 0);
        ret->created_ms = sqlite3_column_int64(row, 2);
        ret->modified_ms = sqlite3_column_int64(row, 3);
        rc = keep_column(call, row, 1, &ret->file);
    }
    (void)sqlite3_finalize(row);
    if (found == SQLITE_DONE) {
        return fail_missing(index, call, db, ret->path);
    }
    if (found != SQLITE_ROW) {
        return notes_index_fail(index, call, db);
    }
    return rc;
}

int64_t notes_index_created_ms(const struct notes_stat *stat)
{
    int64_t birth = stat->birth_ns / 1000000;
    int64_t mtime = stat->mtime_ns / 1000000;
    if (birth <= 0) {
        return mtime;
    }
    return i64_min(birth, mtime);
}

/* Does any part of the path begin with a dot? */
static bool is_shown(struct ng_str path)
{
    bool begins = true;
    for (size_t i = 0; i < path.len; i++) {
        if (begins && path.data[i] == '.') {
            return false;
        }
        begins = path.data[i] == '/';
    }
    return notes_tree_is_note(path);
}

/* Is the open file at this path, without a symbolic link on the way? */
static bool is_in_place(const struct notes_index *index, int fd, struct ng_str path)
{
    char *real = notes_tree_path_of(fd);
    bool is = real != NULL &&
              str_equal(notes_path_below(ng_str_of(real), ng_str_of(index->path)), path);
    free(real);
    return is;
}

/* No refresh has completed yet. */
static bool is_unmade(struct notes_index *index)
{
    lock_take(&index->lock);
    bool unmade = index->covered == 0;
    lock_release(&index->lock);
    return unmade;
}

/* Uses the file alone. ret->file is {NULL, 0} if the index is needed. */
static int find_now(struct notes_index *index, struct ng_call *call, struct ng_str given,
                    struct notes_location *ret)
{
    struct notes_stat stat;
    bool loose = false;
    int rc = notes_index_path(call, given, &ret->path);
    if (rc != NG_OK || !notes_is_ascii(ret->path) || !is_shown(ret->path)) {
        return rc;
    }
    int fd = notes_tree_open(index->root_fd, ret->path.data, O_PATH);
    if (fd == -ENOENT && is_unmade(index)) {
        rc = fail_path(call, NOTES_ENOTE, "Note not found: ", ret->path, "");
        call->host->hint(call, "Check path is relative to notebook root");
        return rc;
    }
    if (fd < 0) {
        return NG_OK;
    }
    if (notes_tree_stat_of(fd, &stat, &loose) == NG_OK && is_in_place(index, fd, ret->path) &&
        !notes_index_is_closed(index, call, ret->path, fd)) {
        ret->file = ret->path;
        ret->created_ms = notes_index_created_ms(&stat);
        ret->modified_ms = stat.mtime_ns / 1000000;
    }
    (void)close(fd);
    return NG_OK;
}

int notes_index_locate(struct notes_index *index, struct ng_call *call, struct ng_str given,
                       struct notes_location *ret)
{
    sqlite3 *db = NULL;
    *ret = (struct notes_location){.id = 0};
    int rc = find_now(index, call, given, ret);
    if (rc != NG_OK || ret->file.data != NULL) {
        return rc;
    }
    rc = notes_index_begin(index, call, &db);
    if (rc == NG_OK) {
        rc = notes_index_find(index, call, db, given, ret);
    }
    notes_index_end(index, db);
    return rc;
}

struct ng_str notes_index_grams(struct arena *arena, struct ng_str folded)
{
    size_t at[3] = {0}; /* starts of the characters of the present trigram */
    size_t characters = 0;
    size_t grams = 0;
    struct buf query;
    buf_init(&query, 65536);
    for (size_t next = 0; next < folded.len && grams < GRAMS_MAX;) {
        at[0] = at[1];
        at[1] = at[2];
        at[2] = next;
        (void)notes_next(folded, &next);
        if (++characters >= 3) {
            notes_add_if(&query, grams++ > 0, " AND ");
            notes_add_quoted(&query, str_make(folded.data + at[0], next - at[0]), '"');
        }
    }
    struct ng_str kept = grams > 0 && query.rc == NG_OK
                             ? arena_copy(arena, notes_buf_str(&query))
                             : str_make(NULL, 0);
    arena->failed = arena->failed || query.rc != NG_OK;
    buf_done(&query);
    return kept;
}

bool notes_index_is_closed(const struct notes_index *index, struct ng_call *call,
                           struct ng_str file, int fd)
{
    struct notes_stat stat;
    struct ng_file found = {.size = sizeof(found)};
    bool loose = false;
    if (notes_tree_stat_of(fd, &stat, &loose) != NG_OK || !loose) {
        return false;
    }
    struct ng_str path =
        call->host->format(call, "%s/%.*s", index->path, (int)file.len, file.data);
    return path.data == NULL || call->host->file_stat(call, path, &found) == NG_EOUTSIDE;
}

int notes_index_read(struct notes_index *index, struct ng_call *call, struct ng_str file,
                     struct ng_str *ret_bytes)
{
    int fd = notes_tree_open(index->root_fd, file.data, O_RDONLY);
    int error = fd < 0 ? -fd : 0;
    int rc = NG_EFAILED;
    if (fd >= 0) {
        struct notes_stat stat;
        bool loose = false;
        rc = notes_index_is_closed(index, call, file, fd)
                 ? NG_ENOTFOUND
                 : notes_tree_stat_of(fd, &stat, &loose);
        if (rc == NG_OK && stat.size > (int64_t)READ_MAX) {
            rc = ng_fail(call, NG_ETOOLARGE, "The note has %lld bytes; up to %zu can be read.",
                         (long long)stat.size, READ_MAX);
        } else if (rc == NG_OK) {
            rc = notes_tree_read_fd(fd, READ_MAX, ret_bytes);
            error = errno;
        }
        (void)close(fd);
    }
    if (rc == NG_EINTERNAL) {
        return notes_fail_memory(call);
    }
    if (rc == NG_ENOTFOUND || (rc == NG_EFAILED && (error == ENOENT || error == EXDEV ||
                                                    error == ENOTDIR || error == ELOOP))) {
        return fail_path(call, NOTES_ENOTE, "Note not found: ", file, " (it was just removed)");
    }
    if (rc == NG_EBUSY || (rc == NG_EFAILED && notes_tree_is_busy(error))) {
        return fail_path(call, NG_EBUSY, "The note cannot be read now: ", file,
                         " (too many files are open; try again)");
    }
    if (rc == NG_EFAILED) {
        return fail_path(call, NG_EFAILED, "The note cannot be read: ", file,
                         error == EACCES ? " (permission denied)" : "");
    }
    return rc;
}

int notes_index_has_broken(sqlite3 *db, bool *ret_found)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT 1 FROM notes WHERE front_error IS NOT NULL LIMIT 1",
                                -1, &row, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(row);
    }
    *ret_found = rc == SQLITE_ROW;
    (void)sqlite3_finalize(row);
    return notes_done(rc);
}
