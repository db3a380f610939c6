/* SPDX-License-Identifier: MIT */
/* openapi.c - /openapi.json. */
#include "openapi.h"

#include "dispatch.h"
#include "http_reply.h"
#include "key_ops.h"
#include "openapi_schema.h"
#include "routes.h"
#include "str.h"
#include "tool_formats.h"

/* What does not depend on the tools. `components` is left open: the tools' schemas follow. */
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
    "calling "
    "(local, if nobody says); only while no key exists.\",\"schema\":{\"type\":\"string\","
    "\"pattern\":\"^[A-Za-z0-9._@-]{1,64}$\"}},"
    "\"Space\":{\"name\":\"X-Notegate-Space\",\"in\":\"header\",\"description\":\"The space to "
    "work in.\",\"schema\":{\"type\":\"string\",\"pattern\":\"^~?[A-Za-z0-9._@-]{1,64}$\"}},"
    "\"Mode\":{\"name\":\"X-Notegate-Mode\",\"in\":\"header\",\"schema\":{"
    "\"$ref\":\"#/components/schemas/Mode\"}},"
    "\"IdempotencyKey\":{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"description\":\"A "
    "write "
    "with a key is done once; the repeat gets the first "
    "answer.\",\"schema\":{\"type\":\"string\","
    "\"minLength\":1,\"maxLength\":255}},"
    "\"Format\":{\"name\":\"format\",\"in\":\"query\",\"schema\":{"
    "\"$ref\":\"#/components/schemas/Format\"}}},"
    "\"responses\":{\"Error\":{\"description\":\"The call failed; `code` says "
    "how.\",\"headers\":{"
    "\"X-Request-Id\":{\"schema\":{\"type\":\"string\"}}},\"content\":{\"application/json\":{"
    "\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}},"
    "\"schemas\":{\"Mode\":{\"type\":\"string\",\"enum\":[\"ask\",\"edit\",\"agent\"]},"
    "\"Format\":{\"type\":\"string\",\"default\":\"mcp\",\"enum\":[\"mcp\",\"openai\","
    "\"openai-responses\",\"anthropic\",\"gemini\"]},\"Tools\":{\"type\":\"object\","
    "\"required\":[\"tools\"],\"properties\":{"
    "\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}},\"Error\":{\"type\":"
    "\"object\",\"required\":[\"error\",\"code\",\"message\"],"
    "\"properties\":{\"error\":{\"const\":true},\"code\":{\"type\":\"string\",\"examples\":["
    "\"INVALID_INPUT\",\"NOT_FOUND\",\"CONFLICT\"]},\"message\":{\"type\":\"string\"},"
    "\"hint\":{\"type\":\"string\"},\"details\":{\"type\":\"object\"}}},"
    "\"Content\":{\"type\":\"object\",\"required\":[\"type\"],\"properties\":{\"type\":{"
    "\"enum\":["
    "\"text\",\"image\",\"audio\",\"resource\",\"resource_link\"]}}}";

