/* SPDX-License-Identifier: MIT */
/* agent_notebook.h - what the parts of the agent notebook share: its state, its codes, the
 * names of its collections and what its table of tools names. */
#ifndef NOTEGATE_PLUGIN_AGENT_NOTEBOOK_H
#define NOTEGATE_PLUGIN_AGENT_NOTEBOOK_H

#include <notegate/plugin.h>

/* The collections of entries, in the order in which they are named everywhere. */
enum entry_collection { ENTRY_PAGES = 0, ENTRY_CODE = 1, ENTRY_RESEARCH = 2 };
#define ENTRY_COLLECTIONS 3
extern const char *const entry_collections[ENTRY_COLLECTIONS];

/* Own error codes, in the order of agent_notebook_codes. */
#define AGENT_NOTEBOOK_ENTRY_NOT_FOUND (NG_EPLUGIN - 0)
#define AGENT_NOTEBOOK_EDIT_NO_MATCH (NG_EPLUGIN - 1)
#define AGENT_NOTEBOOK_EDIT_AMBIGUOUS (NG_EPLUGIN - 2)
#define AGENT_NOTEBOOK_SECTION_NOT_FOUND (NG_EPLUGIN - 3)
#define AGENT_NOTEBOOK_VERSION_NOT_FOUND (NG_EPLUGIN - 4)

/* Most bytes that an entry may have with all of its members: what a MongoDB document holds,
 * less room for what a backend adds. */
#define ENTRY_BYTES_MAX ((uint64_t)15 * 1024 * 1024)

struct entry_opened;
struct checkpoint_state;

struct agent_notebook {
    uint64_t max_size;  /* bytes of one content */
    uint32_t max_tags;  /* of one entry */
    uint32_t max_title; /* characters */
    struct entry_opened *opened;
    struct checkpoint_state *checkpoint;
};

/* ---- the tools, one file each: entry_create.c and so on; schemas in entry_schema.c ---- */

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

/* ---- entries and checkpoints as resources (entry_resource.c), the prompts (entry_guide.c)
 * ---- */

extern const struct ng_resources entry_resources[ENTRY_COLLECTIONS + 1];
int entry_guide_get(void *self, struct ng_call *call, struct ng_str args);

#endif
