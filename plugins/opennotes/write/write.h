/* SPDX-License-Identifier: MIT */
/* write.h - the tools that write notes. */
#ifndef OPENNOTES_WRITE_H
#define OPENNOTES_WRITE_H

#include "answer/tool.h"

ON_TOOL(create);
ON_TOOL(daily);
ON_TOOL(edit);

#endif
