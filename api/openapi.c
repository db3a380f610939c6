/* SPDX-License-Identifier: MIT */
/* openapi.c - /openapi.json. */
#include "openapi.h"

#include "dispatch.h"
#include "http_reply.h"
#include "http_server.h"
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
    ",\"/v1/keys\":{\"get\":{\"operationId\":\"listKeys\",\"summary\":\"The keys in force"
    "\",\"tags\":[\"admin\"],\"parameters\":[{\"name\":\"all\",\"in\":\"query\",\"descrip"
    "tion\":\"Revoked and expired ones too.\",\"schema\":{\"type\":\"boolean\",\"default"
    "\":false}},{\"name\":\"name\",\"in\":\"query\",\"description\":\"Only this agent's, and "
    "the one with this "
    "id.\",\"schema\":{\"type\":\"string\"}}],\"responses\":{\"200\":{\"description\":\"The "
    "keys, without their secret"
    "s.\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/"
    "Keys\"}}}},\"default\":{\"$ref\":\"#/components/responses/Error\"}}},\"post\":{\"ope"
    "rationId\":\"addKey\",\"summary\":\"Make a key for an agent\",\"tags\":[\"admin\"],"
    "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{\""
    "$ref\":\"#/components/schemas/KeyRequest\"}}}},\"responses\":{\"201\":{\"description"
    "\":\"The key. Its text is in no other answer.\",\"content\":{\"application/json\":{"
    "\"schema\":{\"$ref\":\"#/components/schemas/Key\"}}}},\"default\":{\"$ref\":\"#/comp"
    "onents/responses/Error\"}}}},\"/v1/keys/{id}\":{\"get\":{\"operationId\":\"showKey\""
    ",\"summary\":\"One key\",\"tags\":[\"admin\"],\"parameters\":[{\"name\":\"id\",\"in"
    "\":\"path\",\"required\":true,\"description\":\"A key's id.\",\"schema\":{\"type\":"
    "\"string\"}}],\"responses\":{\"200\":{\"description\":\"The key, without its secret."
    "\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Ke"
    "y\"}}}},\"default\":{\"$ref\":\"#/components/responses/Error\"}}},\"delete\":{\"oper"
    "ationId\":\"revokeKey\",\"summary\":\"End a key, at once\",\"tags\":[\"admin\"],\"pa"
    "rameters\":[{\"name\":\"id\",\"in\":\"path\",\"required\":true,\"description\":\"A k"
    "ey's id.\",\"schema\":{\"type\":\"string\"}}],\"responses\":{\"200\":{\"description"
    "\":\"The key as it was.\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\""
    "#/components/schemas/Key\"}}}},\"default\":{\"$ref\":\"#/components/responses/Error"
    "\"}}}}";

static const char keys_schemas[] =
    ",\"Role\":{\"type\":\"string\",\"enum\":[\"reader\",\"writer\",\"admin\"]},\"KeyRequ"
    "est\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"agent\"],"
    "\"properties\":{\"agent\":{\"type\":\"string\"},\"role\":{\"$ref\":\"#/components/sc"
    "hemas/Role\"},\"mode\":{\"$ref\":\"#/components/schemas/"
    "Mode\"},\"run\":{\"type\":\"boolean"
    "\",\"description\":\"May run code. Only a caller that may adds such a key.\"},"
    "\"spaces\":{\"type\""
    ":\"array\",\"items\":{\"type\":\"string\"}},\"tools\":{\"type\":\"array\",\"items\":"
    "{\"type\":\"string\"}},\"rate\":{\"type\":[\"number\",\"string\"],\"description\":\""
    "Calls a second, or 5/s, 100/min.\"},\"expires\":{\"type\":\"string\",\"description\""
    ":\"A time, or 30d for 30 days from now.\"}}},\"Key\":{\"type\":\"object\",\"required"
    "\":[\"id\",\"agent\",\"role\",\"mode\",\"run\",\"spaces\",\"created\",\"state\"],"
    "\"propertie"
    "s\":{\"key\":{\"type\":\"string\",\"description\":\"What to send as bearer; only in "
    "the answer that made it.\"},\"id\":{\"type\":\"string\"},\"agent\":{\"type\":\"strin"
    "g\"},\"role\":{\"$ref\":\"#/components/schemas/Role\"},\"mode\":{\"$ref\":\"#/compon"
    "ents/schemas/"
    "Mode\"},\"run\":{\"type\":\"boolean\"},\"spaces\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"string\"}}"
    ",\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"rate\":{\"type\":"
    "\"number\"},\"created\":{\"type\":\"string\",\"format\":\"date-time\"},\"expires\":{"
    "\"type\":\"string\",\"format\":\"date-time\"},\"revoked\":{\"type\":\"string\",\"for"
    "mat\":\"date-time\"},\"state\":{\"type\":\"string\",\"enum\":[\"live\",\"revoked\","
    "\"expired\"]}}},\"Keys\":{\"type\":\"object\",\"required\":[\"keys\"],\"properties\""
    ":{\"keys\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Key\"}}}}";

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

int openapi_print(struct gateway *gateway, struct call *call, bool needs_key, struct buf *out)
{
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(gateway->registry, &tools);
    (void)buf_printf(out, "{\"openapi\":\"3.1.0\",\"info\":%s,\"security\":[{\"key\":[]}%s],",
                     info, needs_key ? "" : ",{}");
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
    if (call != NULL && call->arena.starved) {
        out->rc = NG_EINTERNAL; /* whether one is listed could not be found out */
    }
    return buf_add_c(out, "}}}");
}

int openapi_route(struct http_request *request)
{
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    (void)openapi_print(request->gateway, call, auth_needs_key(request->server->auth),
                        &request->reply.body);
    call_unref(call);
    http_reply_etag(request);
    return NG_OK;
}
