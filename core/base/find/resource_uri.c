/* SPDX-License-Identifier: MIT */
/* resource_uri.c - the printer of resource URIs. */
#include "resource_uri.h"

static void uri_encode(struct buf *out, struct ng_str text)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (resource_uri_is_plain(c)) {
            continue;
        }
        (void)buf_add(out, text.data + from, i - from);
        (void)buf_printf(out, "%%%02X", c);
        from = i + 1;
    }
    if (from < text.len) {
        (void)buf_add(out, text.data + from, text.len - from);
    }
}

int resource_uri_print(struct buf *out, struct ng_str space, struct ng_str kind,
                       struct ng_str id)
{
    (void)buf_add_c(out, RESOURCE_URI_SCHEME);
    uri_encode(out, space);
    (void)buf_add_char(out, '/');
    uri_encode(out, kind);
    (void)buf_add_char(out, '/');
    uri_encode(out, id);
    return out->rc;
}
