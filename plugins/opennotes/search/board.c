/* SPDX-License-Identifier: MIT */
/* board.c - the notes of an index in the order of answers. It is read once per connection, and
 * follows the table changes from then on. */
#include "board.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "filter/filter.h"
#include "notebook/notebook.h"
#include "search.h"

#define ABSENT INT64_MIN
#define SIZE_STEP ((size_t)1024) /* ids */

/* ---- statements ---- */

#define HEADING "EXISTS(SELECT 1 FROM headings h WHERE h.note=n.id AND notes_has(h.fold,?2))"
#define BODY "notes_has((SELECT b.folded FROM bodies b WHERE b.note=n.id),?2)"

/* The numbers are those of enum notes_mark. */
static const char *const statement_sql[NOTES_BOARD_STATEMENTS] = {
    [NOTES_BOARD_NEWS] = "SELECT seq, note FROM changes WHERE seq>=?1 ORDER BY seq",
    [NOTES_BOARD_PLACE] = "SELECT modified, path FROM notes WHERE id=?1",
    [NOTES_BOARD_TEXT] = "SELECT CASE WHEN notes_has(n.heads,?2) THEN 1 WHEN NOT " BODY
                         " THEN 0 WHEN " HEADING " THEN 2 ELSE 3 END FROM notes n WHERE "
                         "n.id=?1",
    [NOTES_BOARD_WHOLE] = "SELECT CASE WHEN notes_has(n.heads,?2) THEN 1 WHEN " HEADING
                          " THEN 2 WHEN " BODY " THEN 3 ELSE 0 END FROM notes n WHERE n.id=?1",
    [NOTES_BOARD_GRAMS] = "SELECT 1 FROM grams WHERE grams MATCH ?2 AND rowid=?1",
    [NOTES_BOARD_SIZE] = "SELECT size FROM notes WHERE id=?1",
    [NOTES_BOARD_WORDS] = "SELECT title, body FROM texts WHERE note=?1",
    [NOTES_BOARD_STEM] = "SELECT word FROM vocab WHERE stem=?1 LIMIT 1000",
    [NOTES_BOARD_FORMS] =
        "SELECT word FROM vocab WHERE stem=?1 AND NOT notes_has(word,?2) ORDER BY word",
    [NOTES_BOARD_BODY] = "SELECT b.content, b.folded, n.body_line FROM bodies b"
                         " JOIN notes n ON n.id=b.note WHERE b.note=?1",
};

static int prepare(struct notes_board *board)
{
    int rc = notes_filter_functions(board->db);
    for (size_t i = 0; i < NOTES_BOARD_STATEMENTS && rc == SQLITE_OK; i++) {
        rc = sqlite3_prepare_v3(board->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                &board->statements[i], NULL);
    }
    if (rc == SQLITE_OK) {
        rc = notes_summary_open(&board->summary, board->db, true);
    }
    return rc;
}

/* ---- the order ---- */

static void forget(struct notes_board *board)
{
    notes_needles_drop(board);
    free(board->order);
    free(board->modified);
    board->order = NULL;
    board->modified = NULL;
    board->count = board->cap = board->size = 0;
    board->change_count = 0;
    board->known = false;
}

static int grow(struct notes_board *board, size_t id)
{
    if (id < board->size) {
        return SQLITE_OK;
    }
    size_t size = (id / SIZE_STEP + 1) * SIZE_STEP;
    int64_t *modified = realloc(board->modified, size * sizeof(*modified));
    if (modified == NULL) {
        return SQLITE_NOMEM;
    }
    for (size_t i = board->size; i < size; i++) {
        modified[i] = ABSENT;
    }
    board->modified = modified;
    board->size = size;
    return SQLITE_OK;
}

/* Room for one more note in the order, and for the id. */
static int make_room(struct notes_board *board, size_t id)
{
    if (array_reserve((void **)&board->order, &board->cap, board->count + 1,
                      sizeof(*board->order), NOTES_BOARD_IDS_MAX) != NG_OK) {
        return SQLITE_NOMEM;
    }
    return grow(board, id);
}

static bool is_id(int64_t id)
{
    return id >= 0 && id < (int64_t)NOTES_BOARD_IDS_MAX;
}

