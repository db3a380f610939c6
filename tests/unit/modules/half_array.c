/* SPDX-License-Identifier: MIT */
/* half_array.c - an array
 * without its count. */
#include <notegate/plugin.h>

static const struct ng_option options[] = {{.name = "size"}};

static const struct ng_plugin half = {.name = "half", .version = "1", .options = options};

NG_EXPORT_PLUGIN(half);
