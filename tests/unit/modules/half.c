/* SPDX-License-Identifier: MIT */
/* half.c - a count
 * without its array. */
#include <notegate/plugin.h>

static const struct ng_plugin half = {.name = "half", .version = "1", .tool_count = 3};

NG_EXPORT_PLUGIN(half);
