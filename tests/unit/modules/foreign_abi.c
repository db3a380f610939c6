/* SPDX-License-Identifier: MIT */
/* foreign_abi.c - written for an ABI that is not there yet.
 * A process that runs a line of it dies. */
#include <stdlib.h>

#include "record.h"

TEST_NOTE(2, NG_KIND_PLUGIN);

static __attribute__((constructor)) void die(void)
{
    abort();
}

TEST_RECORD(2, NG_KIND_PLUGIN, 4, 0, NULL);
