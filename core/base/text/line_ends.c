/* SPDX-License-Identifier: MIT */
/* line_ends.c - line ends of a text that is edited: LF or CRLF, line by line. */
#include "line_ends.h"

#include <string.h>

static bool is_crlf(struct ng_str text, size_t lf)
{
    return lf > 0 && text.data[lf - 1] == '\r';
}

bool line_ends_has_crlf(struct ng_str text)
{
    return text.len > 1 && memmem(text.data, text.len, "\r\n", 2) != NULL;
}

bool line_ends_is_crlf(struct ng_str text, size_t at)
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

bool line_ends_differ(struct ng_str text, struct ng_str needle)
{
    return needle.len > 0 && memchr(needle.data, '\r', needle.len) == NULL &&
           memchr(needle.data, '\n', needle.len) != NULL && line_ends_has_crlf(text);
}

size_t line_ends_to_lf(struct ng_str text, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '\r' || i + 1 == text.len || text.data[i + 1] != '\n') {
            out[len++] = text.data[i];
        }
    }
    return len;
}

size_t line_ends_from_lf(struct ng_str text, size_t at)
{
    size_t i = 0;
    for (size_t seen = 0; seen < at; seen++) {
        if (i + 1 < text.len && text.data[i] == '\r' && text.data[i + 1] == '\n') {
            i += 2;
        } else {
            i += 1;
        }
    }
    return i;
}

size_t line_ends_follow(struct ng_str text, struct ng_str like, bool crlf, char *out)
{
    size_t len = 0;
    size_t at = 0; /* in `like`, after the used line ends */
    for (size_t i = 0; i < text.len; i++) {
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
                out[len++] = '\r';
            }
        }
        out[len++] = text.data[i];
    }
    return len;
}
