/* SPDX-License-Identifier: MIT */
/* write.h - the tools that write notes. */
#ifndef OPENNOTES_WRITE_H
#define OPENNOTES_WRITE_H

#include "answer/tool.h"

NOTES_TOOL(create);
NOTES_TOOL(daily);
NOTES_TOOL(edit);

#endif
