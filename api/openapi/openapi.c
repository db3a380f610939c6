/* SPDX-License-Identifier: MIT */
/* openapi.c - /openapi.json. */
#include "openapi.h"

#include "api/auth/key_ops.h"
#include "api/definitions/tool_formats.h"
#include "api/http/http_reply.h"
#include "api/http/http_server.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "core/store/store.h"
#include "openapi_fixed.h"
#include "openapi_operations.h"
#include "openapi_routes.h"
#include "openapi_schema.h"

static const char other_members[] =
    ",'content':{'type':'array','description':'Parts that are not text.','items':{"
    "'$ref':'#/components/schemas/Content'}},'revision':{'anyOf':[{'type':'integer'},{"
    "'type':'string'}],'description':'The revision that was written or read.'},'_meta':{"
    "'type':'object'}}}";

/* In `x-notegate`, for /docs: annotations of MCP do not tell that a tool runs code. */
static const char *const effects[] = {
    [NG_EFFECT_READS] = "reads",
    [NG_EFFECT_WRITES] = "writes",
    [NG_EFFECT_ADMIN] = "admin",
    [NG_EFFECT_RUNS] = "runs",
};

static void print_call(struct buf *out, const struct tool *tool, bool with_agent)
{
    const struct ng_tool *desc = &tool->desc;
    (void)buf_printf(out, "\"post\":{\"operationId\":\"%s\",\"summary\":", desc->name);
    (void)buf_add_json(out, ng_str_of(desc->title != NULL ? desc->title : desc->name));
    (void)buf_add_c(out, ",\"description\":");
    (void)buf_add_json(out, ng_str_of(desc->summary));
    (void)buf_printf(out,
                     ",\"tags\":[\"%s\"],\"x-notegate\":{\"effect\":\"%s\",\"destructive\":%s}",
                     tool->plugin->desc.name, effects[desc->effect],
                     (desc->flags & NG_TOOL_DESTRUCTIVE) != 0 ? "true" : "false");
    (void)buf_add_c(out, ",\"parameters\":");
    openapi_print_parameters(out, OPENAPI_TOOL_PARAMETERS, with_agent);
    openapi_put(out,
                ",'requestBody':{'required':true,'content':{'application/json':{'schema':");
    (void)buf_printf(out, "{\"$ref\":\"#/components/schemas/%s_arguments\"}", desc->name);
    openapi_put(out, "}}},'responses':{'200':{'description':'The answer of the tool.',"
                     "'headers':{'X-Notegate-Run':{'$ref':'#/components/headers/Run'}},"
                     "'content':{'application/json':{'schema':{'type':'object',"
                     "'required':['result'],'properties':{'result':");
    if (tool->result_tree != NULL) {
        (void)buf_printf(out, "{\"$ref\":\"#/components/schemas/%s_result\"}", desc->name);
    } else {
        (void)buf_add_c(out, "{\"type\":\"string\"}");
    }
    openapi_put(out, other_members);
    (void)buf_add_c(out, "}}}");
    openapi_print_refusals(out, OPENAPI_CALLS);
    (void)buf_add_c(out, "}}");
}

/* The address of a tool answers GET too, and says so in Allow. No tool's name has a dot. */
static void print_tool(struct buf *out, const struct tool *tool, bool with_agent)
{
    const char *name = tool->desc.name;
    (void)buf_printf(out, "\"/v1/tools/%s\":{", name);
    print_call(out, tool, with_agent);
    (void)buf_printf(out,
                     ",\"get\":{\"operationId\":\"%s.definition\",\"summary\":\"The "
                     "definition of %s\",\"description\":\"As GET /v1/tools has "
                     "it.\",\"tags\":[\"gateway\"]",
                     name, name);
    openapi_print_definition(out);
    (void)buf_add_c(out, "}}");
}

static void print_schemas(struct buf *out, const struct tool *tool, struct call *call)
{
    openapi_schema_print(out, tool_formats_params(tool, call), tool->desc.name, "arguments");
    if (tool->result_tree != NULL) {
        openapi_schema_print(out, tool->result_tree, tool->desc.name, "result");
    }
}

