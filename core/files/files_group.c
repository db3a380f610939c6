/* SPDX-License-Identifier: MIT */
/* files_group.c - the group of a move: files inside a moved folder, and files whose content
 * refers to the moved one. Their locks, their contents, and their part of the intent. */
#include <stdlib.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/fault/module_run.h"
#include "files_state.h"

/* Levels of a moved folder. */
#define GROUP_DEPTH_MAX 64

int files_grouping_new(struct call *call, size_t count, struct file_grouping **ret)
{
    struct file_grouping *grouping = arena_zalloc(&call->arena, sizeof(*grouping));
    if (grouping != NULL) {
        grouping->paths = arena_alloc(&call->arena, count * sizeof(*grouping->paths));
        grouping->path_count = count;
    }
    *ret = grouping;
    return grouping != NULL && grouping->paths != NULL ? NG_OK : call_no_memory(call);
}

/* ---- names of the locks */

struct names {
    struct call *call;
    struct ng_str folder; /* real path of the moved folder */
    struct ng_str *items;
    size_t count, room;
    int rc;
};

static int names_init(struct names *names, struct call *call, size_t room)
{
    *names = (struct names){.call = call, .room = room};
    names->items = arena_alloc(&call->arena, room * sizeof(*names->items));
    return names->items != NULL ? NG_OK : call_no_memory(call);
}

static int fail_many(struct call *call, struct ng_str path)
{
    return call_fail(call, NG_ETOOLARGE,
                     "More than %d files change with the move of %.*s. Move its folders one by "
                     "one.",
                     NG_FILE_GROUP_MAX, (int)path.len, path.data);
}

static int names_add_entry(void *user, const struct ng_file_entry *entry)
{
    struct names *names = user;
    if (entry->type != NG_FILE_REGULAR || entry->link) {
        return 0; /* moves along, without history */
    }
    struct ng_str name =
        arena_printf(&names->call->arena, "%.*s/%.*s", (int)names->folder.len,
                     names->folder.data, (int)entry->name.len, entry->name.data);
    if (name.data == NULL) {
        names->rc = call_no_memory(names->call);
        return 1;
    }
    if (names->count == names->room) {
        names->rc = fail_many(names->call, names->folder);
        return 1;
    }
    names->items[names->count++] = name;
    return 0;
}

/* A root inside may belong to another space, and would lead nowhere after the move. */
static int check_roots(struct call *call, const struct file_place *from)
{
    if (from->root == NULL || str_is(from->name, ".")) {
        return call_fail(call, NG_EINVAL,
                         "%.*s is a root of the gateway and cannot be moved. Move what is in "
                         "it.",
                         (int)from->path.len, from->path.data);
    }
    for (size_t i = 0; i < from->roots->count; i++) {
        struct ng_str root = ng_str_of(from->roots->items[i].real);
        if (files_is_below(root, from->real)) {
            return call_fail(call, NG_EINVAL,
                             "%.*s cannot be moved: a root of the gateway lies in it.",
                             (int)from->path.len, from->path.data);
        }
    }
    return NG_OK;
}

bool files_is_below(struct ng_str path, struct ng_str folder)
{
    return path.len > folder.len + 1 && memcmp(path.data, folder.data, folder.len) == 0 &&
           path.data[folder.len] == '/';
}

static int add_folder(struct file_op *op, const struct file_place *from,
                      const struct file_place *to, struct names *names)
{
    struct call *call = op->call;
    const struct ng_file_list list = {
        .size = sizeof(list),
        .path = from->path,
        .depth = GROUP_DEPTH_MAX,
        .hidden = true,
        .max_entries = NG_FILE_ENTRIES_MAX,
    };
    names->folder = from->real;
    int rc = check_roots(call, from);
    if (rc == NG_OK && files_is_below(to->real, from->real)) {
        rc = call_fail(call, NG_EINVAL, "%.*s cannot be moved into itself.",
                       (int)from->path.len, from->path.data);
    }
    if (rc == NG_OK) {
        rc = files_list(op->files, call, &list, names_add_entry, names);
    }
    return rc != NG_OK ? rc : names->rc;
}

