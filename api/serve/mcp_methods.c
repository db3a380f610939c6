/* SPDX-License-Identifier: MIT */
/* mcp_methods.c - the table of MCP methods, and the hooks of tasks. */
#include "mcp_methods.h"

#include "api/tasks/mcp_listen_tasks.h"
#include "api/tasks/mcp_tasks.h"

/* Asked for most often first. */
static const struct mcp_method items[] = {
    {"tools/call", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_CALL,
     mcp_tools_call},
    {"tools/list", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_FREE,
     mcp_tools_list},
    {"resources/read", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_CALL,
     mcp_resources_read},
    {"resources/list", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_CALL,
     mcp_resources_list},
    {"resources/templates/list", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_FREE,
     mcp_templates_list},
    {"prompts/get", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_CALL,
     mcp_prompts_get},
    {"prompts/list", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_FREE,
     mcp_prompts_list},
    {"completion/complete", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_CALL,
     mcp_complete},
    {"resources/subscribe", MCP_VERSIONS_HANDSHAKE, MCP_COST_COUNTS, mcp_resources_subscribe},
    {"resources/unsubscribe", MCP_VERSIONS_HANDSHAKE, MCP_COST_FREE, mcp_resources_unsubscribe},
    {"subscriptions/listen", MCP_VERSIONS_STATELESS, MCP_COST_COUNTS, mcp_subscriptions_listen},
    {"server/discover", MCP_VERSIONS_STATELESS, MCP_COST_FREE, mcp_discover},
    {"initialize", MCP_VERSIONS_HANDSHAKE, MCP_COST_FREE, mcp_initialize},
    {"ping", MCP_VERSIONS_HANDSHAKE, MCP_COST_FREE, mcp_ping},
    {"logging/setLevel", MCP_VERSIONS_HANDSHAKE, MCP_COST_FREE, mcp_set_level},
    {"tasks/get", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_FREE,
     mcp_tasks_get},
    {"tasks/update", MCP_VERSIONS_STATELESS, MCP_COST_FREE, mcp_tasks_update},
    {"tasks/cancel", MCP_VERSIONS_HANDSHAKE | MCP_VERSIONS_STATELESS, MCP_COST_FREE,
     mcp_tasks_cancel},
    {"tasks/result", MCP_VERSIONS_HANDSHAKE, MCP_COST_FREE, mcp_tasks_result},
    {"tasks/list", MCP_VERSIONS_HANDSHAKE, MCP_COST_COUNTS, mcp_tasks_list},
};

static bool tasks_are_offered(struct gateway *gateway)
{
    return mcp_tasks_of(gateway) != NULL;
}

static const struct mcp_task_hooks tasks = {
    .are_offered = tasks_are_offered,
    .take = mcp_tasks_take,
    .listen_begin = mcp_listen_tasks_begin,
    .listen_acknowledged = mcp_listen_tasks_acknowledged,
    .listen_end = mcp_listen_tasks_end,
};

const struct mcp_methods *mcp_methods_all(void)
{
    static const struct mcp_methods methods = {items, NG_COUNT(items), &tasks};
    return &methods;
}
