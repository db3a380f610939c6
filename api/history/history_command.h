/* SPDX-License-Identifier: MIT */
/* history_command.h - notegate log, show, diff, blame and undo. */
#ifndef NOTEGATE_API_HISTORY_COMMAND_H
#define NOTEGATE_API_HISTORY_COMMAND_H

#include "api/client/command_line.h"

/* enum command_exit. */
int history_command_log(struct command_line *line);
int history_command_show(struct command_line *line);
int history_command_diff(struct command_line *line);
int history_command_blame(struct command_line *line);
int history_command_undo(struct command_line *line);

#endif
