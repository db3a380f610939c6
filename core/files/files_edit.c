/* SPDX-License-Identifier: MIT */
/* files_edit.c - edits one file: the tool's function makes the next content from the present
 * one, and is called again if another program saved the file meanwhile. */
#include <errno.h>
#include <time.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/fault/module_run.h"
#include "files_state.h"

/* The undo step of a removal has the whole content. */
static int edit_plan_removal(struct file_op *op)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    record->kind = FILE_CHANGE_DELETE;
    record->undo.kind = NG_UNDO_DELETE;
    record->undo.mode = op->present.mode;
    bool has_names = op->present.type == NG_FILE_REGULAR && op->place.st.st_nlink > 1;
    record->undo.names = has_names ? (uint64_t)op->place.st.st_nlink : 0;
    int rc =
        files_undo_make(call, files_or_empty(op->present.data), ng_str_of(""), &record->undo);
    if (rc == NG_OK && record->undoable && record->undo.inserted.len > FILES_UNDO_BYTES_MAX) {
        rc =
            call_fail(call, NG_ETOOLARGE,
                      "%.*s has %zu bytes. A file is removed only if the undo history can keep "
                      "it, which takes up to %zu bytes of text. Move it instead.",
                      (int)op->edit.path.len, op->edit.path.data, op->present.data.len,
                      FILES_UNDO_BYTES_MAX);
    }
    files_undo_sign(call, record, &record->undo);
    return rc;
}

/* Fills the record from the draft of the tool's function. */
static int edit_plan(struct file_op *op, const struct draft_view *view)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    uint64_t same = 0; /* bytes at the beginning that do not change */
    memset(&record->undo, 0, sizeof(record->undo));
    record->kind = FILE_CHANGE_EDIT;
    record->undo.kind = NG_UNDO_EDIT;
    record->undo.inserted = ng_str_of("");
    record->after[0] = '\0';
    if (op->present.type != NG_FILE_REGULAR) {
        record->kind = FILE_CHANGE_CREATE;
        record->undo.kind = NG_UNDO_CREATE;
    }
    if (view->deleted) {
        return edit_plan_removal(op);
    }
    op->next = view->text;
    int rc = call_count_bytes(call, op->next.len);
    if (rc != NG_OK) {
        return rc;
    }
    if (record->kind == FILE_CHANGE_EDIT && record->undoable) {
        rc = files_undo_make(call, op->present.data, op->next, &record->undo);
        if (rc != NG_OK) {
            return rc;
        }
        if (record->undo.inserted.len > FILES_UNDO_BYTES_MAX) {
            record->undoable = false; /* and older undo steps no longer apply to the file */
            record->undo.inserted = ng_str_of("");
        }
        same = record->undo.at;
    }
    rc = files_hash_next(op, (size_t)same);
    if (rc != NG_OK) {
        return rc;
    }
    files_undo_sign(call, record, &record->undo);
    return NG_OK;
}

