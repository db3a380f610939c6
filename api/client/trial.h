/* SPDX-License-Identifier: MIT */
/* trial.h - work on a gateway whose data directory is temporary. */
#ifndef NOTEGATE_API_TRIAL_H
#define NOTEGATE_API_TRIAL_H

#include "command_line.h"

/*
 * Runs work() in a child process. dir: an empty folder of this user alone, made in TMPDIR (else
 * /tmp) with a name that begins with `name`, and removed when the child has ended, also by a
 * crash or a signal. Called while the process has one thread. COMMAND_OK: work() returned that;
 * else COMMAND_FAILED, after a message where work() could not print one.
 */
int trial_run(const char *name, int (*work)(void *user, const char *dir), void *user);
/*
 * The configuration of the command line with `dir` as the data directory. alone: with documents
 * and journal in it, whatever servers the configuration names. COMMAND_OK, or COMMAND_FAILED
 * after a message.
 */
int trial_config(struct command_line *line, const char *dir, bool alone, struct config **ret);

/* Puts the real data directory in place of a trial's `dir` in a sentence. */
void trial_tell(struct buf *text, const char *dir, const char *real);

#endif
