/* SPDX-License-Identifier: MIT */
/* module_schema.h - the JSON Schemas that a module declares: of the form that MCP clients take.
 */
#ifndef NOTEGATE_CORE_MODULE_SCHEMA_H
#define NOTEGATE_CORE_MODULE_SCHEMA_H

#include "core/base/buf.h"

/* owner: the tool or prompt; member: "params" or "result". It must be an object of type
 * "object", without keywords that look like misspelt ones. NG_OK; NG_EINVAL or NG_EINTERNAL
 * with a sentence that begins with "has". */
int module_schema(const char *owner, const char *member, const char *text, struct buf *error);

#endif
