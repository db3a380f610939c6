/* SPDX-License-Identifier: MIT */
/*
 * command.h - the tables of commands and options.
 *
 * Help texts and the man page are printed from the tables, so they cannot disagree with the
 * parser.
 */
#ifndef NOTEGATE_API_COMMAND_H
#define NOTEGATE_API_COMMAND_H

#include "api/client/command_line.h"

extern const struct command command_table[];
extern const size_t command_count;

/* Parses. COMMAND_OK, or COMMAND_USAGE after a message on stderr. */
int command_parse(int argc, char **argv, struct command_line *ret);
void command_line_done(struct command_line *line);

/* Help on stdout: the whole (NULL) or one command; the man page as troff source. */
void command_print_help(const struct command *command);
/* For "bash" or "zsh". enum command_exit. */
int command_print_completion(const char *shell);
void command_print_man(void);

#endif
