/* SPDX-License-Identifier: MIT */
/* archive_tally.c - counts the documents and files of an archive while it is read. */
#include "archive_tally.h"

#include "core/base/str.h"
#include "files_pack.h"

void archive_tally_init(struct archive_tally *tally)
{
    *tally = (struct archive_tally){.deleted = 0};
    arena_init(&tally->arena, 0);
}

void archive_tally_done(struct archive_tally *tally)
{
    arena_done(&tally->arena);
}

/* Adds an item at the end of the list. */
static struct tally_item *tally_add(struct archive_tally *tally, struct tally_item **list,
                                    struct ng_str name, struct buf *error)
{
    struct tally_item *item = arena_zalloc(&tally->arena, sizeof(*item));
    if (item != NULL) {
        item->name = arena_copy(&tally->arena, name);
    }
    if (item == NULL || item->name.data == NULL) {
        buf_add_c(error, "out of memory");
        return NULL;
    }
    while (*list != NULL) {
        list = &(*list)->next;
    }
    *list = item;
    return item;
}

static int tally_record(void *user, const struct ng_record *record, struct buf *error)
{
    struct archive_tally *tally = user;
    if (record->kind != NG_RECORD_REVISION || !record->newest) {
        return NG_OK;
    }
    if (record->doc->deleted) {
        tally->deleted++;
        return NG_OK;
    }
    struct ng_str name = record->doc->key.collection;
    struct tally_item *item = tally->collections;
    while (item != NULL && !str_equal(item->name, name)) {
        item = item->next;
    }
    if (item == NULL) {
        item = tally_add(tally, &tally->collections, name, error);
    }
    if (item == NULL) {
        return NG_EINTERNAL;
    }
    item->count++;
    return NG_OK;
}

static int tally_file(void *user, const struct packed_file *file, struct buf *error)
{
    struct archive_tally *tally = user;
    if (file->kind == PACKED_ROOT || file->kind == PACKED_ROOT_LEFT_OUT) {
        struct tally_item **list = file->kind == PACKED_ROOT ? &tally->roots : &tally->left_out;
        struct tally_item *root = tally_add(tally, list, file->path, error);
        if (root == NULL) {
            return NG_EINTERNAL;
        }
        root->space = arena_copy(&tally->arena, file->space);
        root->plugin = arena_copy(&tally->arena, file->plugin);
    }
    if (file->kind == PACKED_FILE) {
        struct tally_item *root = tally->roots;
        for (uint64_t i = 0; i < file->root; i++) {
            root = root->next;
        }
        root->count++;
    }
    return NG_OK;
}

struct archive_sink archive_tally_sink(struct archive_tally *tally)
{
    return (struct archive_sink){NULL, tally_record, tally, tally_file};
}
