/* SPDX-License-Identifier: MIT */
/* rank.c - scores how well a text matches a recall. */
#include "rank.h"

#include <math.h>

/* More than a score can be: what matches as it is comes first. */
#define EXACT_RANK 1.0

double redis_rank(const struct wanted *wanted, struct ng_str text, double score)
{
    struct found hits[PHRASES_MAX] = {0};
    size_t found = 0;
    size_t exact = 0;
    double weight = 0;
    size_t words = wanted_count(wanted, text, hits);
    for (size_t i = 0; i < wanted->count; i++) {
        uint32_t all = hits[i].exact + hits[i].stems;
        found += all > 0;
        exact += hits[i].exact > 0;
        if (all > 0) {
            weight += 1 + log((double)all);
        }
    }
    if (found == 0) {
        return RANK_NONE;
    }
    double rank =
        wanted_rank(wanted->count, found, exact, weight / sqrt((double)words + 1)) * score;
    return exact > 0 ? rank + EXACT_RANK : rank;
}
