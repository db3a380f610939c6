/* SPDX-License-Identifier: MIT */
/*
 * run_as.h - shell commands in messages, for a program that only another user can run. They are
 * complete, and name sudo only where it is installed.
 */
#ifndef NOTEGATE_CORE_RUN_AS_H
#define NOTEGATE_CORE_RUN_AS_H

#include <sys/types.h>

#include "core/base/buf.h"

/* For the user itself "`COMMAND`", for root "`runuser -u NAME -- COMMAND`", by way of sudo
 * "`sudo -u NAME COMMAND`". For others "`sudo -u NAME COMMAND` as an administrator"; where sudo
 * is not installed, root's command and " as root". */
int run_as_add(struct buf *out, uid_t user, const char *command);
/* The same with the command line of this process. */
int run_as_add_again(struct buf *out, uid_t user);
/* For readers that are any user of this machine, a command that root may run as well: "user
 * NAME with `COMMAND`". For root, and for a user without a shell, "an administrator with `sudo
 * COMMAND`"; where sudo is not installed, "root with `COMMAND`". */
int run_as_add_whom(struct buf *out, uid_t user, const char *command);
/* How the shell of that user finds this program: "notegate", or its path. */
int run_as_add_program(struct buf *out, uid_t user);

#endif
