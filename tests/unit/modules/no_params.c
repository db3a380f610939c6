/* SPDX-License-Identifier: MIT */
/* no_params.c - its second tool
 * has no schema. */
#include <notegate/plugin.h>

static int test_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static const struct ng_tool tools[] = {
    {.name = "one", .summary = "First.", .params = "{\"type\":\"object\"}", .run = test_run},
    {.name = "two", .summary = "Second.", .run = test_run},
};

static const struct ng_plugin lacking = {
    .name = "lacking",
    .version = "1",
    .tools = tools,
    .tool_count = NG_COUNT(tools),
};

NG_EXPORT_PLUGIN(lacking);
