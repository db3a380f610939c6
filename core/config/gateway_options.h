/* SPDX-License-Identifier: MIT */
/* gateway_options.h - the configuration keys of the gateway itself; config.c declares them. */
#ifndef NOTEGATE_CORE_GATEWAY_OPTIONS_H
#define NOTEGATE_CORE_GATEWAY_OPTIONS_H

#include "notegate/plugin.h"

extern const struct ng_option gateway_options[];
extern const size_t gateway_option_count;

#endif
