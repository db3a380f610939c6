/* SPDX-License-Identifier: MIT */
/* index_changes.c - what a refresh has to do: files that changed, came, went, or went
 * elsewhere; and whether an index made anew costs less. */
#include <stdlib.h>
#include <string.h>

#include "index_state.h"

/* Another note in an index costs several times what a new one does: its words are taken out of
 * the full-text tables first. */
#define REBUILD_MIN ((size_t)400) /* changed notes; below, nothing is gained */
#define REBUILD_PART 4            /* of all notes */
#define SAMPLE ((size_t)32)       /* of what changed, that many are read */

static int grow(void **inout, size_t count, size_t *inout_cap, size_t size)
{
    if (count < *inout_cap) {
        return NG_OK;
    }
    size_t cap = *inout_cap > 0 ? *inout_cap * 2 : 64;
    void *items = cap > SIZE_MAX / size ? NULL : realloc(*inout, cap * size);
    if (items == NULL) {
        return NG_EINTERNAL;
    }
    *inout = items;
    *inout_cap = cap;
    return NG_OK;
}

int on_changes_gone(struct on_changes *changes, const struct on_known *known)
{
    void *items = changes->gone;
    int rc = grow(&items, changes->gone_count, &changes->gone_cap, sizeof(*changes->gone));
    changes->gone = items;
    if (rc == NG_OK) {
        changes->gone[changes->gone_count++] = (struct on_gone){known->id, known->stat};
    }
    return rc;
}

int on_changes_new(struct on_changes *changes, struct ng_str file, const struct on_stat *stat)
{
    void *items = changes->fresh;
    int rc = grow(&items, changes->fresh_count, &changes->fresh_cap, sizeof(*changes->fresh));
    changes->fresh = items;
    if (rc == NG_OK) {
        changes->fresh[changes->fresh_count++] = (struct on_new){changes->changed.count, *stat};
        rc = on_paths_add(&changes->changed, file);
    }
    return rc;
}

void on_changes_done(struct on_changes *changes)
{
    on_paths_done(&changes->changed);
    free(changes->gone);
    free(changes->fresh);
    free(changes->moves);
    memset(changes, 0, sizeof(*changes));
}

static int compare_stats(const struct on_stat *a, const struct on_stat *b)
{
    if (a->inode != b->inode) {
        return a->inode < b->inode ? -1 : 1;
    }
    return a->device == b->device ? 0 : a->device < b->device ? -1 : 1;
}

static int compare_gone(const void *a, const void *b)
{
    return compare_stats(&((const struct on_gone *)a)->stat,
                         &((const struct on_gone *)b)->stat);
}

static int compare_new(const void *a, const void *b)
{
    return compare_stats(&((const struct on_new *)a)->stat, &((const struct on_new *)b)->stat);
}

/* Takes what moved out of what changed and what went. */
static void take_moves(struct on_changes *changes)
{
    struct on_paths *changed = &changes->changed;
    size_t gone = 0;
    size_t at = 0;
    for (size_t i = 0; i < changes->gone_count; i++) {
        const struct on_gone *went = &changes->gone[i];
        while (at < changes->fresh_count &&
               compare_stats(&changes->fresh[at].stat, &went->stat) < 0) {
            at++;
        }
        const struct on_new *came = at < changes->fresh_count ? &changes->fresh[at] : NULL;
        if (came != NULL && compare_stats(&came->stat, &went->stat) == 0 &&
            came->stat.size == went->stat.size) {
            struct ng_str *file = &changed->items[came->at];
            changes->moves[changes->move_count++] = (struct on_move){went->id, *file};
            file->data = NULL;
            at++;
        } else {
            changes->gone[gone++] = *went;
        }
    }
    changes->gone_count = gone;
    size_t kept = 0;
    for (size_t i = 0; i < changed->count; i++) {
        if (changed->items[i].data != NULL) {
            changed->items[kept++] = changed->items[i];
        }
    }
    changed->count = kept;
}

int on_changes_match(struct on_changes *changes)
{
    if (changes->gone_count == 0 || changes->fresh_count == 0) {
        return NG_OK;
    }
    changes->moves = calloc(changes->gone_count, sizeof(*changes->moves));
    if (changes->moves == NULL) {
        return NG_EINTERNAL;
    }
    qsort(changes->gone, changes->gone_count, sizeof(*changes->gone), compare_gone);
    qsort(changes->fresh, changes->fresh_count, sizeof(*changes->fresh), compare_new);
    take_moves(changes);
    return NG_OK;
}

bool on_changes_are_most(struct on_index *index, struct ng_call *call,
                         const struct on_changes *changes, size_t files)
{
    const struct on_paths *changed = &changes->changed;
    size_t differ = 0;
    if (changed->count < REBUILD_MIN || changed->count < files / REBUILD_PART) {
        return false;
    }
    for (size_t i = 0; i < SAMPLE; i++) {
        const struct ng_str *file = &changed->items[changed->count / SAMPLE * i];
        differ += on_write_differs(index, call, *file);
    }
    return changed->count / SAMPLE * differ >= files / REBUILD_PART && differ > 0;
}
