/* SPDX-License-Identifier: MIT */
/* command_user.h - serve as another user than root. */
#ifndef NOTEGATE_API_COMMAND_USER_H
#define NOTEGATE_API_COMMAND_USER_H

#include "core/config/config.h"

/*
 * Becomes the user that `user` in the configuration names, for good: with its groups and home,
 * without a way back and without a way to more rights. A data directory that is not there is
 * made for it first. Before any thread is started and any module is loaded. *ret_dropped: this
 * was root, and is not any more. COMMAND_OK, or COMMAND_FAILED after a message.
 */
/* Is there such a user? */
bool command_user_is_known(const char *name);
int command_user_become(const struct config *config, const char *data_dir, bool *ret_dropped);

#endif
