/* SPDX-License-Identifier: MIT */
/* staleness.c - how long something has been seen unchanged, by this gateway's own clock: clocks
 * of gateways differ, and may jump at any time. */
#include "core/base/lock.h"
#include "db.h"

void staleness_open(struct staleness *staleness)
{
    memset(staleness, 0, sizeof(*staleness));
    lock_init(&staleness->lock, LOCK_MONGO_STALENESS);
}

void staleness_close(struct staleness *staleness)
{
    lock_done(&staleness->lock);
}

/* The item of the id, else the least recently seen one. */
static struct batch_age *place_of(struct staleness *staleness, const char *id)
{
    struct batch_age *oldest = &staleness->items[0];
    for (size_t i = 0; i < STALENESS_MAX; i++) {
        struct batch_age *item = &staleness->items[i];
        if (strcmp(item->id, id) == 0) {
            return item;
        }
        if (item->seen_ms < oldest->seen_ms) {
            oldest = item;
        }
    }
    return oldest;
}

bool staleness_exceeds(struct staleness *staleness, struct ng_str id, int64_t ms)
{
    char text[BATCH_ID_MAX];
    if (id.len == 0 || id.len >= sizeof(text)) {
        return true; /* belongs to no batch */
    }
    memcpy(text, id.data, id.len);
    text[id.len] = '\0';
    int64_t now = monotonic_ms();
    lock_take(&staleness->lock);
    struct batch_age *item = place_of(staleness, text);
    if (strcmp(item->id, text) != 0) {
        memcpy(item->id, text, id.len + 1);
        item->since_ms = now;
    }
    item->seen_ms = now;
    bool older = now - item->since_ms >= ms;
    lock_release(&staleness->lock);
    return older;
}
