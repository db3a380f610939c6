/* SPDX-License-Identifier: MIT */
/* read.h - the tools that read notes. */
#ifndef OPENNOTES_READ_H
#define OPENNOTES_READ_H

#include "answer/tool.h"

NOTES_TOOL(get);
NOTES_CHECK(get);
NOTES_TOOL(links);
NOTES_TOOL(list);
NOTES_CHECK(list);
NOTES_TOOL(tags);

/* Lists all notebooks, so that it needs none. */
extern const char notes_notebooks_params[], notes_notebooks_result[], notes_notebooks_summary[];
int notes_notebooks_run(void *user, struct ng_call *call, struct ng_str args);

#endif
