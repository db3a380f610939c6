/* SPDX-License-Identifier: MIT */
/* rank.h - scores how well a text matches a recall, the same way for RediSearch and for the
 * scan. */
#ifndef NOTEGATE_REDIS_RANK_H
#define NOTEGATE_REDIS_RANK_H

#include "../shared/words.h"

/* A score from 0 (no match) to 1. */
double redis_rank(const struct wanted *wanted, struct ng_str text);

#endif