/* The files whose content changes, as far as they exist. */
static int add_paths(struct file_op *op, struct names *names)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < op->grouping->path_count; i++) {
        struct file_place place;
        rc = files_resolve(op->files, op->call, op->grouping->paths[i], &place);
        if (rc != NG_OK) {
            return op->undo.path.len > 0 ? files_undo_hide(op, rc) : rc;
        }
        if (place.exists && names->count < names->room) {
            names->items[names->count++] = place.real;
        } else if (place.exists) {
            rc = fail_many(op->call, op->transfer.from);
        }
        files_place_done(&place);
    }
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    const struct ng_str *left = a;
    const struct ng_str *right = b;
    return str_compare(*left, *right);
}

static int collect_names(struct file_op *op, const struct file_place *from,
                         const struct file_place *to, struct names *names)
{
    int rc = names_init(names, op->call, NG_FILE_GROUP_MAX + 2);
    if (rc != NG_OK) {
        return rc;
    }
    names->items[names->count++] = from->real;
    names->items[names->count++] = to->real;
    if (files_place_type(from) == NG_FILE_DIRECTORY) {
        rc = add_folder(op, from, to, names);
    }
    if (rc == NG_OK) {
        rc = add_paths(op, names);
    }
    if (rc != NG_OK) {
        return rc;
    }
    qsort(names->items, names->count, sizeof(*names->items), compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (kept == 0 || !str_equal(names->items[kept - 1], names->items[i])) {
            names->items[kept++] = names->items[i];
        }
    }
    names->count = kept;
    return NG_OK;
}

int files_group_locks(struct file_op *op, const struct file_place *from,
                      const struct file_place *to)
{
    struct names names;
    int rc = collect_names(op, from, to, &names);
    op->lock_pair[0] = from->real;
    op->lock_pair[1] = to->real;
    op->lock_names = names.items;
    op->lock_count = rc == NG_OK ? names.count : 0;
    return rc;
}

int files_group_is_locked(struct file_op *op, bool *ret_same)
{
    struct names names;
    int rc = collect_names(op, &op->place, &op->target, &names);
    *ret_same = rc == NG_OK && names.count == op->lock_count;
    for (size_t i = 0; *ret_same && i < names.count; i++) {
        *ret_same = str_equal(names.items[i], op->lock_names[i]);
    }
    return rc;
}

/* ---- the group */

int files_group_start(struct file_op *op, enum file_change inside)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    struct file_group *group = arena_zalloc(&call->arena, sizeof(*group));
    if (group != NULL) {
        group->items = arena_zalloc(&call->arena, op->lock_count * sizeof(*group->items));
    }
    if (group == NULL || group->items == NULL) {
        return call_no_memory(call);
    }
    record->group = group;
    bool folder = files_place_type(&op->place) == NG_FILE_DIRECTORY;
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && folder && i < op->lock_count; i++) {
        if (files_is_below(op->lock_names[i], record->real)) {
            struct file_group_item *item = NULL;
            rc = files_group_add(op, op->lock_names[i], inside, &item);
        }
    }
    return rc;
}

int files_group_add(struct file_op *op, struct ng_str real, enum file_change kind,
                    struct file_group_item **ret)
{
    struct arena *arena = &op->call->arena;
    const struct file_record *record = &op->record;
    struct file_group *group = record->group;
    if (group->count == op->lock_count) {
        return call_fail(op->call, NG_EBUSY,
                         "%.*s came into being during the move. Try again in a moment.",
                         (int)real.len, real.data);
    }
    struct file_group_item *item = &group->items[group->count];
    struct file_record *its = &item->record;
    its->op =
        arena_printf(arena, "%.*s-%zu", (int)record->op.len, record->op.data, group->count);
    its->intents = record->intents;
    its->kind = kind;
    its->real = real;
    its->space = record->space;
    its->undo.kind = NG_UNDO_EDIT;
    its->undo.inserted = ng_str_of("");
    its->undoable = true;
    its->move = record;
    if (files_record_moves(its)) {
        its->to =
            arena_printf(arena, "%.*s%.*s", (int)record->to.len, record->to.data,
                         (int)(real.len - record->real.len), real.data + record->real.len);
        its->to_space = record->to_space;
    }
    if (its->op.data == NULL || (files_record_moves(its) && its->to.data == NULL)) {
        return call_no_memory(op->call);
    }
    group->count++;
    *ret = item;
    return NG_OK;
}

