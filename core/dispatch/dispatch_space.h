/* SPDX-License-Identifier: MIT */
/* dispatch_space.h - the space of a call. */
#ifndef NOTEGATE_CORE_DISPATCH_SPACE_H
#define NOTEGATE_CORE_DISPATCH_SPACE_H

#include "core/call/call.h"
#include "core/module/registry.h"

/* dispatch_spaces() without a message: NG_EFORBIDDEN, or NG_EINTERNAL without memory. */
int dispatch_space_pick(struct call *call, const struct tool *tool);
/* Takes the member `space` out of the arguments of a tool with NG_TOOL_BY_SPACE: it means what
 * the caller's name for a space means. NG_EINVAL, the call has failed: no name, or the caller
 * named another one. */
int dispatch_space_take(struct call *call);

#endif