/* One tag for each plugin whose tools are shown. */
static void print_tags(struct buf *out, const struct tool *const *tools, size_t count,
                       struct call *call)
{
    const struct plugin *last = NULL;
    openapi_put(out, "'tags':[" OPENAPI_TAGS);
    for (size_t i = 0; i < count; i++) {
        bool first = tools[i]->plugin != last;
        for (size_t j = 0; j < i && first; j++) {
            first = tools[j]->plugin != tools[i]->plugin ||
                    (call != NULL && !dispatch_allows(call, tools[j]));
        }
        if (first && (call == NULL || dispatch_allows(call, tools[i]))) {
            last = tools[i]->plugin;
            (void)buf_printf(out,
                             ",{\"name\":\"%s\",\"description\":\"The tools of the plugin "
                             "%s.\"}",
                             last->desc.name, last->desc.name);
        }
    }
    (void)buf_add_c(out, "]");
}

/* A schema of a string that is one of some names, where there are any. */
static void open_names(struct buf *out, const char *name)
{
    (void)buf_printf(out, ",\"%s\":{\"type\":\"string\"", name);
}

static void add_name(struct buf *out, size_t *count, const char *name)
{
    (void)buf_printf(out, "%s\"%s\"", *count == 0 ? ",\"enum\":[" : ",", name);
    ++*count;
}

static void close_names(struct buf *out, size_t count)
{
    (void)buf_add_c(out, count == 0 ? "}" : "]}");
}

/* The values of parameters: listed tools, and collections whose events this caller may see. */
static void print_names(struct buf *out, struct gateway *gateway, struct call *call)
{
    const struct tool *const *tools = NULL;
    const struct ng_collection *one = NULL;
    size_t tool_count = registry_tools(gateway->registry, &tools);
    size_t count = 0;
    open_names(out, "ToolName");
    for (size_t i = 0; i < tool_count; i++) {
        if (call == NULL || dispatch_allows(call, tools[i])) {
            add_name(out, &count, tools[i]->desc.name);
        }
    }
    close_names(out, count);
    count = 0;
    open_names(out, "CollectionName");
    for (size_t i = 0; (one = store_collection_at(gateway->store, i)) != NULL; i++) {
        bool told = (one->flags & NG_COLLECTION_QUIET) == 0;
        if (told && (call == NULL || dispatch_sees_collection(call, ng_str_of(one->name)))) {
            add_name(out, &count, one->name);
        }
    }
    close_names(out, count);
}

int openapi_print(struct gateway *gateway, struct call *call, bool needs_key,
                  const char *server, struct buf *out)
{
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(gateway->registry, &tools);
    struct openapi_reader reader = {
        .admin = call == NULL || key_ops_allowed(call),
        .agent = !needs_key && (call == NULL || call->key == NULL),
    };
    openapi_put(out, openapi_info);
    openapi_put(out, ",'servers':[{'url':'");
    openapi_put(out, server);
    openapi_put(out, "','description':'This gateway.'}],'security':[{'key':[]}");
    openapi_put(out, needs_key ? "]," : ",{}],");
    print_tags(out, tools, count, call);
    openapi_put(out, ",'paths':{");
    openapi_print_operations(out, &reader);
    for (size_t i = 0; i < count; i++) {
        if (call == NULL || dispatch_allows(call, tools[i])) {
            (void)buf_add_char(out, ',');
            print_tool(out, tools[i], reader.agent);
        }
    }
    openapi_print_routes(out, gateway, call, reader.agent);
    openapi_put(out, "},'components':");
    openapi_fixed_components(out, &reader);
    print_names(out, gateway, call);
    for (size_t i = 0; i < count; i++) {
        if (call == NULL || dispatch_allows(call, tools[i])) {
            print_schemas(out, tools[i], call);
        }
    }
    if (call != NULL && call->arena.oom) {
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
    /* Clients resolve it from /openapi.json/ then. */
    const char *server = request->target.has_slash ? ".." : ".";
    (void)openapi_print(request->gateway, call, auth_needs_key(request->server->auth), server,
                        &request->reply.body);
    call_unref(call);
    http_reply_etag(request);
    return NG_OK;
}
