/* SPDX-License-Identifier: MIT */
/* no_note.c - has a record, but no note:
 * built without the export macro. */
#include "record.h"

static const struct ng_plugin silent = {.name = "silent", .version = "1"};

TEST_RECORD(1, NG_KIND_PLUGIN, sizeof(silent), 0, &silent);