static int edit_run(struct file_op *op)
{
    struct call *call = op->call;
    struct draft_view view = {0};
    struct ng_str data = files_or_empty(op->present.data);
    struct ng_draft *draft = store_draft_new(call, ng_str_of("{}"), data);
    if (draft == NULL) {
        return call_no_memory(call);
    }
    struct module_run run;
    call_enter_module(call, &run);
    int rc = op->edit.fn(&call->pub, &op->present, draft, op->edit.user);
    module_run_end(&run);
    if (rc == NG_EWOULDBLOCK) {
        const struct timespec pause = {0, NG_FILE_PAUSE_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
        return files_op_again(op);
    }
    if (rc != NG_OK) {
        return rc;
    }
    store_draft_view(draft, &view);
    bool there = op->present.type == NG_FILE_REGULAR;
    if (view.deleted && op->present.type == NG_FILE_DIRECTORY) {
        rc = edit_plan(op, &view);
        return rc != NG_OK ? rc : files_op_intent(op);
    }
    if (view.touched && !there && (op->place.exists || op->place.dangling)) {
        return files_fail_type(call, &op->place);
    }
    if (view.touched && !there && !view.deleted) {
        if (op->place.below_file) {
            return files_fail_os(call, ENOTDIR, "create", op->place.path);
        }
        if (op->place.missing.len > 0 && !op->edit.parents) {
            return files_fail_missing(call, op->place.path);
        }
    }
    if (view.touched && (there || !view.deleted)) {
        rc = edit_plan(op, &view);
        if (rc != NG_OK) {
            return rc;
        }
        if (strcmp(op->record.before, op->record.after) != 0) {
            return files_op_intent(op);
        }
    }
    if (op->record.before[0] == '\0') {
        return NG_OK;
    }
    return call->pub.host->revision_text(&call->pub, ng_str_of(op->record.before));
}

static int edit_locked(struct file_op *op)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    bool again = false;
    int rc = files_resolve(op->files, call, op->edit.path, &op->place);
    if (rc != NG_OK) {
        return rc;
    }
    if (!str_equal(op->place.real, op->lock_names[0])) {
        return files_op_restart(op);
    }
    if (op->edit.create && (op->place.exists || op->place.dangling)) {
        return files_fail_exists(call, op->edit.path, op->edit.exists_code, "create");
    }
    record->real = op->place.real;
    record->space = arena_copy(&call->arena, ng_str_of(op->place.root->space));
    record->collection = ng_str_of(op->edit.collection);
    record->action = ng_str_of(op->edit.action);
    record->undoable = !op->edit.not_undoable;
    record->before[0] = '\0';
    files_describe(&op->place, &op->present);
    op->keep_mode = op->present.type == NG_FILE_REGULAR;
    op->keep_owner = op->keep_mode;
    if (op->waited != NULL && op->waited->mode != 0 && !op->keep_mode) {
        op->mode = ((mode_t)op->waited->mode & 0777U) | S_IFREG;
    }
    if (op->keep_mode) {
        rc = files_op_read(op, true, op->edit.max_bytes, &again);
        bool removed = rc == NG_ENOTFOUND && !op->place.exists; /* since it was resolved */
        if (removed || (rc == NG_OK && again)) {
            return files_op_again(op);
        }
    }
    op->present.space = record->space;
    if (rc != NG_OK) {
        return rc;
    }
    rc = files_op_expect(op, op->edit.expected_revision);
    if (rc != NG_OK) {
        return rc;
    }
    return edit_run(op);
}

static int edit_begin(struct file_op *op)
{
    struct file_place place;
    int rc = files_resolve(op->files, op->call, op->edit.path, &place);
    if (rc != NG_OK) {
        return rc;
    }
    op->lock_names[0] = place.real;
    op->lock_count = 1;
    files_place_done(&place);
    return files_op_lock(op);
}

static int edit_start(struct files *files, struct call *call, const struct ng_file_edit *edit,
                      struct files_waited *waited)
{
    struct file_op *op = NULL;
    int rc = files_op_new(files, call, FILE_CHANGE_EDIT, &op);
    if (rc != NG_OK) {
        return rc;
    }
    memcpy(&op->edit, edit, size_min(edit->size, sizeof(op->edit)));
    op->edit.path = arena_copy(&call->arena, edit->path);
    op->edit.expected_revision = arena_copy(&call->arena, edit->expected_revision);
    op->waited = waited;
    op->record.note = waited != NULL ? waited->note : STR_NONE;
    return files_op_start(op, edit_begin, edit_locked);
}

int files_edit(struct files *files, struct call *call, const struct ng_file_edit *edit)
{
    return edit_start(files, call, edit, NULL);
}

int files_edit_wait(struct files *files, struct call *call, const struct ng_file_edit *edit,
                    struct files_waited *inout)
{
    return edit_start(files, call, edit, inout);
}