static const char fixed_paths[] =
    "\"/v1/tools\":{\"get\":{\"operationId\":\"listTools\",\"summary\":\"The tools the caller "
    "may "
    "call\",\"tags\":[\"gateway\"],\"parameters\":[{\"$ref\":\"#/components/parameters/"
    "Format\"}],"
    "\"responses\":{\"200\":{\"description\":\"The definitions, in the form asked for.\","
    "\"content\":{\"application/json\":{\"schema\":{\"anyOf\":[{\"$ref\":\"#/components/"
    "schemas/Tools\"},{\"type\":\"array\",\"items\":{\"type\":\"object\"}}]}}}},"
    "\"304\":{\"description\":\"Not changed since the ETag in If-None-Match.\"},"
    "\"default\":{\"$ref\":\"#/components/responses/Error\"}}}},"
    "\"/v1/tools/{name}\":{\"get\":{\"operationId\":\"showTool\",\"summary\":\"One tool's "
    "definition\",\"tags\":[\"gateway\"],\"parameters\":[{\"name\":\"name\",\"in\":\"path\","
    "\"required\":true,\"schema\":{\"type\":\"string\"}},{\"$ref\":"
    "\"#/components/parameters/Format\"}],\"responses\":{\"200\":{\"description\":\"The "
    "definition.\",\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"}}}},"
    "\"default\":{\"$ref\":\"#/components/responses/Error\"}}}},"
    "\"/v1/events\":{\"get\":{\"operationId\":\"followChanges\",\"summary\":\"Every change "
    "the caller may see, as server-sent events\",\"description\":\"`id` is the sequence "
    "number, `event` is `change` (or `closed`, the last one, with the reason), `data` is one "
    "JSON object.\",\"tags\":[\"events\"],\"parameters\":[{\"name\":\"since\",\"in\":\"query\","
    "\"description\":\"Events after this one; without a position: from now on.\",\"schema\":{"
    "\"type\":\"integer\",\"minimum\":0}},{\"name\":\"collection\",\"in\":\"query\","
    "\"description\":\"Only these, with commas.\",\"schema\":{\"type\":\"string\"}},{\"name\":"
    "\"tool\",\"in\":\"query\",\"description\":\"Only what these tools changed, with "
    "commas.\",\"schema\":{\"type\":\"string\"}},{\"name\":\"Last-Event-ID\",\"in\":\"header\","
    "\"description\":\"Where to resume; beats since.\",\"schema\":{\"type\":\"string\"}},"
    "{\"$ref\":\"#/components/parameters/Agent\"},{\"$ref\":\"#/components/parameters/"
    "Space\"}],"
    "\"responses\":{\"200\":{\"description\":\"Events, until one side ends.\",\"content\":{"
    "\"text/event-stream\":{\"schema\":{\"type\":\"string\"}}}},\"default\":{\"$ref\":"
    "\"#/components/responses/Error\"}}}},"
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

/* Only in what the role admin is shown. */
static const char keys_paths[] =
    ",\"/v1/keys\":{\"get\":{\"operationId\":\"listKeys\",\"summary\":\"The keys in "
    "force\",\"tags\":[\"keys\"],\"parameters\":[{\"name\":\"all\",\"in\":\"query\","
    "\"description\":\"Also those that are revoked or have expired.\",\"schema\":{\"type\":"
    "\"boolean\",\"default\":false}}],\"responses\":{\"200\":{\"description\":\"Oldest "
    "first.\",\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\",\"required\":"
    "[\"keys\"],\"properties\":{\"keys\":{\"type\":\"array\",\"items\":{\"$ref\":"
    "\"#/components/schemas/Key\"}}}}}}},\"default\":{\"$ref\":\"#/components/responses/"
    "Error\"}}},\"post\":{\"operationId\":\"addKey\",\"summary\":\"Add a key\","
    "\"description\":\"In force when it is answered. The answer is the only one with `key`, "
    "what to send as bearer token.\",\"tags\":[\"keys\"],\"requestBody\":{\"required\":true,"
    "\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/"
    "NewKey\"}}}}"
    ",\"responses\":{\"201\":{\"description\":\"It was added.\",\"content\":{"
    "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Key\"}}}},\"default\":"
    "{\"$ref\":\"#/components/responses/Error\"}}}},"
    "\"/v1/keys/{id}\":{\"parameters\":[{\"name\":\"id\",\"in\":\"path\",\"required\":true,"
    "\"schema\":{\"type\":\"string\"}}],\"get\":{\"operationId\":\"showKey\",\"summary\":\"One "
    "key\",\"tags\":[\"keys\"],\"responses\":{\"200\":{\"description\":\"The key.\","
    "\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Key\"}}}},"
    "\"default\":{\"$ref\":\"#/components/responses/Error\"}}},\"delete\":{\"operationId\":"
    "\"revokeKey\",\"summary\":\"Revoke a key, at once and for good\",\"tags\":[\"keys\"],"
    "\"responses\":{\"200\":{\"description\":\"The key, revoked.\",\"content\":{"
    "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Key\"}}}},\"default\":"
    "{\"$ref\":\"#/components/responses/Error\"}}}}";

