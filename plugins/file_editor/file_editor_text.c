/* SPDX-License-Identifier: MIT */
/* file_editor_text.c - texts by lines: what a line is, how lines are shown, what is no text. */
#include <string.h>

#include "core/base/minmax.h"
#include "file_editor.h"

#define NUMBER_WIDTH 6
#define NUMBER_DIGITS_MAX 20
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

size_t editor_count(struct ng_str text, char c)
{
    size_t count = 0;
    const char *at = text.data;
    const char *end = at + text.len;
    while (at != end && (at = memchr(at, c, (size_t)(end - at))) != NULL) {
        count++;
        at++;
    }
    return count;
}

size_t editor_find(struct ng_str text, struct ng_str needle, size_t from)
{
    if (needle.len == 0 || from > text.len || text.len - from < needle.len) {
        return SIZE_MAX;
    }
    const char *hit = memmem(text.data + from, text.len - from, needle.data, needle.len);
    if (hit == NULL) {
        return SIZE_MAX;
    }
    return (size_t)(hit - text.data);
}

bool editor_ends_with(struct ng_str text, const char *ending)
{
    size_t len = strlen(ending);
    return text.len >= len && strncasecmp(text.data + text.len - len, ending, len) == 0;
}

size_t editor_bom(struct ng_str text)
{
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) {
        return 3;
    }
    return 0;
}

/* ---- what is text */

/* The byte begins a character: what must follow. */
static void check_first(struct editor_check *check, unsigned char byte)
{
    check->low = 0x80;
    check->high = 0xbf;
    if (byte < 0x80) {
        check->nul = check->nul || byte == 0;
    } else if (byte >= 0xc2 && byte <= 0xdf) {
        check->need = 1;
    } else if (byte >= 0xe0 && byte <= 0xef) {
        check->need = 2;
        if (byte == 0xe0) {
            check->low = 0xa0;
        } else {
            check->low = 0x80;
        }
        if (byte == 0xed) {
            check->high = 0x9f;
        } else {
            check->high = 0xbf;
        }
    } else if (byte >= 0xf0 && byte <= 0xf4) {
        check->need = 3;
        if (byte == 0xf0) {
            check->low = 0x90;
        } else {
            check->low = 0x80;
        }
        if (byte == 0xf4) {
            check->high = 0x8f;
        } else {
            check->high = 0xbf;
        }
    } else {
        check->bad = true;
    }
}

void editor_check_add(struct editor_check *check, struct ng_str chunk)
{
    for (size_t i = 0; i < chunk.len; i++) {
        unsigned char byte = (unsigned char)chunk.data[i];
        if (check->need == 0) {
            check_first(check, byte);
        } else if (byte >= check->low && byte <= check->high) {
            check->need--;
            check->low = 0x80;
            check->high = 0xbf;
        } else {
            check->bad = true;
            check->need = 0;
            check_first(check, byte);
        }
    }
}

void editor_check_end(struct editor_check *check)
{
    check->bad = check->bad || check->need > 0;
}

const char *editor_not_text(struct ng_str text)
{
    struct editor_check check = {0};
    if (text.len >= 2 &&
        (memcmp(text.data, "\xff\xfe", 2) == 0 || memcmp(text.data, "\xfe\xff", 2) == 0)) {
        return "it is UTF-16 text, not UTF-8";
    }
    editor_check_add(&check, text);
    editor_check_end(&check);
    if (check.nul) {
        return "it holds NUL bytes, so it is binary or not UTF-8 text";
    }
    if (check.bad) {
        return "it holds bytes that are not UTF-8 text";
    }
    return NULL;
}

/* Bytes of the valid character at the beginning of `text`, 0: none. */
static size_t character(struct ng_str text)
{
    struct editor_check check = {0};
    check_first(&check, (unsigned char)text.data[0]);
    size_t len = check.need + 1;
    if (check.bad || check.nul || len > text.len) {
        return 0;
    }
    editor_check_add(&check, editor_str(text.data + 1, len - 1));
    if (check.bad || check.need > 0) {
        return 0;
    }
    return len;
}

