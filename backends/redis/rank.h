/* SPDX-License-Identifier: MIT */
/* rank.h - scores how well a text matches a recall, the same way for RediSearch and for the
 * scan. */
#ifndef NOTEGATE_REDIS_RANK_H
#define NOTEGATE_REDIS_RANK_H

#include "../shared/words.h"

/* The rank of an entry that has none of the words. */
#define RANK_NONE (-1.0)
/* The rank of an entry with this text and score, at least 0. Hits by a word as it is are above
 * all hits by stems only. */
double redis_rank(const struct wanted *wanted, struct ng_str text, double score);

#endif
