/* SPDX-License-Identifier: MIT */
/* routes.c - the table of paths, and how MCP lives with the server. */
#include "routes.h"

#include "api/openapi/openapi.h"
#include "api/rest/rest.h"
#include "api/tasks/mcp_tasks.h"
#include "api/transport/http_mcp.h"
#include "core/config/config.h"
#include "mcp_methods.h"

#define PARAM "{name}"

static const struct route table[] = {
    {HTTP_POST, ROUTE_BODY, "/v1/tools/" PARAM, rest_tools_call, rest_tools_finish},
    {HTTP_GET, 0, "/v1/tools/" PARAM, rest_tools_show, NULL},
    {HTTP_POST | HTTP_GET | HTTP_DELETE, ROUTE_SERVICE, "/mcp", mcp_route, mcp_route_finish},
    {HTTP_GET, 0, "/v1/tools", rest_tools_list, NULL},
    {HTTP_GET, 0, "/v1/me", rest_me, NULL},
    {HTTP_GET, ROUTE_OPEN | ROUTE_PROBE, "/healthz", rest_ops_healthz, NULL},
    {HTTP_GET, ROUTE_OPEN | ROUTE_PROBE, "/readyz", rest_ops_readyz, rest_ops_finish},
    {HTTP_GET, 0, "/metrics", rest_ops_metrics, NULL},
    {HTTP_GET, 0, "/v1/config", rest_admin_config, NULL},
    {HTTP_POST, 0, "/v1/reload", rest_admin_reload, rest_admin_reload_finish},
    {HTTP_POST, 0, "/v1/admin/backup", rest_admin_backup, rest_admin_finish},
    {HTTP_POST, 0, "/v1/admin/verify", rest_admin_verify, rest_admin_finish},
    {HTTP_GET, 0, "/v1/keys", rest_keys_list, rest_keys_finish},
    {HTTP_POST, ROUTE_BODY, "/v1/keys", rest_keys_add, rest_keys_finish},
    {HTTP_GET, 0, "/v1/keys/" PARAM, rest_keys_show, rest_keys_finish},
    {HTTP_PATCH, ROUTE_BODY, "/v1/keys/" PARAM, rest_keys_set, rest_keys_finish},
    {HTTP_DELETE, 0, "/v1/keys/" PARAM, rest_keys_revoke, rest_keys_finish},
    {HTTP_GET, 0, "/v1/audit", rest_audit_list, rest_audit_finish},
    {HTTP_GET, 0, "/v1/audit/checkpoint", rest_audit_checkpoint, rest_audit_finish},
    {HTTP_POST, ROUTE_BODY, "/v1/audit/redact", rest_audit_redact, rest_audit_finish},
    {HTTP_GET, 0, "/v1/audit/tile/{path}", rest_audit_tile, rest_audit_finish},
    {HTTP_GET, 0, "/v1/history", rest_history, rest_history_finish},
    {HTTP_GET, 0, "/v1/history/at", rest_history, rest_history_finish},
    {HTTP_GET, 0, "/v1/history/diff", rest_history, rest_history_finish},
    {HTTP_GET, 0, "/v1/history/blame", rest_history, rest_history_finish},
    {HTTP_POST, ROUTE_BODY, "/v1/history/undo", rest_history, rest_history_finish},
    {HTTP_POST, ROUTE_BODY, "/v1/history/restore", rest_history, rest_history_finish},
    {HTTP_GET, 0, "/v1/events", rest_events, rest_events_finish},
    {HTTP_GET, 0, "/openapi.json", openapi_route, NULL},
    {HTTP_GET, ROUTE_OPEN, "/", docs_page_redirect, NULL},
    {HTTP_GET, ROUTE_OPEN, "/docs", docs_page_html, NULL},
    {HTTP_GET, ROUTE_OPEN, "/docs/docs.js", docs_page_script, NULL},
    {HTTP_GET, ROUTE_OPEN, "/docs/docs.css", docs_page_style, NULL},
};

static int service_open(struct gateway *gateway, void **ret, struct buf *error)
{
    struct mcp_http *mcp = NULL;
    int rc = mcp_http_new(gateway, mcp_methods_all(), &mcp);
    if (rc != NG_OK) {
        (void)buf_add_c(error, "cannot start the HTTP server: out of memory or threads");
        return rc;
    }
    rc = mcp_http_share(mcp, error);
    if (rc == NG_OK) {
        rc = mcp_tasks_open(gateway, error);
    }
    if (rc != NG_OK) {
        mcp_http_free(mcp);
        return rc;
    }
    *ret = mcp;
    return NG_OK;
}

static void service_stop(struct gateway *gateway, void *service, enum http_stop_step step)
{
    switch (step) {
    case HTTP_STOP_WAITING:
        mcp_tasks_stop(gateway, false);
        break;
    case HTTP_STOP_RUNNING:
        mcp_tasks_stop(gateway, true);
        break;
    case HTTP_STOP_ALL:
        mcp_http_cancel_all(service);
        break;
    }
}

static void service_close(void *service)
{
    mcp_http_free(service);
}

static void service_reload(void *service, const struct config *config)
{
    mcp_http_set_timeout(service, config_int(config, "mcp.session_timeout"));
}

static const struct http_service service = {
    .open = service_open,
    .stop = service_stop,
    .close = service_close,
    .reload = service_reload,
    .refuse = mcp_http_print_refusal,
    .wait = mcp_route_wait,
    .release = mcp_route_release,
};

const struct http_routes *routes_all(void)
{
    static const struct http_routes routes = {table, NG_COUNT(table), &service};
    return &routes;
}
