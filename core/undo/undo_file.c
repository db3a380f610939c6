/* SPDX-License-Identifier: MIT */
/* undo_file.c - the files of an undo: their versions are merged as revisions of documents are,
 * with the file as it is now, and the result is saved as by a tool. A moved file is followed.
 */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/store/store.h"
#include "undo.h"

/* ---- the plan ---- */

static bool same_content(const struct content *a, const struct content *b)
{
    return a->exists == b->exists && (!a->exists || str_equal(a->text, b->text));
}

static int file_take_out(struct undo_plan *plan, const struct undo_group *group)
{
    const struct content *base = &group->base;
    const struct content *before = &group->before;
    bool moved_on = !str_equal(plan->file->path, plan->doc->key.id);
    if (base->exists && !before->exists && moved_on) {
        undo_plan_refuse(plan, "changed_since"); /* others have moved what was made */
    } else if (same_content(&plan->next, base)) {
        plan->next = *before;
    } else if (same_content(base, before) || same_content(&plan->next, before)) {
        return NG_OK;
    } else if (!before->exists) {
        undo_plan_refuse(plan, "changed_since");
    } else if (!base->exists) {
        undo_plan_refuse(plan, "recreated");
    } else if (!plan->next.exists) {
        undo_plan_refuse(plan, "gone");
    } else {
        return undo_file_merge(plan, group);
    }
    return NG_OK;
}

/* Is there a file where the place needs a folder? A failure is that of the commit, too. */
static bool file_is_below_file(struct undo_plan *plan, struct ng_str path)
{
    struct call *call = plan->call;
    struct ng_file around = {.size = sizeof(around)};
    int rc = NG_OK;
    while (rc == NG_OK && around.type == NG_FILE_NONE && path.len > 1) {
        while (path.data[--path.len] != '/') {
        }
        rc = files_stat(call->gateway->files, call, path, &around);
    }
    if (rc != NG_OK) {
        call_reset_result(call);
    }
    return rc == NG_OK && around.type != NG_FILE_NONE && around.type != NG_FILE_DIRECTORY;
}

/* Moves that are taken back: the file goes to its old place, if that is free. One that was
 * removed comes back there, but not in another space: its event there could not name it. */
static int file_move_back(struct undo_plan *plan)
{
    const struct undo_doc *doc = plan->doc;
    struct ng_str home = undo_doc_home(doc);
    struct undo_file *file = plan->file;
    struct call *call = plan->call;
    struct ng_file old = {.size = sizeof(old)};
    bool stays = doc->across.len > 0 && !file->there.exists;
    if (doc->moved_seq == 0 || !plan->next.exists || stays) {
        return NG_OK;
    }
    if (!str_equal(file->path, doc->key.id)) {
        undo_plan_refuse(plan, "moved_on");
        return NG_OK;
    }
    if (str_equal(file->path, home)) {
        return NG_OK;
    }
    int rc = files_stat(call->gateway->files, call, home, &old);
    if (rc == NG_EOUTSIDE || rc == NG_EFORBIDDEN) {
        call_reset_result(call);
        undo_plan_refuse(plan, "forbidden");
        return NG_OK;
    }
    if (rc == NG_OK && (old.type != NG_FILE_NONE || file_is_below_file(plan, home))) {
        undo_plan_refuse(plan, "path_taken");
    } else if (rc == NG_OK) {
        file->back = home;
    }
    return rc == NG_OK ? undo_file_check(plan, home) : rc;
}

struct ng_str undo_file_folder(const struct undo_plan *plan)
{
    const struct undo_doc *doc = plan->doc;
    if (plan->file == NULL || plan->file->back.len == 0 || doc->folder.len == 0 ||
        !str_starts(doc->key.id, doc->folder)) {
        return STR_NONE;
    }
    struct ng_str back = plan->file->back;
    struct ng_str inside = doc->key.id; /* the part of the path that the move did not change */
    inside.data += doc->folder.len;
    inside.len -= doc->folder.len;
    bool same = back.len > inside.len &&
                str_equal(str_make(back.data + back.len - inside.len, inside.len), inside);
    return same ? str_make(back.data, back.len - inside.len) : STR_NONE;
}

void undo_file_drop_folders(struct undo *undo)
{
    struct call *call = undo->left != NULL ? dispatch_child(undo->call) : NULL;
    if (call == NULL) {
        return; /* an empty folder that stays does no harm */
    }
    call->may_block = true;
    call->options |= CALL_ALL_FOLDERS;
    for (const struct undo_carried *at = undo->left; at != NULL; at = at->next) {
        files_drop_folders(call->gateway->files, call, at->path, at->folder);
    }
    call_unref(call);
}

/* A preview remembers where the file would be. */
static int file_remember(struct undo_plan *plan)
{
    const struct undo_file *file = plan->file;
    struct arena *arena = &plan->undo->call->arena;
    if (!plan->undo->work->dry_run || file->back.len == 0) {
        return NG_OK;
    }
    struct undo_moved *moved = arena_zalloc(arena, sizeof(*moved));
    if (moved == NULL) {
        return call_no_memory(plan->call);
    }
    *moved = (struct undo_moved){.from = arena_copy(arena, file->path),
                                 .to = arena_copy(arena, file->back),
                                 .text = arena_copy(arena, plan->next.text)};
    *plan->undo->last_moved = moved;
    plan->undo->last_moved = &moved->next;
    bool complete = moved->from.data != NULL && moved->to.data != NULL &&
                    (moved->text.data != NULL || plan->next.text.len == 0);
    return complete ? NG_OK : call_no_memory(plan->call);
}

