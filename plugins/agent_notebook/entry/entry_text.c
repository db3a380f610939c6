/* SPDX-License-Identifier: MIT */
/* entry_text.c - words, characters and lines of a text. */
#include "entry_text.h"

#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

/* Words are separated by the white space of Python's str.split(), so that word counts equal
 * those of entries from before this gateway. */
static bool space_code(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
           code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

size_t entry_space(struct ng_str text, size_t at)
{
    uint32_t code = 0;
    if (at == text.len) {
        return 0;
    }
    size_t len = utf8_decode(text, at, &code);
    if (len == 0 || !space_code(code)) {
        return 0;
    }
    return len;
}

uint64_t entry_words(struct ng_str text)
{
    uint64_t words = 0;
    bool in_word = false;
    size_t at = 0;
    while (at < text.len) {
        size_t space = entry_space(text, at);
        words += space == 0 && !in_word;
        in_word = space == 0;
        at += size_max(space, 1);
    }
    return words;
}

/* Bytes of the white space that ends before `end`. */
static size_t space_before(struct ng_str text, size_t end)
{
    for (size_t bytes = 1; bytes <= 3 && bytes <= end; bytes++) {
        struct ng_str head = {text.data, end};
        if (utf8_is_start(text.data[end - bytes])) {
            if (entry_space(head, end - bytes) == bytes) {
                return bytes;
            }
            return 0;
        }
    }
    return 0;
}

struct ng_str entry_trim(struct ng_str text)
{
    size_t from = 0;
    size_t to = text.len;
    size_t space;
    while ((space = entry_space(text, from)) > 0) {
        from += space;
    }
    while (to > from && (space = space_before(text, to)) > 0) {
        to -= space;
    }
    struct ng_str trimmed = {text.data == NULL ? NULL : text.data + from, to - from};
    return trimmed;
}

uint64_t entry_lines(struct ng_str text)
{
    return entry_line_of(text, text.len);
}

size_t entry_line_at(struct ng_str text, uint64_t number)
{
    size_t at = 0;
    for (uint64_t line = 1; line < number; line++) {
        const char *end = text.len > at ? memchr(text.data + at, '\n', text.len - at) : NULL;
        if (end == NULL) {
            return text.len;
        }
        at = (size_t)(end - text.data) + 1;
    }
    return at;
}

uint64_t entry_line_of(struct ng_str text, size_t at)
{
    return 1 + str_count(str_make(text.data, at), '\n');
}
