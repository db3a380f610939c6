/* SPDX-License-Identifier: MIT */
/* item_size.c - its tools
 * have a size that cannot be. */
#include "record.h"

static const struct ng_tool tools[] = {{.name = "one"}};

static const struct ng_plugin odd = {
    .name = "odd",
    .version = "1",
    .tools = tools,
    .tool_count = 1,
};

TEST_NOTE(1, NG_KIND_PLUGIN);
TEST_RECORD(1, NG_KIND_PLUGIN, sizeof(odd), 7, &odd);
