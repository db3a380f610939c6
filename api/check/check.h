/* SPDX-License-Identifier: MIT */
/* check.h - the report of notegate check, and the lines about a running gateway. */
#ifndef NOTEGATE_API_CHECK_H
#define NOTEGATE_API_CHECK_H

#include "api/client/attach.h"
#include "core/json/json.h"

/* Longest message of a line. */
#define CHECK_ERROR_MAX ((size_t)64 * 1024)

struct check {
    struct command_line *line;
    struct attach attach;
    struct gateway *described; /* with modules and configuration only */
    bool running;              /* a gateway serves the data directory */
    bool failed;
    bool colours;
    struct buf out; /* with --json */
    struct ng_writer writer;
};

/* One line of the report. what: the part that was checked. */
void check_line(struct check *check, bool ok, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Of the running gateway: its state, and the values that differ from those of `described`. */
void check_running(struct check *check);
/* Of the running gateway: the keys that may run code. */
void check_running_runners(struct check *check);

#endif
