/* SPDX-License-Identifier: MIT */
/* openapi_routes.c - the operations of addresses of tools besides /v1/tools: made of the
 * schemas of the tools. */
#include "openapi_routes.h"

#include "api/definitions/tool_formats.h"
#include "api/definitions/tool_routes.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/call/plugin.h"
#include "core/dispatch/dispatch.h"
#include "core/json/json.h"
#include "openapi_fixed.h"
#include "openapi_operations.h"

static bool is_required(const struct ng_value *schema, struct ng_str name)
{
    return json_has_text(json_get(schema, "required"), name);
}

/* An argument as a parameter of the query. */
static void print_parameter(struct buf *out, const struct ng_value *schema,
                            const struct ng_value *member)
{
    const struct ng_value *description = json_get(member, "description");
    (void)buf_add_c(out, ",{\"name\":");
    (void)buf_add_json(out, member->key);
    (void)buf_printf(out,
                     ",\"in\":\"query\",\"required\":%s,\"style\":\"form\",\"explode\":false",
                     is_required(schema, member->key) ? "true" : "false");
    if (description != NULL) {
        (void)buf_add_c(out, ",\"description\":");
        (void)buf_add_json(out, description->text);
    }
    (void)buf_add_c(out, ",\"schema\":");
    (void)json_print(out, member);
    (void)buf_add_char(out, '}');
}

/* GET: a parameter for each argument. POST: the arguments are the body. */
static void print_get(struct buf *out, const struct ng_value *schema, bool with_agent)
{
    const struct ng_value *properties = json_get(schema, "properties");
    openapi_print_parameters(out, "Mode Run", with_agent);
    buf_cut(out, out->len - 1); /* the bracket of the list */
    for (const struct ng_value *at = json_first(properties); at != NULL; at = at->next) {
        print_parameter(out, schema, at);
    }
    (void)buf_add_char(out, ']');
}

static void print_post(struct buf *out, const char *tool, bool with_agent)
{
    openapi_print_parameters(out, OPENAPI_CALL_PARAMETERS, with_agent);
    openapi_put(out, ",'requestBody':{'required':true,'content':{'application/json':{'schema':{"
                     "'$ref':'#/components/schemas/");
    (void)buf_printf(out, "%s_arguments\"}}}}", tool);
}

static void print_route(struct buf *out, const struct tool_route *route,
                        const struct tool *tool, const struct ng_value *schema, bool with_agent)
{
    bool is_post = route->method == TOOL_ROUTE_POST;
    const char *method = is_post ? "post" : "get";
    (void)buf_printf(out,
                     ",\"%s\":{\"%s\":{\"operationId\":\"%s.%s\",\"summary\":", route->path,
                     method, route->tool, method);
    (void)buf_add_json(out, ng_str_of(tool->desc.title));
    (void)buf_add_c(out, ",\"description\":");
    (void)buf_add_json(out, ng_str_of(tool->desc.summary));
    (void)buf_printf(out, ",\"tags\":[\"%s\"],\"parameters\":", tool->plugin->desc.name);
    if (is_post) {
        print_post(out, route->tool, with_agent);
    } else {
        print_get(out, schema, with_agent);
    }
    openapi_put(out, ",'responses':{'200':{'description':'The object of the tool.','headers':{"
                     "'X-Notegate-Run':{'$ref':'#/components/headers/Run'}},'content':{"
                     "'application/json':{'schema':{'$ref':'#/components/schemas/");
    (void)buf_printf(out, "%s_result\"}}", route->tool);
    if (route->plain != NULL) {
        openapi_put(out, ",'text/plain':{'schema':{'type':'string'}}");
    }
    (void)buf_add_c(out, "}}");
    openapi_print_refusals(out, is_post ? OPENAPI_CALLS : OPENAPI_READS | OPENAPI_413);
    (void)buf_add_c(out, "}}}");
}

void openapi_print_routes(struct buf *out, struct gateway *gateway, struct call *call,
                          bool with_agent)
{
    for (size_t i = 0; i < TOOL_ROUTES; i++) {
        const struct tool *tool =
            registry_find(gateway->registry, ng_str_of(tool_routes[i].tool));
        if (tool != NULL && (call == NULL || dispatch_allows(call, tool))) {
            print_route(out, &tool_routes[i], tool, tool_formats_params(tool, call),
                        with_agent);
        }
    }
}
