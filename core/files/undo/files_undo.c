/* SPDX-License-Identifier: MIT */
/* files_undo.c - reverts the last change of a file. The history is read in the transaction that
 * commits the intent, so that no other change comes between. */
#include <errno.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/files/files_state.h"

/* Files up to this size are read in advance. A larger one is read only if the history shows an
 * edit, not for a creation or a move. */
#define FILES_UNDO_LOAD ((off_t)1024 * 1024)

static int fail_no_history(struct file_op *op)
{
    int code = op->undo.no_history_code;
    return call_fail(op->call, code != 0 ? code : NG_EFAILED, "No edit history found for %.*s.",
                     (int)op->undo.path.len, op->undo.path.data);
}

int files_undo_changed(struct file_op *op, struct ng_str path, const char *now)
{
    (void)files_fail_revision(op->call, path, now);
    return call_fail(op->call, NG_ECONFLICT,
                     "Another program changed the file %.*s after its last edit. Nothing was "
                     "undone; view the file and edit it instead.",
                     (int)path.len, path.data);
}

/* Undo takes back the caller's own changes. */
int files_undo_author(struct file_op *op, const struct file_undo *last, struct ng_str path)
{
    struct call *call = op->call;
    char time[RFC3339_SIZE];
    if (last->agent.len == 0 || str_equal(last->agent, call->caller.agent)) {
        return NG_OK;
    }
    rfc3339_write(last->time_ms, RFC3339_SECONDS, time);
    int rc = call_fail(call, NG_ECONFLICT,
                       "The last edit of %.*s is not yours: the agent %.*s made it at %s. "
                       "Nothing was undone; view the file and edit it instead.",
                       (int)path.len, path.data, (int)last->agent.len, last->agent.data, time);
    struct ng_writer *details = call->pub.host->details(&call->pub);
    if (details != NULL) {
        json_object(details);
        json_name(details, "changed_by");
        json_string(details, last->agent);
        json_name(details, "timestamp");
        json_cstring(details, time);
        json_end(details);
    }
    return rc;
}

/* The last edit of the file was made under another of its names. */
static int undo_elsewhere(struct file_op *op, const struct file_undo *edit)
{
    int rc = files_undo_author(op, edit, op->undo.path);
    if (rc != NG_OK) {
        return rc;
    }
    return call_fail(op->call, NG_ECONFLICT,
                     "The last edit of %.*s was made under another name of this file, %.*s. "
                     "Nothing was undone; undo it there.",
                     (int)op->undo.path.len, op->undo.path.data, (int)edit->former.len,
                     edit->former.data);
}

int files_undo_reply(struct file_op *op)
{
    struct ng_file now = op->present;
    enum ng_undo_kind kind = NG_UNDO_EDIT;
    if (op->undo.replied == NULL) {
        return NG_OK;
    }
    now.revision = ng_str_of(op->record.after);
    if (op->record.kind == FILE_CHANGE_UNDO_DELETE) {
        kind = NG_UNDO_DELETE;
        now.type = op->record.after[0] != '\0' ? NG_FILE_REGULAR : NG_FILE_DIRECTORY;
        now.revision.data = now.type == NG_FILE_REGULAR ? now.revision.data : NULL;
        now.data = op->next;
        now.bytes = op->next.len;
        now.names = op->record.undo.names;
    } else if (op->record.kind == FILE_CHANGE_UNDO_CREATE) {
        kind = NG_UNDO_CREATE;
        now.type = NG_FILE_NONE;
        now.data = str_make(NULL, 0);
        now.revision = str_make(NULL, 0);
        now.bytes = 0;
    } else if (op->record.kind == FILE_CHANGE_UNDO_MOVE) {
        kind = NG_UNDO_MOVE;
        now.revision.data = now.revision.len > 0 ? now.revision.data : NULL; /* of a folder */
        now.real = op->target.real;
        now.space = op->record.to_space;
    } else {
        now.data = op->next;
        now.bytes = op->next.len;
    }
    return op->undo.replied(&op->call->pub, kind, &now, op->undo_former, op->undo.user);
}

/* Makes the content before the edit `last`. stored: bytes of the history's texts. */
static int undo_edit_plan(struct file_op *op, const struct file_undo *last, size_t stored)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    record->kind = FILE_CHANGE_UNDO_EDIT;
    if (op->present.data.data == NULL) {
        op->undo_load = true;
        op->relock = true;
        return NG_ECONFLICT; /* no failure: retry with the content loaded */
    }
    int rc = call_count_bytes(call, op->present.data.len + stored);
    if (rc != NG_OK) {
        return rc;
    }
    rc = files_undo_apply(call, last, op->present.data, &op->next);
    if (rc != NG_OK) {
        return rc;
    }
    files_hash(op->next, record->after);
    if (record->after[0] == '\0') {
        return call_no_memory(call);
    }
    return strcmp(record->after, last->before) == 0
               ? files_undo_reply(op)
               : files_undo_changed(op, op->undo.path, op->record.before);
}

