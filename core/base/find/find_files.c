/* SPDX-License-Identifier: MIT */
/* find_files.c - collects the names of a space's files, sorts them by time, and reads them one
 * by one through the file service, which checks each path. */
#include "find_files.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

struct scan_item {
    struct ng_str path;
    size_t name_len;
    int64_t modified_ms;
    bool named; /* its name is the searched text */
};

struct scan {
    struct ng_call *call;
    struct ng_find *find;
    const struct find_files_wanted *wanted;
    find_file_fn *fn;
    void *user;
    struct ng_str *roots; /* real paths of all roots of the caller */
    size_t root_count;
    struct ng_str root; /* of the present walk */
    struct arena paths;
    struct scan_item *items;
    size_t count, cap;
    struct buf text; /* of the present file */
    bool whole;      /* it was read to its end */
    int rc;
};

static int scan_no_memory(struct scan *scan)
{
    return ng_fail(scan->call, NG_EINTERNAL, "out of memory for a search of files");
}

/* Ends the scan without a failure. */
static bool scan_is_late(struct scan *scan)
{
    if (clock_monotonic_ns() < scan->find->scan_until_ns) {
        return false;
    }
    scan->find->incomplete = true;
    return true;
}

/* ---- names ---- */

static struct ng_str path_name(struct ng_str path)
{
    const char *slash = memrchr(path.data, '/', path.len);
    size_t skip = slash != NULL ? (size_t)(slash - path.data) + 1 : 0;
    return str_make(path.data + skip, path.len - skip);
}

static bool scan_is_root(const struct scan *scan, struct ng_str name)
{
    size_t len = scan->root.len > 1 ? scan->root.len : 0;
    for (size_t i = 0; i < scan->root_count; i++) {
        struct ng_str other = scan->roots[i];
        if (other.len == len + 1 + name.len && other.data[len] == '/' &&
            memcmp(other.data, scan->root.data, len) == 0 &&
            memcmp(other.data + len + 1, name.data, name.len) == 0) {
            return true;
        }
    }
    return false;
}

static int scan_add(struct scan *scan, const struct ng_file_entry *entry, struct ng_str name)
{
    if (array_reserve((void **)&scan->items, &scan->cap, scan->count + 1, sizeof(*scan->items),
                      FIND_FILES_MAX) == NG_ETOOLARGE) {
        scan->find->incomplete = true;
        return 1;
    }
    struct ng_str path =
        arena_printf(&scan->paths, "%.*s/%.*s", (int)(scan->root.len > 1 ? scan->root.len : 0),
                     scan->root.data, (int)entry->name.len, entry->name.data);
    if (path.data == NULL || scan->cap == scan->count) {
        scan->rc = scan_no_memory(scan);
        return 1;
    }
    scan->items[scan->count++] = (struct scan_item){
        .path = path,
        .name_len = name.len,
        .modified_ms = entry->modified_ms,
        .named = str_equal_fold(name, scan->find->text),
    };
    return 0;
}

static int scan_entry(void *user, const struct ng_file_entry *entry)
{
    struct scan *scan = user;
    struct ng_str name = path_name(entry->name);
    if (scan_is_late(scan)) {
        return 1;
    }
    /* A name that is not UTF-8 has no URI. */
    if (name.len == 0 || name.data[0] == '.' || entry->link || !utf8_valid(name)) {
        return 0;
    }
    if (entry->type == NG_FILE_DIRECTORY) {
        return scan_is_root(scan, entry->name) ? 0 : NG_ENTRY_INTO;
    }
    if (entry->type != NG_FILE_REGULAR ||
        str_ends(name, scan->wanted->ending) == scan->wanted->others) {
        return 0;
    }
    if (entry->bytes > FIND_FILE_BYTES_MAX) {
        scan->find->incomplete = true;
        return 0;
    }
    return scan_add(scan, entry, name);
}

static int scan_chunk(void *user, struct ng_str chunk)
{
    struct scan *scan = user;
    if (chunk.len == 0) {
        scan->whole = true;
        return 0;
    }
    if (memchr(chunk.data, '\0', chunk.len) != NULL) {
        return 1;
    }
    return buf_add_str(&scan->text, chunk) != NG_OK;
}

/* ---- roots ---- */

/* *ret_wanted: those of the space. */
static int scan_find_roots(struct scan *scan, struct ng_str space, bool **ret_wanted)
{
    struct ng_call *call = scan->call;
    const struct ng_str *paths = NULL;
    scan->root_count = call->host->file_roots(call, &paths);
    scan->roots = ng_alloc(call, (scan->root_count + 1) * sizeof(*scan->roots));
    bool *wanted = ng_alloc(call, scan->root_count + 1);
    if (scan->roots == NULL || wanted == NULL) {
        return scan_no_memory(scan);
    }
    for (size_t i = 0; i < scan->root_count; i++) {
        struct ng_file file = {.size = sizeof(file)};
        int rc = call->host->file_stat(call, paths[i], &file);
        bool exists = rc == NG_OK && file.type == NG_FILE_DIRECTORY;
        scan->roots[i] = exists ? file.real : paths[i];
        wanted[i] = exists && str_equal(file.space, space);
        for (size_t j = 0; j < i; j++) {
            wanted[i] = wanted[i] && !str_equal(scan->roots[i], scan->roots[j]);
        }
    }
    *ret_wanted = wanted;
    return NG_OK;
}

