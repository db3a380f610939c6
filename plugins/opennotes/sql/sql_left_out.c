/* SPDX-License-Identifier: MIT */
/* sql_left_out.c - notes whose front matter does not parse: a statement with conditions that
 * read properties of one may have left it out. */
#include <stdlib.h>

#include "sql_parts.h"

#include "core/base/array.h"

#define NOTES_MAX ((size_t)1 << 32)

/* True: the statement can filter rows. */
static bool has_conditions(struct ng_str sql)
{
    static const char *const words[] = {"WHERE", "HAVING", "ON", "json_each", "json_tree"};
    struct notes_token token;
    size_t at = 0;
    do {
        token = notes_token_next(sql, &at);
        for (size_t i = 0; i < NG_COUNT(words); i++) {
            if (notes_token_is(&token, words[i])) {
                return true;
            }
        }
    } while (token.kind != NOTES_TOKEN_END);
    return false;
}

int notes_sql_broken_begin(struct notes_sql_guard *guard, const struct notes_sql *sql,
                           struct notes_answer *answer)
{
    bool broken = false;
    int rc = SQLITE_OK;
    if (sql->left_out != NULL && has_conditions(sql->text)) {
        rc = notes_index_has_broken(guard->index, &broken);
    }
    if (rc == SQLITE_OK && broken) {
        rc = sqlite3_prepare_v2(
            guard->index, "SELECT id FROM notes WHERE path=?1 AND front_error IS NOT NULL", -1,
            &guard->broken_at, NULL);
        notes_answer_reserve(answer, NOTES_LEFT_OUT_BYTES_MAX);
    }
    return rc;
}

/* The position of the note in the list, or of the first one behind it. */
static size_t position_of(const struct notes_sql_guard *guard, int64_t note)
{
    size_t from = 0;
    size_t to = guard->broken_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (guard->broken[middle].note < note) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

int notes_sql_broken_read(struct notes_sql_guard *guard, int64_t note)
{
    size_t at = position_of(guard, note);
    if (guard->broken_at == NULL ||
        (at < guard->broken_count && guard->broken[at].note == note)) {
        return SQLITE_OK;
    }
    if (array_reserve((void **)&guard->broken, &guard->broken_cap, guard->broken_count + 1,
                      sizeof(*guard->broken), NOTES_MAX) != NG_OK) {
        return SQLITE_NOMEM;
    }
    memmove(guard->broken + at + 1, guard->broken + at,
            (guard->broken_count - at) * sizeof(*guard->broken));
    guard->broken[at] = (struct notes_sql_broken){.note = note};
    guard->broken_count++;
    return SQLITE_OK;
}

void notes_sql_broken_row(struct notes_sql_guard *guard, sqlite3_stmt *statement)
{
    int columns = guard->broken_count > 0 ? sqlite3_data_count(statement) : 0;
    for (int i = 0; i < columns; i++) {
        struct ng_str text = {NULL, 0};
        if (sqlite3_column_type(statement, i) == SQLITE_TEXT) {
            text = notes_column_text(statement, i);
        }
        if (!notes_tree_is_note(text)) {
            continue;
        }
        (void)notes_bind_text(guard->broken_at, 1, text);
        if (sqlite3_step(guard->broken_at) == SQLITE_ROW) {
            int64_t note = sqlite3_column_int64(guard->broken_at, 0);
            size_t at = position_of(guard, note);
            if (at < guard->broken_count && guard->broken[at].note == note) {
                guard->broken[at].is_row = true;
            }
        }
        (void)sqlite3_reset(guard->broken_at);
    }
}

int notes_sql_broken_end(struct notes_sql_guard *guard, struct notes_left_out *left)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < guard->broken_count && rc == SQLITE_OK; i++) {
        if (!guard->broken[i].is_row) {
            rc = notes_left_out_add(left, guard->index, guard->broken[i].note);
        }
    }
    return rc;
}

void notes_sql_broken_done(struct notes_sql_guard *guard)
{
    (void)sqlite3_finalize(guard->broken_at);
    free(guard->broken);
}
