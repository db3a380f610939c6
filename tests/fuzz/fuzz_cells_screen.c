/* SPDX-License-Identifier: MIT */
/* fuzz_cells_screen.c - text for a terminal, of which the first part is settled before the rest
 * comes: the first byte says where, the others are the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "notebook/screen.h"

/* Up to here no row can be longer than SCREEN_COLUMNS, and no limit is reached. */
#define SMALL 250

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* No control character is left. */
static void check_shown(const struct nb_text *shown)
{
    check(!shown->failed);
    for (size_t i = 0; i < shown->len; i++) {
        unsigned char c = (unsigned char)shown->data[i];
        check(c >= 0x20 || c == '\n' || c == '\t');
    }
}

/* Without blanks at the end of rows. */
static void trim(struct nb_text *text)
{
    size_t len = 0;
    for (size_t i = 0; i < text->len; i++) {
        while (text->data[i] == '\n' && len > 0 && text->data[len - 1] == ' ') {
            len--;
        }
        text->data[len++] = text->data[i];
    }
    while (len > 0 && text->data[len - 1] == ' ') {
        len--;
    }
    text->len = len;
}

static void check_settle(struct ng_str text, size_t at, struct nb_text *shown)
{
    struct nb_text settled = {0};
    struct nb_text parts = {0};
    size_t final = screen_settle(&settled, str_make(text.data, at));
    check(final <= settled.len);
    nb_add(&settled, text.data + at, text.len - at);
    screen_show(&parts, str_make(settled.data, final));
    screen_show(&parts, str_make(settled.data + final, settled.len - final));
    check_shown(&parts);
    trim(&parts);
    trim(shown);
    check(parts.len == shown->len && memcmp(parts.data, shown->data, parts.len) == 0);
    nb_text_done(&settled);
    nb_text_done(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct ng_str text = {(const char *)data + 1, size - 1};
    size_t at = data[0] % (text.len + 1);
    struct nb_text shown = {0};
    screen_show(&shown, text);
    check_shown(&shown);
    bool between = at == text.len || utf8_is_start(text.data[at]);
    if (text.len <= SMALL && between && utf8_valid(text) && shown.len > 0) {
        check_settle(text, at, &shown);
    }
    nb_text_done(&shown);
    return 0;
}