/* The file or empty folder as it was before it was removed. */
static int undo_delete_plan(struct file_op *op, const struct file_undo *last)
{
    struct file_record *record = &op->record;
    record->kind = FILE_CHANGE_UNDO_DELETE;
    op->mode = ((mode_t)last->mode & 0777U) | S_IFREG; /* set-user-ID would name another user */
    op->next = str_make(NULL, 0);
    if (last->before[0] == '\0') {
        return files_undo_reply(op);
    }
    int rc = call_count_bytes(op->call, last->inserted.len);
    if (rc == NG_OK) {
        rc = files_undo_apply(op->call, last, ng_str_of(""), &op->next);
    }
    if (rc != NG_OK) {
        return rc;
    }
    files_hash(op->next, record->after);
    if (strcmp(record->after, last->before) != 0) {
        return call_fail(op->call, NG_EINTERNAL, "The undo history of a file is damaged.");
    }
    return files_undo_reply(op);
}

/* Is there a last step, and was it made under this name? */
static int undo_check_last(struct file_op *op, const struct file_history *history)
{
    if (!op->place.exists) {
        return files_history_has_removal(history) ? NG_OK
                                                  : files_fail_missing(op->call, op->undo.path);
    }
    const struct file_undo *elsewhere =
        files_history_elsewhere(history, op->record.inode_history, op->record.before);
    if (elsewhere != NULL) {
        return undo_elsewhere(op, elsewhere);
    }
    return history->count > 0 ? NG_OK : fail_no_history(op);
}

