/* SPDX-License-Identifier: MIT */
/* undo_file_find.c - finds the file of a change, and reads what is there. Moves are followed.
 */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "undo.h"

/* Moves that are followed. */
#define FILE_MOVES_MAX 16

/* The newest version of a path. */
struct tail {
    struct call *call;
    bool exists;
    struct ng_str to;          /* it was moved away, to there */
    struct ng_str collections; /* of the changes so far, as words */
};

static int tail_take(void *user, const struct ng_doc *row)
{
    struct tail *tail = user;
    struct arena *arena = &tail->call->arena;
    struct ng_str data = arena_copy(arena, row->event_data);
    const struct ng_value *body = NULL;
    if (data.data != NULL &&
        json_parse(arena, data, JSON_DEPTH_DEFAULT, &body, NULL) == NG_OK) {
        tail->to = json_get_text(body, "to");
        tail->collections = json_get_text(body, "collections");
    }
    return 1;
}

/* Of a removal it is in the data of the event. */
static int tail_read(struct undo_plan *plan, struct ng_str space, struct ng_str path,
                     struct tail *ret)
{
    struct call *call = plan->call;
    struct store *store = call->gateway->store;
    const struct ng_key key = {plan->doc->key.collection, space, path};
    const struct ng_range range = {.size = sizeof(range), .limit = 1};
    const struct ng_doc *newest = NULL;
    *ret = (struct tail){.call = call};
    int rc = store_get(store, call, &key, 0, &newest);
    if (rc != NG_OK || newest->revision == 0) {
        return rc;
    }
    ret->exists = true;
    ret->collections = json_get_text(newest->body, "collections");
    return newest->deleted ? store_history(store, call, &key, &range, tail_take, ret) : NG_OK;
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
        struct tail tail;
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
    struct tail tail;
    if (str_equal(path, plan->doc->key.id) || plan->result != NG_UNDO_DONE) {
        return NG_OK;
    }
    bool old = plan->doc->moved_seq != 0 && str_equal(path, plan->doc->moved_from);
    int rc = tail_read(plan, old ? plan->doc->moved_space : plan->doc->key.space, path, &tail);
    if (rc != NG_OK) {
        return rc;
    }
    const char *blank = tail.collections.len > 0
                            ? memchr(tail.collections.data, ' ', tail.collections.len)
                            : NULL;
    struct ng_str newest = tail.collections;
    newest.len = blank != NULL ? (size_t)(blank - newest.data) : newest.len;
    bool may = !tail.exists ||
               (dispatch_sees_collection(call, newest) && dispatch_may_change(call, newest));
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
