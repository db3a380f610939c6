/* SPDX-License-Identifier: MIT */
/* history_out.h - output of the commands of the history: a pager on a terminal, else stdout.
 *
 * The pager starts with the first output, so that a failure before it is not paged. */
#ifndef NOTEGATE_API_HISTORY_OUT_H
#define NOTEGATE_API_HISTORY_OUT_H

#include <sys/types.h>

#include "api/client/command_line.h"
#include "history_print.h"

enum history_out_state {
    HISTORY_OUT_NEW,   /* nothing is written yet */
    HISTORY_OUT_PLAIN, /* to stdout */
    HISTORY_OUT_PAGED,
    HISTORY_OUT_LEFT,  /* the pager has ended before the output */
    HISTORY_OUT_FAILED /* stdout takes nothing more */
};

struct history_out {
    enum history_out_state state;
    struct history_style style;
    bool is_terminal;  /* stdout */
    const char *pager; /* a command of the shell; NULL: none is wanted */
    pid_t child;
    int fd; /* of the pager */
};

/* COMMAND_OK, or COMMAND_USAGE after a message. */
int history_out_begin(const struct command_line *line, struct history_out *ret);
/* Prints and empties the buffer. False: no more output is wanted. */
bool history_out_put(struct history_out *out, struct buf *text);
/* Waits for the pager. The exit code of the command, which was `code` so far. */
int history_out_end(struct history_out *out, int code);

#endif
