/* SPDX-License-Identifier: MIT */
/* blame_splice.c - splices of a text in chunks. */
#include "blame_splice.h"

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a character behind its first one. */
#define BLAME_UTF8_REST (UTF8_BYTES_MAX - 1)

/* The byte at the place, which moves on; false: the text ends there. */
static bool bytes_next(const struct blame_bytes *text, struct chunks_place *place, char *ret)
{
    if (place->before >= text->end) {
        return false;
    }
    *ret = *(const char *)chunks_next(text->chunks, place);
    return true;
}

/* The byte before the place, which moves back; it is not the beginning. */
static char bytes_before(const struct blame_bytes *text, struct chunks_place *place)
{
    if (place->index == 0) {
        place->chunk--;
        place->index = text->chunks->list[place->chunk].count;
    }
    place->index--;
    place->before--;
    return text->chunks->list[place->chunk].items[place->index];
}

/* ---- the one form of a splice ---- */

static void splice_trim_head(const struct blame_bytes *text, struct ng_splice *splice)
{
    struct chunks_place place = chunks_find(text->chunks, splice->at);
    char c;
    while (splice->removed > 0 && splice->inserted.len > 0 && bytes_next(text, &place, &c) &&
           c == splice->inserted.data[0]) {
        splice->at++;
        splice->removed--;
        splice->inserted.data++;
        splice->inserted.len--;
    }
}

static void splice_trim_tail(const struct blame_bytes *text, struct ng_splice *splice)
{
    struct chunks_place place = chunks_find(text->chunks, splice->at + splice->removed);
    while (splice->removed > 0 && splice->inserted.len > 0 &&
           bytes_before(text, &place) == splice->inserted.data[splice->inserted.len - 1]) {
        splice->removed--;
        splice->inserted.len--;
    }
}

/* Removed bytes that come again behind them: the last of these are those that go. */
static void splice_slide_removed(const struct blame_bytes *text, struct ng_splice *splice)
{
    struct chunks_place first = chunks_find(text->chunks, splice->at);
    struct chunks_place behind = chunks_find(text->chunks, splice->at + splice->removed);
    char a;
    char b;
    while (bytes_next(text, &behind, &b) && bytes_next(text, &first, &a) && a == b) {
        splice->at++;
    }
}

/* Inserted bytes that stand there already: the last of these are those that came. */
static int splice_slide_inserted(const struct blame_bytes *text, struct ng_splice *splice,
                                 char **ret_owned)
{
    struct ng_str in = splice->inserted;
    struct chunks_place place = chunks_find(text->chunks, splice->at);
    size_t turn = 0; /* the byte of `in` that the slid splice begins with */
    char c;
    while (bytes_next(text, &place, &c) && c == in.data[turn]) {
        splice->at++;
        turn = turn + 1 == in.len ? 0 : turn + 1;
    }
    if (turn == 0) {
        return NG_OK;
    }
    char *turned = alloc_bytes(in.len);
    if (turned == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(turned, in.data + turn, in.len - turn);
    memcpy(turned + in.len - turn, in.data, turn);
    splice->inserted.data = turned;
    *ret_owned = turned;
    return NG_OK;
}

int blame_splice_narrow(const struct blame_bytes *text, struct ng_splice *splice,
                        char **ret_owned)
{
    *ret_owned = NULL;
    splice_trim_head(text, splice);
    splice_trim_tail(text, splice);
    if (splice->removed == 0 && splice->inserted.len > 0) {
        return splice_slide_inserted(text, splice, ret_owned);
    }
    if (splice->removed > 0 && splice->inserted.len == 0) {
        splice_slide_removed(text, splice);
    }
    return NG_OK;
}

/* ---- UTF-8 ---- */

int blame_splice_utf8(const struct blame_bytes *text, const struct ng_splice *splice)
{
    char before[BLAME_UTF8_REST];
    char behind[BLAME_UTF8_REST];
    size_t before_len = 0;
    size_t behind_len = 0;
    char c;
    /* The first bytes of a character that the splice cuts, and the last ones. */
    struct chunks_place place = chunks_find(text->chunks, splice->at);
    struct chunks_place next = place;
    while (before_len < sizeof(before) && next.before > 0 && bytes_next(text, &next, &c) &&
           !utf8_is_start(c)) {
        before[sizeof(before) - ++before_len] = bytes_before(text, &place);
        next = place;
    }
    next = chunks_find(text->chunks, splice->at + splice->removed);
    while (behind_len < sizeof(behind) && bytes_next(text, &next, &c) && !utf8_is_start(c)) {
        behind[behind_len++] = c;
    }
    struct ng_str in = splice->inserted;
    if (before_len + behind_len == 0) {
        return utf8_valid(in) ? NG_OK : NG_EINVAL;
    }
    char *whole = alloc_bytes(before_len + in.len + behind_len);
    if (whole == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(whole, before + sizeof(before) - before_len, before_len);
    if (in.len > 0) {
        memcpy(whole + before_len, in.data, in.len);
    }
    memcpy(whole + before_len + in.len, behind, behind_len);
    bool valid = utf8_valid(str_make(whole, before_len + in.len + behind_len));
    free(whole);
    return valid ? NG_OK : NG_EINVAL;
}
