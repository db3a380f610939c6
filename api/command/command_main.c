/* SPDX-License-Identifier: MIT */
/* command_main.c - reads the command line and runs the command that it names. */
#include <signal.h>
#include <stdio.h>

#include "api/base/build_info.h"
#include "commands.h"
#include "core/fault/crash.h"

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
        rc = command_end_output(rc);
    }
    command_line_done(&line);
    return rc;
}
