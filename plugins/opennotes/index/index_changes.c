/* SPDX-License-Identifier: MIT */
/* index_changes.c - the work of a refresh: changed, added, removed and renamed files; and
 * whether building the index again costs less. */
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "index_state.h"

/* To replace a note costs several times as much as to insert one: its words are first deleted
 * from the full-text tables. */
#define REBUILD_MIN ((size_t)400) /* changed notes; a rebuild gains nothing below */
#define REBUILD_PART 4            /* of all notes */
#define SAMPLE ((size_t)32)       /* changed notes that are read as a sample */

int notes_changes_gone(struct notes_changes *changes, const struct notes_known *known)
{
    if (array_reserve((void **)&changes->gone, &changes->gone_cap, changes->gone_count + 1,
                      sizeof(*changes->gone), NOTES_TREE_FILES_MAX) != NG_OK) {
        return NG_EINTERNAL;
    }
    changes->gone[changes->gone_count++] = (struct notes_gone){known->id, known->stat};
    return NG_OK;
}

int notes_changes_new(struct notes_changes *changes, struct ng_str file,
                      const struct notes_stat *stat)
{
    if (array_reserve((void **)&changes->fresh, &changes->fresh_cap, changes->fresh_count + 1,
                      sizeof(*changes->fresh), NOTES_TREE_FILES_MAX) != NG_OK) {
        return NG_EINTERNAL;
    }
    changes->fresh[changes->fresh_count++] = (struct notes_new){changes->changed.count, *stat};
    return notes_paths_add(&changes->changed, file);
}

void notes_changes_done(struct notes_changes *changes)
{
    notes_paths_done(&changes->changed);
    free(changes->gone);
    free(changes->fresh);
    free(changes->moves);
    memset(changes, 0, sizeof(*changes));
}

static int compare_stats(const struct notes_stat *a, const struct notes_stat *b)
{
    if (a->inode != b->inode) {
        return (a->inode > b->inode) - (a->inode < b->inode);
    }
    return (a->device > b->device) - (a->device < b->device);
}

static int compare_gone(const void *a, const void *b)
{
    return compare_stats(&((const struct notes_gone *)a)->stat,
                         &((const struct notes_gone *)b)->stat);
}

static int compare_new(const void *a, const void *b)
{
    return compare_stats(&((const struct notes_new *)a)->stat,
                         &((const struct notes_new *)b)->stat);
}

/* Removes renamed files from the changed and the removed ones. */
static void take_moves(struct notes_changes *changes)
{
    struct notes_paths *changed = &changes->changed;
    size_t gone = 0;
    size_t at = 0;
    for (size_t i = 0; i < changes->gone_count; i++) {
        const struct notes_gone *went = &changes->gone[i];
        while (at < changes->fresh_count &&
               compare_stats(&changes->fresh[at].stat, &went->stat) < 0) {
            at++;
        }
        const struct notes_new *came = at < changes->fresh_count ? &changes->fresh[at] : NULL;
        if (came != NULL && compare_stats(&came->stat, &went->stat) == 0 &&
            came->stat.size == went->stat.size) {
            struct ng_str *file = &changed->items[came->at];
            changes->moves[changes->move_count++] = (struct notes_move){went->id, *file};
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

int notes_changes_match(struct notes_changes *changes)
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

bool notes_changes_are_most(struct notes_index *index, struct ng_call *call,
                            const struct notes_changes *changes, size_t files)
{
    const struct notes_paths *changed = &changes->changed;
    size_t differ = 0;
    if (changed->count < REBUILD_MIN || changed->count < files / REBUILD_PART) {
        return false;
    }
    for (size_t i = 0; i < SAMPLE; i++) {
        const struct ng_str *file = &changed->items[changed->count / SAMPLE * i];
        differ += notes_write_differs(index, call, *file);
    }
    return changed->count / SAMPLE * differ >= files / REBUILD_PART && differ > 0;
}