void files_group_self(struct file_group *group, const struct file_record *record)
{
    struct file_group_item *self = &group->self;
    self->is_self = true;
    self->saves = strcmp(record->before, record->after) != 0;
    self->record = *record;
    self->record.kind = FILE_CHANGE_EDIT;
    self->record.to = str_make(NULL, 0);
    self->record.group = NULL;
    self->record.move = record;
}

struct file_group_item *files_group_find(struct file_group *group, struct ng_str real)
{
    for (size_t i = 0; i < group->count; i++) {
        if (str_equal(group->items[i].record.real, real)) {
            return &group->items[i];
        }
    }
    return NULL;
}

int files_group_read(struct file_op *op, struct ng_str real, uint64_t max_bytes,
                     struct file_place *ret_place, struct ng_file *ret_file,
                     char ret_hash[FILES_HASH_SIZE])
{
    struct call *call = op->call;
    int fd = -1;
    int rc = files_resolve(op->files, call, real, ret_place);
    if (rc != NG_OK) {
        return rc;
    }
    rc = files_open_regular(call, ret_place, true, &fd);
    if (rc == NG_OK && max_bytes > 0 && (uint64_t)ret_place->st.st_size > max_bytes) {
        rc = files_fail_size(call, (uint64_t)ret_place->st.st_size, max_bytes);
    }
    files_describe(ret_place, ret_file);
    ret_file->space = arena_copy(&call->arena, ret_file->space); /* of the roots' table */
    if (rc == NG_OK) {
        const struct files_load loading = {ret_place->path, fd, max_bytes, NULL};
        rc = files_load_hashed(op->files, call, &loading, &ret_file->data, ret_hash);
    }
    files_close_fd(&fd);
    files_place_done(ret_place);
    if (rc != NG_OK) {
        return rc;
    }
    ret_file->bytes = ret_file->data.len;
    ret_file->revision = arena_copy(&call->arena, ng_str_of(ret_hash));
    bool complete = ret_file->revision.data != NULL && ret_file->space.data != NULL;
    return complete ? NG_OK : call_no_memory(call);
}

/* ---- edits with a move */

/* Runs the function of the edit. *ret_next: absent if it changes nothing. */
static int edit_run(struct file_op *op, const struct ng_file_edit *edit,
                    const struct ng_file *present, struct ng_str *ret_next)
{
    struct call *call = op->call;
    struct draft_view view = {0};
    struct module_run run;
    struct ng_draft *draft =
        store_draft_new(call, ng_str_of("{}"), files_or_empty(present->data));
    if (draft == NULL) {
        return call_no_memory(call);
    }
    call_enter_module(call, &run);
    int rc = edit->fn(&call->pub, present, draft, edit->user);
    module_run_end(&run);
    if (rc != NG_OK) {
        return rc;
    }
    store_draft_view(draft, &view);
    if (view.touched && !view.deleted && !str_equal(view.text, present->data)) {
        *ret_next = view.text;
        return call_count_bytes(call, view.text.len);
    }
    return NG_OK;
}

/* The splice back to `before`, and the hash of `next`. */
static int edit_record(struct file_op *op, struct ng_str before, struct ng_str next,
                       struct file_record *record)
{
    int rc = files_undo_make(op->call, before, next, &record->undo);
    if (rc != NG_OK) {
        return rc;
    }
    files_hash(next, record->after);
    return record->after[0] != '\0' ? NG_OK : call_no_memory(op->call);
}

