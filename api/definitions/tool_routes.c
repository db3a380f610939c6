/* SPDX-License-Identifier: MIT */
/* tool_routes.c - addresses of tools besides /v1/tools. */
#include "tool_routes.h"

#include "core/base/str.h"

const struct tool_route tool_routes[TOOL_ROUTES] = {
    {"/v1/history", "history_log", NULL, TOOL_ROUTE_GET},
    {"/v1/history/at", "history_read", "content", TOOL_ROUTE_GET},
    {"/v1/history/diff", "history_diff", "diff", TOOL_ROUTE_GET},
    {"/v1/history/blame", "history_blame", NULL, TOOL_ROUTE_GET},
    {"/v1/history/undo", "history_undo", NULL, TOOL_ROUTE_POST},
    {"/v1/history/restore", "history_restore", NULL, TOOL_ROUTE_POST},
};

const struct tool_route *tool_route_find(struct ng_str path)
{
    for (size_t i = 0; i < TOOL_ROUTES; i++) {
        if (str_is(path, tool_routes[i].path)) {
            return &tool_routes[i];
        }
    }
    return NULL;
}
