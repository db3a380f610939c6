/* SPDX-License-Identifier: MIT */
/* files_transfer.c - copies and moves inside the roots; never replaces a file. What changes
 * with a move is its group: files_group.c. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "files_state.h"

/* ---- on disk */

/* Removes the copy of a failed move, unless another program has changed it. Does not read the
 * file: the call may be cancelled. */
static void drop_copy(struct file_op *op)
{
    struct file_identity named;
    struct stat ours;
    if (files_identify(op->target.dir, op->target.name.data, &named) &&
        fstat(op->temp, &ours) == 0 && files_same(named, files_identity(&ours)) &&
        ours.st_mtim.tv_sec == op->written.tv_sec &&
        ours.st_mtim.tv_nsec == op->written.tv_nsec) {
        (void)unlinkat(op->target.dir, op->target.name.data, 0);
    }
}

/* Moves to another file system: copies, then removes the source. */
static int move_across(struct file_op *op, enum file_saved *ret)
{
    enum file_saved removed = FILE_SAVED;
    op->copy = true;
    op->keep_mode = true;
    op->keep_owner = true;
    int rc = files_save(op, &op->target, ret);
    op->copy = false;
    if (rc != NG_OK || *ret == FILE_AGAIN) {
        return rc;
    }
    rc = files_remove(op, &op->place, &removed);
    /* If the source is removed, the copy is the only file left: keep it after any failure. */
    struct file_identity old;
    if ((rc != NG_OK && files_identify(op->place.dir, op->place.name.data, &old)) ||
        removed == FILE_AGAIN) {
        drop_copy(op);
    }
    *ret = removed;
    return rc;
}

/* Names the folder that is not writable. */
static int fail_move(struct file_op *op, int error)
{
    bool from = error == EBUSY || faccessat(op->place.dir, ".", W_OK, AT_EACCESS) != 0;
    return files_fail_rename(op, error, "move", from ? &op->place : &op->target);
}

