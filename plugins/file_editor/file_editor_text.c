/* SPDX-License-Identifier: MIT */
/* file_editor_text.c - texts as lines: definition of a line, numbered lines, detection of
 * binary files. */
#include <stdio.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/utf8.h"
#include "file_editor.h"

#define NUMBER_WIDTH 6
#define NUMBER_DIGITS_MAX 20

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

bool editor_ends_with(struct ng_str text, const char *ending)
{
    size_t len = strlen(ending);
    return text.len >= len && strncasecmp(text.data + text.len - len, ending, len) == 0;
}

size_t editor_bom(struct ng_str text)
{
    bool has_bom = text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0;
    return has_bom ? 3 : 0;
}

/* ---- detection of text */

void editor_check_add(struct editor_check *check, struct ng_str chunk)
{
    for (size_t i = 0; i < chunk.len && check->bytes < sizeof(check->head); i++) {
        check->head[check->bytes++] = (unsigned char)chunk.data[i];
    }
    check->nul = check->nul || (chunk.len > 0 && memchr(chunk.data, '\0', chunk.len) != NULL);
    for (size_t i = 0; i < chunk.len && !check->invalid;) {
        size_t len = 0;
        if (check->tail_len == 0) {
            len = utf8_length(chunk, i);
        }
        i += len;
        if (len > 0) {
            continue;
        }
        /* Perhaps a character that continues in the next chunk. */
        check->tail[check->tail_len++] = chunk.data[i++];
        if (utf8_length(str_make(check->tail, check->tail_len), 0) > 0) {
            check->tail_len = 0;
        }
        check->invalid = check->tail_len == sizeof(check->tail);
    }
}

const char *editor_check_end(struct editor_check *check)
{
    if (check->bytes == sizeof(check->head) &&
        (memcmp(check->head, "\xff\xfe", 2) == 0 || memcmp(check->head, "\xfe\xff", 2) == 0)) {
        return "it is UTF-16 text, not UTF-8";
    }
    if (check->nul) {
        return "it holds NUL bytes, so it is binary or not UTF-8 text";
    }
    if (check->invalid || check->tail_len > 0) {
        return "it holds bytes that are not UTF-8 text";
    }
    return NULL;
}

const char *editor_not_text(struct ng_str text)
{
    struct editor_check check = {0};
    editor_check_add(&check, text);
    return editor_check_end(&check);
}

/* Bytes of the character at `at`; 0: NUL or not valid. */
static size_t character(struct ng_str text, size_t at)
{
    return text.data[at] == '\0' ? 0 : utf8_length(text, at);
}

struct ng_str editor_clean(struct ng_call *call, struct ng_str text)
{
    size_t bad = 0;
    for (size_t i = 0, len; i < text.len; i += len + (len == 0)) {
        len = character(text, i);
        bad += len == 0;
    }
    if (bad == 0 && text.data != NULL) {
        return text;
    }
    size_t room = text.len + bad * (sizeof(UTF8_REPLACEMENT) - 2);
    char *clean = ng_alloc(call, room + 1);
    if (clean == NULL) {
        return str_make(NULL, 0);
    }
    size_t used = 0;
    for (size_t i = 0, len; i < text.len; i += len + (len == 0)) {
        struct ng_str from = ng_str_of(UTF8_REPLACEMENT);
        len = character(text, i);
        if (len > 0) {
            from = str_make(text.data + i, len);
        }
        memcpy(clean + used, from.data, from.len);
        used += from.len;
    }
    return str_make(clean, used);
}

/* ---- lines */

size_t editor_line_start(struct ng_str text, size_t line)
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

struct ng_str editor_numbered(struct ng_call *call, struct ng_str text, size_t first,
                              size_t last, size_t number)
{
    size_t from = editor_line_start(text, first);
    size_t to =
        from + editor_line_start(str_make(text.data + from, text.len - from), last - first + 2);
    struct ng_str part = {text.data + from, to - from};
    size_t lines = last - first + 1;
    size_t room = part.len + editor_count(part, '\t') * (sizeof(EDITOR_TAB) - 2) +
                  lines * (NUMBER_DIGITS_MAX + 3) + 1;
    char *out = ng_alloc(call, room);
    if (out == NULL) {
        return str_make(NULL, 0);
    }
    size_t len = 0;
    size_t at = 0;
    for (size_t i = 0; i < lines; i++) {
        len += (size_t)snprintf(out + len, NUMBER_DIGITS_MAX + 3, "%*zu  ", NUMBER_WIDTH,
                                number + i);
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
    return str_make(out, len);
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
    size_t end = size_min(line + lines + EDITOR_SNIPPET_LINES, total);
    struct ng_str shown = editor_numbered(call, text, first + 1, end, first + 1);
    return editor_reply_lines(call, prefix, label, shown, suffix);
}
