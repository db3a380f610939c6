/* SPDX-License-Identifier: MIT */
/* read.h - the tools that read notes. */
#ifndef OPENNOTES_READ_H
#define OPENNOTES_READ_H

#include "answer/tool.h"

ON_TOOL(get);
ON_TOOL(links);
ON_TOOL(list);
ON_TOOL(notebooks);
ON_TOOL(tags);

#endif