/* *ret_known false: an id is none of ours, as in a damaged file. */
static int read_order(struct notes_board *board, bool *ret_known)
{
    sqlite3_stmt *rows = NULL;
    int rc = sqlite3_prepare_v2(board->db,
                                "SELECT id, modified FROM notes ORDER BY modified DESC, path",
                                -1, &rows, NULL);
    bool known = true;
    while (rc == SQLITE_OK && known && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(rows, 0);
        known = is_id(id);
        rc = SQLITE_OK;
        if (known) {
            rc = make_room(board, (size_t)id);
        }
        if (known && rc == SQLITE_OK) {
            board->order[board->count++] = (uint32_t)id;
            board->modified[id] = sqlite3_column_int64(rows, 1);
        }
    }
    (void)sqlite3_finalize(rows);
    rc = notes_done(rc);
    *ret_known = known && rc == SQLITE_OK;
    return rc;
}

/* The last change, and the greatest id: if that is over the limit, nothing else is read. */
static int read_last(const struct notes_board *board, int64_t *ret_seq, int64_t *ret_id)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(
        board->db, "SELECT (SELECT max(seq) FROM changes), (SELECT max(id) FROM notes)", -1,
        &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        *ret_seq = sqlite3_column_int64(statement, 0);
        *ret_id = sqlite3_column_int64(statement, 1);
    }
    (void)sqlite3_finalize(statement);
    return notes_done(rc);
}

static int read_all(struct notes_board *board)
{
    int64_t id = 0;
    forget(board);
    int rc = read_last(board, &board->seq, &id);
    if (rc != SQLITE_OK || !is_id(id)) {
        return rc;
    }
    rc = read_order(board, &board->known);
    board->since = board->seq;
    if (!board->known) {
        forget(board);
    }
    return rc;
}

/* ---- changes ---- */

static void take_out(struct notes_board *board, size_t id)
{
    if (id >= board->size || board->modified[id] == ABSENT) {
        return;
    }
    size_t at = 0;
    while (at < board->count && board->order[at] != id) {
        at++;
    }
    board->count--;
    memmove(board->order + at, board->order + at + 1,
            (board->count - at) * sizeof(*board->order));
    board->modified[id] = ABSENT;
}

/* The time of a note, and its path where ret_path is not NULL. ABSENT: it is gone. */
static int read_place(struct notes_board *board, size_t id, struct arena *arena,
                      int64_t *ret_modified, struct ng_str *ret_path)
{
    sqlite3_stmt *statement = board->statements[NOTES_BOARD_PLACE];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)id);
    int rc = sqlite3_step(statement);
    *ret_modified = ABSENT;
    if (rc == SQLITE_ROW) {
        *ret_modified = sqlite3_column_int64(statement, 0);
        *ret_path = arena_copy(arena, notes_column_text(statement, 1));
        rc = ret_path->data != NULL ? SQLITE_ROW : SQLITE_NOMEM;
    }
    (void)sqlite3_reset(statement);
    return notes_done(rc);
}

/* Is the note listed before one of this time and path? */
static int is_before(struct notes_board *board, struct arena *arena, size_t id,
                     int64_t modified, struct ng_str path, bool *ret_before)
{
    struct ng_str other = {NULL, 0};
    int64_t time = board->modified[id];
    *ret_before = time > modified;
    if (time != modified) {
        return SQLITE_OK;
    }
    int rc = read_place(board, id, arena, &time, &other);
    *ret_before = rc == SQLITE_OK && str_compare(other, path) < 0;
    return rc;
}

static int put_in(struct notes_board *board, struct arena *arena, size_t id)
{
    struct ng_str path = {NULL, 0};
    int64_t modified = ABSENT;
    size_t low = 0;
    size_t high = board->count;
    int rc = read_place(board, id, arena, &modified, &path);
    if (rc != SQLITE_OK || modified == ABSENT) {
        return rc;
    }
    while (low < high && rc == SQLITE_OK) {
        size_t middle = low + (high - low) / 2;
        bool before = false;
        rc = is_before(board, arena, board->order[middle], modified, path, &before);
        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (rc == SQLITE_OK) {
        rc = make_room(board, id);
    }
    if (rc == SQLITE_OK) {
        memmove(board->order + low + 1, board->order + low,
                (board->count - low) * sizeof(*board->order));
        board->order[low] = (uint32_t)id;
        board->count++;
        board->modified[id] = modified;
    }
    return rc;
}

/* A note is among the changes once, by its last row. Takes the earlier one out. */
static size_t without(struct notes_board_change *changes, size_t count, size_t note)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (changes[i].note != note) {
            changes[kept++] = changes[i];
        }
    }
    return kept;
}

