/* SPDX-License-Identifier: MIT */
/* history_lines.c - lines of a text, and the part of it that an answer shows. */
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "history.h"

uint64_t history_count_lines(struct ng_str text)
{
    uint64_t lines = text.len > 0;
    const char *at = text.data;
    size_t left = text.len;
    while (left > 0 && (at = memchr(at, '\n', left)) != NULL) {
        at++;
        left = (size_t)(text.data + text.len - at);
        lines++;
    }
    return lines;
}

/* The end of the line that begins at `at`, behind its line feed. */
static size_t line_end(struct ng_str text, size_t at)
{
    const char *feed = memchr(text.data + at, '\n', text.len - at);
    return feed != NULL ? (size_t)(feed - text.data) + 1 : text.len;
}

int history_part(struct ng_call *call, struct ng_str text, size_t room,
                 struct history_part *ret)
{
    uint64_t first = (uint64_t)ng_arg_int(call, "start_line", 1);
    uint64_t most = (uint64_t)ng_arg_int(call, "max_lines", INT64_MAX);
    size_t from = 0;
    *ret = (struct history_part){.lines = history_count_lines(text)};
    if (first > u64_max(ret->lines, 1)) {
        return ng_fail(call, NG_EINVAL, "`start_line` is %llu, but there are %llu lines",
                       (unsigned long long)first, (unsigned long long)ret->lines);
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
        return ng_fail(call, NG_ETOOLARGE,
                       "line %llu alone is longer than an answer (tools.max_answer)",
                       (unsigned long long)first);
    }
    ret->text = str_make(text.data + from, to - from);
    ret->next_line = next <= ret->lines ? next : 0;
    return NG_OK;
}
