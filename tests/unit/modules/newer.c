/* SPDX-License-Identifier: MIT */
/* newer.c - as if compiled with headers
 * in which plugin and tool have grown. */
#include "record.h"

struct new_tool {
    struct ng_tool tool;
    const char *more[3];
};

struct new_plugin {
    struct ng_plugin plugin;
    const char *more[5];
};

static int test_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static const struct new_tool tools[] = {
    {{.name = "one", .summary = "First.", .params = "{\"type\":\"object\"}", .run = test_run},
     {"a", "b", "c"}},
    {{.name = "two",
      .summary = "Second.",
      .params = "{\"type\":\"object\"}",
      .run = test_run,
      .flags = 5},
     {"d", "e", "f"}},
};

static const struct new_plugin newer = {
    {.name = "newer", .version = "9", .tools = &tools[0].tool, .tool_count = NG_COUNT(tools)},
    {"1", "2", "3", "4", "5"},
};

TEST_NOTE(1, NG_KIND_PLUGIN);
TEST_RECORD(1, NG_KIND_PLUGIN, sizeof(newer), sizeof(struct new_tool), &newer);
