/* SPDX-License-Identifier: MIT */
/* no_record.c - has a note,
 * but exports no record. */
#include "record.h"

TEST_NOTE(1, NG_KIND_PLUGIN);
