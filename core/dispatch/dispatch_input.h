/* SPDX-License-Identifier: MIT */
/* dispatch_input.h - arguments that are not what the tool takes. */
#ifndef NOTEGATE_CORE_DISPATCH_INPUT_H
#define NOTEGATE_CORE_DISPATCH_INPUT_H

#include "core/call/call.h"
#include "core/schema/schema.h"

/* schema_check() of call->pub.args gave rc and `found`: the call fails with that, unless
 * schema_fit() makes the arguments fit (NG_OK, or the call has failed since its caller may not
 * call the tool with these). */
int dispatch_refuse_input(struct call *call, int rc, struct violations *found);

#endif
