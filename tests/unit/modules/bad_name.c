/* SPDX-License-Identifier: MIT */
/* bad_name.c - a plugin whose name
 * cannot be a key's prefix. */
#include <notegate/plugin.h>

static const struct ng_plugin loud = {.name = "Loud-One", .version = "1"};

NG_EXPORT_PLUGIN(loud);
