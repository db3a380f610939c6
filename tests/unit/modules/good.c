/* SPDX-License-Identifier: MIT */
/* good.c - a plugin with nothing wrong;
 * it counts what it loaded with. */
#include <notegate/plugin.h>

static int test_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static const struct ng_tool tools[] = {
    {.name = "one", .summary = "First.", .params = "{\"type\":\"object\"}", .run = test_run},
    {.name = "two", .summary = "Second.", .params = "{\"type\":\"object\"}", .run = test_run},
};

static const struct ng_option options[] = {{.name = "size", .help = "A size."}};

static const struct ng_plugin good = {
    .name = "good",
    .version = "1.2.3",
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .options = options,
    .option_count = NG_COUNT(options),
};

NG_EXPORT_PLUGIN(good);
