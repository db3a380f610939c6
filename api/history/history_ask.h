/* SPDX-License-Identifier: MIT */
/* history_ask.h - one call of a tool of the history, and its object. */
#ifndef NOTEGATE_API_HISTORY_ASK_H
#define NOTEGATE_API_HISTORY_ASK_H

#include "api/client/attach.h"
#include "core/json/json.h"
#include "history_name.h"

struct history_ask {
    struct command_line *line;
    struct attach *attach; /* lent */
    struct buf args;
    struct ng_writer writer; /* of the arguments' object */
    struct arena arena;      /* of the answer */
};

/* Whether a failure of the tool is printed. */
enum history_failure { HISTORY_FAILURE_PRINTED, HISTORY_FAILURE_GIVEN };

void history_ask_init(struct history_ask *ask, struct command_line *line,
                      struct attach *attach);
void history_ask_done(struct history_ask *ask);
/* Begins the arguments of another call; the answer before is gone. */
struct ng_writer *history_ask_args(struct history_ask *ask);
/* Arguments; absent ones are left out. */
void history_ask_text(struct history_ask *ask, const char *name, struct ng_str value);
void history_ask_name(struct history_ask *ask, const struct history_name *name);
/*
 * Calls the tool. COMMAND_OK: *ret is its object, of which history_ask_args() is the end.
 * COMMAND_FAILED, COMMAND_USAGE: after a message. HISTORY_FAILURE_GIVEN: where the tool failed,
 * *ret is the error, and there was no message; else NULL.
 */
int history_ask(struct history_ask *ask, const char *tool, enum history_failure failure,
                const struct ng_value **ret);

#endif
