/* SPDX-License-Identifier: MIT */
/* audit_list.c - reads entries one by one, and gives those that fit. */
#include "audit_list.h"

#include <unistd.h>

#include "core/audit/audit_disk.h"
#include "core/audit/audit_read.h"

struct list {
    int dir;
    struct audit_reader *reader;
    struct audit_values *values;
    const struct audit_filter *filter;
    audit_list_fn *fn;
    void *user;
    size_t given;
    struct buf *error;
};

static int list_open(struct list *list, const char *path)
{
    list->dir = -1;
    int rc = audit_disk_open(path, false, &list->dir, list->error);
    if (rc == NG_OK) {
        rc = audit_reader_open(path, &list->reader, list->error);
    }
    if (rc == NG_OK) {
        list->values = audit_values_open(list->dir);
        if (list->values == NULL) {
            (void)buf_add_c(list->error, "the audit log: out of memory");
            rc = NG_EINTERNAL;
        }
    }
    return rc;
}

static void list_close(struct list *list)
{
    audit_values_close(list->values);
    audit_reader_close(list->reader);
    if (list->dir >= 0) {
        (void)close(list->dir);
    }
}

static int list_look(struct list *list, uint64_t number)
{
    struct arena arena;
    struct audit_shown shown;
    struct ng_str entry;
    int rc = audit_reader_get(list->reader, number, &entry, list->error);
    if (rc != NG_OK) {
        return rc;
    }
    arena_init(&arena, AUDIT_SHOWN_MEMORY_MAX);
    rc = audit_shown_read(&arena, number, entry, list->values, &shown, list->error);
    if (rc == NG_OK && audit_filter_fits(list->filter, &shown)) {
        list->given++;
        rc = list->fn(list->user, &shown);
    }
    arena_done(&arena);
    return rc;
}

int audit_list_page(const char *path, const struct audit_filter *filter,
                    struct audit_page *page, audit_list_fn *fn, void *user, struct buf *error)
{
    struct list list = {.filter = filter, .fn = fn, .user = user, .error = error};
    int rc = list_open(&list, path);
    if (rc == NG_OK) {
        uint64_t first = audit_reader_first(list.reader);
        uint64_t at = audit_reader_size(list.reader);
        at = page->before < at ? page->before : at;
        uint64_t looks = page->looks;
        while (rc == NG_OK && at > first && list.given < page->limit && looks > 0) {
            rc = list_look(&list, --at);
            looks--;
        }
        page->before = at > first ? at : 0;
    }
    list_close(&list);
    return rc;
}

int audit_list_all(const char *path, const struct audit_filter *filter, audit_list_fn *fn,
                   void *user, struct buf *error)
{
    struct list list = {.filter = filter, .fn = fn, .user = user, .error = error};
    int rc = list_open(&list, path);
    for (uint64_t at = rc == NG_OK ? audit_reader_first(list.reader) : 0;
         rc == NG_OK && at < audit_reader_size(list.reader); at++) {
        rc = list_look(&list, at);
    }
    list_close(&list);
    return rc;
}