/* Runs under the history's lock, before the intent is written. */
static int undo_peek(struct call *call, struct file_record *record,
                     const struct ng_doc *present, void *user)
{
    struct file_op *op = user;
    struct file_history history;
    int rc = files_history_read(call, present, &history);
    op->relock = false; /* an earlier attempt may have set it for an older history */
    if (rc != NG_OK) {
        return rc;
    }
    rc = undo_check_last(op, &history);
    if (rc != NG_OK) {
        return rc;
    }
    const struct file_undo *last = &history.items[history.count - 1];
    if (files_undo_is_group(last)) {
        op->relock = true; /* made since the undo began */
        return NG_ECONFLICT;
    }
    if (strcmp(last->after, record->before) != 0) {
        return files_undo_changed(op, op->undo.path, op->record.before);
    }
    record->undo = *last;
    record->undo.inserted = ng_str_of("");
    memcpy(record->after, last->before, sizeof(record->after));
    if (last->kind != NG_UNDO_MOVE) {
        record->to = str_make(NULL, 0); /* an earlier attempt found a move */
    }
    if (last->kind != NG_UNDO_MOVE) {
        rc = files_undo_author(op, last, op->undo.path);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (last->kind == NG_UNDO_DELETE) {
        return !op->place.exists ? undo_delete_plan(op, last)
                                 : files_undo_changed(op, op->undo.path, record->before);
    }
    if (last->kind == NG_UNDO_CREATE) {
        record->kind = FILE_CHANGE_UNDO_CREATE;
        return files_undo_reply(op);
    }
    if (last->kind == NG_UNDO_MOVE) {
        record->kind = FILE_CHANGE_UNDO_MOVE;
        if (!str_equal(record->to, last->former)) {
            op->undo_former = last->former;
            op->relock = true;
            return NG_ECONFLICT; /* no failure: retry with a lock on the former path */
        }
        rc = files_undo_author(op, last,
                               op->undo.path); /* after access to the former path was checked */
        return rc != NG_OK ? rc : files_undo_reply(op);
    }
    return undo_edit_plan(op, last, present->text.len);
}

/* Resolves the former path of a move. The message does not reveal it to a caller without
 * access.
 */
static int undo_former_place(struct file_op *op, struct file_place *ret)
{
    struct call *call = op->call;
    struct result before = call->staged;
    int rc = files_resolve(op->files, call, op->undo_former, ret);
    if (rc == NG_EOUTSIDE) {
        call->staged = before;
        rc = call_fail(call, NG_EFORBIDDEN,
                       "The file %.*s was moved here from a place that is not open to this "
                       "caller, so it cannot be moved back.",
                       (int)op->undo.path.len, op->undo.path.data);
    }
    return rc;
}

/* Makes the former path the destination. */
int files_undo_target(struct file_op *op)
{
    struct call *call = op->call;
    int rc = undo_former_place(op, &op->target);
    if (rc != NG_OK) {
        return rc;
    }
    if (op->target.exists || op->target.dangling || op->target.below_file ||
        !str_equal(op->target.real, op->undo_former)) {
        return call_fail(call, NG_ECONFLICT,
                         "The file was moved from %.*s, and something else is there now. Move "
                         "that away first.",
                         (int)op->undo_former.len, op->undo_former.data);
    }
    op->record.to = op->target.real;
    op->record.to_space = arena_copy(&call->arena, ng_str_of(op->target.root->space));
    return NG_OK;
}

static int undo_locked(struct file_op *op)
{
    struct call *call = op->call;
    bool again = false;
    int rc = files_resolve(op->files, call, op->undo.path, &op->place);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str real = op->place.real;
    if (!str_equal(real, op->lock_names[0]) &&
        (op->lock_count < 2 || !str_equal(real, op->lock_names[1]))) {
        op->undo_former = str_make(NULL, 0);
        return files_op_restart(op);
    }
    op->mode = 0;
    if (op->place.exists) {
        rc = files_op_read(op, op->undo_load, 0, &again);
    } else { /* it may have been removed */
        files_describe(&op->place, &op->present);
        op->record.before[0] = '\0';
    }
    if (rc == NG_OK && again) {
        return files_op_again(op);
    }
    if (rc == NG_OK) {
        rc = files_op_expect(op, op->undo.expected_revision);
    }
    if (rc == NG_OK && op->undo_former.len > 0) {
        rc = files_undo_target(op);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (op->undo_former.len == 0) {
        op->record.to = str_make(NULL, 0); /* an earlier attempt may have found a move */
    }
    op->record.real = real;
    op->record.space = arena_copy(&call->arena, ng_str_of(op->place.root->space));
    op->record.collection = ng_str_of(op->undo.collection);
    op->present.space = op->record.space;
    op->keep_mode = op->place.exists;
    op->keep_owner = op->place.exists;
    op->record.peek = undo_peek;
    op->record.peek_user = op;
    op->record.inode_history = NULL;
    if (op->place.exists) {
        files_inode(&op->place.st, op->record.inode);
        op->record.inode_history =
            arena_zalloc(&call->arena, sizeof(*op->record.inode_history));
        if (op->record.inode_history == NULL) {
            return call_no_memory(call);
        }
    }
    return files_op_intent(op);
}

static int undo_begin(struct file_op *op)
{
    struct file_place place;
    int rc = files_resolve(op->files, op->call, op->undo.path, &place);
    if (rc != NG_OK) {
        return rc;
    }
    enum ng_file_type type = files_place_type(&place);
    struct ng_str real = place.real;
    op->undo_load = op->undo_load || place.st.st_size <= FILES_UNDO_LOAD;
    bool taken = false;
    if (op->grouping != NULL) { /* of an earlier attempt */
        op->grouping = NULL;
        op->undo_former = str_make(NULL, 0);
    }
    op->record.group = NULL;
    op->locked = undo_locked;
    op->lock_names = op->lock_pair;
    if (place.exists) {
        rc = files_group_undo(op, &place, &taken);
    }
    if (rc == NG_OK && !taken && place.exists && type != NG_FILE_REGULAR) {
        rc = fail_no_history(op);
    }
    files_place_done(&place);
    if (rc == NG_OK && taken) {
        return files_op_lock(op);
    }
    if (rc == NG_OK && op->undo_former.len > 0) {
        /* Checks access before it takes the lock: waiting for it would reveal the file. */
        rc = undo_former_place(op, &place);
        files_place_done(&place);
    }
    if (rc != NG_OK) {
        return rc;
    }
    op->lock_names[0] = real;
    op->lock_count = 1;
    if (op->undo_former.len > 0 && !str_equal(op->undo_former, real)) {
        files_op_sort(real, op->undo_former, op->lock_names);
        op->lock_count = 2;
    }
    return files_op_lock(op);
}

int files_undo(struct files *files, struct call *call, const struct ng_file_undo *undo)
{
    struct file_op *op = NULL;
    int rc = files_op_new(files, call, FILE_CHANGE_UNDO_EDIT, &op);
    if (rc != NG_OK) {
        return rc;
    }
    memcpy(&op->undo, undo, size_min(undo->size, sizeof(op->undo)));
    op->undo.path = arena_copy(&call->arena, undo->path);
    op->undo.expected_revision = arena_copy(&call->arena, undo->expected_revision);
    return files_op_start(op, undo_begin, undo_locked);
}
