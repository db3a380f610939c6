/* SPDX-License-Identifier: MIT */
/* print_answer.h - a tool's answer, for a person or a script. */
#ifndef NOTEGATE_API_PRINT_ANSWER_H
#define NOTEGATE_API_PRINT_ANSWER_H

#include "api/client/command_line.h"

/* Prints the gateway's answer: its JSON as it is, or the text on stdout and a failure's message
 * and hint on stderr. COMMAND_OK, or COMMAND_FAILED where it is a failure. */
int print_answer(int status, struct ng_str body, bool json);

#endif
