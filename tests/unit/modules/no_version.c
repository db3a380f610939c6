/* SPDX-License-Identifier: MIT */
/* no_version.c - a plugin
 * without a version. */
#include <notegate/plugin.h>

static const struct ng_plugin unversioned = {.name = "unversioned"};

NG_EXPORT_PLUGIN(unversioned);
