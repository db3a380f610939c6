/* SPDX-License-Identifier: MIT */
/* screen.c - emulates a terminal: rows of characters, which are spans of the text. */
#include "screen.h"
#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Numbers in escape sequences; larger ones count as this. */
#define SCREEN_NUMBER_MAX 1000000
/* Characters and blanks of one row. */
#define SCREEN_ROW_MAX (SCREEN_CHARACTERS + SCREEN_BLANKS + 1)

struct screen_row {
    struct nb_span *characters; /* of the text; length 0: a blank */
    size_t count, size;
};

struct screen {
    struct nb_text *out;
    struct ng_str text;
    struct screen_row rows[SCREEN_ROWS]; /* ring buffer */
    size_t first, count;
    size_t row, column; /* of the cursor, which may be below the last row */
    size_t characters, blanks;
};

static struct screen_row *row_at(struct screen *screen, size_t row)
{
    return &screen->rows[(screen->first + row) % SCREEN_ROWS];
}

/* NULL: the cursor is below the last row. */
static struct screen_row *cursor_row(struct screen *screen)
{
    return screen->row < screen->count ? row_at(screen, screen->row) : NULL;
}

static void row_truncate(struct screen *screen, struct screen_row *row, size_t count)
{
    if (count < row->count) {
        screen->characters -= row->count - count;
        row->count = count;
    }
}

/* Without blanks at the end. */
static size_t row_length(const struct screen_row *row)
{
    size_t length = row->count;
    while (length > 0 && row->characters[length - 1].len == 0) {
        length--;
    }
    return length;
}

static void row_write(struct screen *screen, const struct screen_row *row)
{
    size_t length = row_length(row);
    for (size_t i = 0; i < length;) {
        struct nb_span piece = row->characters[i++];
        if (piece.len == 0) {
            nb_add(screen->out, " ", 1);
            continue;
        }
        while (i < length && row->characters[i].at == piece.at + piece.len) {
            piece.len += row->characters[i++].len;
        }
        nb_add_str(screen->out, nb_bytes(screen->text, piece));
    }
}

/* The first row becomes final. */
static void scroll(struct screen *screen)
{
    struct screen_row *row = row_at(screen, 0);
    row_write(screen, row);
    nb_add(screen->out, "\n", 1);
    row_truncate(screen, row, 0);
    screen->first = (screen->first + 1) % SCREEN_ROWS;
    screen->count--;
    screen->row -= screen->row > 0;
}

static void write_rows(struct screen *screen)
{
    for (size_t i = 0; i < screen->count; i++) {
        nb_add_if(screen->out, i > 0, "\n");
        row_write(screen, row_at(screen, i));
    }
}

static void remove_rows(struct screen *screen, size_t count)
{
    while (screen->count > count) {
        row_truncate(screen, row_at(screen, --screen->count), 0);
    }
}

/* Everything on the screen becomes final; the cursor's row goes on if it is the last one. */
static void make_final(struct screen *screen)
{
    write_rows(screen);
    nb_add_if(screen->out, screen->row + 1 < screen->count, "\n");
    remove_rows(screen, 0);
    screen->count = 1;
    screen->row = screen->column = 0;
}

static void row_push(struct screen *screen, struct screen_row *row, struct nb_span character)
{
    if (array_reserve((void **)&row->characters, &row->size, row->count + 1,
                      sizeof(*row->characters), SCREEN_ROW_MAX) != NG_OK) {
        screen->out->failed = true;
        return;
    }
    row->characters[row->count++] = character;
    screen->characters++;
}

static void put_character(struct screen *screen, struct nb_span character)
{
    if (screen->characters >= SCREEN_CHARACTERS) {
        make_final(screen);
    }
    screen->count = size_max(screen->count, screen->row + 1);
    struct screen_row *row = cursor_row(screen);
    while (row->count < screen->column && screen->blanks < SCREEN_BLANKS &&
           !screen->out->failed) {
        row_push(screen, row, (struct nb_span){0, 0});
        screen->blanks++;
    }
    screen->column = size_min(screen->column, row->count);
    if (screen->column == row->count) {
        row_push(screen, row, character);
    } else {
        row->characters[screen->column] = character;
    }
    screen->column++;
}

static void next_row(struct screen *screen)
{
    if (screen->row + 1 == SCREEN_ROWS) {
        screen->count = SCREEN_ROWS;
        scroll(screen);
    }
    screen->row++;
    screen->column = 0;
    screen->count = size_max(screen->count, screen->row + 1);
}

