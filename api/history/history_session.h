/* SPDX-License-Identifier: MIT */
/* history_session.h - gateway, calls and output of a command of the history. */
#ifndef NOTEGATE_API_HISTORY_SESSION_H
#define NOTEGATE_API_HISTORY_SESSION_H

#include "history_ask.h"
#include "history_out.h"

struct history_session {
    struct command_line *line;
    struct attach attach;
    struct history_out out;
    struct history_ask ask;
    struct buf text; /* for the next output */
};

/* Runs a command in a session: its exit code, where `run` gives one. */
int history_session_run(struct command_line *line,
                        int (*run)(struct history_session *session, void *user), void *user);
/* Prints session->text. False: no more output is wanted. */
bool history_session_put(struct history_session *session);
/* Prints the object as a line of JSON. */
bool history_session_put_json(struct history_session *session, const struct ng_value *object);

#endif
