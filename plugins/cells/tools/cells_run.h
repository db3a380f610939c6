/* SPDX-License-Identifier: MIT */
/* cells_run.h - the interface between the files that run cells. */
#ifndef NOTEGATE_PLUGIN_CELLS_RUN_H
#define NOTEGATE_PLUGIN_CELLS_RUN_H

#include "cells_runs.h"

/* Requests the present source of a cell (struct run), which is read on a worker. */
bool cells_run_refresh(void *run, size_t cell);
/* Called at the end of a run. True: a read is in progress and will call cells_run_over(). */
bool cells_run_is_refreshing(struct cells_run *run);
/* Completes the run, on a worker. */
int cells_run_over(struct ng_call *call, struct cells_run *run);
/* Finds a cell of the run in the present file. A cell without an id is found by its position,
 * or, if that has another source, by its source if that is unique. SIZE_MAX: not found. */
size_t cells_run_find(const struct nb *nb, const char *handle, struct ng_str source);
bool cells_has_source(const struct nb *nb, size_t index, struct ng_str source);
/* Saves the outputs in the file, then answers. Runs on a worker. */
int cells_run_save(struct ng_call *call, void *user);
/* Saves output that comes after the end of the run, when it comes. */
void cells_late_watch(struct ng_call *call, const struct cells_run *run);
/* Writes the outcome and the outputs, within the limits, and sets run->code. note: reason why
 * outputs were not saved, or NULL. */
void cells_answer(struct cells_run *run, const char *note, struct nb_text *out);
/* Fails with the text, and frees it. */
int cells_fail_run(struct ng_call *call, const struct cells_run *run, int code,
                   struct nb_text *text);
/* Replies with the text and the images of the outputs, and frees the text. */
int cells_answer_reply(struct ng_call *call, const struct cells_run *run, struct nb_text *text);

#endif
