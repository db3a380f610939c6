/* SPDX-License-Identifier: MIT */
/* commands.h - the functions of the commands; enum command_exit. */
#ifndef NOTEGATE_API_COMMANDS_H
#define NOTEGATE_API_COMMANDS_H

#include "command.h"

/* The whole program: enum command_exit. Its process ends behind it. */
int command_main(int argc, char **argv);
int command_serve(struct command_line *line);
int command_mcp(struct command_line *line);
int command_call(struct command_line *line);
int command_tools(struct command_line *line);
int command_whoami(struct command_line *line);
/* call TOOL --help: the arguments of that tool. */
int command_call_help(struct command_line *line);
int command_key(struct command_line *line);
int command_check(struct command_line *line);
int command_verify(struct command_line *line);
int command_backup(struct command_line *line);
int command_restore(struct command_line *line);
int command_test_backend(struct command_line *line);
int command_test_plugin(struct command_line *line);

#endif
