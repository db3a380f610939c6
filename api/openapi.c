/* SPDX-License-Identifier: MIT */
/* openapi.c - /openapi.json. */
#include "openapi.h"

#include "dispatch.h"
#include "http_reply.h"
#include "routes.h"
#include "str.h"
#include "tool_formats.h"

/* What does not depend on the tools. */
static const char info[] =
    "{\"title\":\"notegate\",\"version\":\"" NOTEGATE_VERSION "\","
    "\"summary\":\"Shared, durable notebooks and file tools for AI agents.\","
    "\"description\":\"Every tool is one operation: the body holds its arguments, the answer "
    "its "
    "result. Failures are the error object with the HTTP status of its code.\","
    "\"license\":{\"name\":\"MIT\",\"identifier\":\"MIT\"}}";

static const char components[] =
    "{\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"A key made with `notegate key add NAME`. While no key exists, callers "
    "on "
    "loopback that run as the gateway's own user need none.\"}},"
    "\"parameters\":{"
    "\"Agent\":{\"name\":\"X-Notegate-Agent\",\"in\":\"header\",\"description\":\"Who is "
    "calling; "
    "only while no key exists.\",\"schema\":{\"type\":\"string\",\"default\":\"local\","
    "\"pattern\":\"^[A-Za-z0-9._@-]{1,64}$\"}},"
    "\"Space\":{\"name\":\"X-Notegate-Space\",\"in\":\"header\",\"description\":\"The space to "
    "work in.\",\"schema\":{\"type\":\"string\",\"pattern\":\"^~?[A-Za-z0-9._@-]{1,64}$\"}},"
    "\"Mode\":{\"name\":\"X-Notegate-Mode\",\"in\":\"header\",\"schema\":{\"type\":\"string\","
    "\"enum\":[\"ask\",\"edit\",\"agent\"]}},"
    "\"IdempotencyKey\":{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"description\":\"A "
    "write "
    "with a key is done once; the repeat gets the first "
    "answer.\",\"schema\":{\"type\":\"string\","
    "\"minLength\":1,\"maxLength\":255}},"
    "\"Format\":{\"name\":\"format\",\"in\":\"query\",\"schema\":{\"type\":\"string\","
    "\"default\":"
    "\"mcp\",\"enum\":[\"mcp\",\"openai\",\"openai-responses\",\"anthropic\",\"gemini\"]}}},"
    "\"schemas\":{\"Error\":{\"type\":\"object\",\"required\":[\"error\",\"code\",\"message\"],"
    "\"properties\":{\"error\":{\"const\":true},\"code\":{\"type\":\"string\",\"examples\":["
    "\"INVALID_INPUT\",\"NOT_FOUND\",\"CONFLICT\"]},\"message\":{\"type\":\"string\"},"
    "\"hint\":{\"type\":\"string\"},\"details\":{\"type\":\"object\"}}},"
    "\"Content\":{\"type\":\"object\",\"required\":[\"type\"],\"properties\":{\"type\":{"
    "\"enum\":["
    "\"text\",\"image\",\"audio\",\"resource\",\"resource_link\"]}}}},"
    "\"responses\":{\"Error\":{\"description\":\"The call failed; `code` says "
    "how.\",\"headers\":{"
    "\"X-Request-Id\":{\"schema\":{\"type\":\"string\"}}},\"content\":{\"application/json\":{"
    "\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}}}";

static const char fixed_paths[] =
    "\"/v1/tools\":{\"get\":{\"operationId\":\"listTools\",\"summary\":\"The tools the caller "
    "may "
    "call\",\"tags\":[\"gateway\"],\"parameters\":[{\"$ref\":\"#/components/parameters/"
    "Format\"}],"
    "\"responses\":{\"200\":{\"description\":\"The definitions, in the form asked for.\","
    "\"content\":{\"application/json\":{\"schema\":{\"type\":[\"object\",\"array\"]}}}},"
    "\"304\":{\"description\":\"Not changed since the ETag in If-None-Match.\"},"
    "\"default\":{\"$ref\":\"#/components/responses/Error\"}}}},"
    "\"/v1/tools/{name}\":{\"get\":{\"operationId\":\"showTool\",\"summary\":\"One tool's "
    "definition\",\"tags\":[\"gateway\"],\"parameters\":[{\"name\":\"name\",\"in\":\"path\","
    "\"required\":true,\"schema\":{\"type\":\"string\"}},{\"$ref\":"
    "\"#/components/parameters/Format\"}],\"responses\":{\"200\":{\"description\":\"The "
    "definition.\",\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"}}}},"
    "\"default\":{\"$ref\":\"#/components/responses/Error\"}}}},"
    "\"/v1/reload\":{\"post\":{\"operationId\":\"reload\",\"summary\":\"Read the "
    "configuration again\",\"description\":\"For the role admin. Answers what holds now and "
    "what needs a restart.\",\"tags\":[\"operation\"],\"responses\":{\"200\":{"
    "\"description\":\"It was read.\",\"content\":{\"application/json\":{\"schema\":{"
    "\"type\":\"object\",\"required\":[\"changes\",\"restart_needed\"],\"properties\":{"
    "\"changes\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"key\":{\"type\":\"string\"},\"holds\":{\"type\":\"boolean\"},\"message\":{"
    "\"type\":\"string\"}}}},\"restart_needed\":{\"type\":\"boolean\"}}}}}},"
    "\"default\":{\"$ref\":\"#/components/responses/Error\"}}}},"
    "\"/healthz\":{\"get\":{\"operationId\":\"healthz\",\"summary\":\"Is the process alive?\","
    "\"tags\":[\"operation\"],\"security\":[],\"responses\":{\"200\":{\"description\":\"Yes.\","
    "\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"}}}}}}},"
    "\"/readyz\":{\"get\":{\"operationId\":\"readyz\",\"summary\":\"Can it take calls?\","
    "\"tags\":[\"operation\"],\"security\":[],\"responses\":{\"200\":{\"description\":\"Yes.\","
    "\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"}}}},\"503\":{"
    "\"description\":\"Not now.\",\"content\":{\"application/json\":{\"schema\":{\"type\":"
    "\"object\"}}}}}}},"
    "\"/metrics\":{\"get\":{\"operationId\":\"metrics\",\"summary\":\"Numbers for Prometheus\","
    "\"tags\":[\"operation\"],\"responses\":{\"200\":{\"description\":\"The text format.\","
    "\"content\":{\"text/plain\":{\"schema\":{\"type\":\"string\"}}}},\"default\":{\"$ref\":"
    "\"#/components/responses/Error\"}}}}";

