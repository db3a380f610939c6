/* SPDX-License-Identifier: MIT */
/* search.h - one call of the tool. */
#ifndef NOTEGATE_PLUGIN_SEARCH_H
#define NOTEGATE_PLUGIN_SEARCH_H

#include <notegate/plugin.h>

#define SEARCH_LIMIT_DEFAULT 10
#define SEARCH_LIMIT_MAX 50
/* The last hit that pages reach. */
#define SEARCH_DEPTH_MAX 1000
/* An equal title counts among so many first hits of a kind. */
#define SEARCH_EXACT_RANKS 10
/* k of the reciprocal rank fusion. */
#define SEARCH_RANK_K 60
/* Bytes of texts in a hit, and of what follows the hits of an answer. */
#define SEARCH_TITLE_MAX ((size_t)500)
#define SEARCH_EXCERPT_MAX ((size_t)500)
#define SEARCH_END_MAX ((size_t)256)

struct search {
    int64_t scan_ms;
};

struct search_hit {
    struct ng_hit hit;
    uint32_t rank;  /* in its kind, from 1 */
    uint32_t order; /* in which it came */
    bool exact;
};

/* In call memory. */
struct search_job {
    const struct search *self;
    struct ng_call *call;
    struct ng_find find;
    uint64_t hash; /* of what is searched */
    uint32_t offset, limit;
    struct search_hit *hits;
    size_t count, room;
    uint32_t rank; /* of the last hit of `kind` */
    struct ng_str kind;
    int rc;
};

/* ---- search_answer.c ---- */

/* Sets job->offset by the argument `cursor`. job->hash is set. */
int search_cursor(struct search_job *job);
/* Replies with the page of the job. */
int search_answer(struct search_job *job);

#endif