/* A failure that is not of one folder or file alone. */
static bool scan_fails(const struct scan *scan, int rc)
{
    return rc == NG_ECANCELLED || rc == NG_EINTERNAL || rc == NG_EWOULDBLOCK ||
           scan->call->host->cancelled(scan->call);
}

static int scan_walk(struct scan *scan, const bool *wanted)
{
    for (size_t i = 0; i < scan->root_count && !scan_is_late(scan); i++) {
        if (!wanted[i]) {
            continue;
        }
        scan->root = scan->roots[i];
        const struct ng_file_list list = {
            .size = sizeof(list),
            .path = scan->root,
            .depth = FIND_FILES_DEPTH,
            .content = scan_chunk,
        };
        int rc = scan->call->host->file_list(scan->call, &list, scan_entry, scan);
        if (scan->rc != NG_OK) {
            return scan->rc;
        }
        if (rc != NG_OK && scan_fails(scan, rc)) {
            return rc;
        }
        scan->find->incomplete = scan->find->incomplete || rc == NG_ETOOLARGE;
    }
    return NG_OK;
}

/* ---- files ---- */

static int scan_order(const void *left, const void *right)
{
    const struct scan_item *a = left;
    const struct scan_item *b = right;
    if (a->named != b->named) {
        return b->named - a->named;
    }
    if (a->modified_ms != b->modified_ms) {
        return (b->modified_ms > a->modified_ms) - (b->modified_ms < a->modified_ms);
    }
    return str_compare(a->path, b->path);
}

static int scan_into(void *user, const struct ng_file_entry *entry)
{
    (void)user;
    return entry->type == NG_FILE_REGULAR ? NG_ENTRY_INTO : 1;
}

static int scan_read(struct scan *scan, const struct scan_item *item)
{
    const struct ng_file_list list = {
        .size = sizeof(list), .path = item->path, .content = scan_chunk};
    buf_clear(&scan->text);
    scan->whole = false;
    int rc = scan->call->host->file_list(scan->call, &list, scan_into, scan);
    if (rc != NG_OK) {
        return scan_fails(scan, rc) ? rc : NG_OK; /* it is gone, or unreadable */
    }
    struct ng_str text = buf_str(&scan->text);
    if (scan->text.rc == NG_EINTERNAL) {
        return scan_no_memory(scan);
    }
    if (!scan->whole || scan->text.rc != NG_OK || !utf8_valid(text)) {
        return NG_OK;
    }
    const struct find_file file = {
        .path = item->path,
        .name = str_make(item->path.data + item->path.len - item->name_len, item->name_len),
        .modified_ms = item->modified_ms,
        .text = str_or(text, ng_str_of("")),
    };
    return scan->fn(scan->user, &file);
}

static int scan_files(struct scan *scan)
{
    int rc = NG_OK;
    if (scan->count > 0) {
        qsort(scan->items, scan->count, sizeof(*scan->items), scan_order);
    }
    for (size_t i = 0; i < scan->count && rc == NG_OK && !scan_is_late(scan); i++) {
        if (scan->call->host->cancelled(scan->call)) {
            return ng_fail(scan->call, NG_ECANCELLED,
                           "the call was cancelled while files were searched");
        }
        rc = scan_read(scan, &scan->items[i]);
        if (rc == FIND_FILES_END) {
            scan->find->incomplete = scan->find->incomplete || i + 1 < scan->count;
            return NG_OK;
        }
    }
    return rc;
}

int find_files(struct ng_call *call, struct ng_str space, struct ng_find *find,
               const struct find_files_wanted *wanted, find_file_fn *fn, void *user)
{
    struct scan scan = {
        .call = call,
        .find = find,
        .wanted = wanted,
        .fn = fn,
        .user = user,
    };
    bool *of_space = NULL;
    arena_init(&scan.paths, FIND_FILES_PATHS_MAX);
    buf_init(&scan.text, FIND_FILE_BYTES_MAX);
    int rc = scan_find_roots(&scan, space, &of_space);
    if (rc == NG_OK && of_space != NULL) {
        rc = scan_walk(&scan, of_space);
    }
    if (rc == NG_OK) {
        rc = scan_files(&scan);
    }
    buf_done(&scan.text);
    free(scan.items);
    arena_done(&scan.paths);
    return rc;
}
