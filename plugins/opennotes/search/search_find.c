/* SPDX-License-Identifier: MIT */
/* search_find.c - the search of a notebook for a search over all kinds of resources: the same
 * notes in the same order, after those with an equal title. */
#include "notebook/notebook.h"
#include "search.h"

/* ?1: the folded text. A note without a title has its file's name. */
#define TITLED                                                                                 \
    "SELECT DISTINCT m.id FROM names x JOIN notes m ON m.id=x.note WHERE x.key=?1 AND "        \
    "(x.kind='title' OR (x.kind='file' AND m.title IS NULL)) ORDER BY m.modified DESC, "       \
    "m.path LIMIT 8"
#define NOTE "SELECT path, title, file, modified FROM notes WHERE id=?1"

struct notes_finding {
    notes_found_fn *fn;
    void *user;
    sqlite3_stmt *note;
    int64_t titled[NOTES_FIND_TITLED_MAX];
    size_t titled_count;
    bool by_title;
};

static bool was_titled(const struct notes_finding *finding, int64_t note)
{
    for (size_t i = 0; i < finding->titled_count; i++) {
        if (finding->titled[i] == note) {
            return true;
        }
    }
    return false;
}

static int pass_note(struct notes_search *search, int64_t note)
{
    struct notes_finding *finding = search->finding;
    struct notes_found found = {.exact = finding->by_title};
    (void)sqlite3_bind_int64(finding->note, 1, note);
    int rc = sqlite3_step(finding->note);
    if (rc == SQLITE_ROW) {
        found.path = notes_column_text(finding->note, 0);
        found.title = notes_column_text(finding->note, 1);
        found.file = str_make(sqlite3_column_blob(finding->note, 2),
                              (size_t)sqlite3_column_bytes(finding->note, 2));
        found.modified_ms = sqlite3_column_int64(finding->note, 3);
        rc = notes_search_place(search, note, &found.line, &found.excerpt);
    }
    if (rc == SQLITE_OK && finding->fn(finding->user, &found) != NG_OK) {
        rc = SQLITE_NOMEM;
    }
    (void)sqlite3_reset(finding->note);
    return notes_done(rc);
}

int notes_search_found(struct notes_search *search, int64_t note)
{
    struct notes_finding *finding = search->finding;
    if (!notes_answer_row(&search->answer) || was_titled(finding, note)) {
        return SQLITE_OK;
    }
    search->answer.returned++;
    return pass_note(search, note);
}

static int find_titled(struct notes_search *search)
{
    struct notes_finding *finding = search->finding;
    sqlite3_stmt *rows = NULL;
    int rc = sqlite3_prepare_v2(search->db, TITLED, -1, &rows, NULL);
    if (rc == SQLITE_OK) {
        rc = notes_bind_text(rows, 1, search->folded);
    }
    finding->by_title = true;
    while (rc == SQLITE_OK && finding->titled_count < NOTES_FIND_TITLED_MAX &&
           (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        int64_t note = sqlite3_column_int64(rows, 0);
        finding->titled[finding->titled_count++] = note;
        rc = pass_note(search, note);
    }
    finding->by_title = false;
    (void)sqlite3_finalize(rows);
    return notes_done(rc);
}

static int find_rows(struct notes_search *search)
{
    int rc = notes_board_open(search);
    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(search->db, NOTE, -1, &search->finding->note, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = find_titled(search);
    }
    if (rc == SQLITE_OK) {
        rc = notes_search_text(search);
    }
    (void)sqlite3_finalize(search->finding->note);
    return rc;
}

int notes_search_find(struct notes_notebook *notebook, struct ng_call *call,
                      struct arena *arena, const struct notes_find *find, uint64_t *ret_total)
{
    struct notes_filter *filter = NULL;
    struct notes_finding finding = {.fn = find->fn, .user = find->user};
    struct notes_search search = {
        .call = call,
        .arena = arena,
        .notebook = notebook,
        .query = find->text,
        .finding = &finding,
    };
    int rc = notes_filter_compile(call, NULL, NG_EINVAL, &filter);
    if (rc != NG_OK) {
        return rc;
    }
    search.filter = filter;
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
                       (int64_t)find->limit + NOTES_FIND_TITLED_MAX, 0);
    rc = find_rows(&search);
    *ret_total = (uint64_t)search.answer.rows;
    notes_answer_drop(&search.answer);
    return notes_search_fail(&search, rc);
}
