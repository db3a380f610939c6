/* SPDX-License-Identifier: MIT */
/* checkpoint_tools.h - the tools, resources and the life of checkpoints, for the plugin's
 * tables. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_CHECKPOINT_TOOLS_H
#define NOTEGATE_AGENT_NOTEBOOK_CHECKPOINT_TOOLS_H

#include <notegate/plugin.h>

extern const char checkpoint_snapshot_params[], checkpoint_snapshot_result[];
extern const char checkpoint_list_params[], checkpoint_list_result[];
extern const char checkpoint_delete_params[], checkpoint_delete_result[];
extern const char checkpoint_diff_params[], checkpoint_diff_result[];
extern const char checkpoint_restore_params[], checkpoint_restore_result[];

int checkpoint_snapshot_run(void *self, struct ng_call *call, struct ng_str args);
int checkpoint_list_run(void *self, struct ng_call *call, struct ng_str args);
int checkpoint_delete_run(void *self, struct ng_call *call, struct ng_str args);
int checkpoint_diff_run(void *self, struct ng_call *call, struct ng_str args);
int checkpoint_restore_run(void *self, struct ng_call *call, struct ng_str args);

/* Checkpoints as resources. */
int checkpoint_resource_list(void *self, struct ng_call *call, struct ng_str space,
                             struct ng_listing *listing);
int checkpoint_resource_read(void *self, struct ng_call *call, struct ng_str space,
                             struct ng_str id, uint64_t revision);

/* Opens the state of restores, and begins the recovery of interrupted ones. */
struct agent_notebook;
struct checkpoint_state;
/* Sets self->checkpoint. `self` lives until checkpoint_stop. */
int checkpoint_start(struct ng_call *call, const struct ng_conf *conf,
                     struct agent_notebook *self);
void checkpoint_stop(struct checkpoint_state *state); /* NULL is a no-op */
/* Not NG_OK until interrupted restores are finished; also tries to finish them. */
int checkpoint_health(void *self, struct ng_call *call);

#endif
