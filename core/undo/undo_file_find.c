/* SPDX-License-Identifier: MIT */
/* undo_file_find.c - finds the file of a change, and reads what is there. Moves are followed.
 */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/files/version/file_version.h"
#include "undo.h"

/* Moves that are followed. */
#define FILE_MOVES_MAX 16

static int tail_read(const struct undo_plan *plan, struct ng_str space, struct ng_str path,
                     struct file_version_tail *ret)
{
    const struct ng_key key = {plan->doc->key.collection, space, path};
    return file_version_tail(plan->call->gateway->store, plan->call, &key, ret);
}

/* In a preview the moves that would be taken back before. */
static const struct undo_moved *moved_find(const struct undo *undo, struct ng_str path)
{
    const struct undo_moved *moved = undo->moved;
    while (moved != NULL && !str_equal(moved->from, path)) {
        moved = moved->next;
    }
    return moved;
}

/* The one that ends here. */
static const struct undo_moved *moved_find_to(const struct undo *undo, struct ng_str path)
{
    const struct undo_moved *moved = undo->moved;
    while (moved != NULL && !str_equal(moved->to, path)) {
        moved = moved->next;
    }
    return moved;
}

static int file_follow(struct undo_plan *plan)
{
    struct undo_file *file = plan->file;
    int rc = NG_OK;
    file->path = plan->doc->key.id;
    for (unsigned moves = 0; rc == NG_OK && moves < FILE_MOVES_MAX; moves++) {
        struct file_version_tail tail;
        rc = tail_read(plan, plan->doc->key.space, file->path, &tail);
        if (rc != NG_OK || tail.to.len == 0) {
            break;
        }
        file->path = tail.to;
    }
    const struct undo_moved *moved = moved_find(plan->undo, file->path);
    for (unsigned moves = 0; moved != NULL && moves < FILE_MOVES_MAX; moves++) {
        file->planned = moved;
        file->path = moved->to;
        moved = moved_find(plan->undo, file->path);
    }
    if (file->planned == NULL) {
        file->planned = moved_find_to(plan->undo, file->path);
    }
    return rc;
}

int undo_file_check(struct undo_plan *plan, struct ng_str path)
{
    struct call *call = plan->undo->call;
    struct file_version_tail tail;
    if (str_equal(path, plan->doc->key.id) || plan->result != NG_UNDO_DONE) {
        return NG_OK;
    }
    bool old = plan->doc->moved_seq != 0 && str_equal(path, plan->doc->moved_from);
    int rc = tail_read(plan, old ? plan->doc->moved_space : plan->doc->key.space, path, &tail);
    if (rc != NG_OK) {
        return rc;
    }
    bool may = tail.number == 0 || (dispatch_sees_collection(call, tail.collection) &&
                                    dispatch_may_change(call, tail.collection));
    if (!may || undo_needs_agent(call, path)) {
        undo_plan_refuse(plan, "forbidden");
    }
    return NG_OK;
}

static const char *read_refusal(int rc)
{
    if (rc == NG_ETOOLARGE) {
        return "too_large";
    }
    return rc == NG_EFAILED ? "path_taken" : "forbidden";
}

/* Reads the file. */
static int file_read(struct undo_plan *plan)
{
    struct undo_file *file = plan->file;
    struct call *call = plan->call;
    struct ng_file found = {.size = sizeof(found)};
    if (file->planned != NULL) {
        file->there = (struct content){.exists = true, .text = file->planned->text};
        return NG_OK;
    }
    int rc = files_read(call->gateway->files, call, file->path, UNDO_PLAN_BYTES - 1, &found);
    if (rc == NG_OK) {
        file->there = (struct content){.exists = found.type == NG_FILE_REGULAR};
        file->there.text = str_or(found.data, ng_str_of(""));
        file->hash = found.revision;
        plan->bytes += file->there.text.len;
        return NG_OK;
    }
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        return NG_OK;
    }
    if (rc == NG_ETOOLARGE || rc == NG_EOUTSIDE || rc == NG_EFORBIDDEN || rc == NG_EFAILED) {
        call_reset_result(call);
        undo_plan_refuse(plan, read_refusal(rc));
        return NG_OK;
    }
    return rc;
}

int undo_file_find(struct undo_plan *plan)
{
    int rc = file_follow(plan);
    if (rc == NG_OK) {
        rc = undo_file_check(plan, plan->file->path);
    }
    return rc == NG_OK && plan->result == NG_UNDO_DONE ? file_read(plan) : rc;
}