/* ---- escape sequences ---- */

struct sequence {
    size_t end;    /* behind it */
    bool complete; /* false: the text ends within it */
    char action;   /* '\0': none */
    size_t number; /* SIZE_MAX: none */
};

static bool is_between(struct ng_str text, size_t at, unsigned char least, unsigned char most)
{
    return at < text.len && (unsigned char)text.data[at] >= least &&
           (unsigned char)text.data[at] <= most;
}

/* ESC [, parameters, one character that says what to do. */
static void read_control(struct ng_str text, size_t at, struct sequence *ret)
{
    size_t first = at;
    size_t number = 0;
    while (is_between(text, at, '0', '9')) {
        number = size_min(number * 10 + (size_t)(text.data[at++] - '0'), SCREEN_NUMBER_MAX);
    }
    bool has_number = at > first;
    bool known = !is_between(text, at, 0x20, 0x3f) || text.data[at] == ';';
    while (is_between(text, at, 0x20, 0x3f)) {
        at++;
    }
    ret->complete = at < text.len;
    ret->end = at;
    if (is_between(text, at, 0x40, 0x7e)) { /* else another character breaks it off */
        ret->end = at + 1;
        ret->action = known ? text.data[at] : '\0';
        ret->number = has_number ? number : SIZE_MAX;
    }
}

/* A title or the like: up to BEL or ESC \, but not beyond the line: what follows a stray ESC ]
 * is not lost. */
static void read_string(struct ng_str text, size_t at, struct sequence *ret)
{
    while (at < text.len && memchr("\a\x1b\n", text.data[at], 3) == NULL) {
        at++;
    }
    ret->end = at;
    ret->complete = at < text.len && (text.data[at] != '\x1b' || at + 1 < text.len);
    if (is_between(text, at, '\a', '\a')) {
        ret->end = at + 1;
    } else if (is_between(text, at, 0x1b, 0x1b) && is_between(text, at + 1, '\\', '\\')) {
        ret->end = at + 2;
    }
}

/* The sequence whose ESC is at `at`. */
static struct sequence read_sequence(struct ng_str text, size_t at)
{
    struct sequence found = {.number = SIZE_MAX};
    at++;
    if (is_between(text, at, '[', '[')) {
        read_control(text, at + 1, &found);
        return found;
    }
    if (at < text.len && memchr("]P_^X", text.data[at], 5) != NULL) {
        read_string(text, at + 1, &found);
        return found;
    }
    while (is_between(text, at, 0x20, 0x2f)) {
        at++;
    }
    found.complete = at < text.len;
    found.end = is_between(text, at, 0x30, 0x7e) ? at + 1 : at;
    return found;
}

static bool changes_screen(struct sequence sequence)
{
    return sequence.action != '\0' && strchr("ABCDGJK", sequence.action) != NULL;
}

/* The cursor can move to this column of its row. */
static size_t last_column(struct screen *screen)
{
    const struct screen_row *row = cursor_row(screen);
    return size_max(SCREEN_COLUMNS - 1, row != NULL ? row_length(row) : 0);
}

static void erase_in_row(struct screen *screen, size_t how)
{
    struct screen_row *row = cursor_row(screen);
    if (row == NULL || how > 2) {
        return;
    }
    if (how == 0) {
        row_truncate(screen, row, screen->column);
    } else if (how == 2 || screen->column + 1 >= row->count) {
        row_truncate(screen, row, 0);
    } else {
        memset(row->characters, 0, (screen->column + 1) * sizeof(*row->characters));
    }
}

static void erase_rows(struct screen *screen, size_t how)
{
    if (how == 0) {
        erase_in_row(screen, 0);
        remove_rows(screen, size_max(screen->row + 1, 1));
    } else if (how == 2) {
        remove_rows(screen, 0);
        screen->count = 1;
        screen->row = 0;
    }
}

static void apply_sequence(struct screen *screen, struct sequence sequence)
{
    size_t how = sequence.number == SIZE_MAX ? 0 : sequence.number;
    size_t n = size_max(how, 1);
    switch (sequence.action) {
    case 'A':
        screen->row -= size_min(n, screen->row);
        break;
    case 'B':
        screen->row = size_min(screen->row + n, SCREEN_ROWS - 1);
        break;
    case 'C':
        screen->column =
            size_max(screen->column, size_min(screen->column + n, last_column(screen)));
        break;
    case 'D':
        screen->column -= size_min(n, screen->column);
        break;
    case 'G':
        screen->column = size_min(n - 1, last_column(screen));
        break;
    case 'J':
        erase_rows(screen, how);
        break;
    case 'K':
        erase_in_row(screen, how);
        break;
    default:
        break;
    }
}

