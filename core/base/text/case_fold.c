/* SPDX-License-Identifier: MIT */
/* case_fold.c - Unicode case folding, by utf8proc; ASCII without it. */
#include "core/base/text/case_fold.h"

#include <utf8proc.h>

#include "core/base/str.h"

static bool is_ascii(struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

int case_fold(struct buf *out, struct ng_str text)
{
    if (is_ascii(text)) {
        char *to = buf_reserve(out, text.len);
        for (size_t i = 0; to != NULL && i < text.len; i++) {
            to[i] = str_lower(text.data[i]);
        }
        out->len += to == NULL ? 0 : text.len;
        return out->rc;
    }
    utf8proc_uint8_t *folded = NULL;
    utf8proc_ssize_t len = utf8proc_map(
        (const utf8proc_uint8_t *)text.data, (utf8proc_ssize_t)text.len, &folded,
        (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD));
    if (len >= 0) {
        (void)buf_add(out, folded, (size_t)len);
    } else if (len != UTF8PROC_ERROR_NOMEM) {
        (void)buf_add_str(out, text);
    } else {
        out->rc = NG_EINTERNAL;
    }
    free(folded);
    return out->rc;
}
