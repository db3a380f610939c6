/* SPDX-License-Identifier: MIT */
/* history_changes.h - notegate diff of selected changes. */
#ifndef NOTEGATE_API_HISTORY_CHANGES_H
#define NOTEGATE_API_HISTORY_CHANGES_H

#include "api/client/command_line.h"

/* Does the command line select changes, or name one document and its points? */
bool history_changes_selected(const struct command_line *line);
/* enum command_exit. */
int history_changes_diff(struct command_line *line);

#endif
