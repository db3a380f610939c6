/* SPDX-License-Identifier: MIT */
/*
 * run_as.h - shell commands in messages, for a program that only another user can run. They are
 * complete, and name sudo only where it is installed.
 */
#ifndef NOTEGATE_CORE_RUN_AS_H
#define NOTEGATE_CORE_RUN_AS_H

#include <sys/types.h>

#include "core/base/buf.h"

/* "`sudo -u NAME COMMAND`"; where that is not installed, "`runuser -u NAME -- COMMAND`", with
 * " as root" behind where another user asks. */
int run_as_add(struct buf *out, uid_t user, const char *command);
/* The same with the command line of this process. */
int run_as_add_again(struct buf *out, uid_t user);
/* The same as run_as_add() for all other users: those that may use sudo, and root. */
int run_as_add_for_others(struct buf *out, uid_t user, const char *command);
/* How a shell finds this program: "notegate", or its path. */
int run_as_add_program(struct buf *out);

#endif
