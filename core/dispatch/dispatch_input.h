/* SPDX-License-Identifier: MIT */
/* dispatch_input.h - arguments that are not what the tool takes. */
#ifndef NOTEGATE_CORE_DISPATCH_INPUT_H
#define NOTEGATE_CORE_DISPATCH_INPUT_H

#include "core/call/call.h"
#include "core/schema/schema.h"

/* schema_check() of call->pub.args gave rc and `found`: the call fails with that, unless the
 * arguments fit without the nulls among them (NG_OK). */
int dispatch_refuse_input(struct call *call, int rc, struct violations *found);

#endif
