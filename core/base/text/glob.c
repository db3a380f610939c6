/* SPDX-License-Identifier: MIT */
/* glob.c - matching by `*` and `?`. */
#include "glob.h"

bool glob_match(struct ng_str pattern, struct ng_str text)
{
    size_t at = 0;
    size_t from = 0;              /* start of the text behind the last star */
    size_t after_star = SIZE_MAX; /* in the pattern; SIZE_MAX: no star yet */
    for (size_t i = 0; i < text.len;) {
        if (at < pattern.len && pattern.data[at] == '*') {
            after_star = ++at;
            from = i;
        } else if (at < pattern.len &&
                   (pattern.data[at] == '?' || pattern.data[at] == text.data[i])) {
            at++;
            i++;
        } else if (after_star != SIZE_MAX) {
            at = after_star;
            i = ++from; /* the star takes one byte more */
        } else {
            return false;
        }
    }
    while (at < pattern.len && pattern.data[at] == '*') {
        at++;
    }
    return at == pattern.len;
}

bool glob_is(struct ng_str text)
{
    return text.len > 0 && (memchr(text.data, '*', text.len) != NULL ||
                            memchr(text.data, '?', text.len) != NULL);
}
