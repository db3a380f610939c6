/* SPDX-License-Identifier: MIT */
/* history_lines.c - lines of a text, and the part of it that an answer shows. */
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "history.h"

uint64_t history_count_lines(struct ng_str text)
{
    return text.len == 0 ? 0 : 1 + str_count(text, '\n');
}

struct ng_str history_line(struct ng_str text, size_t at)
{
    const char *feed = memchr(text.data + at, '\n', text.len - at);
    size_t end = feed != NULL ? (size_t)(feed - text.data) : text.len;
    return str_make(text.data + at, end - at);
}

/* The end of the line that begins at `at`, behind its line feed. */
static size_t line_end(struct ng_str text, size_t at)
{
    return size_min(at + history_line(text, at).len + 1, text.len);
}

int history_start_line(struct ng_call *call, uint64_t lines, uint64_t *ret)
{
    *ret = (uint64_t)ng_arg_int(call, "start_line", 1);
    if (*ret > u64_max(lines, 1)) {
        return ng_fail(
            call, NG_EINVAL, "there is no line %llu (`start_line`): the text has %llu line%s",
            (unsigned long long)*ret, (unsigned long long)lines, plural((size_t)lines));
    }
    return NG_OK;
}

int history_line_too_long(struct ng_call *call, uint64_t line)
{
    return ng_fail(call, NG_ETOOLARGE,
                   "line %llu alone is longer than an answer (tools.max_answer)",
                   (unsigned long long)line);
}

int history_part(struct ng_call *call, struct ng_str text, size_t room,
                 struct history_part *ret)
{
    uint64_t first = 0;
    uint64_t most = (uint64_t)ng_arg_int(call, "max_lines", INT64_MAX);
    size_t from = 0;
    *ret = (struct history_part){.lines = history_count_lines(text)};
    int rc = history_start_line(call, ret->lines, &first);
    if (rc != NG_OK) {
        return rc;
    }
    for (uint64_t line = 1; line < first; line++) {
        from = line_end(text, from);
    }
    struct ng_str fits = json_cut(str_make(text.data + from, text.len - from), room);
    size_t to = from;
    uint64_t next = first;
    while (next < first + u64_min(most, ret->lines) && next <= ret->lines) {
        size_t end = line_end(text, to);
        if (end - from > fits.len) {
            break;
        }
        to = end;
        next++;
    }
    if (next == first && ret->lines > 0) {
        return history_line_too_long(call, first);
    }
    ret->text = str_make(text.data + from, to - from);
    ret->next_line = next <= ret->lines ? next : 0;
    return NG_OK;
}