int files_rename(struct file_op *op, enum file_saved *ret)
{
    struct call *call = op->call;
    *ret = FILE_SAVED;
    int rc = files_make_parents(call, &op->target);
    if (rc != NG_OK) {
        return rc;
    }
    if (!files_is_as_read(op, op->place.dir, op->place.name.data)) {
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    files_op_enter(op, FILE_OP_SAVED);
    if (files_rename_new(op->place.dir, op->place.name.data, op->target.dir,
                         op->target.name.data) != 0) {
        if (errno == EXDEV) {
            return move_across(op, ret);
        }
        if (errno == EEXIST || errno == ENOENT) {
            files_op_enter(op, FILE_OP_INTENDED);
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        return fail_move(op, errno);
    }
    if (!files_is_as_read(op, op->target.dir, op->target.name.data)) {
        *ret = FILE_AGAIN; /* moved back, then checked again */
        if (files_rename_new(op->target.dir, op->target.name.data, op->place.dir,
                             op->place.name.data) != 0) {
            return files_fail_os(call, errno, "move", op->place.path);
        }
        files_op_enter(op, FILE_OP_INTENDED);
        return NG_OK;
    }
    if (files_sync_folder(op->target.dir, op->fd) != 0 ||
        files_sync_folder(op->place.dir, op->fd) != 0) {
        return files_fail_os(call, errno, "move", op->place.path);
    }
    return NG_OK;
}

/* ---- the steps */

/* A folder has a group, and so has what changes other files. */
static int transfer_group(struct file_op *op, bool folder)
{
    const struct ng_file_transfer *transfer = &op->transfer;
    op->grouping = NULL;
    op->record.group = NULL; /* of an earlier attempt */
    if (!folder && transfer->edit_count == 0) {
        return NG_OK;
    }
    int rc = files_grouping_new(op->call, transfer->edit_count, &op->grouping);
    for (size_t i = 0; rc == NG_OK && i < transfer->edit_count; i++) {
        op->grouping->paths[i] = transfer->edits[i].path;
    }
    return rc;
}

/* Resolves source and destination. */
static int transfer_resolve(struct file_op *op, struct file_place *from, struct file_place *to)
{
    struct call *call = op->call;
    int rc = files_resolve(op->files, call, op->transfer.from, from);
    if (rc != NG_OK) {
        return rc;
    }
    bool folder = op->transfer.folder && files_place_type(from) == NG_FILE_DIRECTORY;
    if (files_place_type(from) != NG_FILE_REGULAR && !folder) {
        return files_fail_type(call, from);
    }
    rc = transfer_group(op, folder);
    if (rc != NG_OK) {
        return rc;
    }
    rc = files_resolve(op->files, call, op->transfer.to, to);
    if (rc == NG_OK && (to->exists || to->dangling)) {
        rc = files_fail_exists(call, op->transfer.to, op->transfer.exists_code,
                               op->transfer.keep ? "copy" : "move");
    }
    if (rc == NG_OK && to->below_file) {
        rc = files_fail_os(call, ENOTDIR, "create", to->path);
    }
    return rc;
}

static int transfer_reply(struct file_op *op)
{
    struct ng_file now = op->present;
    now.path = op->transfer.to;
    now.real = op->target.real;
    if (now.revision.data != NULL) {
        now.revision = ng_str_of(op->record.after);
    }
    now.space = op->transfer.keep ? op->record.space : op->record.to_space;
    if (op->transfer.replied == NULL) {
        return NG_OK;
    }
    return op->transfer.replied(&op->call->pub, &now, NULL, op->transfer.user);
}

static void transfer_plan(struct file_op *op)
{
    struct arena *arena = &op->call->arena;
    struct file_record *record = &op->record;
    struct ng_str space = arena_copy(arena, ng_str_of(op->place.root->space));
    struct ng_str to_space = arena_copy(arena, ng_str_of(op->target.root->space));
    op->copy = op->transfer.keep;
    op->keep_mode = true;
    op->keep_owner = !op->transfer.keep;
    memset(&record->undo, 0, sizeof(record->undo));
    record->undo.inserted = ng_str_of("");
    memcpy(record->after, record->before, sizeof(record->after));
    if (op->transfer.keep) {
        record->kind = FILE_CHANGE_CREATE;
        record->undo.kind = NG_UNDO_CREATE;
        record->before[0] = '\0';
        record->real = op->target.real;
        record->space = to_space;
        record->copied = op->place.real;
        record->copied_space = space;
        files_undo_sign(op->call, record, &record->undo);
        return;
    }
    record->kind = FILE_CHANGE_MOVE;
    record->undo.kind = NG_UNDO_MOVE;
    record->undo.former = op->place.real;
    files_undo_sign(op->call, record, &record->undo);
    record->real = op->place.real;
    record->space = space;
    record->to = op->target.real;
    record->to_space = to_space;
}

/* Are the locks still those of what the paths lead to? */
static int transfer_is_locked(struct file_op *op, bool *ret_same)
{
    if (op->grouping != NULL) {
        return files_group_is_locked(op, ret_same);
    }
    struct ng_str names[2];
    files_op_sort(op->place.real, op->target.real, names);
    *ret_same = op->lock_count == 2 && str_equal(names[0], op->lock_names[0]) &&
                str_equal(names[1], op->lock_names[1]);
    return NG_OK;
}

static int transfer_locked(struct file_op *op)
{
    bool again = false;
    bool same = false;
    int rc = transfer_resolve(op, &op->place, &op->target);
    if (rc == NG_OK) {
        rc = transfer_is_locked(op, &same);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (!same) {
        return files_op_restart(op);
    }
    if (files_place_type(&op->place) == NG_FILE_REGULAR) {
        rc = files_op_read(op, false, 0, &again);
    } else {
        files_describe(&op->place, &op->present);
        files_mark(&op->place.st, op->record.mark);
        op->record.before[0] = '\0';
    }
    if (rc == NG_OK && again) {
        return files_op_again(op);
    }
    if (rc == NG_OK) {
        rc = files_op_expect(op, op->transfer.expected_revision);
    }
    if (rc != NG_OK) {
        return rc;
    }
    transfer_plan(op);
    rc = op->grouping != NULL ? files_group_plan(op, &again) : NG_OK;
    if (rc == NG_OK && again) {
        return files_op_again(op);
    }
    if (rc == NG_OK) {
        rc = transfer_reply(op);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return files_op_intent(op);
}

/* Checks again with the lock held: no earlier attempt has explained the failure. */
static int transfer_refused(struct file_op *op)
{
    struct file_place from = {.dir = -1};
    struct file_place to = {.dir = -1};
    int rc = transfer_resolve(op, &from, &to);
    files_place_done(&from);
    files_place_done(&to);
    if (rc != NG_OK) {
        return rc;
    }
    return files_op_restart(op);
}

static int transfer_begin(struct file_op *op)
{
    struct file_place from = {.dir = -1};
    struct file_place to = {.dir = -1};
    int rc = transfer_resolve(op, &from, &to);
    struct ng_str changed = from.real;
    if (op->transfer.keep) {
        changed = to.real;
    }
    if (rc != NG_OK && op->call->idempotency != NULL && changed.data != NULL) {
        /* An earlier attempt of this call may have moved it. */
        op->lock_names = op->lock_pair;
        op->lock_names[0] = changed;
        op->lock_count = 1;
        op->locked = transfer_refused;
        rc = NG_OK;
    } else if (rc == NG_OK && op->grouping != NULL) {
        op->locked = transfer_locked;
        rc = files_group_locks(op, &from, &to);
    } else if (rc == NG_OK) {
        op->lock_names = op->lock_pair;
        files_op_sort(from.real, to.real, op->lock_names);
        op->lock_count = 2;
        op->locked = transfer_locked;
    }
    files_place_done(&from);
    files_place_done(&to);
    return rc != NG_OK ? rc : files_op_lock(op);
}

/* They are used after the tool has returned. */
static int transfer_copy_edits(struct file_op *op)
{
    struct arena *arena = &op->call->arena;
    size_t count = op->transfer.edit_count;
    struct ng_file_edit *edits = arena_alloc(arena, count * sizeof(*edits));
    if (edits == NULL) {
        return call_no_memory(op->call);
    }
    for (size_t i = 0; i < count; i++) {
        edits[i] = op->transfer.edits[i];
        edits[i].path = arena_copy(arena, edits[i].path);
        if (edits[i].path.data == NULL) {
            return call_no_memory(op->call);
        }
    }
    op->transfer.edits = edits;
    return NG_OK;
}

static int transfer_start(struct files *files, struct call *call,
                          const struct ng_file_transfer *transfer, struct files_waited *waited)
{
    struct file_op *op = NULL;
    int rc = files_op_new(files, call, FILE_CHANGE_MOVE, &op);
    if (rc != NG_OK) {
        return rc;
    }
    memcpy(&op->transfer, transfer, size_min(transfer->size, sizeof(op->transfer)));
    op->transfer.from = arena_copy(&call->arena, transfer->from);
    op->transfer.to = arena_copy(&call->arena, transfer->to);
    op->transfer.expected_revision = arena_copy(&call->arena, transfer->expected_revision);
    op->waited = waited;
    op->record.note = waited != NULL ? waited->note : STR_NONE;
    rc = transfer_copy_edits(op);
    return rc != NG_OK ? rc : files_op_start(op, transfer_begin, transfer_locked);
}

int files_transfer(struct files *files, struct call *call,
                   const struct ng_file_transfer *transfer)
{
    return transfer_start(files, call, transfer, NULL);
}

int files_transfer_wait(struct files *files, struct call *call,
                        const struct ng_file_transfer *transfer, struct files_waited *inout)
{
    return transfer_start(files, call, transfer, inout);
}
