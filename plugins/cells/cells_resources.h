/* SPDX-License-Identifier: MIT */
/* cells_resources.h - cells as resources: notegate://SPACE/cell/PATH%23HANDLE, where PATH is
 * the notebook file and HANDLE the cell's id, else "index:N". See struct ng_resources. */
#ifndef NOTEGATE_CELLS_RESOURCES_H
#define NOTEGATE_CELLS_RESOURCES_H

#include <notegate/plugin.h>

/* The source of the cell. */
int cells_resource_read(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                        uint64_t revision);
/* Cells whose source has all words, of the newest notebook files first. */
int cells_resource_find(void *self, struct ng_call *call, struct ng_str space,
                        struct ng_find *find);

#endif
