/* SPDX-License-Identifier: MIT */
/* point_seq.c - the last change that lies before a point of the history. */
#include "core/base/minmax.h"
#include "core/store/store.h"
#include "point.h"

struct next_change {
    uint64_t seq;
    int64_t time_ms;
};

static int take_change(void *user, const struct ng_event *event)
{
    struct next_change *next = user;
    next->seq = event->seq;
    next->time_ms = event->time_ms;
    return 1;
}

/* Times do not go back from one change to the next, but for those of several gateways, which
 * differ by as much as their clocks: a binary search. */
static int point_time_seq(struct store *store, struct call *call, int64_t time_ms,
                          uint64_t *ret_seq)
{
    uint64_t before = 0; /* the change with this number, or none, lies before the point */
    uint64_t end = u64_max(store_last_seq(store), store_look_seq(store));
    while (before < end) {
        uint64_t middle = before + (end - before) / 2;
        struct next_change next = {0};
        int rc = store_changes(store, call, middle, 1, take_change, &next);
        if (rc != NG_OK) {
            return rc;
        }
        if (next.seq > middle && next.seq <= end && next.time_ms <= time_ms) {
            before = next.seq;
        } else {
            end = middle;
        }
    }
    *ret_seq = before;
    return NG_OK;
}

int point_seq(struct store *store, struct call *call, const struct point *point,
              uint64_t *ret_seq)
{
    if (point->kind == POINT_TIME) {
        return point_time_seq(store, call, point->time_ms, ret_seq);
    }
    *ret_seq = point->number;
    return NG_OK;
}
