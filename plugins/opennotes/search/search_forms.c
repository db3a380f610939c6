/* SPDX-License-Identifier: MIT */
/* search_forms.c - other forms of the words of a query: "batteries" finds "battery". */
#include "search.h"

static int find_forms(struct notes_search *search, sqlite3_stmt *rows, size_t i)
{
    struct notes_forms *forms = &search->forms[i];
    char stem[NOTES_STEM_BYTES_MAX];
    int rc = notes_bind_text(rows, 1, notes_stem(search->written[i], stem));
    if (rc == SQLITE_OK) {
        rc = notes_bind_text(rows, 2, search->words[i]);
    }
    while (rc == SQLITE_OK && forms->count < NOTES_FORMS_MAX &&
           (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct ng_str form = arena_copy(search->arena, notes_column_text(rows, 0));
        rc = form.data != NULL ? SQLITE_OK : SQLITE_NOMEM;
        forms->words[forms->count++] = form;
    }
    (void)sqlite3_reset(rows);
    return notes_done(rc);
}

int notes_search_forms(struct notes_search *search)
{
    sqlite3_stmt *rows = search->board->statements[NOTES_BOARD_FORMS];
    int rc = SQLITE_OK;
    for (size_t i = 0; i < search->word_count && rc == SQLITE_OK; i++) {
        search->forms[i].count = 0;
        rc = find_forms(search, rows, i);
    }
    return rc;
}
