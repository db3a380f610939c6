/* SPDX-License-Identifier: MIT */
/* undo_select_moves.c - moves among the selected changes: those that have several events, of
 * folders and between spaces, and those of a file from one path to the next. */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/store/store.h"
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
    for (struct undo_doc *doc = undo->first; doc != NULL; doc = doc->next) {
        doc->is_out = doc->is_out || is_taken_along(undo, doc);
    }
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

bool undo_across_has(const struct undo *undo, struct ng_str id)
{
    const bool source = true;
    return across_find(undo, id, source) != NULL;
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

/* ---- files that were moved on ---- */

const struct undo_doc *undo_doc_oldest(const struct undo_doc *doc)
{
    while (doc->older != NULL) {
        doc = doc->older;
    }
    return doc;
}

struct ng_str undo_doc_home(const struct undo_doc *doc)
{
    const struct undo_doc *oldest = undo_doc_oldest(doc);
    return str_or(oldest->moved_from, oldest->key.id);
}

/* The stay at the path where the file was moved from; NULL: it has no selected changes. A move
 * between spaces is taken back by itself, as its events name no other path. */
static struct undo_doc *stay_before(const struct undo *undo, const struct undo_doc *doc)
{
    const struct ng_key key = {doc->key.collection, doc->key.space, doc->moved_from};
    if (doc->moved_from.len == 0 || doc->across.len > 0) {
        return NULL;
    }
    struct hash_link *link =
        hash_table_find(&undo->table, doc_key_hash(&key), undo_doc_is, &key);
    struct undo_doc *at = link != NULL ? HASH_ITEM(link, struct undo_doc, link) : NULL;
    struct undo_doc *before = NULL;
    for (; at != NULL && at->last_seq < doc->moved_seq; at = at->later) {
        before = at;
    }
    return before != NULL && !before->is_out && before->across.len == 0 ? before : NULL;
}

/* Joins the stays of a file from one to the next, unless other moves came in between or since:
 * then its moves are taken back at once, by one to its first place, together with the edits at
 * all of these places. Otherwise each is taken back by itself. */
static int stays_join(struct undo *undo, struct undo_doc *doc)
{
    struct undo_leave leave;
    struct undo_doc *before = doc->is_out ? NULL : stay_before(undo, doc);
    if (before == NULL) {
        return NG_OK;
    }
    int rc = undo_file_leave(undo, undo->call, &doc->key, doc->last_seq, &leave);
    bool joins = leave.seq == 0;
    for (unsigned moves = 0; rc == NG_OK && joins && moves < UNDO_MOVES_MAX; moves++) {
        rc = undo_file_leave(undo, undo->call, &before->key, before->last_seq, &leave);
        if (rc != NG_OK || leave.seq < doc->moved_seq || !str_equal(leave.to, doc->key.id)) {
            break;
        }
        doc->older = before;
        before->is_out = true;
        doc = before;
        before = stay_before(undo, doc);
        joins = before != NULL;
    }
    return rc;
}

/* ---- both ---- */

int undo_move_note(struct undo *undo, const struct ng_event *event,
                   const struct undo_file_change *change)
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
    return rc;
}

int undo_moves_end(struct undo *undo)
{
    int rc = NG_OK;
    leave_out_folders(undo);
    across_pair(undo);
    for (struct undo_doc *doc = undo->first; doc != NULL && rc == NG_OK; doc = doc->next) {
        rc = stays_join(undo, doc);
    }
    struct undo_doc **at = &undo->first;
    while (*at != NULL) {
        if ((*at)->is_out) {
            *at = (*at)->next;
        } else {
            at = &(*at)->next;
        }
    }
    undo->last = at;
    return rc;
}
