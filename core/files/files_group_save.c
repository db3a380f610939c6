/* SPDX-License-Identifier: MIT */
/* files_group_save.c - saves the contents of a group, then renames. The rename decides: without
 * it all contents are put back, by the call itself or by recovery. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/str.h"
#include "files_state.h"

/* A content of one file that replaces another one. */
struct swap {
    struct files *files;
    struct call *call;
    struct file_op *op; /* one for all files, to save with */
    const struct file_record *record;
    struct ng_str from, to;
    const char *from_hash, *to_hash;
    bool is_self; /* the moved file: the caller has its flock() */
};

static int swap_once(struct swap *swap, enum file_put put, enum file_saved *ret)
{
    struct file_op *op = swap->op;
    memset(op, 0, sizeof(*op));
    op->files = swap->files;
    op->call = swap->call;
    op->fd = -1;
    op->temp = -1;
    op->target.dir = -1;
    op->stage = FILE_OP_INTENDED;
    op->put = put;
    op->keep_mode = true;
    op->keep_owner = true;
    op->record.op = swap->record->op;
    memcpy(op->record.before, swap->from_hash, FILES_HASH_SIZE);
    memcpy(op->record.after, swap->to_hash, FILES_HASH_SIZE);
    op->present.data = swap->from;
    op->next = swap->to;
    *ret = FILE_AGAIN;
    int rc = files_resolve_any(swap->files, swap->call, swap->record->real, &op->place);
    if (rc == NG_OK && files_place_type(&op->place) == NG_FILE_REGULAR) {
        rc = files_open_regular(swap->call, &op->place, true, &op->fd);
        if (rc == NG_OK && !swap->is_self) {
            rc = files_flock(swap->call, op->place.path, op->fd);
        }
        if (rc == NG_OK) {
            rc = files_save(op, &op->place, ret);
        }
    }
    files_close_fd(&op->fd);
    files_close_fd(&op->temp);
    files_place_done(&op->place);
    return rc;
}

/* FILE_AGAIN: the file is not as `from`. */
static int swap_content(struct swap *swap, enum file_saved *ret)
{
    int rc = swap_once(swap, FILE_PUT_RENAME, ret);
    if (rc == NG_OK && *ret == FILE_AGAIN && swap->op->put == FILE_PUT_MOUNT) {
        rc = swap_once(swap, FILE_PUT_MOUNT, ret);
    }
    return rc;
}

/* The item with this number; the last one is the moved file itself. */
static struct file_group_item *item_at(struct file_group *group, size_t i)
{
    return i < group->count ? &group->items[i] : &group->self;
}

static void swap_set(struct swap *swap, const struct file_group_item *item)
{
    swap->record = &item->record;
    swap->is_self = item->is_self;
}

static int swap_forward(struct swap *swap, const struct file_group_item *item,
                        enum file_saved *ret)
{
    swap_set(swap, item);
    swap->from = item->before;
    swap->to = item->next;
    swap->from_hash = item->record.before;
    swap->to_hash = item->record.after;
    return swap_content(swap, ret);
}

static int swap_back(struct swap *swap, const struct file_group_item *item)
{
    enum file_saved saved = FILE_SAVED;
    swap_set(swap, item);
    swap->from = item->next;
    swap->to = item->before;
    swap->from_hash = item->record.after;
    swap->to_hash = item->record.before;
    int rc = swap_content(swap, &saved);
    if (rc == NG_OK && saved == FILE_AGAIN) {
        log_write(NG_LOG_WARNING, "files",
                  "another program saved %.*s during a move that did not take place: links in "
                  "it may lead to the new place",
                  (int)item->record.real.len, item->record.real.data);
    }
    return rc;
}

/* Puts back the contents before item `end`. After a failure recovery does. */
static int put_back(struct swap *swap, struct file_group *group, size_t end)
{
    int rc = NG_OK;
    for (size_t i = 0; i < end && rc == NG_OK; i++) {
        if (item_at(group, i)->saves) {
            rc = swap_back(swap, item_at(group, i));
        }
    }
    return rc;
}

/* ---- the rename */

static bool same_inode(const char *mark, const char *other)
{
    size_t len = strcspn(mark, ".");
    return len > 0 && len == strcspn(other, ".") && memcmp(mark, other, len) == 0;
}

