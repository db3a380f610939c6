/* SPDX-License-Identifier: MIT */
/* resources.h - notes as resources: notegate://SPACE/note/ID, where ID is the file's absolute
 * path (as in the events of notes). See struct ng_resources. */
#ifndef NOTEGATE_OPENNOTES_RESOURCES_H
#define NOTEGATE_OPENNOTES_RESOURCES_H

#include <notegate/plugin.h>

int notes_resource_list(void *user, struct ng_call *call, struct ng_str space,
                        struct ng_listing *listing);
int notes_resource_read(void *user, struct ng_call *call, struct ng_str space, struct ng_str id,
                        uint64_t revision);
/* Hits of the notebooks of the space: the first of each, the second of each, and so on. */
int notes_resource_find(void *user, struct ng_call *call, struct ng_str space,
                        struct ng_find *find);

#endif
