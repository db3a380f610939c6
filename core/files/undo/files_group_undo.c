/* SPDX-License-Identifier: MIT */
/* files_group_undo.c - reverts a move with its group: moves back, and gives the files that
 * changed with it their contents from before. Any of them leads to the move; if one has changed
 * since, nothing is reverted. */
#include "core/base/str.h"
#include "core/files/files_state.h"

static int history_look(struct ng_call *call, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    (void)next;
    return files_history_read(call_of(call), present, user);
}

/* Read in a transaction, which sees queued changes: the lock of a file is free before the step
 * of its last edit is committed. */
static int history_of(struct file_op *op, struct ng_str space, struct ng_str real,
                      struct file_history *ret)
{
    const struct ng_change look = {
        .size = sizeof(look),
        .key = {ng_str_of(FILES_HISTORY), space, real},
        .fn = history_look,
        .user = ret,
    };
    ret->count = 0;
    return store_write_wait(op->files->store, op->call, &look, 1);
}

/* The last step; NULL: none. */
static const struct file_undo *last_of(const struct file_history *history)
{
    return history->count > 0 ? &history->items[history->count - 1] : NULL;
}

/* A step of a group's file has the id of the move's step, a hyphen and a number. */
static bool is_part_of(const struct file_undo *step, const struct file_undo *move)
{
    return step->op.len > move->op.len + 1 && step->op.data[move->op.len] == '-' &&
           memcmp(step->op.data, move->op.data, move->op.len) == 0;
}

/* ---- the change to revert */

/* The step of the move that `step` is part of. */
static int find_move(struct file_op *op, const struct file_undo *step, struct file_undo *ret)
{
    struct file_place place;
    struct file_history history;
    int rc = files_undo_hide(op, files_resolve(op->files, op->call, step->group, &place));
    if (rc != NG_OK) {
        return rc;
    }
    rc = history_of(op, ng_str_of(place.root->space), place.real, &history);
    files_place_done(&place);
    const struct file_undo *last = last_of(&history);
    if (rc == NG_OK && (last == NULL || !is_part_of(step, last))) {
        return call_fail(op->call, NG_ECONFLICT,
                         "The last edit of %.*s came with the move of %.*s, which has changed "
                         "since. Nothing was undone; view the file and edit it instead.",
                         (int)op->undo.path.len, op->undo.path.data, (int)step->group.len,
                         step->group.data);
    }
    if (rc == NG_OK) {
        *ret = *last;
        op->undo.path = step->group;
    }
    return rc;
}

/* The files that the step of the move lists. */
static int list_files(struct file_op *op, const struct file_undo *move)
{
    size_t count = 0;
    const struct ng_value *file = json_first(move->files);
    for (; file != NULL; file = file->next) {
        count++;
    }
    int rc = files_grouping_new(op->call, count, &op->grouping);
    if (rc != NG_OK) {
        return rc;
    }
    op->grouping->step = *move;
    struct ng_str *path = op->grouping->paths;
    for (file = json_first(move->files); file != NULL; file = file->next) {
        *path++ = file->text;
    }
    return NG_OK;
}

/* ---- contents */

/* Another agent's edit since is named; so is one of another program. */
static int fail_since(struct file_op *op, const struct file_undo *last, struct ng_str path,
                      const char *now)
{
    if (last != NULL && strcmp(last->after, now) == 0) {
        int rc = files_undo_author(op, last, path);
        if (rc != NG_OK) {
            return rc;
        }
        return call_fail(op->call, NG_ECONFLICT,
                         "%.*s was edited after the move that changed it. Undo that edit "
                         "first, or edit the files instead; nothing was undone.",
                         (int)path.len, path.data);
    }
    return files_undo_changed(op, path, now);
}

/* The content before the step, and the splice back to the present one. */
static int revert_content(struct file_op *op, const struct file_undo *step,
                          struct ng_str present, struct file_group_item *item,
                          struct file_record *record)
{
    struct call *call = op->call;
    char hash[FILES_HASH_SIZE];
    struct ng_str reverted = step->op;
    int rc = files_undo_apply(call, step, present, &item->next);
    if (rc == NG_OK) {
        rc = call_count_bytes(call, item->next.len);
    }
    if (rc == NG_OK) {
        rc = files_undo_make(call, present, item->next, &record->undo);
    }
    if (rc != NG_OK) {
        return rc;
    }
    files_hash(item->next, hash);
    if (strcmp(hash, step->before) != 0) {
        return call_fail(call, NG_EINTERNAL, "The undo history of a file is damaged.");
    }
    record->undo.op = reverted;
    memcpy(record->before, step->after, sizeof(record->before));
    memcpy(record->after, step->before, sizeof(record->after));
    item->before = present;
    item->saves = true;
    return NG_OK;
}

static int revert_file(struct file_op *op, struct ng_str path)
{
    struct file_record *record = &op->record;
    struct file_history history;
    struct file_place place;
    struct ng_file present;
    char now[FILES_HASH_SIZE];
    int rc = files_check_cancelled(op->call);
    if (rc == NG_OK) {
        rc = files_group_read(op, path, 0, &place, &present, now);
    }
    if (rc == NG_OK) {
        rc = history_of(op, present.space, present.real, &history);
    }
    if (rc != NG_OK) {
        return rc;
    }
    const struct file_undo *last = last_of(&history);
    if (last == NULL || !is_part_of(last, &op->grouping->step) ||
        strcmp(last->after, now) != 0) {
        return fail_since(op, last, path, now);
    }
    struct file_group_item *item = files_group_find(record->group, present.real);
    if (item == NULL) {
        rc = files_group_add(op, present.real, FILE_CHANGE_UNDO_EDIT, &item);
    }
    if (rc == NG_OK && !files_record_moves(&item->record)) {
        item->record.space = present.space;
        if (place.st.st_nlink > 1) {
            files_inode(&place.st, item->record.inode);
        }
    }
    if (rc == NG_OK) {
        item->st = place.st;
        rc = revert_content(op, last, present.data, item, &item->record);
    }
    return rc;
}

