/* SPDX-License-Identifier: MIT */
/* rank.h - how well a text has what a recall asks for, the same for the search module and the
 * scan. */
#ifndef NOTEGATE_REDIS_RANK_H
#define NOTEGATE_REDIS_RANK_H

#include "../shared/words.h"

/* Between 0 and 1; 0: nothing of it. */
double redis_rank(const struct wanted *wanted, struct ng_str text);

#endif
