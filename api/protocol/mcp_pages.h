/* SPDX-License-Identifier: MIT */
/* mcp_pages.h - the beginning of the next page of a list, as an opaque text. */
#ifndef NOTEGATE_API_MCP_PAGES_H
#define NOTEGATE_API_MCP_PAGES_H

#include "core/base/arena.h"
#include "core/base/buf.h"

/* A page ends with this many entries or bytes, whichever comes first. */
#define MCP_PAGE_ENTRIES 200
#define MCP_PAGE_BYTES ((size_t)256 * 1024)
/* Longest cursor that is checked: that of a longest id. */
#define MCP_CURSOR_MAX ((size_t)128 * 1024)

/*
 * Behind which entry the page begins: by its names, so that entries which come and go elsewhere
 * neither repeat nor hide others; count is for when that entry itself is gone.
 */
struct mcp_cursor {
    struct ng_str kind;  /* of resource; a template where it has no kind */
    struct ng_str space; /* "" for those without one */
    struct ng_str id;
    uint64_t count; /* entries of this kind and space up to it */
};

int mcp_cursor_print(struct buf *out, const struct mcp_cursor *cursor);
/* NG_EINVAL: it is not one. The texts are the arena's. */
int mcp_cursor_parse(struct arena *arena, struct ng_str text, struct mcp_cursor *ret);

#endif
