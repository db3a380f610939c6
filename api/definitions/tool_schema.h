/* SPDX-License-Identifier: MIT */
/* tool_schema.h - a tool's JSON Schema in the words a model vendor knows. */
#ifndef NOTEGATE_API_TOOL_SCHEMA_H
#define NOTEGATE_API_TOOL_SCHEMA_H

#include "core/json/json.h"

enum tool_schema_vendor {
    TOOL_SCHEMA_OPENAI = 1,
    TOOL_SCHEMA_ANTHROPIC = 2,
    TOOL_SCHEMA_GEMINI = 4
};

/* Writes the schema of a tool's arguments. Keywords that the vendor refuses become others
 * (const becomes enum, oneOf becomes anyOf), or a sentence of the description at their place.
 */
void tool_schema_write(struct ng_writer *writer, const struct ng_value *schema,
                       enum tool_schema_vendor vendor);

#endif