/* *ret_again: another program has saved the moved file since it was read. */
static int plan_edit(struct file_op *op, const struct ng_file_edit *edit, bool *ret_again)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    struct file_place place;
    struct ng_file present;
    struct ng_str next = {NULL, 0};
    char before[FILES_HASH_SIZE];
    int rc = files_resolve(op->files, call, edit->path, &place);
    bool exists = rc == NG_OK && place.exists;
    struct ng_str real = rc == NG_OK ? place.real : str_make(NULL, 0);
    files_place_done(&place);
    if (rc != NG_OK || !exists) {
        return rc;
    }
    rc = files_group_read(op, real, edit->max_bytes, &place, &present, before);
    if (rc == NG_OK) {
        rc = edit_run(op, edit, &present, &next);
    }
    if (rc != NG_OK || next.data == NULL) {
        return rc;
    }
    struct file_group_item *item = &record->group->self;
    struct file_record *its = record;
    if (!str_equal(real, record->real)) {
        item = files_group_find(record->group, real);
        rc = item == NULL ? files_group_add(op, real, FILE_CHANGE_EDIT, &item) : NG_OK;
        its = rc == NG_OK ? &item->record : NULL;
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (item->saves) {
        return call_fail(call, NG_EINVAL, "%.*s is edited twice in one move.",
                         (int)edit->path.len, edit->path.data);
    }
    if (its == record && strcmp(before, record->before) != 0) {
        *ret_again = true;
        return NG_OK;
    }
    item->saves = true;
    item->before = present.data;
    item->next = next;
    item->st = place.st;
    memcpy(its->before, before, sizeof(before));
    if (its != record) {
        if (place.st.st_nlink > 1) {
            files_inode(&place.st, its->inode);
        }
        its->collection = ng_str_of(edit->collection);
        its->undo.group = record->to;
        if (!files_record_moves(its)) {
            its->space = present.space;
        }
    }
    return edit_record(op, present.data, next, its);
}

int files_group_end(struct file_op *op)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    struct file_group *group = record->group;
    struct file_group_item self = group->self;
    size_t bytes = record->undo.inserted.len;
    uint64_t again = record->undo.removed; /* bytes of an undo's splices */
    struct ng_str *listed = arena_alloc(&call->arena, (group->count + 1) * sizeof(*listed));
    size_t count = 0;
    if (listed == NULL) {
        return call_no_memory(call);
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct file_group_item *item = &group->items[i];
        const struct file_record *its = &item->record;
        bytes += its->undo.inserted.len;
        again += its->undo.removed;
        if (item->saves) {
            listed[count++] = files_record_moves(its) ? its->to : its->real;
        }
    }
    if (bytes > FILES_GROUP_BYTES_MAX || again > FILES_GROUP_BYTES_MAX) {
        return call_fail(call, NG_ETOOLARGE,
                         "Moving %.*s changes %zu bytes of other files, more than %zu. Move "
                         "its parts one by one.",
                         (int)op->transfer.from.len, op->transfer.from.data,
                         size_max(bytes, (size_t)again), FILES_GROUP_BYTES_MAX);
    }
    record->undo.listed = listed;
    record->undo.listed_count = count;
    files_group_self(group, record);
    group->self.before = self.before;
    group->self.next = self.next;
    return NG_OK;
}

int files_group_plan(struct file_op *op, bool *ret_again)
{
    struct call *call = op->call;
    struct file_record *record = &op->record;
    int rc = files_group_start(op, FILE_CHANGE_MOVE);
    for (size_t i = 0; rc == NG_OK && !*ret_again && i < op->transfer.edit_count; i++) {
        rc = files_check_cancelled(call);
        if (rc == NG_OK) {
            rc = plan_edit(op, &op->transfer.edits[i], ret_again);
        }
    }
    if (rc != NG_OK || *ret_again) {
        return rc;
    }
    for (size_t i = 0; i < record->group->count; i++) {
        struct file_group_item *item = &record->group->items[i];
        if (item->saves) {
            files_undo_sign(call, &item->record, &item->record.undo);
        }
    }
    files_undo_sign(call, record, &record->undo);
    return files_group_end(op);
}
