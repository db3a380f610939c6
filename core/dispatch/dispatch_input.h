/* SPDX-License-Identifier: MIT */
/* dispatch_input.h - the check of a call's arguments. */
#ifndef NOTEGATE_CORE_DISPATCH_INPUT_H
#define NOTEGATE_CORE_DISPATCH_INPUT_H

#include "core/call/call.h"

/* The parsed arguments (call->pub.args) are what call->tool takes, or the call has failed. */
int dispatch_check_input(struct call *call);

#endif
