/* SPDX-License-Identifier: MIT */
/* reload.h - the configuration read again while the gateway runs. */
#ifndef NOTEGATE_API_RELOAD_H
#define NOTEGATE_API_RELOAD_H

#include "gateway.h"

/* How a line of the report ends whose change holds without a restart. */
#define RELOAD_HOLDS "the new value holds now"

/*
 * Reads the configuration from `input` again. Takes over the log's level and format, the roots
 * and those limits that hold per call; `report` gets one line for each changed key: that it
 * holds now, or that it needs a restart. NG_OK; NG_EINVAL: it is not valid and nothing has
 * changed, `report` says why. Not from two threads at once. *known: the configuration that
 * holds, to compare the next reload with (NULL: that of the start); the caller frees it at the
 * end.
 */
int reload_apply(struct gateway *gateway, const struct config_input *input,
                 struct config **known, struct buf *report);
/* Sets the log's level and format from the configuration. */
void reload_log(const struct config *config);

#endif
