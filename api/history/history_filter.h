/* SPDX-License-Identifier: MIT */
/* history_filter.h - which changes a command line selects. */
#ifndef NOTEGATE_API_HISTORY_FILTER_H
#define NOTEGATE_API_HISTORY_FILTER_H

#include "history_ask.h"

/* Does an option of the filter stand there? --space, which also names documents, is none. */
bool history_filter_given(const struct command_line *line);
/* COMMAND_OK, or COMMAND_USAGE after a message: an empty option, or a point that is none. */
int history_filter_check(const struct command_line *line);
/* The first word as a document whose changes are selected. */
int history_filter_name(struct command_line *line, struct history_name *ret);
/* Adds the arguments; a name without an id is of all documents. */
void history_filter_add(struct history_ask *ask, const struct history_name *name);

#endif