/* The moved file itself, if its content changed, too. */
static int revert_self(struct file_op *op)
{
    struct file_record *record = &op->record;
    struct file_place place;
    struct ng_file present;
    char now[FILES_HASH_SIZE];
    if (strcmp(op->grouping->step.before, op->grouping->step.after) == 0) {
        return NG_OK;
    }
    int rc = files_group_read(op, op->undo.path, 0, &place, &present, now);
    if (rc == NG_OK && strcmp(now, op->grouping->step.after) != 0) {
        rc = files_undo_changed(op, op->undo.path, now);
    }
    return rc != NG_OK ? rc
                       : revert_content(op, &op->grouping->step, present.data,
                                        &record->group->self, record);
}

/* ---- the steps of the op */

/* NG_ECONFLICT, or *ret_same false: the history is another one than when the undo began. */
static int check_step(struct file_op *op, bool *ret_same)
{
    struct file_history history;
    int rc = history_of(op, op->record.space, op->place.real, &history);
    const struct file_undo *last = rc == NG_OK ? last_of(&history) : NULL;
    *ret_same = last != NULL && str_equal(last->op, op->grouping->step.op);
    return rc;
}

static int read_moved(struct file_op *op, bool *ret_again)
{
    if (files_place_type(&op->place) == NG_FILE_DIRECTORY) {
        files_describe(&op->place, &op->present);
        files_mark(&op->place.st, op->record.mark);
        op->record.before[0] = '\0';
        return NG_OK;
    }
    int rc = files_op_read(op, false, 0, ret_again);
    if (rc == NG_OK && !*ret_again) {
        rc = files_op_expect(op, op->undo.expected_revision);
    }
    if (rc == NG_OK && !*ret_again &&
        strcmp(op->record.before, op->grouping->step.after) != 0) {
        rc = files_undo_changed(op, op->undo.path, op->record.before);
    }
    return rc;
}

static int revert_all(struct file_op *op)
{
    struct file_record *record = &op->record;
    memcpy(record->after, op->grouping->step.before, sizeof(record->after));
    memset(&record->undo, 0, sizeof(record->undo));
    record->undo.kind = NG_UNDO_MOVE;
    record->undo.op = op->grouping->step.op;
    record->undo.inserted = ng_str_of("");
    int rc = files_group_start(op, FILE_CHANGE_UNDO_MOVE);
    for (size_t i = 0; rc == NG_OK && i < op->grouping->path_count; i++) {
        rc = revert_file(op, op->grouping->paths[i]);
    }
    if (rc == NG_OK) {
        rc = revert_self(op);
    }
    if (rc == NG_OK) {
        rc = files_group_end(op);
    }
    record->undo.kind = NG_UNDO_MOVE;
    record->undo.listed = NULL;
    record->undo.listed_count = 0;
    return rc;
}

static int group_undo_locked(struct file_op *op)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    bool same = false;
    bool again = false;
    int rc = files_resolve(op->files, call, op->undo.path, &op->place);
    if (rc == NG_OK && !op->place.exists) {
        rc = files_fail_missing(call, op->undo.path);
    }
    if (rc == NG_OK) {
        rc = files_undo_target(op);
    }
    if (rc == NG_OK) {
        rc = files_group_is_locked(op, &same);
    }
    if (rc != NG_OK) {
        return rc;
    }
    record->kind = FILE_CHANGE_UNDO_MOVE;
    record->real = op->place.real;
    record->space = arena_copy(&call->arena, ng_str_of(op->place.root->space));
    record->collection = ng_str_of(op->undo.collection);
    record->peek = NULL; /* the locks of all files are held */
    if (same) {
        rc = check_step(op, &same);
    }
    if (rc == NG_OK && !same) {
        return files_op_restart(op);
    }
    if (rc == NG_OK) {
        rc = files_undo_author(op, &op->grouping->step, op->undo.path);
    }
    if (rc == NG_OK) {
        rc = read_moved(op, &again);
    }
    if (rc == NG_OK && again) {
        return files_op_again(op);
    }
    op->present.space = record->space;
    if (rc == NG_OK) {
        rc = revert_all(op);
    }
    if (rc == NG_OK) {
        rc = files_undo_reply(op);
    }
    return rc != NG_OK ? rc : files_op_intent(op);
}

int files_group_undo(struct file_op *op, const struct file_place *place, bool *ret_taken)
{
    struct file_history history;
    struct file_place from;
    struct file_place to;
    int rc = history_of(op, ng_str_of(place->root->space), place->real, &history);
    const struct file_undo *last = rc == NG_OK ? last_of(&history) : NULL;
    if (last == NULL || !files_undo_is_group(last)) {
        return rc;
    }
    *ret_taken = true;
    struct file_undo move = *last;
    if (last->group.len > 0) {
        rc = find_move(op, last, &move);
    }
    if (rc == NG_OK) {
        rc = list_files(op, &move);
    }
    if (rc != NG_OK) {
        return rc;
    }
    op->locked = group_undo_locked;
    op->undo_former = op->grouping->step.former;
    op->transfer.from = op->undo.path;
    rc = files_resolve(op->files, op->call, op->undo.path, &from);
    if (rc != NG_OK) {
        return rc;
    }
    rc = files_undo_hide(op, files_resolve(op->files, op->call, op->undo_former, &to));
    if (rc == NG_OK) {
        rc = files_group_locks(op, &from, &to);
        files_place_done(&to);
    }
    files_place_done(&from);
    return rc;
}
