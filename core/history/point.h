/* SPDX-License-Identifier: MIT */
/*
 * point.h - moments of the history as callers write them.
 *
 *   7                       a revision of the document that is asked for
 *   #1234                   just after the change with that sequence number
 *   2026-01-28T14:30:00Z    a time of RFC 3339; without an offset one of the gateway's zone
 *   2026-01-28              the beginning of that day in the gateway's zone
 *   30m, 2h, 7d             so long ago; also 90s
 *   now
 */
#ifndef NOTEGATE_CORE_POINT_H
#define NOTEGATE_CORE_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "notegate/abi.h"

struct call;
struct store;

/* For messages: the forms of a point where there is no document. */
#define POINT_FORMS                                                                            \
    "#SEQ (the number of a change), a time such as 2026-01-28T14:30:00Z, a day such as "       \
    "2026-01-28, an age such as 30m, 2h or 7d, or now"

enum point_kind { POINT_REVISION, POINT_SEQ, POINT_TIME };

struct point {
    enum point_kind kind;
    uint64_t number; /* POINT_REVISION, POINT_SEQ */
    int64_t time_ms; /* POINT_TIME: Unix time */
};

/* Reads all of `text`; ages are those at now_ms. false: it is no point. Uses the zone of the
 * process. */
bool point_parse(struct ng_str text, int64_t now_ms, struct point *ret);

/* The number of the last change that lies before a POINT_SEQ or POINT_TIME; 0: none does. Takes
 * some thirty reads for a time; may block. NG_OK, or the store's error, which the call has. */
int point_seq(struct store *store, struct call *call, const struct point *point,
              uint64_t *ret_seq);

#endif
