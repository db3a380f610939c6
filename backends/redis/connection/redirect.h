/* SPDX-License-Identifier: MIT */
/* redirect.h - replies that lead to another server. */
#ifndef NOTEGATE_REDIS_REDIRECT_H
#define NOTEGATE_REDIS_REDIRECT_H

#include "pipeline.h"

/* With Sentinels or a cluster: follows ASK, and fails the round (pipeline->again) if a reply
 * says that the server is changing. */
int redirect_replies(struct pipeline *pipeline);

#endif
