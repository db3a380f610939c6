/* SPDX-License-Identifier: MIT */
/* fuzz_cursor.c - texts as cursors of MCP lists: an accepted cursor prints to the same cursor;
 * and every place has a cursor that leads back to it. */
#include <stdlib.h>
#include <string.h>

#include "api/protocol/mcp_pages.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void again(struct arena *arena, const struct mcp_cursor *cursor)
{
    struct buf text;
    struct mcp_cursor read;
    buf_init(&text, MCP_CURSOR_MAX);
    if (mcp_cursor_print(&text, cursor) == NG_OK) {
        must(mcp_cursor_parse(arena, buf_str(&text), &read) == NG_OK);
        must(str_equal(read.kind, cursor->kind) && str_equal(read.space, cursor->space));
        must(str_equal(read.id, cursor->id) && read.count == cursor->count);
    }
    buf_done(&text);
}

/* The bytes as the parts of a place, NUL between them. */
static struct ng_str part(struct ng_str *rest)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->data, '\0', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->data);
    struct ng_str first = str_make(rest->data, len);
    len += end == NULL ? 0 : 1;
    *rest = str_make(rest->data + len, rest->len - len);
    return first;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ng_str text = str_make((const char *)data, size);
    struct arena arena;
    struct mcp_cursor cursor;
    arena_init(&arena, 0);
    if (mcp_cursor_parse(&arena, text, &cursor) == NG_OK) {
        again(&arena, &cursor);
    }
    if (utf8_valid(text)) {
        cursor.count = size;
        cursor.kind = part(&text);
        cursor.space = part(&text);
        cursor.id = part(&text);
        again(&arena, &cursor);
    }
    arena_done(&arena);
    return 0;
}
