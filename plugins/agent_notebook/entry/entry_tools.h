/* SPDX-License-Identifier: MIT */
/* entry_tools.h - the tools of the entries, one file each (entry_create.c ...; schemas in
 * entry_schema.c), their resources and their prompt, for the plugin's tables. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_ENTRY_TOOLS_H
#define NOTEGATE_AGENT_NOTEBOOK_ENTRY_TOOLS_H

#include <notegate/plugin.h>

extern const char entry_create_params[], entry_create_result[];
extern const char entry_read_params[], entry_read_result[];
extern const char entry_update_params[], entry_update_result[];
extern const char entry_search_params[], entry_list_params[], entry_list_result[];
extern const char entry_delete_params[], entry_delete_result[];
extern const char entry_history_params[], entry_history_result[];
extern const char entry_diff_params[], entry_diff_result[];
extern const char entry_restore_params[], entry_restore_result[];

int entry_create_run(void *self, struct ng_call *call, struct ng_str args);
int entry_read_run(void *self, struct ng_call *call, struct ng_str args);
int entry_update_run(void *self, struct ng_call *call, struct ng_str args);
int entry_search_run(void *self, struct ng_call *call, struct ng_str args);
int entry_list_run(void *self, struct ng_call *call, struct ng_str args);
int entry_delete_run(void *self, struct ng_call *call, struct ng_str args);
int entry_history_run(void *self, struct ng_call *call, struct ng_str args);
int entry_diff_run(void *self, struct ng_call *call, struct ng_str args);
int entry_restore_run(void *self, struct ng_call *call, struct ng_str args);

/* The resource functions of each collection (entry_resource.c). */
#define ENTRY_RESOURCE_DECLARE(name)                                                           \
    int entry_##name##_list(void *self, struct ng_call *call, struct ng_str space,             \
                            struct ng_listing *listing);                                       \
    int entry_##name##_read(void *self, struct ng_call *call, struct ng_str space,             \
                            struct ng_str id, uint64_t revision);                              \
    int entry_##name##_complete(void *self, struct ng_call *call, struct ng_str space,         \
                                const char *variable, struct ng_str prefix,                    \
                                struct ng_listing *listing);                                   \
    int entry_##name##_find(void *self, struct ng_call *call, struct ng_str space,             \
                            struct ng_find *find)
ENTRY_RESOURCE_DECLARE(pages);
ENTRY_RESOURCE_DECLARE(code);
ENTRY_RESOURCE_DECLARE(research);

/* The prompt (entry_guide.c). */
int entry_guide_get(void *self, struct ng_call *call, struct ng_str args);

#endif