static const char keys_schemas[] =
    ",\"NewKey\":{\"type\":\"object\",\"required\":[\"agent\"],\"additionalProperties\":false,"
    "\"properties\":{\"agent\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9._@-]{1,64}$\"},"
    "\"role\":{\"enum\":[\"reader\",\"writer\",\"admin\"],\"default\":\"writer\"},\"mode\":{"
    "\"enum\":[\"ask\",\"edit\",\"agent\"],\"default\":\"agent\"},\"spaces\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":64,\"description\":\"Default: the "
    "agent's own, ~NAME, and shared.\"},\"tools\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"string\"},\"minItems\":1,\"maxItems\":256,\"description\":\"Default: all.\"},\"rate\":{"
    "\"type\":[\"number\",\"string\"],\"description\":\"Calls a second, 5, 5/s or 30/min, in "
    "bursts of twice that; default: no limit.\"},\"expires\":{\"type\":\"string\","
    "\"description\":\"30d, 2027-01-31 or RFC 3339; default: never.\"}}},"
    "\"Key\":{\"type\":\"object\",\"required\":[\"id\",\"agent\",\"role\",\"mode\",\"spaces\","
    "\"created\",\"state\"],\"properties\":{\"key\":{\"type\":\"string\",\"description\":"
    "\"Only "
    "when it is "
    "added.\"},\"id\":{\"type\":\"string\"},\"agent\":{\"type\":\"string\"},\"role\":{"
    "\"enum\":[\"reader\",\"writer\",\"admin\"]},\"mode\":{\"enum\":[\"ask\",\"edit\","
    "\"agent\"]},"
    "\"spaces\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"tools\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"string\"},\"description\":\"Absent: all.\"},\"rate\":{"
    "\"type\":\"number\"},\"created\":{\"type\":\"string\",\"format\":\"date-time\"},"
    "\"expires\":"
    "{\"type\":\"string\",\"format\":\"date-time\"},\"revoked\":{\"type\":\"string\","
    "\"format\":"
    "\"date-time\"},\"state\":{\"enum\":[\"live\",\"revoked\",\"expired\"]}}}";

static const char call_parameters[] = "[{\"$ref\":\"#/components/parameters/"
                                      "Agent\"},{\"$ref\":\"#/components/parameters/Space\"},"
                                      "{\"$ref\":\"#/components/parameters/Mode\"},"
                                      "{\"$ref\":\"#/components/parameters/IdempotencyKey\"}]";

static const char other_members[] =
    ",\"content\":{\"type\":\"array\",\"description\":\"Parts that are not text.\",\"items\":{"
    "\"$ref\":\"#/components/schemas/"
    "Content\"}},\"revision\":{\"type\":[\"integer\",\"string\"],"
    "\"description\":\"Where something was changed or read at a revision.\"}}}";

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
    (void)buf_printf(out, "{\"$ref\":\"#/components/schemas/%s_arguments\"}", desc->name);
    (void)buf_add_c(out, "}}},\"responses\":{\"200\":{\"description\":\"The tool's answer.\","
                         "\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\","
                         "\"required\":[\"result\"],\"properties\":{\"result\":");
    if (tool->result_tree != NULL) {
        (void)buf_printf(out, "{\"$ref\":\"#/components/schemas/%s_result\"}", desc->name);
    } else {
        (void)buf_add_c(out, "{\"type\":\"string\"}");
    }
    (void)buf_add_c(out, other_members);
    (void)buf_add_c(out, "}}},\"default\":{\"$ref\":\"#/components/responses/Error\"}}}}");
}

static void print_schemas(struct buf *out, const struct tool *tool)
{
    openapi_schema_print(out, tool->params_tree, tool->desc.name, "arguments");
    if (tool->result_tree != NULL) {
        openapi_schema_print(out, tool->result_tree, tool->desc.name, "result");
    }
}

int openapi_print(struct gateway *gateway, struct call *call, struct buf *out)
{
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(gateway->registry, &tools);
    (void)buf_printf(out, "{\"openapi\":\"3.1.0\",\"info\":%s,\"security\":[{\"key\":[]},{}],",
                     info);
    (void)buf_add_c(out, "\"paths\":{");
    (void)buf_add_c(out, fixed_paths);
    bool admin = call == NULL || key_ops_allowed(call);
    (void)buf_add_c(out, admin ? keys_paths : "");
    for (size_t i = 0; i < count; i++) {
        if (call == NULL || dispatch_allows(call, tools[i])) {
            (void)buf_add_char(out, ',');
            print_tool(out, tools[i]);
        }
    }
    (void)buf_add_c(out, "},\"components\":");
    (void)buf_add_c(out, components);
    (void)buf_add_c(out, admin ? keys_schemas : "");
    for (size_t i = 0; i < count; i++) {
        if (call == NULL || dispatch_allows(call, tools[i])) {
            print_schemas(out, tools[i]);
        }
    }
    return buf_add_c(out, "}}}");
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
