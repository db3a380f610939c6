/* SPDX-License-Identifier: MIT */
/* config_log.h - the log as the configuration wants it. */
#ifndef NOTEGATE_CORE_CONFIG_LOG_H
#define NOTEGATE_CORE_CONFIG_LOG_H

#include "config.h"

/* Sets the log's level, format and switches. */
void config_apply_log(const struct config *config);

#endif
