/* SPDX-License-Identifier: MIT */
/* mcp_params.c - arguments that a tool's schema marks with x-mcp-header come a second time, as
 * headers Mcp-Param-NAME, and must say the same there. */
#include <stdio.h>

#include "core/base/str.h"
#include "core/module/registry.h"
#include "mcp_server.h"

#define MCP_PARAM_PREFIX "Mcp-Param-"
/* Longest name behind the prefix; a longer one is not a header we could be sent. */
#define MCP_PARAM_NAME_MAX 128
/* Objects in objects that are looked into for marks. */
#define MCP_PARAM_DEPTH 16

static bool is_value(const struct ng_value *value)
{
    return value != NULL && value->type != NG_TYPE_NULL && value->type != NG_TYPE_ABSENT;
}

static bool says_same(struct ng_str header, const struct ng_value *value)
{
    switch (value->type) {
    case NG_TYPE_STRING:
        return mcp_header_equal(header, value->text);
    case NG_TYPE_NUMBER:
        return mcp_header_equal_number(header, value->text);
    case NG_TYPE_TRUE:
        return mcp_header_equal(header, ng_str_of("true"));
    case NG_TYPE_FALSE:
        return mcp_header_equal(header, ng_str_of("false"));
    default:
        return true; /* the schema check reports the error */
    }
}

static bool refuse(struct mcp_exchange *exchange, const char *header, const char *what)
{
    char sentence[MCP_SENTENCE_MAX];
    (void)snprintf(sentence, sizeof(sentence), "the header %s %s", header, what);
    (void)mcp_refuse(exchange, 400, MCP_HEADER_MISMATCH, sentence);
    return false;
}

/* One marked property and its argument, which may be absent. */
static bool check_param(struct mcp_exchange *exchange, struct ng_str mark,
                        const struct ng_value *value)
{
    const struct mcp_headers *headers = exchange->job->headers;
    char name[sizeof(MCP_PARAM_PREFIX) + MCP_PARAM_NAME_MAX];
    if (mark.len == 0 || mark.len > MCP_PARAM_NAME_MAX ||
        memchr(mark.data, '\0', mark.len) != NULL) {
        return true;
    }
    (void)snprintf(name, sizeof(name), MCP_PARAM_PREFIX "%.*s", (int)mark.len, mark.data);
    struct ng_str header = headers->other(headers, name);
    if (!is_value(value)) {
        return header.data == NULL ||
               refuse(exchange, name, "was sent without the argument that it repeats");
    }
    if (header.data == NULL) {
        return refuse(exchange, name,
                      "is missing; tools/list shows the arguments that headers repeat");
    }
    return says_same(header, value) ||
           refuse(exchange, name, "differs from the argument that it repeats");
}

/* Marks count only where a chain of `properties` leads to. */
static bool check_properties(struct mcp_exchange *exchange, const struct ng_value *schema,
                             const struct ng_value *arguments, unsigned depth)
{
    const struct ng_value *properties = json_get(schema, "properties");
    if (!json_is(properties, NG_TYPE_OBJECT) || depth == 0) {
        return true;
    }
    for (const struct ng_value *property = properties->first; property != NULL;
         property = property->next) {
        const struct ng_value *mark = json_get(property, TOOL_HEADER_MARK);
        const struct ng_value *value = json_get_str(arguments, property->key);
        if (json_is(mark, NG_TYPE_STRING) && !check_param(exchange, mark->text, value)) {
            return false;
        }
        if (!check_properties(exchange, property, value, depth - 1)) {
            return false;
        }
    }
    return true;
}

bool mcp_params_match(struct mcp_exchange *exchange, struct ng_str tool,
                      const struct ng_value *arguments)
{
    const struct tool *found = registry_find(exchange->job->gateway->registry, tool);
    if (found == NULL || exchange->job->headers->other == NULL || !found->marks_headers) {
        return true;
    }
    return check_properties(exchange, found->params_tree, arguments, MCP_PARAM_DEPTH);
}
