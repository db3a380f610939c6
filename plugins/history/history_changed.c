/* SPDX-License-Identifier: MIT */
/* history_changed.c - the documents that the selected changes changed, the one with the newest
 * of these changes first. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "history.h"

/* Documents of one selection. */
#define CHANGED_MAX ((size_t)100000)

/* ---- the range of the runs ---- */

struct changed_range {
    uint64_t first, last;
};

static int changed_take_run(void *user, const struct ng_run *row)
{
    struct changed_range *range = user;
    range->first = u64_min(range->first, row->first_seq);
    range->last = u64_max(range->last, row->last_seq);
    return 0;
}

/* The changes of a run lie close together: where a backend counts runs, only that range is
 * walked. */
static int changed_narrow(struct ng_call *call, struct ng_trail *trail)
{
    struct changed_range range = {.first = UINT64_MAX};
    if (trail->runs.count == 0) {
        return NG_OK;
    }
    int rc = call->host->runs(call, trail, changed_take_run, &range);
    if (rc == NG_OK && range.last == 0) {
        trail->until = trail->since; /* no change is selected */
    } else if (rc == NG_OK) {
        trail->since = u64_max(trail->since, range.first - u64_min(range.first, 1));
        trail->until = u64_min(trail->until, range.last);
    }
    return rc;
}

/* ---- the documents ---- */

static uint64_t changed_hash(const struct ng_key *key)
{
    uint64_t hash = hash_fnv_byte(hash_fnv(HASH_FNV_BASIS, key->collection), 0);
    hash = hash_fnv_byte(hash_fnv(hash, key->space), 0);
    return hash_fnv(hash, key->id);
}

static bool changed_is(const struct hash_link *link, const void *user)
{
    const struct ng_key *key = user;
    const struct ng_key *own = &HASH_ITEM(link, struct history_document, link)->key;
    return str_equal(own->id, key->id) && str_equal(own->space, key->space) &&
           str_equal(own->collection, key->collection);
}

static struct history_document *changed_make(const struct ng_key *key)
{
    size_t texts = key->collection.len + key->space.len + key->id.len;
    struct history_document *made = calloc(1, sizeof(*made) + texts);
    if (made != NULL) {
        char *at = made->texts;
        made->key.collection = str_move_in(&at, key->collection);
        made->key.space = str_move_in(&at, key->space);
        made->key.id = str_move_in(&at, key->id);
        made->first = UINT64_MAX;
    }
    return made;
}

/* The document of the event; a new one is added at the end. NULL: out of memory. */
static struct history_document *changed_find(struct history_changed *changed,
                                             const struct ng_key *key)
{
    uint64_t hash = changed_hash(key);
    struct hash_link *link = hash_table_find(&changed->table, hash, changed_is, key);
    if (link != NULL) {
        return HASH_ITEM(link, struct history_document, link);
    }
    struct history_document *made = changed_make(key);
    if (made == NULL || hash_table_add(&changed->table, &made->link, hash) != NG_OK) {
        free(made);
        return NULL;
    }
    if (changed->newest == NULL) {
        changed->newest = made;
    } else {
        changed->oldest->next = made;
    }
    changed->oldest = made;
    return made;
}

/* Changes come newest first, and so do the documents. */
static int changed_take(void *user, const struct ng_event *event)
{
    struct history_changed *changed = user;
    if (changed->table.count == CHANGED_MAX) {
        changed->rc = ng_fail(changed->call, NG_ETOOLARGE,
                              "more than %zu documents are selected: set `since` or `until`",
                              CHANGED_MAX);
        return 1;
    }
    struct history_document *document = changed_find(changed, &event->key);
    if (document == NULL) {
        changed->rc = history_no_memory(changed->call);
        return 1;
    }
    document->first = u64_min(document->first, event->revision);
    document->last = u64_max(document->last, event->revision);
    document->last_seq = u64_max(document->last_seq, event->seq);
    document->changes++;
    document->counted += event->origin.has_lines;
    document->added += event->origin.lines_added;
    document->removed += event->origin.lines_removed;
    return 0;
}

int history_changed(struct ng_call *call, const struct ng_trail *selected,
                    struct history_changed *ret)
{
    struct ng_trail trail = *selected;
    *ret = (struct history_changed){.call = call};
    int rc = changed_narrow(call, &trail);
    bool more = rc == NG_OK && trail.until > trail.since;
    while (rc == NG_OK && more) {
        uint64_t next = 0;
        rc = call->host->trail(call, &trail, changed_take, ret, &next);
        rc = rc == NG_OK ? ret->rc : rc;
        more = next != 0;
        trail.until = next;
        if (rc == NG_OK && more && call->host->cancelled(call)) {
            rc = ng_fail(call, NG_ECANCELLED, "cancelled while changes were read");
        }
    }
    return rc;
}

void history_changed_done(struct history_changed *changed)
{
    struct history_document *document = changed->newest;
    while (document != NULL) {
        struct history_document *next = document->next;
        free(document);
        document = next;
    }
    hash_table_done(&changed->table);
}
