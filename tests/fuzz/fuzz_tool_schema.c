/* SPDX-License-Identifier: MIT */
/* fuzz_tool_schema.c - JSON Schemas of tools in the words of each model vendor: for any
 * declaration of a plugin the output is one JSON object. */
#include <stdlib.h>

#include "api/definitions/tool_schema.h"
#include "core/base/str.h"

#define INPUT_BYTES_MAX 8192
#define OUT_BYTES_MAX ((size_t)16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void lower(struct arena *arena, const struct ng_value *schema,
                  enum tool_schema_vendor vendor)
{
    struct buf out;
    struct ng_writer writer;
    struct json_error error;
    const struct ng_value *again = NULL;
    buf_init(&out, OUT_BYTES_MAX);
    json_writer_init(&writer, &out);
    tool_schema_write(&writer, schema, vendor);
    if (out.rc == NG_OK) {
        must(json_parse(arena, buf_str(&out), JSON_DEPTH_DEFAULT * 4, &again, &error) == NG_OK);
        must(again->type == NG_TYPE_OBJECT);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *schema = NULL;
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    arena_init(&arena, 0);
    if (json_parse(&arena, str_make((const char *)data, size), JSON_DEPTH_DEFAULT / 2, &schema,
                   &error) == NG_OK &&
        schema->type == NG_TYPE_OBJECT) {
        lower(&arena, schema, TOOL_SCHEMA_OPENAI);
        lower(&arena, schema, TOOL_SCHEMA_ANTHROPIC);
        lower(&arena, schema, TOOL_SCHEMA_GEMINI);
    }
    arena_done(&arena);
    return 0;
}