/* Finds the file. One that has come back to its path may have been moved there by an undo, so
 * its place does not tell whether the changes are still to be taken back. */
static int file_find(struct undo_plan *plan)
{
    bool taken = false;
    int rc = undo_file_find(plan);
    if (rc == NG_OK && plan->result == NG_UNDO_DONE && plan->file->has_left) {
        rc = undo_taken(plan, &taken);
    }
    if (taken) {
        plan->result = NG_UNDO_UNCHANGED;
    }
    return rc;
}

int undo_file_plan(struct undo_plan *plan)
{
    struct call *call = plan->call;
    struct undo_file *file = arena_zalloc(&call->arena, sizeof(*file));
    if (file == NULL) {
        return call_no_memory(call);
    }
    plan->file = file;
    call->may_block = true;
    call->options |= CALL_ALL_FOLDERS;
    for (const struct undo_doc *doc = plan->doc; doc != NULL; doc = doc->older) {
        if (doc->refused != NULL) {
            undo_plan_refuse(plan, doc->refused);
            return NG_OK;
        }
    }
    int rc = undo_plan_load(plan, undo_file_after, undo_file_before);
    if (rc == NG_OK && plan->result == NG_UNDO_DONE) {
        rc = file_find(plan);
    }
    plan->next = file->there;
    for (size_t i = 0; i < plan->group_count && rc == NG_OK && plan->result == NG_UNDO_DONE;
         i++) {
        rc = file_take_out(plan, &plan->groups[i]);
    }
    if (rc == NG_OK && plan->result == NG_UNDO_DONE) {
        rc = file_move_back(plan);
    }
    if (rc != NG_OK || plan->result != NG_UNDO_DONE) {
        return rc;
    }
    if (file->back.len == 0 && same_content(&plan->next, &file->there)) {
        plan->result = NG_UNDO_UNCHANGED;
    }
    content_lines(str_or(file->there.text, ng_str_of("")),
                  str_or(plan->next.text, ng_str_of("")), &plan->lines_added,
                  &plan->lines_removed);
    return file_remember(plan);
}

/* ---- the change ---- */

/* The file is as it was read: the edit expects that. */
static int file_draft(struct ng_call *pub, const struct ng_file *present, struct ng_draft *next,
                      void *user)
{
    const struct undo_plan *plan = user;
    (void)pub;
    (void)present;
    if (!plan->next.exists) {
        store_draft_delete(next);
        return NG_OK;
    }
    return store_draft_text(next, &plan->next.text, 1);
}

static int file_commit_edit(struct undo_plan *plan, struct files_waited *waited)
{
    const struct undo_file *file = plan->file;
    const struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = str_or(file->back, file->path),
        .fn = file_draft,
        .user = plan,
        .expected_revision = file->hash,
        .create = !file->there.exists,
        .parents = !file->there.exists,
        .collection = plan->collection,
    };
    return files_edit_wait(plan->call->gateway->files, plan->call, &edit, waited);
}

static int file_commit_move(struct undo_plan *plan, struct files_waited *waited)
{
    const struct undo_file *file = plan->file;
    bool edits = !same_content(&plan->next, &file->there);
    const struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = file->path,
        .fn = file_draft,
        .user = plan,
        .collection = plan->collection,
    };
    const struct ng_file_transfer transfer = {
        .size = sizeof(transfer),
        .from = file->path,
        .to = file->back,
        .expected_revision = file->hash,
        .edits = &edit,
        .edit_count = edits,
    };
    return files_transfer_wait(plan->call->gateway->files, plan->call, &transfer, waited);
}

int undo_file_commit(struct undo_plan *plan, struct ng_str note)
{
    struct files_waited waited = {.note = note};
    waited.mode = plan->file->there.exists ? 0 : plan->file->mode;
    struct ng_str collection = plan->doc->shown.collection;
    plan->collection =
        arena_printf(&plan->call->arena, "%.*s", (int)collection.len, collection.data).data;
    if (plan->collection == NULL) {
        return call_no_memory(plan->call);
    }
    bool moves = plan->file->back.len > 0 && plan->file->there.exists;
    int rc = moves ? file_commit_move(plan, &waited) : file_commit_edit(plan, &waited);
    plan->made = waited.version;
    if (rc != NG_OK && waited.saved) { /* recovery completes it, and makes the version */
        call_reset_result(plan->call);
        return NG_OK;
    }
    plan->moved = rc == NG_ECONFLICT || rc == NG_EBUSY || rc == NG_ENOTFOUND;
    if (plan->moved) {
        call_reset_result(plan->call);
        return NG_OK;
    }
    if (rc == NG_OK && (plan->file->back.len > 0 || !plan->next.exists)) {
        const struct undo_doc *doc = plan->doc;
        return undo_carry(plan->undo, &plan->undo->left, doc->key.id, doc->folder);
    }
    return rc;
}
