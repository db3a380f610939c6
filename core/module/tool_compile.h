/* SPDX-License-Identifier: MIT */
/* tool_compile.h - the schemas of a tool that is registered. */
#ifndef NOTEGATE_CORE_TOOL_COMPILE_H
#define NOTEGATE_CORE_TOOL_COMPILE_H

#include "core/call/plugin.h"

/* Fills the schemas of a tool from its descriptor. On failure, a sentence in `error`; what was
 * made goes with the plugin. */
int tool_compile(struct tool *tool, struct buf *error);

#endif
