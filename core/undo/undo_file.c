/* SPDX-License-Identifier: MIT */
/* undo_file.c - the files of an undo: their versions are merged as revisions of documents are,
 * with the file as it is now, and the result is saved as by a tool. A moved file is followed.
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
/* Memory of the data of one event. */
#define FILE_DATA_MAX ((size_t)16 << 20)

/* ---- the change of a file in its event ---- */

/* A text of the event in memory of the undo's call; {NULL, 0}: it has none. */
static int change_text(struct undo *undo, const struct ng_value *data, const char *name,
                       struct ng_str *ret)
{
    struct ng_str text = json_get_text(data, name);
    *ret = text.len > 0 ? arena_copy(&undo->call->arena, text) : STR_NONE;
    return text.len > 0 && ret->data == NULL ? call_no_memory(undo->call) : NG_OK;
}

static int change_read(struct undo *undo, const struct ng_value *data,
                       struct undo_file_change *ret)
{
    int64_t number = 0;
    int rc = change_text(undo, data, "to", &ret->to);
    if (rc != NG_OK || json_integer(json_get(data, "version"), &number) != NG_OK ||
        number < 1) {
        return rc;
    }
    ret->is_file = true;
    ret->version = (uint64_t)number;
    ret->key.collection = ng_str_of(NG_FILE_VERSIONS);
    ret->is_whole = json_get(data, "folder") != NULL || json_get(data, "across") != NULL;
    rc = change_text(undo, data, "from", &ret->from);
    return rc == NG_OK && json_get(data, "undo") != NULL
               ? change_text(undo, data, "path", &ret->done)
               : rc;
}

int undo_file_change(struct undo *undo, const struct ng_event *event,
                     struct undo_file_change *ret)
{
    const struct ng_value *data = NULL;
    struct arena arena;
    int rc = NG_OK;
    *ret = (struct undo_file_change){.key = event->key, .version = event->revision};
    if (!str_begins(event->key.id, "/") || event->data.len == 0) {
        return NG_OK;
    }
    arena_init(&arena, FILE_DATA_MAX);
    if (json_parse(&arena, event->data, JSON_DEPTH_DEFAULT, &data, NULL) == NG_OK) {
        rc = change_read(undo, data, ret);
    }
    arena_done(&arena);
    return rc;
}

/* ---- versions ---- */

/* The content of a version; version 0: there was none. *ret_kept: it can be read. */
static int version_content(struct undo_plan *plan, const struct ng_key *key, uint64_t version,
                           const struct ng_doc **ret_doc, struct content *ret, bool *ret_kept)
{
    struct call *call = plan->call;
    *ret = (struct content){.exists = false};
    *ret_kept = true;
    *ret_doc = NULL;
    if (version == 0) {
        return NG_OK;
    }
    int rc = store_get(call->gateway->store, call, key, version, ret_doc);
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        *ret_kept = false;
        return NG_OK;
    }
    if (rc == NG_OK && !(*ret_doc)->deleted) {
        ret->exists = (*ret_doc)->revision != 0;
        ret->text = str_or((*ret_doc)->text, ng_str_of(""));
        plan->bytes += ret->text.len;
    }
    return rc;
}

/* The content before a version. That of a file which came with a move is the one that it had at
 * its old place. */
static int version_before(struct undo_plan *plan, uint64_t version,
                          const struct ng_doc **ret_doc, struct content *ret, bool *ret_kept)
{
    const struct undo_doc *doc = plan->doc;
    struct content moved;
    if (doc->moved_at != version) {
        return version_content(plan, &doc->key, version - 1, ret_doc, ret, ret_kept);
    }
    int rc = version_content(plan, &doc->key, version, ret_doc, &moved, ret_kept);
    if (rc != NG_OK || !*ret_kept || *ret_doc == NULL) {
        return rc;
    }
    int64_t from = 0;
    bool known = false;
    (void)json_integer(json_get((*ret_doc)->body, "from_version"), &from);
    const struct ng_key key = {doc->key.collection, doc->key.space, doc->moved_from};
    rc = from > 0 ? version_content(plan, &key, (uint64_t)from, ret_doc, ret, &known) : NG_OK;
    if (rc == NG_OK && (!known || !ret->exists)) {
        *ret = moved;
    }
    return rc;
}

