/* SPDX-License-Identifier: MIT */
/* json_text.c - JSON texts, looked at without parsing them. */
#include "json_text.h"

#include <string.h>

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "json.h"

/* U+FFFD; as long as what it replaces. */
#define ESCAPED_REPLACEMENT "\\ufffd"

/* ---- lone surrogates ---- */

/* The UTF-16 unit of the \u escape at `at`; -1: there is none. */
static int escaped_unit(const char *text, size_t at, size_t end)
{
    int unit = 0;
    if (end - at < JSON_ESCAPE_LEN || text[at] != '\\' || text[at + 1] != 'u') {
        return -1;
    }
    for (size_t i = at + 2; i < at + JSON_ESCAPE_LEN; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0) {
            return -1;
        }
        unit = unit * 16 + digit;
    }
    return unit;
}

size_t json_find_lone_surrogate(const char *text, size_t at, size_t end)
{
    while (at < end) {
        const char *escape = memchr(text + at, '\\', end - at);
        if (escape == NULL) {
            break;
        }
        at = (size_t)(escape - text);
        int unit = escaped_unit(text, at, end);
        if (unit < 0xd800 || unit > 0xdfff) {
            at += unit < 0 ? 2 : JSON_ESCAPE_LEN;
            continue;
        }
        bool paired =
            unit < 0xdc00 && (escaped_unit(text, at + JSON_ESCAPE_LEN, end) & ~0x3ff) == 0xdc00;
        if (!paired) {
            return at;
        }
        at += 2 * JSON_ESCAPE_LEN;
    }
    return end;
}

void json_replace_lone_surrogates(char *text, size_t len)
{
    size_t at = json_find_lone_surrogate(text, 0, len);
    while (at < len) {
        memcpy(text + at, ESCAPED_REPLACEMENT, JSON_ESCAPE_LEN);
        at = json_find_lone_surrogate(text, at + JSON_ESCAPE_LEN, len);
    }
}

/* ---- byte order mark ---- */

struct ng_str json_skip_mark(struct ng_str text)
{
    static const char mark[] = "\xef\xbb\xbf";
    static const size_t len = sizeof(mark) - 1;
    bool has_mark = text.len >= len && memcmp(text.data, mark, len) == 0;
    return has_mark ? str_make(text.data + len, text.len - len) : text;
}

/* ---- counting ---- */

/* Behind the quote that ends the string which `at` is in, or the piece's end. */
static size_t string_end(struct json_counter *counter, struct ng_str text, size_t at)
{
    while (at < text.len) {
        if (text.len - at >= sizeof(uint64_t) && !counter->is_escaped) {
            uint64_t word = str_word(text.data + at);
            uint64_t marks = str_word_mark(word, '"') | str_word_mark(word, '\\');
            if (marks == 0) {
                at += sizeof(word);
                continue;
            }
            at += str_word_first(marks);
        }
        char c = text.data[at++];
        if (counter->is_escaped) {
            counter->is_escaped = false;
        } else if (c == '"') {
            counter->in_string = false;
            return at;
        } else {
            counter->is_escaped = c == '\\';
        }
    }
    return at;
}

void json_count_piece(struct json_counter *counter, struct ng_str piece)
{
    size_t at = 0;
    while (at < piece.len) {
        if (counter->in_string) {
            at = string_end(counter, piece, at);
            continue;
        }
        char c = piece.data[at++];
        counter->in_string = c == '"';
        counter->separators += c == ',' || c == '[' || c == '{';
    }
}
