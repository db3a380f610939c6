/* SPDX-License-Identifier: MIT */
/* whole.h - the interface of the tools for whole notebooks. */
#ifndef NOTEGATE_PLUGIN_CELLS_WHOLE_H
#define NOTEGATE_PLUGIN_CELLS_WHOLE_H

#include "tools/cells.h"

int cells_create_run(void *user, struct ng_call *call, struct ng_str args);
int cells_list_run(void *user, struct ng_call *call, struct ng_str args);

#endif
