/* SPDX-License-Identifier: MIT */
/* index_write.c - inserts one note into the index, and deletes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text_choice.h"
#include "index_rows.h"
#include "note/revision.h"

/* Bytes of a title and aliases; folding may make a text longer. */
#define HEADS_MAX ((size_t)NOTES_FRONTMATTER_EXPANDED_MAX * 8)

/* A file that was read. */
struct source {
    struct ng_str file; /* as on disk */
    struct notes_stat stat;
    int64_t checked_ns;  /* before it was read */
    struct ng_str bytes; /* malloc'd */
    char revision[NOTES_REVISION_SIZE];
    const char *unreadable; /* reason why the bytes cannot be read */
};

int64_t notes_write_now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int put_change(struct notes_index *index, struct ng_call *call, int64_t id)
{
    (void)sqlite3_bind_int64(notes_statement(index, NOTES_PUT_CHANGE), 1, id);
    return notes_statement_run(index, call, NOTES_PUT_CHANGE);
}

/* Without a row in `changes`. */
static int drop_rows(struct notes_index *index, struct ng_call *call, int64_t id)
{
    int rc = NG_OK;
    /* The full-text rows go first: FTS5 deletes them by their former content. */
    for (int number = NOTES_DROP_GRAMS; number <= NOTES_DROP_LONG && rc == NG_OK; number++) {
        (void)sqlite3_bind_int64(notes_statement(index, (enum notes_statement)number), 1, id);
        rc = notes_statement_run(index, call, (enum notes_statement)number);
    }
    return rc;
}

int notes_write_drop(struct notes_index *index, struct ng_call *call, int64_t id)
{
    int rc = drop_rows(index, call, id);
    if (rc == NG_OK) {
        rc = put_change(index, call, id);
    }
    return rc;
}

int notes_write_find(struct notes_index *index, struct ng_call *call, struct ng_str file,
                     struct notes_known *ret)
{
    sqlite3_stmt *statement = notes_statement(index, NOTES_FIND_FILE);
    *ret = (struct notes_known){.id = 0};
    (void)sqlite3_bind_blob64(statement, 1, file.data, file.len, SQLITE_STATIC);
    (void)notes_bind_text(statement, 2, file);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        notes_write_known(statement, ret);
    }
    int failed =
        rc == SQLITE_ROW || rc == SQLITE_DONE ? NG_OK : notes_schema_fail(index, call, "read");
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return failed;
}

void notes_write_known(sqlite3_stmt *statement, struct notes_known *ret)
{
    ret->id = sqlite3_column_int64(statement, 0);
    ret->stat.size = sqlite3_column_int64(statement, 1);
    ret->stat.mtime_ns = sqlite3_column_int64(statement, 2);
    ret->stat.ctime_ns = sqlite3_column_int64(statement, 3);
    ret->stat.inode = sqlite3_column_int64(statement, 4);
    ret->stat.device = sqlite3_column_int64(statement, 5);
    ret->checked_ns = sqlite3_column_int64(statement, 6);
    struct ng_str revision = notes_column_text(statement, 7);
    size_t len = revision.len < sizeof(ret->revision) ? revision.len : 0;
    if (len > 0) {
        memcpy(ret->revision, revision.data, len);
    }
    ret->revision[len] = '\0';
}

/* ---- reading ---- */

static bool is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV ||
           error == ENAMETOOLONG || error == ENXIO || error == ENODEV || error == ESTALE;
}

