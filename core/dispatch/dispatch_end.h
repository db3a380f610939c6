/* SPDX-License-Identifier: MIT */
/* dispatch_end.h - the end of a call. */
#ifndef NOTEGATE_CORE_DISPATCH_END_H
#define NOTEGATE_CORE_DISPATCH_END_H

#include "core/call/call.h"

/* Nothing of the call is pending: accounts for it and completes it. sync: dispatch() returns
 * the answer itself; NG_PENDING then says that the deadline has answered already. */
int dispatch_finish(struct call *call, bool sync);

#endif
