/* SPDX-License-Identifier: MIT */
/* files_versions.c - the versions that a change of a file adds: of the op before and after its
 * intent, of the files of its group, and of its recovery. */
#include <fcntl.h>

#include "core/base/str.h"
#include "files_state.h"

/* Versions of a group in one transaction. */
#define FILES_FOUND_PART 16

/* The change, without content. */
static struct file_version_change version_change(const struct file_record *record)
{
    return (struct file_version_change){
        .op = record->op,
        .collection = record->collection,
        .space = record->space,
        .real = record->real,
        .to_space = record->to_space,
        .to = record->to,
        .copied_space = record->copied_space,
        .copied = record->copied,
        .before = record->before,
        .after = record->after,
        .fd = -1,
        .is_done = &record->completed,
    };
}

/* ---- of an op */

/* The file as it was read. */
static struct file_version_change op_change(const struct file_op *op)
{
    struct file_version_change change = version_change(&op->record);
    change.fd = op->fd;
    change.st = op->place.exists ? &op->place.st : NULL;
    return change;
}

/* The contents of a group's files, in parts. */
static int group_find(struct file_op *op)
{
    struct store *store = op->files->store;
    struct file_group *group = op->record.group;
    struct ng_change changes[FILES_FOUND_PART];
    size_t count = 0;
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < group->count; i++) {
        struct file_group_item *item = &group->items[i];
        struct file_version_change change = version_change(&item->record);
        change.content = item->before;
        change.st = &item->st;
        if (!item->saves) {
            continue;
        }
        rc = file_versions_find(store, op->call, &change, &item->record.versions);
        if (rc == NG_OK && item->record.versions.found.real.len > 0) {
            file_version_found(&item->record.versions.found, &changes[count++]);
        }
        if (rc == NG_OK && count == NG_COUNT(changes)) {
            rc = store_write_wait(store, op->call, changes, count);
            count = 0;
        }
    }
    if (rc == NG_OK && count > 0) {
        rc = store_write_wait(store, op->call, changes, count);
    }
    return rc;
}

int files_op_find_versions(struct file_op *op)
{
    struct file_record *record = &op->record;
    struct file_version_change change = op_change(op);
    int rc = NG_OK;
    memset(&record->versions, 0, sizeof(record->versions));
    change.content = op->present.data;
    if (op->copy) { /* nothing is at the new path */
        change.fd = -1;
        change.st = NULL;
        change.content = STR_NONE;
    }
    if (record->group != NULL) {
        rc = group_find(op);
    }
    if (rc == NG_OK && (!op->place.exists || op->present.type == NG_FILE_REGULAR)) {
        rc = file_versions_find(op->files->store, op->call, &change, &record->versions);
    }
    return rc;
}

int files_op_save_versions(struct file_op *op)
{
    struct file_record *record = &op->record;
    struct file_version_change change = op_change(op);
    if (record->before[0] == '\0' && record->after[0] == '\0') {
        return NG_OK; /* a folder */
    }
    change.content = op->next;
    if (record->group != NULL) {
        change.content = record->group->self.next;
    }
    return file_versions_save(op->files->store, op->call, &change, &record->versions);
}

/* ---- of a change that took place */

/* Opens the file if it has the content after the change; *ret_fd -1: it does not. */
static int open_saved(struct files *files, struct call *call, const struct file_record *record,
                      struct stat *ret_st, int *ret_fd)
{
    char hash[FILES_HASH_SIZE];
    struct file_place place;
    struct ng_str path = files_record_moves(record) ? record->to : record->real;
    *ret_fd = -1;
    int rc = files_resolve_any(files, call, path, &place);
    if (rc == NG_OK && files_place_type(&place) == NG_FILE_REGULAR) {
        *ret_fd = files_open_beneath(place.dir, place.name.data,
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        *ret_st = place.st;
    }
    files_place_done(&place);
    if (rc == NG_OK && *ret_fd >= 0) {
        rc = files_hash_fd(call, path, *ret_fd, hash);
        if (rc != NG_OK || strcmp(hash, record->after) != 0) {
            files_close_fd(ret_fd);
        }
    }
    return rc;
}

int files_recover_versions(struct files *files, struct call *call, struct file_record *record)
{
    struct file_version_change change = version_change(record);
    struct stat st;
    bool reads = record->after[0] != '\0';
    int rc = NG_OK;
    memset(&record->versions, 0, sizeof(record->versions));
    if (!reads && record->before[0] == '\0') {
        return NG_OK; /* a folder */
    }
    if (record->happened) { /* another gateway has built on it, and found the content */
        size_t none = 0;
        return record->to.len > 0
                   ? file_versions_carry(files->store, call, &change, &none, &record->versions)
                   : NG_OK;
    }
    if (reads) {
        rc = open_saved(files, call, record, &st, &change.fd);
        change.st = change.fd >= 0 ? &st : NULL;
    }
    if (rc == NG_OK) {
        rc = file_versions_save(files->store, call, &change, &record->versions);
    }
    files_close_fd(&change.fd);
    return rc;
}

int files_group_save_versions(struct files *files, struct call *call,
                              struct file_group_item *item, size_t *inout_room)
{
    struct file_record *record = &item->record;
    struct file_version_change change = version_change(record);
    if (!item->saves) {
        return file_versions_carry(files->store, call, &change, inout_room, &record->versions);
    }
    if (item->next.data == NULL) {
        return files_recover_versions(files, call, record);
    }
    change.content = item->next;
    change.st = &item->st;
    return file_versions_save(files->store, call, &change, &record->versions);
}