/* Is the moved file or folder at this place? */
static int is_moved(struct call *call, const struct file_record *record,
                    const struct file_place *place, const char *name, bool *ret)
{
    struct stat st;
    char now[FILES_HASH_SIZE];
    *ret = false;
    if (place->dir < 0 || fstatat(place->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return NG_OK;
    }
    if (S_ISDIR(st.st_mode)) {
        char mark[FILES_MARK_SIZE];
        files_mark(&st, mark);
        *ret = record->after[0] == '\0' && same_inode(record->mark, mark);
        return NG_OK;
    }
    if (!S_ISREG(st.st_mode) || record->after[0] == '\0') {
        return NG_OK;
    }
    int rc = files_hash_at(call, place->dir, name, now);
    *ret = rc == NG_OK && strcmp(now, record->after) == 0;
    return rc;
}

static int fail_rename(struct file_op *op, int error)
{
    if (error == EXDEV) {
        return call_fail(op->call, NG_EFAILED,
                         "%.*s and %.*s are on different file systems: what changes other "
                         "files with its move cannot go there.",
                         (int)op->place.path.len, op->place.path.data, (int)op->target.path.len,
                         op->target.path.data);
    }
    bool from = error == EBUSY || faccessat(op->place.dir, ".", W_OK, AT_EACCESS) != 0;
    return files_fail_name(op->call, error, "move", from ? &op->place : &op->target, "");
}

/* *ret_unsure: it may have taken place. */
static int rename_last(struct file_op *op, enum file_saved *ret, bool *ret_unsure)
{
    struct file_place *from = &op->place;
    struct file_place *to = &op->target;
    bool moved = false;
    int rc = files_make_parents(op->call, to);
    if (rc != NG_OK) {
        return rc;
    }
    if (files_rename_new(from->dir, from->name.data, to->dir, to->name.data) != 0) {
        if (errno == EEXIST || errno == ENOENT) {
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        int error = errno;
        *ret_unsure = !files_is_refusal(error);
        return fail_rename(op, error);
    }
    rc = is_moved(op->call, &op->record, to, to->name.data, &moved);
    if (rc == NG_OK && moved) {
        if (files_sync_folder(to->dir, -1) == 0 && files_sync_folder(from->dir, -1) == 0) {
            return NG_OK;
        }
        rc = files_fail_os(op->call, errno, "move", from->path);
    }
    *ret = FILE_AGAIN; /* another program saved meanwhile: moved back, then made again */
    if (files_rename_new(to->dir, to->name.data, from->dir, from->name.data) != 0) {
        *ret_unsure = true;
        return files_fail_os(op->call, errno, "move back", from->path);
    }
    return rc;
}

static int save_all(struct swap *swap, struct file_group *group, size_t *ret_end,
                    enum file_saved *ret)
{
    int rc = NG_OK;
    for (size_t i = 0; i <= group->count && rc == NG_OK && *ret == FILE_SAVED; i++) {
        const struct file_group_item *item = item_at(group, i);
        if (!item->saves) {
            continue;
        }
        swap->op->stage = FILE_OP_INTENDED; /* those before are whole */
        rc = files_check_cancelled(swap->call);
        if (rc == NG_OK) {
            rc = swap_forward(swap, item, ret);
            *ret_end = rc == NG_OK && *ret == FILE_SAVED ? i + 1 : i;
        }
    }
    return rc;
}

int files_group_save(struct file_op *op, enum file_saved *ret)
{
    struct file_group *group = op->record.group;
    struct swap swap = {.files = op->files, .call = op->call};
    size_t end = 0; /* contents before this item are saved */
    *ret = FILE_SAVED;
    swap.op = arena_zalloc(&op->call->arena, sizeof(*swap.op));
    if (swap.op == NULL) {
        return call_no_memory(op->call);
    }
    files_op_enter(op, FILE_OP_SAVED);
    int rc = save_all(&swap, group, &end, ret);
    bool unsure = rc != NG_OK && swap.op->stage == FILE_OP_SAVED; /* recovery looks at it */
    if (rc == NG_OK && *ret == FILE_SAVED) {
        rc = rename_last(op, ret, &unsure);
        if (rc == NG_OK && *ret == FILE_SAVED) {
            return NG_OK;
        }
    }
    if (unsure) {
        return rc;
    }
    struct result kept = op->call->staged;
    int back_rc = put_back(&swap, group, end);
    if (back_rc == NG_OK) {
        files_op_enter(op, FILE_OP_INTENDED);
    }
    if (back_rc != NG_OK && rc == NG_OK) {
        return back_rc; /* not tried again: the intent has the only record of the contents */
    }
    op->call->staged = kept;
    return rc;
}

/* ---- completion and recovery */

int files_group_complete(struct files *files, struct call *call, struct file_record *record,
                         struct ng_change **ret_changes, size_t *ret_count)
{
    struct file_group *group = record->group;
    struct ng_change *changes = arena_alloc(&call->arena, NG_CHANGES_MAX * sizeof(*changes));
    size_t count = 0;
    size_t room = FILES_GROUP_CARRY_MAX;
    int rc = changes != NULL ? NG_OK : call_no_memory(call);
    for (size_t i = 0; rc == NG_OK && i < group->count; i++) {
        if (count + FILES_GROUP_DOCUMENTS > NG_CHANGES_MAX - FILES_CHANGES_MAX) {
            rc = store_write_wait(files->store, call, changes, count);
            count = 0;
        }
        if (rc == NG_OK) {
            rc = files_group_save_versions(files, call, &group->items[i], &room);
        }
        if (rc == NG_OK) {
            count += files_effect_changes(&group->items[i].record, changes + count);
        }
    }
    *ret_changes = changes;
    *ret_count = count;
    return rc;
}

static int took_place(struct files *files, struct call *call, struct file_record *record,
                      bool *ret)
{
    struct file_place from = {.dir = -1};
    struct file_place to = {.dir = -1};
    int rc = files_resolve_any(files, call, record->real, &from);
    if (rc == NG_OK) {
        rc = files_resolve_any(files, call, record->to, &to);
    }
    /* With nothing at the source, the destination has it, whatever was saved there since. */
    *ret = record->happened || (rc == NG_OK && !from.exists && to.exists);
    if (rc == NG_OK && !*ret && to.exists) {
        rc = is_moved(call, record, &to, to.name.data, ret);
    }
    record->replaced = rc == NG_OK && *ret && from.exists;
    files_place_done(&from);
    files_place_done(&to);
    return rc;
}

/* The file has the content after the change: gives it the one before. */
static int recover_content(struct files *files, struct call *call, struct file_op *op,
                           const struct file_group_item *item)
{
    struct swap swap = {.files = files, .call = call, .op = op};
    struct file_place place;
    struct file_group_item known = *item;
    int fd = -1;
    char hash[FILES_HASH_SIZE];
    int rc = files_resolve_any(files, call, item->record.real, &place);
    if (rc == NG_OK) {
        rc = files_open_regular(call, &place, true, &fd);
    }
    if (rc == NG_OK) {
        rc = files_load(call, place.path, fd, 0, &known.next);
    }
    files_close_fd(&fd);
    files_place_done(&place);
    if (rc == NG_OK) {
        rc = files_undo_apply(call, &item->record.undo, known.next, &known.before);
    }
    if (rc != NG_OK) {
        return rc;
    }
    files_hash(known.before, hash);
    if (strcmp(hash, item->record.before) != 0) {
        return call_fail(call, NG_EINTERNAL,
                         "The record of an unfinished move of %.*s is damaged.",
                         (int)item->record.real.len, item->record.real.data);
    }
    return swap_back(&swap, &known);
}

int files_group_recover(struct files *files, struct call *call, struct file_record *record,
                        bool *ret_done)
{
    struct file_group *group = record->group;
    int rc = took_place(files, call, record, ret_done);
    if (rc != NG_OK || *ret_done) {
        return rc;
    }
    struct file_op *op = arena_alloc(&call->arena, sizeof(*op));
    if (op == NULL) {
        return call_no_memory(call);
    }
    for (size_t i = 0; rc == NG_OK && i <= group->count; i++) {
        const struct file_group_item *item = item_at(group, i);
        bool saved = false;
        if (item->saves) {
            rc = files_recover_place(files, call, &item->record, &saved);
        }
        if (rc == NG_OK && saved) {
            rc = recover_content(files, call, op, item);
        }
    }
    return rc;
}
