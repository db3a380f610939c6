/* SPDX-License-Identifier: MIT */
/* move.h - the tools that move and delete notes and folders. */
#ifndef OPENNOTES_MOVE_H
#define OPENNOTES_MOVE_H

#include "answer/tool.h"

NOTES_TOOL(move);
NOTES_TOOL(delete);

#endif
