/* SPDX-License-Identifier: MIT */
/* needs_more.c - as if compiled
 * with headers whose host has more, which it cannot do without. */
#define NG_NEEDS_HOST (sizeof(struct ng_host) + 16)
#include <notegate/plugin.h>

static const struct ng_plugin needs_more = {.name = "needs_more", .version = "1"};

NG_EXPORT_PLUGIN(needs_more);
