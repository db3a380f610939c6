/* SPDX-License-Identifier: MIT */
/* dispatch_allow.h - what dispatch.c asks before a call runs. */
#ifndef NOTEGATE_CORE_DISPATCH_ALLOW_H
#define NOTEGATE_CORE_DISPATCH_ALLOW_H

#include "dispatch.h"

/* The space where the caller named none, and the spaces it may see where no key says so. tool
 * may be NULL. NG_OK or a failure that says what the caller has. */
int dispatch_spaces(struct call *call, const struct tool *tool);
/* May this call, with its arguments, run? Finds out whether it only reads (call->read_only). */
int dispatch_authorize(struct call *call, const struct tool *tool);

#endif
