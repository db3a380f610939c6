/* SPDX-License-Identifier: MIT */
/* dispatch_allow.h - checks of dispatch.c before a call runs. */
#ifndef NOTEGATE_CORE_DISPATCH_ALLOW_H
#define NOTEGATE_CORE_DISPATCH_ALLOW_H

#include "dispatch.h"

/* May this call, with its arguments, run? Finds out whether it only reads (call->read_only). */
int dispatch_authorize(struct call *call, const struct tool *tool);
/* Has the tool's plugin, which has configured(), something to work on for this call? Else the
 * call has failed with NG_ENOTCONFIGURED. */
int dispatch_check_configured(struct call *call);
/* Does the plugin declare the collection or name it in a resource? */
bool dispatch_declares(const struct ng_plugin *plugin, struct ng_str collection);
/* Takes the call from the rate of its key, unless it was counted before (CALL_NO_RATE).
 * NG_ERATE: the call has failed. */
int dispatch_rate(struct call *call);

#endif
