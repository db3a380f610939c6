/* SPDX-License-Identifier: MIT */
/* mcp_pages.c - cursors: a version and netstrings, in the alphabet of URLs (base64url). */
#include "mcp_pages.h"

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/utf8.h"

#define MCP_CURSOR_VERSION '1'
/* Digits of a length or a count. */
#define MCP_CURSOR_DIGITS 18

static int take_number(struct ng_str *rest, char stop, uint64_t *ret)
{
    const char *end = NULL;
    if (rest->len > 0) {
        end = memchr(rest->data, stop, size_min(rest->len, MCP_CURSOR_DIGITS + 1));
    }
    if (end == NULL ||
        !str_number(str_make(rest->data, (size_t)(end - rest->data)), UINT64_MAX, ret)) {
        return NG_EINVAL;
    }
    *rest = str_make(end + 1, rest->len - (size_t)(end - rest->data) - 1);
    return NG_OK;
}

static int take_text(struct ng_str *rest, struct ng_str *ret)
{
    uint64_t len = 0;
    if (take_number(rest, ':', &len) != NG_OK || len > rest->len) {
        return NG_EINVAL;
    }
    *ret = str_make(rest->data, (size_t)len);
    *rest = str_make(rest->data + len, rest->len - (size_t)len);
    if (utf8_valid(*ret)) {
        return NG_OK;
    }
    return NG_EINVAL;
}

static void add_text(struct buf *out, struct ng_str text)
{
    (void)buf_add_number(out, text.len);
    (void)buf_add_char(out, ':');
    (void)buf_add_str(out, text);
}

int mcp_cursor_print(struct buf *out, const struct mcp_cursor *cursor)
{
    struct buf plain;
    buf_init(&plain, MCP_CURSOR_MAX);
    (void)buf_add_char(&plain, MCP_CURSOR_VERSION);
    (void)buf_add_number(&plain, cursor->count);
    (void)buf_add_char(&plain, ',');
    add_text(&plain, cursor->kind);
    add_text(&plain, cursor->space);
    add_text(&plain, cursor->id);
    if (plain.rc == NG_OK) {
        base64_encode(out, buf_str(&plain), BASE64_URL);
    }
    int rc = plain.rc;
    if (plain.rc == NG_OK) {
        rc = out->rc;
    }
    buf_done(&plain);
    return rc;
}

int mcp_cursor_parse(struct arena *arena, struct ng_str text, struct mcp_cursor *ret)
{
    struct mcp_cursor cursor = {.count = 0};
    struct ng_str rest;
    if (text.len == 0 || text.len > MCP_CURSOR_MAX) {
        return NG_EINVAL;
    }
    int rc = base64_decode_in(arena, text, BASE64_URL, &rest);
    if (rc != NG_OK) {
        return rc;
    }
    if (rest.len == 0 || rest.data[0] != MCP_CURSOR_VERSION) {
        return NG_EINVAL;
    }
    rest = str_make(rest.data + 1, rest.len - 1);
    if (take_number(&rest, ',', &cursor.count) != NG_OK ||
        take_text(&rest, &cursor.kind) != NG_OK || take_text(&rest, &cursor.space) != NG_OK ||
        take_text(&rest, &cursor.id) != NG_OK || rest.len != 0) {
        return NG_EINVAL;
    }
    *ret = cursor;
    return NG_OK;
}
