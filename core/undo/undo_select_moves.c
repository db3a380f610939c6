/* SPDX-License-Identifier: MIT */
/* undo_select_moves.c - moves among the selected changes that have several events: of folders,
 * and between spaces. */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "undo.h"

/* ---- folders ---- */

int undo_carry(struct undo *undo, struct undo_carried **list, struct ng_str path,
               struct ng_str folder)
{
    struct arena *arena = &undo->call->arena;
    struct undo_carried *carried = NULL;
    if (folder.len == 0) {
        return NG_OK;
    }
    carried = arena_alloc(arena, sizeof(*carried));
    if (carried == NULL) {
        return call_no_memory(undo->call);
    }
    *carried = (struct undo_carried){*list, arena_copy(arena, path), folder};
    *list = carried;
    return carried->path.data != NULL ? NG_OK : call_no_memory(undo->call);
}

/* The move of a folder is taken back by its files; without any of them it is told as one that
 * is not. */
static bool is_taken_along(const struct undo *undo, const struct undo_doc *doc)
{
    const struct undo_carried *at = doc->is_folder ? undo->carried : NULL;
    while (at != NULL && !str_equal(at->folder, doc->key.id)) {
        at = at->next;
    }
    return at != NULL;
}

static void leave_out_folders(struct undo *undo)
{
    struct undo_doc **at = &undo->first;
    while (*at != NULL) {
        if (is_taken_along(undo, *at)) {
            *at = (*at)->next;
        } else {
            at = &(*at)->next;
        }
    }
    undo->last = at;
}

/* ---- spaces ---- */

static int across_add(struct undo *undo, const struct ng_event *event,
                      const struct undo_file_change *change)
{
    struct arena *arena = &undo->call->arena;
    struct undo_across *across = arena_alloc(arena, sizeof(*across));
    if (across == NULL) {
        return call_no_memory(undo->call);
    }
    *across = (struct undo_across){
        .next = undo->across,
        .id = change->across,
        .key = {change->key.collection, arena_copy(arena, change->key.space),
                arena_copy(arena, change->key.id)},
        .collection = arena_copy(arena, event->key.collection),
        .version = change->version,
        .is_source = change->is_source,
        .is_foreign = !str_equal(event->agent, undo->call->caller.agent),
    };
    undo->across = across;
    bool complete = across->key.space.data != NULL && across->key.id.data != NULL &&
                    across->collection.data != NULL;
    return complete ? NG_OK : call_no_memory(undo->call);
}

static const struct undo_across *across_find(const struct undo *undo, struct ng_str id,
                                             bool is_source)
{
    const struct undo_across *at = undo->across;
    while (at != NULL && (at->is_source != is_source || !str_equal(at->id, id))) {
        at = at->next;
    }
    return at;
}

const struct undo_across *undo_across_lone(const struct undo *undo,
                                           const struct undo_across *at)
{
    const bool source = true;
    while (at != NULL &&
           (at->is_source != source || across_find(undo, at->id, !source) != NULL)) {
        at = at->next;
    }
    return at;
}

const char *undo_across_refusal(const struct undo *undo)
{
    return undo->call->caller.all_spaces ? "not_kept" : "forbidden";
}

/* The place that the file left is known by the event there, if the caller may see that. */
static void across_pair(struct undo *undo)
{
    const bool source = true;
    for (struct undo_doc *doc = undo->first; doc != NULL; doc = doc->next) {
        const struct undo_across *left =
            doc->across.len > 0 ? across_find(undo, doc->across, source) : NULL;
        if (left != NULL) {
            doc->moved_from = left->key.id;
            doc->moved_space = left->key.space;
            doc->moved_version = left->version - 1; /* before the removal */
        } else if (doc->across.len > 0) {
            doc->refused = undo_across_refusal(undo);
        }
    }
}

/* ---- both ---- */

int undo_move_note(struct undo *undo, const struct ng_event *event,
                   const struct undo_file_change *change, bool done)
{
    int rc = NG_OK;
    if (!change->is_file) {
        return NG_OK;
    }
    if (change->across.len > 0) {
        rc = across_add(undo, event, change);
    }
    if (rc == NG_OK) {
        rc = undo_carry(undo, &undo->carried, change->key.id, change->folder);
    }
    return rc == NG_OK && done ? undo_carry(undo, &undo->left, change->key.id, change->folder)
                               : rc;
}

void undo_moves_end(struct undo *undo)
{
    leave_out_folders(undo);
    across_pair(undo);
}
