/* SPDX-License-Identifier: MIT */
/* witness.c - how long something has been seen unchanged, by this gateway's own clock: gateways
 * do not agree on the time of day, and a clock may jump while one of them works. */
#include "db.h"

void witness_open(struct witness *witness)
{
    memset(witness, 0, sizeof(*witness));
    (void)pthread_mutex_init(&witness->lock, NULL);
}

void witness_close(struct witness *witness)
{
    (void)pthread_mutex_destroy(&witness->lock);
}

/* Its place, else that of what was not looked at for longest. */
static struct witnessed *place_of(struct witness *witness, const char *id)
{
    struct witnessed *oldest = &witness->items[0];
    for (size_t i = 0; i < WITNESS_MAX; i++) {
        struct witnessed *item = &witness->items[i];
        if (strcmp(item->id, id) == 0) {
            return item;
        }
        oldest = item->seen_ms < oldest->seen_ms ? item : oldest;
    }
    return oldest;
}

bool witness_older(struct witness *witness, struct ng_str id, int64_t ms)
{
    char text[BATCH_ID_MAX];
    if (id.len == 0 || id.len >= sizeof(text)) {
        return true; /* nobody's: no batch is called so */
    }
    memcpy(text, id.data, id.len);
    text[id.len] = '\0';
    int64_t now = monotonic_ms();
    (void)pthread_mutex_lock(&witness->lock);
    struct witnessed *item = place_of(witness, text);
    if (strcmp(item->id, text) != 0) {
        memcpy(item->id, text, id.len + 1);
        item->since_ms = now;
    }
    item->seen_ms = now;
    bool older = now - item->since_ms >= ms;
    (void)pthread_mutex_unlock(&witness->lock);
    return older;
}
