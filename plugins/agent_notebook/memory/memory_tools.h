/* SPDX-License-Identifier: MIT */
/* memory_tools.h - the tools of the memory, for the plugin's tables. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_MEMORY_TOOLS_H
#define NOTEGATE_AGENT_NOTEBOOK_MEMORY_TOOLS_H

#include <notegate/plugin.h>

extern const char memory_log_params[], memory_log_result[];
extern const char memory_delete_params[], memory_delete_result[];
extern const char memory_recall_params[], memory_recall_result[];
extern const char memory_timeline_params[], memory_timeline_result[];
extern const char memory_summary_params[], memory_summary_result[];
extern const char memory_context_params[];

int memory_log_run(void *self, struct ng_call *call, struct ng_str args);
int memory_delete_run(void *self, struct ng_call *call, struct ng_str args);
int memory_recall_run(void *self, struct ng_call *call, struct ng_str args);
int memory_timeline_run(void *self, struct ng_call *call, struct ng_str args);
int memory_summary_run(void *self, struct ng_call *call, struct ng_str args);
int memory_context_get(void *self, struct ng_call *call, struct ng_str args);

/* memory_resource.c: memories as resources, see struct ng_resources. */
int memory_resource_read(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_str id, uint64_t revision);
int memory_resource_find(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_find *find);

#endif
