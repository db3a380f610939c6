/* SPDX-License-Identifier: MIT */
/* plain_call.h - calls of a gateway that keeps nothing, for targets of module code, which
 * includes the SDK alone. */
#ifndef NOTEGATE_FUZZ_PLAIN_CALL_H
#define NOTEGATE_FUZZ_PLAIN_CALL_H

#include <stdbool.h>

#include <notegate/plugin.h>

/* plain_call_end() it. */
struct ng_call *plain_call_begin(void);
void plain_call_end(struct ng_call *call);
/* Was it failed with a sentence? */
bool plain_call_failed(const struct ng_call *call);

#endif
