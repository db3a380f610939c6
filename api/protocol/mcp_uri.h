/* SPDX-License-Identifier: MIT */
/* mcp_uri.h - names of resources: notegate://SPACE/KIND/ID, and plugins' own URI templates.
 * Pure functions over bytes from outside. */
#ifndef NOTEGATE_API_MCP_URI_H
#define NOTEGATE_API_MCP_URI_H

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/find/resource_uri.h"

/* The parts of a URI, decoded. Lent from the arena or the text. */
struct mcp_uri {
    struct ng_str space, kind, id;
    uint64_t revision; /* 0: the newest */
};

/* Is it one of ours, whatever is behind the scheme? */
bool mcp_uri_is_ours(struct ng_str text);
/* NG_OK; NG_EINVAL: *ret_why is the reason (static); NG_EINTERNAL: out of memory. */
int mcp_uri_parse(struct arena *arena, struct ng_str text, struct mcp_uri *ret,
                  const char **ret_why);

/* RFC 6570 level 1: does the template make this URI for some values (none of them empty, none
 * with a raw slash)? */
bool mcp_template_matches(struct ng_str template, struct ng_str uri);
/* Has it variables at all, and one of this name? */
bool mcp_template_is_open(struct ng_str template);
bool mcp_template_has(struct ng_str template, struct ng_str variable);

#endif
