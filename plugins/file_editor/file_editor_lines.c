/* SPDX-License-Identifier: MIT */
/* file_editor_lines.c - line endings: a file keeps its own. Callers write LF, as in a view;
 * with CR in old_str the caller means exact bytes. */
#include <string.h>

#include "file_editor.h"

static bool is_crlf(struct ng_str text, size_t lf)
{
    return lf > 0 && text.data[lf - 1] == '\r';
}

static bool has_crlf(struct ng_str text)
{
    return text.len > 1 && memmem(text.data, text.len, "\r\n", 2) != NULL;
}

bool editor_is_crlf(struct ng_str text, size_t at)
{
    const char *lf = NULL;
    if (at < text.len) {
        lf = memchr(text.data + at, '\n', text.len - at);
    }
    if (lf == NULL && at > 0) {
        lf = memrchr(text.data, '\n', at);
    }
    return lf != NULL && is_crlf(text, (size_t)(lf - text.data));
}

struct ng_str editor_with_ends(struct ng_call *call, struct ng_str text, struct ng_str like,
                               bool crlf)
{
    size_t lines = editor_count(text, '\n');
    if (lines == 0 || (!crlf && !has_crlf(like))) {
        return text;
    }
    char *made = ng_alloc(call, text.len + lines + 1);
    size_t len = 0;
    size_t at = 0; /* in `like`, after the used line endings */
    for (size_t i = 0; made != NULL && i < text.len; i++) {
        if (text.data[i] == '\n') {
            const char *lf = NULL;
            if (at < like.len) {
                lf = memchr(like.data + at, '\n', like.len - at);
            }
            if (lf != NULL) {
                crlf = is_crlf(like, (size_t)(lf - like.data));
                at = (size_t)(lf - like.data) + 1;
            }
            if (crlf && !is_crlf(text, i)) {
                made[len++] = '\r';
            }
        }
        made[len++] = text.data[i];
    }
    return str_make(made, len);
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
    if (memchr(needle.data, '\r', needle.len) != NULL ||
        memchr(needle.data, '\n', needle.len) == NULL || !has_crlf(text)) {
        return text;
    }
    char *folded = ng_alloc(call, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; folded != NULL && i < text.len; i++) {
        if (text.data[i] != '\r' || i + 1 == text.len || text.data[i + 1] != '\n') {
            folded[len++] = text.data[i];
        }
    }
    return str_make(folded, len);
}

size_t editor_unfolded(struct ng_str text, struct ng_str folded, size_t at)
{
    size_t i = 0;
    if (folded.data == text.data) {
        return at;
    }
    for (size_t seen = 0; seen < at; seen++) {
        if (i + 1 < text.len && text.data[i] == '\r' && text.data[i + 1] == '\n') {
            i += 2;
        } else {
            i += 1;
        }
    }
    return i;
}
