/* SPDX-License-Identifier: MIT */
/* openapi_schema.h - a tool's JSON Schema as part of an OpenAPI document. */
#ifndef NOTEGATE_API_OPENAPI_SCHEMA_H
#define NOTEGATE_API_OPENAPI_SCHEMA_H

#include "core/base/buf.h"
#include "core/json/json.h"

/* Prints `,"TOOL_PART":{...}` and one more member `,"TOOL_PART_NAME":{...}` for each definition
 * in it, for components/schemas. References lead to those: generators of clients follow no
 * others. A full buffer sticks in out->rc. */
void openapi_schema_print(struct buf *out, const struct ng_value *schema, const char *tool,
                          const char *part);

#endif
