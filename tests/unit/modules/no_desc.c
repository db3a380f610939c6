/* SPDX-License-Identifier: MIT */
/* no_desc.c - its record
 * points at nothing. */
#include "record.h"

TEST_NOTE(1, NG_KIND_PLUGIN);
TEST_RECORD(1, NG_KIND_PLUGIN, sizeof(struct ng_plugin), 0, NULL);
