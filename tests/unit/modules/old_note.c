/* SPDX-License-Identifier: MIT */
/* old_note.c - as if compiled before ABI 1 was settled: its note does not say what it needs. */
#include "record.h"

static const struct ng_plugin old = {.name = "old", .version = "1"};

TEST_OLD_NOTE(1, NG_KIND_PLUGIN);
TEST_RECORD(1, NG_KIND_PLUGIN, sizeof(old), 0, &old);
