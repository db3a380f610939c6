/* SPDX-License-Identifier: MIT */
/* unresolved.c - needs a function that does not exist. */
#include <notegate/plugin.h>

extern int notegate_test_not_there(void *self, struct ng_call *call, struct ng_str args);

static const struct ng_tool tools[] = {
    {.name = "one", .summary = "First.", .params = "{}", .run = notegate_test_not_there},
};

static const struct ng_plugin unresolved = {
    .name = "unresolved",
    .version = "1",
    .tools = tools,
    .tool_count = 1,
};

NG_EXPORT_PLUGIN(unresolved);
