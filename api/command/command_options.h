/* SPDX-License-Identifier: MIT */
/* command_options.h - the table of options, for what parses them and what prints them. */
#ifndef NOTEGATE_API_COMMAND_OPTIONS_H
#define NOTEGATE_API_COMMAND_OPTIONS_H

#include "command.h"

struct option_row {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    const char *argument; /* its value, for help; NULL: none */
    unsigned group;       /* one of enum command_option: which commands take it */
    unsigned flag;        /* enum line_flag, or 0 */
    /* Destination of the value: a member of struct command_line (its offset), the configuration
     * key that it sets ("": it is KEY=VALUE), a function (false: it does not fit in); or
     * nowhere.
     */
    size_t member;
    const char *key;
    bool (*add)(struct command_line *line, const char *value);
    const char *help; /* NULL: not in help texts */
};

extern const struct option_row option_table[];
extern const size_t option_count;

#endif
