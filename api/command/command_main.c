/* SPDX-License-Identifier: MIT */
/* command_main.c - reads the command line and runs the command that it names. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "api/base/build_info.h"
#include "commands.h"
#include "core/fault/crash.h"

/* Has the reader of the pipe left, as `head` does? It knows. */
static bool reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int command_main(int argc, char **argv)
{
    struct command_line line;
    /* A reader that left is an error of that write, not the end of the process. */
    (void)signal(SIGPIPE, SIG_IGN);
    /* So is a file that has reached the process's limit: errno says EFBIG. */
    (void)signal(SIGXFSZ, SIG_IGN);
    alloc_settle();
    crash_install();
    int rc = command_parse(argc, argv, &line);
    if (rc == COMMAND_OK) {
        if (line_has(&line, LINE_HELP_MAN)) {
            command_print_man();
        } else if (line.help_completion != NULL) {
            rc = command_print_completion(line.help_completion);
        } else if (line_has(&line, LINE_HELP) && line.command != NULL &&
                   line.command->run == command_call && line.word_count > 0) {
            rc = command_call_help(&line);
        } else if (line_has(&line, LINE_HELP)) {
            command_print_help(line.command);
        } else if (line_has(&line, LINE_VERSION)) {
            printf("notegate %s\n", build_version());
        } else {
            rc = line.command->run(&line);
        }
        if (command_flush(stdout) != NG_OK && rc == COMMAND_OK) {
            if (!reader_left()) {
                command_error("cannot write to the standard output: it is full or closed");
            }
            rc = COMMAND_FAILED;
        }
    }
    command_line_done(&line);
    return rc;
}
