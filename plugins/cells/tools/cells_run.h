/* SPDX-License-Identifier: MIT */
/* cells_run.h - what the parts of running cells share. */
#ifndef NOTEGATE_PLUGIN_CELLS_RUN_H
#define NOTEGATE_PLUGIN_CELLS_RUN_H

#include "cells_runs.h"

/* The turn of a cell comes (struct run): what it holds by now is read on a worker. */
bool cells_run_refresh(void *run, size_t cell);
/* The run is over. True: what a cell holds is being read, and calls cells_run_over() after. */
bool cells_run_is_refreshing(struct cells_run *run);
/* On a worker: what follows the end of a run. */
int cells_run_over(struct ng_call *call, struct cells_run *run);
/* The cell of a run in the file as it is by now. One without an id is known by its place, or,
 * where that holds another source, by its source, if only one has it. SIZE_MAX: it is gone. */
size_t cells_run_find(const struct nb *nb, const char *handle, struct ng_str source);
bool cells_has_source(const struct nb *nb, size_t index, struct ng_str source);
/* The run is over: its outputs go into the file, then the answer leaves. A step on a worker. */
int cells_run_save(struct ng_call *call, void *user);
/* The sentence and all outputs, as far as they fit; sets run->code. `note`: what could not be
 * saved, or NULL. */
void cells_answer(struct cells_run *run, const char *note, struct nb_text *out);
/* Replies with the text and the images of what was put out. */
int cells_answer_reply(struct ng_call *call, const struct cells_run *run, struct nb_text *text);

#endif