static const char call_parameters[] = "[{\"$ref\":\"#/components/parameters/"
                                      "Agent\"},{\"$ref\":\"#/components/parameters/Space\"},"
                                      "{\"$ref\":\"#/components/parameters/Mode\"},"
                                      "{\"$ref\":\"#/components/parameters/IdempotencyKey\"}]";

static const char other_members[] =
    ",\"content\":{\"type\":\"array\",\"description\":\"Parts that are not text.\",\"items\":{"
    "\"$ref\":\"#/components/schemas/"
    "Content\"}},\"revision\":{\"type\":[\"integer\",\"string\"],"
    "\"description\":\"Where something was changed or read at a revision.\"}}}";

/* A schema of a tool. With definitions of its own it becomes a resource of its own ($id), so
 * that its "#/$defs/..." do not mean the whole document. */
static void print_schema(struct buf *out, const struct ng_value *schema, const char *tool,
                         const char *part)
{
    bool defines = json_get(schema, "$defs") != NULL || json_get(schema, "definitions") != NULL;
    const char *comma = "";
    (void)buf_add_char(out, '{');
    if (defines) {
        (void)buf_printf(out, "\"$id\":\"urn:notegate:tool:%s:%s\"", tool, part);
        comma = ",";
    }
    for (const struct ng_value *member = schema->first; member != NULL; member = member->next) {
        if (str_is(member->key, "$id") || str_is(member->key, "$schema")) {
            continue;
        }
        (void)buf_add_c(out, comma);
        (void)buf_add_json(out, member->key);
        (void)buf_add_char(out, ':');
        (void)json_print(out, member);
        comma = ",";
    }
    (void)buf_add_char(out, '}');
}

static void print_tool(struct buf *out, const struct tool *tool)
{
    const struct ng_tool *desc = &tool->desc;
    (void)buf_printf(out, "\"/v1/tools/%s\":{\"post\":{\"operationId\":\"%s\",\"summary\":",
                     desc->name, desc->name);
    (void)buf_add_json(out, ng_str_of(desc->title != NULL ? desc->title : desc->name));
    (void)buf_add_c(out, ",\"description\":");
    (void)buf_add_json(out, ng_str_of(desc->summary));
    (void)buf_printf(out, ",\"tags\":[\"%s\"],\"parameters\":", tool->plugin->desc.name);
    (void)buf_add_c(out, call_parameters);
    (void)buf_add_c(out, ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":");
    print_schema(out, tool->params_tree, desc->name, "arguments");
    (void)buf_add_c(out, "}}},\"responses\":{\"200\":{\"description\":\"The tool's answer.\","
                         "\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\","
                         "\"required\":[\"result\"],\"properties\":{\"result\":");
    if (tool->result_tree != NULL) {
        print_schema(out, tool->result_tree, desc->name, "result");
    } else {
        (void)buf_add_c(out, "{\"type\":\"string\"}");
    }
    (void)buf_add_c(out, other_members);
    (void)buf_add_c(out, "}}},\"default\":{\"$ref\":\"#/components/responses/Error\"}}}}");
}

int openapi_print(struct gateway *gateway, struct call *call, struct buf *out)
{
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(gateway->registry, &tools);
    (void)buf_printf(out, "{\"openapi\":\"3.1.0\",\"info\":%s,\"security\":[{\"key\":[]},{}],",
                     info);
    (void)buf_add_c(out, "\"paths\":{");
    (void)buf_add_c(out, fixed_paths);
    for (size_t i = 0; i < count; i++) {
        if (call == NULL || dispatch_allows(call, tools[i])) {
            (void)buf_add_char(out, ',');
            print_tool(out, tools[i]);
        }
    }
    (void)buf_add_c(out, "},\"components\":");
    (void)buf_add_c(out, components);
    return buf_add_char(out, '}');
}

int openapi_route(struct http_request *request)
{
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    (void)openapi_print(request->gateway, call, &request->reply.body);
    call_unref(call);
    http_reply_etag(request);
    return NG_OK;
}
