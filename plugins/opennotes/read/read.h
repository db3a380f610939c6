/* SPDX-License-Identifier: MIT */
/* read.h - the tools that read notes. */
#ifndef OPENNOTES_READ_H
#define OPENNOTES_READ_H

#include "answer/tool.h"

NOTES_TOOL(get);
NOTES_TOOL(links);
NOTES_TOOL(list);
NOTES_TOOL(notebooks);
NOTES_TOOL(tags);

#endif
