/* SPDX-License-Identifier: MIT */
/* undo_file_find.c - finds the file of a change, and reads what is there. Moves are followed.
 */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/files/version/file_version.h"
#include "core/history/trail.h"
#include "undo.h"

static int tail_read(const struct undo_plan *plan, struct ng_str space, struct ng_str path,
                     struct file_version_tail *ret)
{
    const struct ng_key key = {plan->doc->key.collection, space, path};
    return file_version_tail(plan->call->gateway->store, plan->call, &key, ret);
}

/* ---- where the file is ---- */

struct leaving {
    struct undo *undo;
    struct undo_leave leave;
    int rc;
};

/* The newest events come first, so the last one that is noted is the oldest. */
static int leave_take(void *user, const struct ng_event *event)
{
    struct leaving *leaving = user;
    struct undo_leave *leave = &leaving->leave;
    struct undo_file_change change;
    leaving->rc = undo_file_change(leaving->undo, event, &change);
    if (leaving->rc != NG_OK) {
        return 1;
    }
    bool own = str_equal(event->origin.run_id, ng_str_of(leaving->undo->run));
    if (change.to.len > 0 || change.is_source) {
        leave->seq = event->seq;
        leave->to = change.to;
        leave->across = change.across;
    } else if (own && change.across.len > 0 && leave->back == 0) {
        leave->back = event->seq;
    }
    return 0;
}

/* With the rights of the gateway: the file is followed before it is known whether the caller
 * may see its new place. */
int undo_file_leave(struct undo *undo, struct call *call, const struct ng_key *key,
                    uint64_t since, struct undo_leave *ret)
{
    struct leaving leaving = {.undo = undo};
    struct ng_trail what = {
        .size = sizeof(what), .since = since, .spaces = {&key->space, 1}, .id = key->id};
    uint64_t next = UINT64_MAX;
    struct call *own = dispatch_child(call);
    if (own == NULL) {
        return call_no_memory(call);
    }
    call_take_key(own, NULL);
    own->caller.all_spaces = true;
    own->may_block = true;
    int rc = undo_settle(own);
    while (rc == NG_OK && leaving.rc == NG_OK && next != 0) {
        what.until = next;
        rc = trail_walk(own, &what, leave_take, &leaving, &next);
    }
    if (rc != NG_OK) {
        (void)undo_fail_as(call, own, rc);
    } else if (leaving.rc != NG_OK) {
        rc = call_no_memory(call);
    }
    call_unref(own);
    *ret = leaving.leave;
    return rc;
}

/* Moves to another space are not followed. The file is back if the move was taken back. */
static void follow_across(struct undo_plan *plan, struct undo_leave *inout)
{
    bool is_back = inout->back != 0 && undo_across_has(plan->undo, inout->across);
    if (is_back) {
        inout->seq = inout->back;
    } else {
        plan->file->away = inout->across;
    }
}

/* Along the events of its moves: at a path that it has left there may be another file now. */
static int file_follow(struct undo_plan *plan)
{
    const struct undo_doc *doc = plan->doc;
    struct undo_file *file = plan->file;
    struct file_version_tail tail;
    struct ng_key key = doc->key;
    struct undo_leave leave = {.seq = doc->last_seq};
    int rc = tail_read(plan, key.space, key.id, &tail);
    bool ends = doc->count > 0 && tail.number == doc->revisions[doc->count - 1];
    for (unsigned moves = 0; rc == NG_OK && !ends; moves++) {
        rc = undo_file_leave(plan->undo, plan->call, &key, leave.seq, &leave);
        if (leave.to.len > 0) {
            key.id = leave.to;
            file->has_left = true;
        } else if (leave.seq != 0) {
            follow_across(plan, &leave);
        }
        ends = leave.seq == 0 || file->away.len > 0;
        if (!ends && moves == UNDO_MOVES_MAX) {
            undo_plan_refuse(plan, "moved_on");
            ends = true;
        }
    }
    file->path = key.id;
    return rc;
}

/* In a preview: where it would be after the moves that are taken back before. */
static void file_follow_planned(struct undo_plan *plan)
{
    struct undo_file *file = plan->file;
    const struct undo_moved *moved = plan->undo->moved;
    for (; moved != NULL; moved = moved->next) {
        bool from_away = str_equal(moved->to, file->path) && file->away.len > 0 &&
                         undo_across_has(plan->undo, file->away);
        if (from_away || str_equal(moved->from, file->path)) {
            file->planned = moved;
            file->path = moved->to;
            file->away = STR_NONE;
        }
    }
}

int undo_file_check(struct undo_plan *plan, struct ng_str path)
{
    struct call *call = plan->undo->call;
    struct file_version_tail tail;
    if (str_equal(path, plan->doc->key.id) || plan->result != NG_UNDO_DONE) {
        return NG_OK;
    }
    const struct undo_doc *oldest = undo_doc_oldest(plan->doc);
    bool old = oldest->moved_seq != 0 && str_equal(path, oldest->moved_from);
    int rc = tail_read(plan, old ? oldest->moved_space : oldest->key.space, path, &tail);
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
    if (file->away.len > 0) {
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
        file_follow_planned(plan);
        rc = undo_file_check(plan, plan->file->path);
    }
    return rc == NG_OK && plan->result == NG_UNDO_DONE ? file_read(plan) : rc;
}
