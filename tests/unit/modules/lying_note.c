/* SPDX-License-Identifier: MIT */
/* lying_note.c - its note says ABI 1,
 * its record says 3. */
#include "record.h"

static const struct ng_plugin lying = {.name = "lying", .version = "1"};

TEST_NOTE(1, NG_KIND_PLUGIN);
TEST_RECORD(3, NG_KIND_PLUGIN, sizeof(lying), 0, &lying);
