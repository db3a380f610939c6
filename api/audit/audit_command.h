/* SPDX-License-Identifier: MIT */
/* audit_command.h - notegate audit: enum command_exit. */
#ifndef NOTEGATE_API_AUDIT_COMMAND_H
#define NOTEGATE_API_AUDIT_COMMAND_H

struct command_line;

int audit_command(struct command_line *line);

#endif
