/* SPDX-License-Identifier: MIT */
/* content.h - answers of tools as JSON: content blocks, and the body that REST and `notegate
 * call --json` give. */
#ifndef NOTEGATE_API_CONTENT_H
#define NOTEGATE_API_CONTENT_H

#include "core/call/call.h"

/* One part as an MCP content block; bytes go as base64. */
void content_print_part(struct buf *out, const struct part *part);
/* One part as the contents of a resource; `uri` where it has none of its own. */
void content_print_contents(struct buf *out, const struct part *part, struct ng_str uri);
/* `,"_meta":{...}` if the tool has set members of it. */
void content_print_meta(struct buf *out, const struct result *result);
/* {"result":...,"content"?:[...],"revision"?:...,"_meta"?:{...}} of an answer that is no
 * failure. */
void content_print_result(struct buf *out, const struct result *result);

#endif
