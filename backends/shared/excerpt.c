/* SPDX-License-Identifier: MIT */
/* excerpt.c - a part of a text around what a search has found in it. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "words.h"

#define ELLIPSIS "\xE2\x80\xA6"

int excerpt_cut(struct ng_str text, size_t place, uint32_t chars, struct bytes *ret)
{
    size_t from = place;
    const char *before = "";
    const char *behind = "";
    for (uint32_t i = 0; i < chars / 4 && from > 0; i++) {
        do {
            from--;
        } while (from > 0 && !utf8_is_start(text.data[from]));
    }
    struct ng_str part = utf8_cut_count(str_of(text.data + from, text.len - from),
                                        u32_max(chars, 2) - 2); /* without the dots */
    if (from > 0 && chars > 2) {
        before = ELLIPSIS;
    }
    if (from + part.len < text.len && chars > 2) {
        behind = ELLIPSIS;
    }
    (void)bytes_set(ret, ng_str_of(before));
    (void)bytes_add(ret, part.data, part.len);
    return bytes_add_c(ret, behind);
}

int excerpt_make(const struct wanted *wanted, struct ng_str text, uint32_t chars,
                 struct bytes *ret)
{
    size_t first = SIZE_MAX;
    ret->len = 0;
    int rc = wanted_first(wanted, utf8_cut(text, EXCERPT_BYTES_MAX), &first);
    if (rc != NG_OK || first == SIZE_MAX) {
        return rc;
    }
    return excerpt_cut(text, first, chars, ret);
}
