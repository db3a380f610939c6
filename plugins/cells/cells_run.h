/* SPDX-License-Identifier: MIT */
/* cells_run.h - what the parts of running cells share. */
#ifndef NOTEGATE_PLUGIN_CELLS_RUN_H
#define NOTEGATE_PLUGIN_CELLS_RUN_H

#include "cells_runs.h"

/* The run is over: its outputs go into the file, then the answer leaves. A step on a worker. */
int cells_run_save(struct ng_call *call, void *run);
/* The sentence and all outputs, as far as they fit; sets run->code. `note`: what could not be
 * saved, or NULL. */
void cells_answer(struct cells_run *run, const char *note, struct nb_text *out);
/* Replies with the text and the images of what was put out. */
int cells_answer_reply(struct ng_call *call, const struct cells_run *run, struct nb_text *text);

#endif