/* Reads the contents around each group of selected versions, the newest first. */
static int file_load(struct undo_plan *plan)
{
    const struct undo_doc *doc = plan->doc;
    const struct ng_doc *row = NULL;
    size_t end = doc->count;
    bool kept = true;
    bool fits = true;
    int rc = NG_OK;
    plan->groups = arena_alloc(&plan->call->arena, doc->count * sizeof(*plan->groups));
    if (plan->groups == NULL) {
        return call_no_memory(plan->call);
    }
    while (rc == NG_OK && end > 0 && kept && fits) {
        struct undo_group *group = &plan->groups[plan->group_count++];
        size_t begin = end - 1;
        while (begin > 0 && doc->revisions[begin - 1] + 1 == doc->revisions[begin] &&
               doc->revisions[begin] != doc->moved_at) {
            begin--;
        }
        rc = version_content(plan, &doc->key, doc->revisions[end - 1], &row, &group->base,
                             &kept);
        if (rc == NG_OK && kept) {
            rc = version_before(plan, doc->revisions[begin], &row, &group->before, &kept);
        }
        if (plan->group_count == 1 && row != NULL && group->before.exists) {
            plan->file->mode = (uint32_t)json_get_integer(row->body, "mode");
        }
        fits = plan->bytes <= UNDO_PLAN_BYTES;
        end = begin;
    }
    if (rc == NG_OK && (!kept || !fits)) {
        undo_plan_refuse(plan, kept ? "too_large" : "not_kept");
    }
    return rc;
}

/* ---- where the file is, and what is there ---- */

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
static int tail_read(struct undo_plan *plan, struct ng_str path, struct tail *ret)
{
    struct call *call = plan->call;
    struct store *store = call->gateway->store;
    const struct ng_key key = {plan->doc->key.collection, plan->doc->key.space, path};
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

static int file_follow(struct undo_plan *plan)
{
    struct undo_file *file = plan->file;
    int rc = NG_OK;
    file->path = plan->doc->key.id;
    for (unsigned moves = 0; rc == NG_OK && moves < FILE_MOVES_MAX; moves++) {
        struct tail tail;
        rc = tail_read(plan, file->path, &tail);
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
    return rc;
}

/* May the caller change what is at this path, which is not that of the selected change? */
static int file_check(struct undo_plan *plan, struct ng_str path)
{
    struct call *call = plan->undo->call;
    struct tail tail;
    if (str_equal(path, plan->doc->key.id) || plan->result != NG_UNDO_DONE) {
        return NG_OK;
    }
    int rc = tail_read(plan, path, &tail);
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

/* A move that is taken back: the file goes to its old place, if that is free. */
static int file_move_back(struct undo_plan *plan)
{
    const struct undo_doc *doc = plan->doc;
    struct undo_file *file = plan->file;
    struct call *call = plan->call;
    struct ng_file old = {.size = sizeof(old)};
    if (doc->moved_at == 0 || !file->there.exists) {
        return NG_OK;
    }
    if (!str_equal(file->path, doc->key.id)) {
        undo_plan_refuse(plan, "moved_on");
        return NG_OK;
    }
    int rc = files_stat(call->gateway->files, call, doc->moved_from, &old);
    if (rc == NG_EOUTSIDE || rc == NG_EFORBIDDEN) {
        call_reset_result(call);
        undo_plan_refuse(plan, "forbidden");
        return NG_OK;
    }
    if (rc == NG_OK && old.type != NG_FILE_NONE) {
        undo_plan_refuse(plan, "path_taken");
    } else if (rc == NG_OK) {
        file->back = doc->moved_from;
    }
    return rc == NG_OK ? file_check(plan, doc->moved_from) : rc;
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
    *moved = (struct undo_moved){.next = plan->undo->moved,
                                 .from = arena_copy(arena, file->path),
                                 .to = arena_copy(arena, file->back),
                                 .text = arena_copy(arena, plan->next.text)};
    plan->undo->moved = moved;
    bool complete = moved->from.data != NULL && moved->to.data != NULL &&
                    (moved->text.data != NULL || plan->next.text.len == 0);
    return complete ? NG_OK : call_no_memory(plan->call);
}

/* The file now: its path and its content. */
static int file_find(struct undo_plan *plan)
{
    int rc = file_follow(plan);
    if (rc == NG_OK) {
        rc = file_check(plan, plan->file->path);
    }
    return rc == NG_OK && plan->result == NG_UNDO_DONE ? file_read(plan) : rc;
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
    if (plan->doc->is_whole) {
        undo_plan_refuse(plan, "not_kept");
        return NG_OK;
    }
    int rc = file_load(plan);
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
        .path = file->path,
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
    int rc = plan->file->back.len > 0 ? file_commit_move(plan, &waited)
                                      : file_commit_edit(plan, &waited);
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
    return rc;
}