static void remember(struct notes_board *board, int64_t seq, size_t note)
{
    board->change_count = without(board->changes, board->change_count, note);
    if (board->change_count == NOTES_BOARD_CHANGES_MAX) {
        size_t half = NOTES_BOARD_CHANGES_MAX / 2;
        board->since = board->changes[half - 1].seq;
        board->change_count -= half;
        memmove(board->changes, board->changes + half,
                board->change_count * sizeof(*board->changes));
    }
    board->changes[board->change_count++] = (struct notes_board_change){seq, note};
}

/* The changed notes after board->seq. *ret_few false: some of them are not in the table any
 * more, or they are too many. */
static int read_changes(struct notes_board *board, struct notes_board_change *changes,
                        size_t *ret_count, bool *ret_few)
{
    sqlite3_stmt *rows = board->statements[NOTES_BOARD_NEWS];
    int64_t wanted = board->seq; /* it must be there: else rows after it may be gone too */
    int rc = SQLITE_ROW;
    *ret_count = 0;
    *ret_few = true;
    (void)sqlite3_bind_int64(rows, 1, board->seq);
    while (*ret_few && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        int64_t seq = sqlite3_column_int64(rows, 0);
        int64_t note = sqlite3_column_int64(rows, 1);
        *ret_few = seq == wanted++;
        if (*ret_few && seq > board->seq) {
            *ret_count = without(changes, *ret_count, (size_t)note);
            *ret_few = is_id(note) && *ret_count < NOTES_BOARD_CHANGES_MAX / 2;
        }
        if (*ret_few && seq > board->seq) {
            changes[(*ret_count)++] = (struct notes_board_change){seq, (size_t)note};
        }
    }
    (void)sqlite3_reset(rows);
    *ret_few = *ret_few && wanted > board->seq;
    return notes_done(rc);
}

/* All changed notes are taken out first: the search for a place compares with notes that are in
 * their places. */
static int apply(struct notes_board *board, struct arena *arena,
                 const struct notes_board_change *changes, size_t count)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < count; i++) {
        take_out(board, changes[i].note);
    }
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
        size_t note = changes[i].note;
        if (note >= board->size || board->modified[note] == ABSENT) {
            rc = put_in(board, arena, note);
        }
        remember(board, changes[i].seq, note);
        board->seq = changes[i].seq;
    }
    return rc;
}

static int bring_up_to_date(struct notes_board *board, struct arena *arena)
{
    struct notes_board_change changes[NOTES_BOARD_CHANGES_MAX / 2];
    size_t count = 0;
    bool few = false;
    int rc = SQLITE_OK;
    if (board->known) {
        rc = read_changes(board, changes, &count, &few);
    }
    if (rc == SQLITE_OK && !few) {
        return read_all(board);
    }
    if (rc == SQLITE_OK) {
        rc = apply(board, arena, changes, count);
    }
    if (rc != SQLITE_OK) {
        forget(board); /* a part of the changes may be in it */
    }
    return rc;
}

/* ---- */

static void free_board(struct notes_kept *kept)
{
    struct notes_board *board = (struct notes_board *)(void *)kept;
    forget(board);
    for (size_t i = 0; i < NOTES_BOARD_STATEMENTS; i++) {
        (void)sqlite3_finalize(board->statements[i]);
    }
    notes_summary_done(&board->summary);
    free(board);
}

static int make_board(struct notes_search *search)
{
    struct notes_board *board = calloc(1, sizeof(*board));
    if (board == NULL) {
        return SQLITE_NOMEM;
    }
    board->kept.free = free_board;
    board->db = search->db;
    int rc = prepare(board);
    if (rc != SQLITE_OK) {
        free_board(&board->kept);
        return rc;
    }
    notes_index_keep(search->notebook->index, search->db, &board->kept);
    search->board = board;
    return SQLITE_OK;
}

int notes_board_open(struct notes_search *search)
{
    struct notes_kept *kept = notes_index_kept(search->notebook->index, search->db);
    int rc = SQLITE_OK;
    search->board = (struct notes_board *)(void *)kept;
    if (kept == NULL) {
        rc = make_board(search);
    }
    if (rc == SQLITE_OK) {
        rc = bring_up_to_date(search->board, search->arena);
    }
    return rc;
}
