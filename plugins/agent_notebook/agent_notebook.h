/* SPDX-License-Identifier: MIT */
/* agent_notebook.h - what the parts of the agent notebook share: its state, its codes and the
 * names of its collections. */
#ifndef NOTEGATE_PLUGIN_AGENT_NOTEBOOK_H
#define NOTEGATE_PLUGIN_AGENT_NOTEBOOK_H

#include <notegate/plugin.h>

/* The collections of entries, in the order in which they are named everywhere. */
#define ENTRY_COLLECTIONS 3
extern const char *const entry_collections[ENTRY_COLLECTIONS];

/* Own error codes, in the order of agent_notebook_codes. */
#define AGENT_NOTEBOOK_ENTRY_NOT_FOUND (NG_EPLUGIN - 0)
#define AGENT_NOTEBOOK_EDIT_NO_MATCH (NG_EPLUGIN - 1)
#define AGENT_NOTEBOOK_EDIT_AMBIGUOUS (NG_EPLUGIN - 2)
#define AGENT_NOTEBOOK_SECTION_NOT_FOUND (NG_EPLUGIN - 3)

struct agent_notebook {
    uint64_t max_size; /* bytes of one content */
    uint32_t max_tags;
    uint32_t max_title; /* characters */
};

/* ---- the tools, one file each with its schemas ---- */

extern const char entry_create_params[];
extern const char entry_create_result[];
int entry_create_run(void *self, struct ng_call *call, struct ng_str args);

#endif
