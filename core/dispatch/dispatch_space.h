/* SPDX-License-Identifier: MIT */
/* dispatch_space.h - the space of a call. */
#ifndef NOTEGATE_CORE_DISPATCH_SPACE_H
#define NOTEGATE_CORE_DISPATCH_SPACE_H

#include "core/call/call.h"
#include "core/module/registry.h"

/* dispatch_spaces() without a message: NG_EFORBIDDEN, or NG_EINTERNAL without memory. */
int dispatch_space_pick(struct call *call, const struct tool *tool);
/* For a tool with NG_TOOL_BY_SPACE: moves the member `space` from the arguments to the caller.
 * NG_EINVAL, and the call has failed: it is malformed, or differs from the space that the
 * caller named. */
int dispatch_space_take(struct call *call);
/* May the caller use the space? Without keys: any. */
bool dispatch_may_use_space(const struct call *call, struct ng_str space);
/* Fails the call with NG_EFORBIDDEN and the spaces that it may use. */
int dispatch_refuse_space(struct call *call, struct ng_str space);
/* See use_collection in struct ng_host. */
int dispatch_space_of(struct call *call, struct ng_str collection);

#endif