/* ---- text ---- */

static size_t character_length(struct ng_str text, size_t at)
{
    size_t end = at + 1;
    while (end < text.len && !utf8_is_start(text.data[end])) {
        end++;
    }
    return end - at;
}

static void apply_character(struct screen *screen, struct nb_span character)
{
    char c = screen->text.data[character.at];
    if (c == '\n') {
        next_row(screen);
    } else if (c == '\r') {
        screen->column = 0;
    } else if (c == '\b') {
        screen->column -= screen->column > 0;
    } else if ((unsigned char)c >= 0x20 || c == '\t') {
        put_character(screen, character);
    }
}

/* Applies the text from `at` on. Returns the position of an incomplete sequence, or the end. */
static size_t apply_text(struct screen *screen, size_t at)
{
    struct ng_str text = screen->text;
    while (at < text.len && !screen->out->failed) {
        if (text.data[at] != '\x1b') {
            struct nb_span character = {at, character_length(text, at)};
            apply_character(screen, character);
            at += character.len;
            continue;
        }
        struct sequence sequence = read_sequence(text, at);
        if (!sequence.complete) {
            return at;
        }
        apply_sequence(screen, sequence);
        at = sequence.end;
    }
    return at;
}

/* The beginning of the last SCREEN_ROWS rows of plain text that ends at `end`. */
static size_t screen_begin(struct ng_str text, size_t end)
{
    for (size_t rows = 0; end > 0; end--) {
        if (text.data[end - 1] == '\n' && ++rows == SCREEN_ROWS) {
            return end;
        }
    }
    return 0;
}

/* The first control character but \n and \t: most text has none. */
static size_t plain_length(struct ng_str text)
{
    size_t end = 0;
    while (end < text.len && ((unsigned char)text.data[end] >= 0x20 || text.data[end] == '\n' ||
                              text.data[end] == '\t')) {
        end++;
    }
    return end;
}

static void screen_done(struct screen *screen)
{
    for (size_t i = 0; i < SCREEN_ROWS; i++) {
        free(screen->rows[i].characters);
    }
}

void screen_show(struct nb_text *out, struct ng_str text)
{
    size_t plain = plain_length(text);
    if (plain == text.len) {
        nb_add_str(out, text);
        return;
    }
    struct screen screen = {.out = out, .text = text, .count = 1};
    size_t begin = screen_begin(text, plain);
    nb_add(out, text.data, begin);
    (void)apply_text(&screen, begin);
    write_rows(&screen);
    screen_done(&screen);
}

/* ---- text that goes on ---- */

/* Is anything overwritten, erased, or put elsewhere than behind the text before it? */
static bool overwrites(struct ng_str text)
{
    for (size_t at = plain_length(text); at < text.len;) {
        char c = text.data[at];
        if (c == '\x1b') {
            struct sequence sequence = read_sequence(text, at);
            if (changes_screen(sequence)) {
                return true;
            }
            at = sequence.end;
            continue;
        }
        at++;
        if (c == '\b' || (c == '\r' && at < text.len && text.data[at] != '\n')) {
            return true;
        }
    }
    return false;
}

/* From behind the last row to the cursor. False: no sequence leads there. */
static bool write_cursor(struct screen *screen)
{
    size_t last = screen->count - 1;
    if (screen->row == last && screen->column == row_length(row_at(screen, last))) {
        return true;
    }
    if (screen->row > last) {
        nb_addf(screen->out, "\x1b[%zuB", screen->row - last);
    } else if (screen->row < last) {
        nb_addf(screen->out, "\x1b[%zuA", last - screen->row);
    }
    nb_addf(screen->out, "\x1b[%zuG", screen->column + 1);
    return screen->column <= last_column(screen);
}

size_t screen_settle(struct nb_text *out, struct ng_str text)
{
    if (!overwrites(text)) {
        nb_add_str(out, text);
        return screen_begin(text, text.len);
    }
    size_t before = out->len;
    struct screen screen = {.out = out, .text = text, .count = 1};
    size_t at = apply_text(&screen, 0);
    size_t final = out->len - before;
    write_rows(&screen);
    if (!write_cursor(&screen)) {
        out->len = before;
        final = 0;
        at = 0;
    }
    nb_add(out, text.data + at, text.len - at);
    screen_done(&screen);
    return final;
}