struct ng_str editor_clean(struct ng_call *call, struct ng_str text)
{
    size_t bad = 0;
    for (size_t i = 0; i < text.len;) {
        size_t len = character(editor_str(text.data + i, text.len - i));
        bad += len == 0;
        if (len == 0) {
            i += 1;
        } else {
            i += len;
        }
    }
    if (bad == 0 && text.data != NULL) {
        return text;
    }
    size_t room = text.len + bad * (sizeof(REPLACEMENT) - 2);
    char *clean = ng_alloc(call, room + 1);
    if (clean == NULL) {
        return editor_str(NULL, 0);
    }
    size_t used = 0;
    for (size_t i = 0; i < text.len;) {
        size_t len = character(editor_str(text.data + i, text.len - i));
        const char *from = REPLACEMENT;
        if (len != 0) {
            from = text.data + i;
        }
        size_t bytes = len;
        if (len == 0) {
            bytes = sizeof(REPLACEMENT) - 1;
        }
        memcpy(clean + used, from, bytes);
        used += bytes;
        if (len == 0) {
            i += 1;
        } else {
            i += len;
        }
    }
    return editor_str(clean, used);
}

/* ---- lines */

/* Where line `line` (from 1) begins; text.len where there is none. */
static size_t line_start(struct ng_str text, size_t line)
{
    size_t at = 0;
    while (line > 1 && at < text.len) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        if (end == NULL) {
            return text.len;
        }
        at = (size_t)(end - text.data) + 1;
        line--;
    }
    return at;
}

static size_t put_number(char *out, size_t number)
{
    char digits[NUMBER_DIGITS_MAX];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    size_t len = 0;
    while (len + count < NUMBER_WIDTH) {
        out[len++] = ' ';
    }
    while (count > 0) {
        out[len++] = digits[--count];
    }
    out[len++] = ' ';
    out[len++] = ' ';
    return len;
}

struct ng_str editor_numbered(struct ng_call *call, struct ng_str text, size_t first,
                              size_t last, size_t number)
{
    size_t from = line_start(text, first);
    size_t to =
        from + line_start(editor_str(text.data + from, text.len - from), last - first + 2);
    struct ng_str part = {text.data + from, to - from};
    size_t lines = last - first + 1;
    size_t room = part.len + editor_count(part, '\t') * (sizeof(EDITOR_TAB) - 2) +
                  lines * (NUMBER_DIGITS_MAX + 3) + 1;
    char *out = ng_alloc(call, room);
    if (out == NULL) {
        return editor_str(NULL, 0);
    }
    size_t len = 0;
    size_t at = 0;
    for (size_t i = 0; i < lines; i++) {
        len += put_number(out + len, number + i);
        for (; at < part.len && part.data[at] != '\n'; at++) {
            if (part.data[at] == '\t') {
                memcpy(out + len, EDITOR_TAB, sizeof(EDITOR_TAB) - 1);
                len += sizeof(EDITOR_TAB) - 1;
            } else {
                out[len++] = part.data[at];
            }
        }
        at++; /* the line feed */
        out[len++] = '\n';
    }
    return editor_str(out, len);
}

int editor_reply_lines(struct ng_call *call, struct ng_str prefix, struct ng_str label,
                       struct ng_str lines, const char *suffix)
{
    if (lines.data == NULL) {
        return ng_fail(call, NG_ETOOLARGE,
                       "The answer is too large for one call. View a part of the file with "
                       "`view_range`.");
    }
    struct ng_str pieces[] = {
        prefix, ng_str_of("Here's the result of running `cat -n` on "),
        label,  ng_str_of(":\n"),
        lines,  ng_str_of(suffix),
    };
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int editor_reply_snippet(struct ng_call *call, struct ng_str prefix, struct ng_str label,
                         struct ng_str text, size_t line, size_t lines, const char *suffix)
{
    size_t total = editor_count(text, '\n') + 1;
    size_t first = 0;
    if (line > EDITOR_SNIPPET_LINES) {
        first = line - EDITOR_SNIPPET_LINES;
    }
    size_t end = line + lines + EDITOR_SNIPPET_LINES;
    end = size_min(end, total);
    struct ng_str shown = editor_numbered(call, text, first + 1, end, first + 1);
    return editor_reply_lines(call, prefix, label, shown, suffix);
}
