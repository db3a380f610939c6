/* SPDX-License-Identifier: MIT */
/* file_editor_lines.c - line endings: a file keeps its own. Callers write LF, as in a view;
 * with CR in old_str the caller means exact bytes. */
#include <string.h>

#include "core/base/text/line_ends.h"
#include "file_editor.h"

bool editor_is_crlf(struct ng_str text, size_t at)
{
    return line_ends_is_crlf(text, at);
}

struct ng_str editor_with_ends(struct ng_call *call, struct ng_str text, struct ng_str like,
                               bool crlf)
{
    size_t lines = editor_count(text, '\n');
    if (lines == 0 || (!crlf && !line_ends_has_crlf(like))) {
        return text;
    }
    char *made = ng_alloc(call, text.len + lines + 1);
    return str_make(made, made != NULL ? line_ends_follow(text, like, crlf, made) : 0);
}

/* ---- searching */

bool editor_all_crlf(struct ng_str text)
{
    size_t lines = 0;
    for (size_t at = str_find(text, ng_str_of("\r\n"), 0); at != SIZE_MAX;
         at = str_find(text, ng_str_of("\r\n"), at + 2)) {
        lines++;
    }
    return lines > 0 && editor_count(text, '\n') == lines;
}

struct ng_str editor_with_crlf(struct ng_call *call, struct ng_str text)
{
    char *made = ng_alloc(call, text.len + editor_count(text, '\n') + 1);
    size_t len = 0;
    for (size_t i = 0; made != NULL && i < text.len; i++) {
        if (text.data[i] == '\n') {
            made[len++] = '\r';
        }
        made[len++] = text.data[i];
    }
    return str_make(made, len);
}

struct ng_str editor_folded(struct ng_call *call, struct ng_str text, struct ng_str needle)
{
    if (!line_ends_differ(text, needle)) {
        return text;
    }
    char *folded = ng_alloc(call, text.len + 1);
    return str_make(folded, folded != NULL ? line_ends_to_lf(text, folded) : 0);
}

size_t editor_unfolded(struct ng_str text, struct ng_str folded, size_t at)
{
    return folded.data == text.data ? at : line_ends_from_lf(text, at);
}