/* NG_ENOTFOUND: the note does not exist any more. */
static int read_source(struct notes_index *index, struct ng_call *call, struct source *source)
{
    bool loose = false;
    source->checked_ns = notes_write_now_ns();
    int stat_rc = notes_tree_stat(index->root_fd, source->file.data, &source->stat, &loose);
    if (stat_rc == NG_ENOTFOUND) {
        return NG_ENOTFOUND;
    }
    int fd = stat_rc == NG_OK ? notes_tree_open(index->root_fd, source->file.data, O_RDONLY)
                              : -EMFILE;
    if (fd < 0 && is_gone(-fd)) {
        return NG_ENOTFOUND;
    }
    if (fd < 0 && notes_tree_is_busy(-fd)) {
        return ng_fail(call, NG_EBUSY,
                       "The notes cannot be read now: too many files are open. Try again.");
    }
    if (fd >= 0 && notes_index_is_closed(index, call, source->file, fd)) {
        (void)close(fd);
        return NG_ENOTFOUND;
    }
    int rc = fd < 0 ? NG_EFAILED : notes_tree_read_fd(fd, NOTES_INDEX_NOTE_MAX, &source->bytes);
    int error = fd < 0 ? -fd : errno;
    if (rc == NG_OK) {
        rc = notes_revision(source->bytes, fd, source->revision);
        error = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (rc == NG_EFAILED) {
        source->unreadable = text_errno(error);
        source->revision[0] = '\0';
        free((void *)(uintptr_t)source->bytes.data);
        source->bytes = str_make(NULL, 0);
        return NG_OK;
    }
    return notes_memory(call, rc == NG_OK);
}

/* ---- storing ---- */

/* A unique path: the file's name in NFC; if another file has that path, or the name is not
 * UTF-8, with a number before its ending. Every path is in NFC, because paths are looked up in
 * NFC. */
static int free_path(struct notes_row_source *to, struct ng_str file, struct ng_str *ret)
{
    sqlite3_stmt *statement = notes_statement(to->index, NOTES_FIND_PATH);
    struct ng_str whole = notes_nfc(to->arena, notes_utf8_clean(to->arena, file));
    struct ng_str path = whole;
    size_t stem = whole.len;
    if (notes_tree_is_note(whole)) {
        stem -= 3;
    }
    for (unsigned number = 1; path.data != NULL; number++) {
        (void)notes_bind_text(statement, 1, path);
        int rc = sqlite3_step(statement);
        (void)sqlite3_reset(statement);
        (void)sqlite3_clear_bindings(statement);
        if (rc != SQLITE_ROW) {
            *ret = path;
            if (rc == SQLITE_DONE) {
                return NG_OK;
            }
            return notes_schema_fail(to->index, to->call, "read");
        }
        struct buf text;
        buf_init(&text, 65536);
        buf_add_str(&text, str_make(whole.data, stem));
        buf_printf(&text, "~%u", number);
        buf_add_str(&text, str_make(whole.data + stem, whole.len - stem));
        path = arena_copy(to->arena, notes_buf_str(&text));
        if (text.rc != NG_OK) {
            path = str_make(NULL, 0);
        }
        buf_done(&text);
    }
    return notes_fail_memory(to->call);
}

/* SQL's text functions end at NUL. */
static struct ng_str without_nul(struct arena *arena, struct ng_str text)
{
    size_t nul = notes_find_char(text, 0, '\0');
    if (nul == text.len) {
        return notes_present(text);
    }
    char *copy = arena_zalloc(arena, text.len + 1);
    if (copy == NULL) {
        return str_make(NULL, 0);
    }
    memcpy(copy, text.data, text.len);
    for (; nul < text.len; nul = notes_find_char(text, nul, '\0')) {
        copy[nul++] = ' ';
    }
    return str_make(copy, text.len);
}

/* Binds creation and modification time to two columns. */
static void bind_times(sqlite3_stmt *statement, int column, const struct source *source,
                       const struct notes_note *note)
{
    int64_t created = notes_index_created_ms(&source->stat);
    int64_t modified = source->stat.mtime_ns / 1000000;
    if (note->has_created) {
        created = note->created_ms;
    }
    if (note->has_modified) {
        modified = note->modified_ms;
    }
    (void)sqlite3_bind_int64(statement, column, created);
    (void)sqlite3_bind_int64(statement, column + 1, modified);
}

static int put_note(struct notes_row_source *to, const struct source *source,
                    const struct notes_note *note)
{
    sqlite3_stmt *statement = notes_statement(to->index, NOTES_PUT_NOTE);
    const struct notes_stat *stat = &source->stat;
    struct ng_str error = note->frontmatter_error;
    struct buf frontmatter;
    buf_init(&frontmatter, (size_t)NOTES_FRONTMATTER_EXPANDED_MAX * 8);
    if (note->has_frontmatter && note->frontmatter_error.data == NULL) {
        notes_value_json(&frontmatter, note->frontmatter);
    }
    if (source->unreadable != NULL) {
        error = str_make(source->unreadable, strlen(source->unreadable));
    }
    if (!str_equal(to->path, source->file)) {
        (void)sqlite3_bind_blob64(statement, 3, source->file.data, source->file.len,
                                  SQLITE_STATIC);
    }
    (void)notes_bind_text(statement, 2, to->path);
    (void)notes_bind_text(statement, 4, to->title);
    (void)notes_bind_text(statement, 5, to->title_fold);
    struct ng_str path_fold = notes_fold(to->arena, to->path);
    (void)notes_bind_text(statement, 6, path_fold);
    bind_times(statement, 7, source, note);
    (void)sqlite3_bind_int64(statement, 9, stat->size);
    (void)sqlite3_bind_int64(statement, 10, (int64_t)note->words);
    if (frontmatter.rc == NG_OK && frontmatter.len > 0) {
        (void)notes_bind_text(statement, 11, buf_str(&frontmatter));
    }
    (void)notes_bind_text(statement, 12, error);
    (void)sqlite3_bind_text(statement, 13, source->revision, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 14, (int64_t)note->body_line);
    (void)sqlite3_bind_int64(statement, 15, stat->mtime_ns);
    (void)sqlite3_bind_int64(statement, 16, stat->ctime_ns);
    (void)sqlite3_bind_int64(statement, 17, stat->inode);
    (void)sqlite3_bind_int64(statement, 18, stat->device);
    (void)sqlite3_bind_int64(statement, 19, source->checked_ns);
    if (to->id > 0) {
        (void)sqlite3_bind_int64(statement, 1, to->id);
    }
    (void)notes_bind_text(statement, 20, to->heads);
    int rc = notes_memory(to->call, path_fold.data != NULL && frontmatter.rc != NG_EINTERNAL);
    if (rc == NG_OK) {
        rc = notes_statement_run(to->index, to->call, NOTES_PUT_NOTE);
    } else {
        (void)sqlite3_clear_bindings(statement); /* else the next note would get them */
    }
    buf_done(&frontmatter);
    to->id = sqlite3_last_insert_rowid(to->index->writer.db);
    if (rc == NG_OK) {
        rc = put_change(to->index, to->call, to->id);
    }
    return rc;
}

static int put_searched(struct notes_row_source *to, enum notes_statement number,
                        struct ng_str folded)
{
    sqlite3_stmt *statement = notes_statement(to->index, number);
    (void)sqlite3_bind_int64(statement, 1, to->id);
    (void)notes_bind_text(statement, 2, to->heads);
    (void)notes_bind_text(statement, 3, folded);
    return notes_statement_run(to->index, to->call, number);
}

static int put_words(struct notes_row_source *to, struct ng_str folded)
{
    bool has_long = false;
    int rc = notes_rows_words(to, to->heads, &has_long);
    if (rc == NG_OK) {
        rc = notes_rows_words(to, folded, &has_long);
    }
    if (rc == NG_OK && has_long) {
        (void)sqlite3_bind_int64(notes_statement(to->index, NOTES_PUT_LONG), 1, to->id);
        rc = notes_statement_run(to->index, to->call, NOTES_PUT_LONG);
    }
    return rc;
}

static int put_texts(struct notes_row_source *to)
{
    struct ng_str folded = notes_fold(to->arena, to->body);
    if (folded.data == NULL) {
        return notes_fail_memory(to->call);
    }
    sqlite3_stmt *statement = notes_statement(to->index, NOTES_PUT_BODY);
    (void)sqlite3_bind_int64(statement, 1, to->id);
    (void)notes_bind_text(statement, 2, folded);
    (void)notes_bind_text(statement, 3, to->body);
    int rc = notes_statement_run(to->index, to->call, NOTES_PUT_BODY);
    if (rc == NG_OK) {
        rc = notes_rows_marks(to);
    }
    if (rc == NG_OK) {
        rc = put_searched(to, NOTES_PUT_GRAMS, folded);
    }
    if (rc == NG_OK) {
        rc = put_searched(to, NOTES_PUT_TERMS, folded);
    }
    if (rc == NG_OK) {
        rc = put_words(to, folded);
    }
    return rc;
}

static struct ng_str heads_of(const struct notes_row_source *to, const struct notes_note *note)
{
    struct buf heads;
    buf_init(&heads, HEADS_MAX);
    buf_add_str(&heads, to->title_fold);
    for (size_t i = 0; i < note->alias_count; i++) {
        buf_add_char(&heads, '\n');
        buf_add_str(&heads, without_nul(to->arena, notes_fold(to->arena, note->aliases[i])));
    }
    struct ng_str kept = arena_copy(to->arena, notes_buf_str(&heads));
    to->arena->failed = to->arena->failed || heads.rc != NG_OK;
    buf_done(&heads);
    return kept;
}

/* id: of the dropped rows, so that the ids stay small; 0: a new one. */
static int store(struct notes_index *index, struct ng_call *call, struct arena *arena,
                 const struct source *source, int64_t id)
{
    struct notes_row_source to = {.index = index, .call = call, .arena = arena, .id = id};
    struct notes_note note;
    if (notes_note_parse(arena, source->bytes, &note) != NG_OK) {
        return notes_fail_memory(call);
    }
    note.title = without_nul(arena, note.title);
    to.body = without_nul(arena, note.body);
    int rc = free_path(&to, source->file, &to.path);
    if (rc == NG_OK) {
        to.title = without_nul(arena, notes_note_title(&note, to.path));
        to.title_fold = notes_fold(arena, to.title);
        to.heads = heads_of(&to, &note);
        to.body_line = note.body_line;
        rc = notes_memory(call, !arena->failed);
    }
    if (rc == NG_OK) {
        rc = put_note(&to, source, &note);
    }
    if (rc == NG_OK) {
        rc = notes_rows_tags(&to, &note);
    }
    if (rc == NG_OK) {
        rc = notes_rows_properties(&to, &note);
    }
    if (rc == NG_OK) {
        rc = put_texts(&to);
    }
    if (rc == NG_OK) {
        rc = notes_rows_names(&to, &note);
    }
    if (rc == NG_OK) {
        rc = notes_rows_fields(&to, &note);
    }
    /* A missing row would be missing from every search until the file changes. */
    if (rc == NG_OK && arena->oom) {
        rc = notes_fail_memory(call);
    }
    return rc;
}

/* The bytes are unchanged: only times and inode are updated. */
static int touch(struct notes_index *index, struct ng_call *call, int64_t id,
                 const struct source *source, const struct notes_note *note)
{
    sqlite3_stmt *statement = notes_statement(index, NOTES_TOUCH_NOTE);
    (void)sqlite3_bind_int64(statement, 1, id);
    (void)sqlite3_bind_int64(statement, 2, source->stat.size);
    (void)sqlite3_bind_int64(statement, 3, source->stat.mtime_ns);
    (void)sqlite3_bind_int64(statement, 4, source->stat.ctime_ns);
    (void)sqlite3_bind_int64(statement, 5, source->stat.inode);
    (void)sqlite3_bind_int64(statement, 6, source->stat.device);
    (void)sqlite3_bind_int64(statement, 7, source->checked_ns);
    bind_times(statement, 8, source, note);
    int rc = notes_statement_run(index, call, NOTES_TOUCH_NOTE);
    if (rc == NG_OK) {
        rc = put_change(index, call, id);
    }
    return rc;
}

static bool is_known(const struct notes_known *known, const struct source *source)
{
    return known->id > 0 && source->revision[0] != '\0' &&
           strcmp(known->revision, source->revision) == 0;
}

static void drop_source(struct source *source, size_t *bytes)
{
    *bytes += source->bytes.len;
    free((void *)(uintptr_t)source->bytes.data);
}

/* The bytes are unchanged: only the front matter is parsed, which may hold the times. */
static int touch_known(struct notes_index *index, struct ng_call *call, struct arena *arena,
                       const struct notes_known *known, const struct source *source)
{
    struct notes_note note;
    if (notes_note_parse_frontmatter(arena, source->bytes, &note) != NG_OK) {
        return notes_fail_memory(call);
    }
    return touch(index, call, known->id, source, &note);
}

int notes_write_note(struct notes_index *index, struct ng_call *call, struct ng_str file,
                     struct arena *arena, size_t *bytes)
{
    struct source source = {.file = file};
    struct notes_known known;
    int rc = notes_write_find(index, call, file, &known);
    if (rc != NG_OK) {
        return rc;
    }
    rc = read_source(index, call, &source);
    bool there = rc != NG_ENOTFOUND;
    if (rc == NG_OK && is_known(&known, &source)) {
        rc = touch_known(index, call, arena, &known, &source);
    } else if (rc == NG_OK || !there) {
        rc = NG_OK;
        if (known.id > 0) {
            rc = drop_rows(index, call, known.id);
        }
        if (rc == NG_OK && there) {
            rc = store(index, call, arena, &source, known.id);
        } else if (rc == NG_OK && known.id > 0) {
            rc = put_change(index, call, known.id);
        }
    }
    drop_source(&source, bytes);
    return rc;
}

bool notes_write_differs(struct notes_index *index, struct ng_call *call, struct ng_str file)
{
    struct source source = {.file = file};
    struct notes_known known;
    size_t bytes = 0;
    if (notes_write_find(index, call, file, &known) != NG_OK || known.id == 0 ||
        read_source(index, call, &source) != NG_OK) {
        return false;
    }
    bool differs = !is_known(&known, &source);
    drop_source(&source, &bytes);
    return differs;
}

/* ---- renamed files ---- */

/* The target of a link depends on the path of the note. */
static int move_links(const struct notes_row_source *to, enum notes_statement find,
                      enum notes_statement put)
{
    sqlite3_stmt *rows = notes_statement(to->index, find);
    int rc = NG_OK;
    int row = SQLITE_DONE;
    (void)sqlite3_bind_int64(rows, 1, to->id);
    while (rc == NG_OK && (row = sqlite3_step(rows)) == SQLITE_ROW) {
        sqlite3_stmt *update = notes_statement(to->index, put);
        bool wiki = str_is(notes_column_text(rows, 1), "wiki");
        struct ng_str target = arena_copy(to->arena, notes_column_text(rows, 2));
        (void)sqlite3_bind_int64(update, 1, sqlite3_column_int64(rows, 0));
        (void)notes_bind_text(update, 2, notes_link_key(to->arena, to->path, wiki, target));
        rc = notes_statement_run(to->index, to->call, put);
    }
    if (rc == NG_OK && row != SQLITE_DONE) {
        rc = notes_schema_fail(to->index, to->call, "read");
    }
    (void)sqlite3_reset(rows);
    (void)sqlite3_clear_bindings(rows);
    return rc;
}

static int move_row(struct notes_row_source *to, const struct source *source,
                    const struct notes_note *note)
{
    sqlite3_stmt *statement = notes_statement(to->index, NOTES_MOVE_NOTE);
    struct ng_str path_fold = notes_fold(to->arena, to->path);
    if (path_fold.data == NULL) {
        return notes_fail_memory(to->call);
    }
    (void)sqlite3_bind_int64(statement, 1, to->id);
    (void)notes_bind_text(statement, 2, to->path);
    if (!str_equal(to->path, source->file)) {
        (void)sqlite3_bind_blob64(statement, 3, source->file.data, source->file.len,
                                  SQLITE_STATIC);
    }
    (void)notes_bind_text(statement, 4, path_fold);
    int rc = notes_statement_run(to->index, to->call, NOTES_MOVE_NOTE);
    if (rc == NG_OK) {
        (void)sqlite3_bind_int64(notes_statement(to->index, NOTES_DROP_NAMES), 1, to->id);
        rc = notes_statement_run(to->index, to->call, NOTES_DROP_NAMES);
    }
    if (rc == NG_OK) {
        rc = notes_rows_names(to, note);
    }
    if (rc == NG_OK) {
        rc = move_links(to, NOTES_FIND_LINKS, NOTES_MOVE_LINK);
    }
    if (rc == NG_OK) {
        rc = move_links(to, NOTES_FIND_IMAGES, NOTES_MOVE_IMAGE);
    }
    if (rc == NG_OK) {
        rc = touch(to->index, to->call, to->id, source, note);
    }
    return rc;
}

/* Without a title in front matter the searched title is the file's name: then a rename is a new
 * note. *ret_moved: the row was moved. */
static int move(struct notes_index *index, struct ng_call *call, struct arena *arena,
                const struct notes_known *known, const struct source *source,
                struct ng_str title, bool *ret_moved)
{
    struct notes_row_source to = {
        .index = index, .call = call, .arena = arena, .id = known->id};
    struct notes_note note;
    if (notes_note_parse_frontmatter(arena, source->bytes, &note) != NG_OK) {
        return notes_fail_memory(call);
    }
    note.title = without_nul(arena, note.title);
    (void)sqlite3_bind_int64(notes_statement(index, NOTES_MOVE_AWAY), 1, known->id);
    int rc = notes_statement_run(index, call, NOTES_MOVE_AWAY);
    if (rc == NG_OK) {
        rc = free_path(&to, source->file, &to.path);
    }
    *ret_moved =
        rc == NG_OK && str_equal(without_nul(arena, notes_note_title(&note, to.path)), title);
    if (*ret_moved) {
        rc = move_row(&to, source, &note);
    }
    return rc;
}

int notes_write_move(struct notes_index *index, struct ng_call *call, int64_t id,
                     struct ng_str file, struct arena *arena, size_t *bytes)
{
    struct source source = {.file = file};
    struct notes_known known = {.id = 0};
    sqlite3_stmt *row = notes_statement(index, NOTES_FIND_ROW);
    struct ng_str title = str_make("", 0);
    bool moved = false;
    (void)sqlite3_bind_int64(row, 1, id);
    if (sqlite3_step(row) == SQLITE_ROW) {
        notes_write_known(row, &known);
        title = arena_copy(arena, notes_column_text(row, 8));
    }
    (void)sqlite3_reset(row);
    int rc = read_source(index, call, &source);
    if (rc == NG_ENOTFOUND) {
        return notes_write_drop(index, call, id);
    }
    if (rc == NG_OK && is_known(&known, &source)) {
        rc = move(index, call, arena, &known, &source, title, &moved);
    }
    if (rc == NG_OK && !moved) {
        rc = drop_rows(index, call, id);
        if (rc == NG_OK) {
            rc = store(index, call, arena, &source, id);
        }
    }
    drop_source(&source, bytes);
    return rc;
}
