/* SPDX-License-Identifier: MIT */
/* files_list.c - lists a folder level by level, or walks it in the order of paths and reads its
 * files, with two descriptors at a time. Links are listed but never followed into. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "files_state.h"

/* A folder that waits to be read. */
struct folder {
    struct ng_str name; /* below the listed folder; "" = itself */
    uint32_t depth;     /* remaining levels, including its own entries */
    struct folder *next;
};

struct listing {
    struct files *files;
    struct call *call;
    const struct ng_file_list *list;
    const struct file_place *place;
    ng_entry_fn *entry;
    void *user;
    struct folder *first, **last;
    uint32_t count, max;
    bool sorted, stopped;
    struct buf path; /* of a walk: the present entry, below the listed folder */
    char *block;     /* FILES_BLOCK bytes of the present file */
};

/* The entries of one folder of a walk. */
struct walk_folder {
    struct ng_file_entry *items;
    size_t count, cap;
    struct arena names;
};

/* The first `max` names of a folder: a heap with the last of them on top. A page of a large
 * folder needs memory for its own names only. */
struct names {
    char (*items)[NAME_MAX + 1];
    size_t count, max;
    bool more;
};

static bool is_temp(struct ng_str name)
{
    size_t prefix = strlen(FILES_TEMP_PREFIX);
    size_t ending = strlen(FILES_TEMP_WRITING);
    return name.len > prefix + ending && memcmp(name.data, FILES_TEMP_PREFIX, prefix) == 0 &&
           (memcmp(name.data + name.len - ending, FILES_TEMP_WRITING, ending) == 0 ||
            memcmp(name.data + name.len - ending, FILES_TEMP_COMPLETE, ending) == 0 ||
            memcmp(name.data + name.len - ending, FILES_TEMP_OLD, ending) == 0);
}

/* The type of the link's target, if the caller has access to it. */
static enum ng_file_type link_type(struct listing *listing, struct ng_str name)
{
    struct call *call = listing->call;
    struct result before = call->staged;
    struct file_place place;
    enum ng_file_type type = NG_FILE_NONE;
    struct ng_str path = arena_printf(&call->arena, "%.*s/%.*s", (int)listing->place->real.len,
                                      listing->place->real.data, (int)name.len, name.data);
    if (path.data != NULL && files_resolve(listing->files, call, path, &place) == NG_OK) {
        type = files_place_type(&place);
        files_place_done(&place);
    }
    call->staged = before; /* a link that cannot be resolved is no failure of the listing */
    return type;
}

/* True if the folder is a root without access for this caller. */
static bool is_closed(const struct listing *listing, struct ng_str name)
{
    const struct file_roots *roots = listing->place->roots;
    struct ng_str real = listing->place->real;
    for (size_t i = 0; i < roots->count; i++) {
        struct ng_str root = ng_str_of(roots->items[i].real);
        if (root.len == real.len + 1 + name.len &&
            memcmp(root.data, real.data, real.len) == 0 && root.data[real.len] == '/' &&
            memcmp(root.data + real.len + 1, name.data, name.len) == 0) {
            return !files_root_visible(listing->call, &roots->items[i]);
        }
    }
    return false;
}

static int add_folder(struct listing *listing, struct ng_str name, uint32_t depth)
{
    struct folder *folder = arena_alloc(&listing->call->arena, sizeof(*folder));
    if (folder == NULL) {
        return call_fail(listing->call, NG_ETOOLARGE,
                         "The folder %.*s has too many entries to list.",
                         (int)listing->list->path.len, listing->list->path.data);
    }
    *folder = (struct folder){.name = name, .depth = depth};
    *listing->last = folder;
    listing->last = &folder->next;
    return NG_OK;
}

static int list_entry(struct listing *listing, const struct folder *folder, int dir,
                      const char *leaf)
{
    struct call *call = listing->call;
    struct stat st;
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        files_is_hole(listing->place->roots->holes, call_plugin(call), dir, leaf, &st)) {
        return NG_OK; /* removed meanwhile, or hidden */
    }
    const char *separator = folder->name.len > 0 ? "/" : "";
    struct ng_str name = arena_printf(&call->arena, "%.*s%s%s", (int)folder->name.len,
                                      folder->name.data, separator, leaf);
    if (name.data == NULL || listing->count >= listing->max) {
        return call_fail(call, NG_ETOOLARGE,
                         "The folder %.*s has more than %u entries. List one of its folders.",
                         (int)listing->list->path.len, listing->list->path.data, listing->max);
    }
    bool folder_entry = S_ISDIR(st.st_mode);
    if (folder_entry && is_closed(listing, name)) {
        return NG_OK;
    }
    listing->count++;
    struct ng_file_entry entry = {
        .size = sizeof(entry),
        .name = name,
        .link = S_ISLNK(st.st_mode),
        .bytes = (uint64_t)st.st_size,
        .modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
    };
    if (entry.link) {
        entry.type = link_type(listing, name);
    } else if (folder_entry) {
        entry.type = NG_FILE_DIRECTORY;
    } else if (S_ISREG(st.st_mode)) {
        entry.type = NG_FILE_REGULAR;
    } else {
        entry.type = NG_FILE_OTHER;
    }
    listing->stopped = listing->entry(listing->user, &entry) != 0;
    if (folder_entry && folder->depth > 1) {
        return add_folder(listing, name, folder->depth - 1);
    }
    return NG_OK;
}

static bool is_skipped(const struct listing *listing, const char *leaf)
{
    bool dots = strcmp(leaf, ".") == 0 || strcmp(leaf, "..") == 0;
    bool hidden = listing->list->hidden || listing->list->content != NULL;
    return dots || (leaf[0] == '.' && !hidden) || is_temp(ng_str_of(leaf));
}

static int list_stream(struct listing *listing, const struct folder *folder, DIR *stream)
{
    int rc = NG_OK;
    const struct dirent *found = NULL;
    while (rc == NG_OK && !listing->stopped && (found = readdir(stream)) != NULL) {
        if (is_skipped(listing, found->d_name)) {
            continue;
        }
        rc = list_entry(listing, folder, dirfd(stream), found->d_name);
        if (rc == NG_OK) {
            rc = files_check_cancelled(listing->call);
        }
    }
    return rc;
}

/* ---- by name ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void names_swap(struct names *names, size_t a, size_t b)
{
    char kept[NAME_MAX + 1];
    memcpy(kept, names->items[a], sizeof(kept));
    memcpy(names->items[a], names->items[b], sizeof(kept));
    memcpy(names->items[b], kept, sizeof(kept));
}

static void names_rise(struct names *names, size_t at)
{
    while (at > 0 && strcmp(names->items[at], names->items[(at - 1) / 2]) > 0) {
        names_swap(names, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static void names_sink(struct names *names)
{
    size_t at = 0;
    size_t next = 1;
    while (next < names->count) {
        if (next + 1 < names->count && strcmp(names->items[next + 1], names->items[next]) > 0) {
            next++;
        }
        if (strcmp(names->items[at], names->items[next]) >= 0) {
            return;
        }
        names_swap(names, at, next);
        at = next;
        next = 2 * at + 1;
    }
}

static void names_add(struct names *names, const char *leaf)
{
    size_t bytes = strlen(leaf) + 1;
    if (bytes > sizeof(*names->items)) {
        return;
    }
    if (names->count < names->max) {
        memcpy(names->items[names->count], leaf, bytes);
        names_rise(names, names->count++);
        return;
    }
    names->more = true;
    if (strcmp(leaf, names->items[0]) < 0) {
        memcpy(names->items[0], leaf, bytes);
        names_sink(names);
    }
}

static bool is_before(const char *leaf, struct ng_str from)
{
    size_t len = strlen(leaf);
    if (from.len == 0) {
        return false;
    }
    int order = memcmp(leaf, from.data, size_min(len, from.len));
    return order < 0 || (order == 0 && len < from.len);
}

static int list_names(struct listing *listing, const struct folder *folder, DIR *stream,
                      struct names *names)
{
    const struct dirent *found = NULL;
    int rc = NG_OK;
    while (rc == NG_OK && (found = readdir(stream)) != NULL) {
        if (!is_skipped(listing, found->d_name) &&
            !is_before(found->d_name, listing->list->from)) {
            names_add(names, found->d_name);
        }
        rc = files_check_cancelled(listing->call);
    }
    qsort(names->items, names->count, sizeof(*names->items), compare_names);
    for (size_t i = 0; i < names->count && rc == NG_OK && !listing->stopped; i++) {
        rc = list_entry(listing, folder, dirfd(stream), names->items[i]);
    }
    if (rc == NG_OK && names->more && !listing->stopped) {
        rc = call_fail(listing->call, NG_ETOOLARGE, "The folder %.*s holds more than that.",
                       (int)listing->list->path.len, listing->list->path.data);
    }
    return rc;
}

static int list_sorted(struct listing *listing, const struct folder *folder, DIR *stream)
{
    struct names names = {.max = listing->max};
    names.items = alloc_zeroed(names.max, sizeof(*names.items));
    if (names.items == NULL) {
        return call_fail(listing->call, NG_EINTERNAL, "Out of memory for a list of files.");
    }
    int rc = list_names(listing, folder, stream, &names);
    free(names.items);
    return rc;
}

/* ---- a folder ---- */

static int list_folder(struct listing *listing, const struct folder *folder, int top)
{
    struct call *call = listing->call;
    int fd = files_open_beneath(top, folder->name.len > 0 ? folder->name.data : ".",
                                O_RDONLY | O_DIRECTORY);
    DIR *stream = files_open_stream(fd);
    /* Unreadable folders inside are skipped. */
    if (stream == NULL && folder->name.len > 0) {
        return NG_OK;
    }
    if (stream == NULL) {
        return files_fail_os(call, errno, "list", listing->list->path);
    }
    int rc = listing->sorted ? list_sorted(listing, folder, stream)
                             : list_stream(listing, folder, stream);
    (void)closedir(stream);
    return rc;
}

static int list_all(struct listing *listing)
{
    int top = files_open_beneath(listing->place->dir, listing->place->name.data,
                                 O_PATH | O_DIRECTORY);
    if (top < 0) {
        return files_fail_os(listing->call, errno, "list", listing->list->path);
    }
    listing->last = &listing->first;
    uint32_t depth = 1;
    if (listing->list->depth > 0 && !listing->sorted) {
        depth = listing->list->depth;
    }
    int rc = add_folder(listing, ng_str_of(""), depth);
    for (const struct folder *folder = listing->first;
         rc == NG_OK && folder != NULL && !listing->stopped; folder = folder->next) {
        rc = list_folder(listing, folder, top);
    }
    (void)close(top);
    return rc;
}

/* ---- a walk ---- */

/* Never fails: a file that cannot be read has no chunks, or no final one. */
static void walk_read(struct listing *listing, int fd, uint64_t bytes)
{
    uint64_t at = 0;
    while (at < bytes) { /* ignores bytes that are appended meanwhile */
        ssize_t got = pread(fd, listing->block, FILES_BLOCK, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            bytes = at;
        }
        if (got < 0 || files_cancelled(listing->call) ||
            (got > 0 && listing->list->content(listing->user,
                                               str_make(listing->block, (size_t)got)) != 0)) {
            return;
        }
        at += (uint64_t)got;
    }
    (void)listing->list->content(listing->user, str_make(listing->block, 0));
}

static void walk_file(struct listing *listing, int top)
{
    struct stat st;
    /* O_NONBLOCK: it may be a FIFO by now. */
    int fd = files_open_beneath(top, buf_cstr(&listing->path),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        !files_is_hole(listing->place->roots->holes, call_plugin(listing->call), fd, "", &st)) {
        walk_read(listing, fd, (uint64_t)st.st_size);
    }
    files_close_fd(&fd);
}

/* In the order of whole paths: the name of a folder counts with the slash behind it. */
static int compare_entries(const void *a, const void *b)
{
    const struct ng_file_entry *left = a;
    const struct ng_file_entry *right = b;
    return str_compare(left->name, right->name);
}

static int walk_add(struct listing *listing, struct walk_folder *folder, int dir,
                    const char *leaf)
{
    struct stat st;
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        files_is_hole(listing->place->roots->holes, call_plugin(listing->call), dir, leaf,
                      &st)) {
        return NG_OK; /* removed meanwhile, or hidden */
    }
    if (listing->count >= listing->max) {
        return call_fail(listing->call, NG_ETOOLARGE,
                         "A folder in %.*s has more than %u entries. Choose another folder.",
                         (int)listing->list->path.len, listing->list->path.data, listing->max);
    }
    struct ng_file_entry entry = {
        .size = sizeof(entry),
        .type = S_ISREG(st.st_mode) ? NG_FILE_REGULAR : NG_FILE_OTHER,
        .link = S_ISLNK(st.st_mode),
        .bytes = (uint64_t)st.st_size,
        .modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
    };
    if (S_ISDIR(st.st_mode)) {
        entry.type = NG_FILE_DIRECTORY;
    }
    size_t len = strlen(leaf);
    char *name = arena_alloc(&folder->names, len + 2);
    if (name == NULL || array_reserve((void **)&folder->items, &folder->cap, folder->count + 1,
                                      sizeof(*folder->items), listing->max) != NG_OK) {
        return call_no_memory(listing->call);
    }
    memcpy(name, leaf, len);
    name[len] = '/';
    entry.name = str_make(name, len + (entry.type == NG_FILE_DIRECTORY));
    folder->items[folder->count++] = entry;
    listing->count++;
    return NG_OK;
}

static int walk_names(struct listing *listing, struct walk_folder *folder, int top)
{
    const char *path = listing->path.len > 0 ? buf_cstr(&listing->path) : ".";
    DIR *stream = files_open_stream(files_open_beneath(top, path, O_RDONLY | O_DIRECTORY));
    if (stream == NULL) {
        return listing->path.len > 0
                   ? NG_OK /* unreadable folders inside are skipped */
                   : files_fail_os(listing->call, errno, "list", listing->list->path);
    }
    const struct dirent *found = NULL;
    int rc = NG_OK;
    while (rc == NG_OK && (found = readdir(stream)) != NULL) {
        if (!is_skipped(listing, found->d_name)) {
            rc = walk_add(listing, folder, dirfd(stream), found->d_name);
        }
        if (rc == NG_OK) {
            rc = files_check_cancelled(listing->call);
        }
    }
    (void)closedir(stream);
    if (folder->count > 0) {
        qsort(folder->items, folder->count, sizeof(*folder->items), compare_entries);
    }
    return rc;
}

static int walk_folder(struct listing *listing, int top, uint32_t depth);

static int walk_entry(struct listing *listing, struct ng_file_entry *entry, int top,
                      uint32_t depth)
{
    size_t before = listing->path.len;
    bool folder = entry->type == NG_FILE_DIRECTORY;
    entry->name.len -= folder;
    if (before > 0) {
        (void)buf_add_char(&listing->path, '/');
    }
    int rc = buf_add_str(&listing->path, entry->name);
    entry->name = buf_str(&listing->path);
    int answer = 0;
    /* A path that is too long cannot be opened. */
    if (rc == NG_OK && !(folder && is_closed(listing, entry->name))) {
        answer = listing->entry(listing->user, entry);
    }
    rc = rc == NG_EINTERNAL ? call_no_memory(listing->call) : NG_OK;
    if (answer == NG_ENTRY_INTO && folder && depth > 1) {
        rc = walk_folder(listing, top, depth - 1);
    } else if (answer == NG_ENTRY_INTO && entry->type == NG_FILE_REGULAR) {
        walk_file(listing, top);
    }
    listing->stopped = listing->stopped || (answer != 0 && answer != NG_ENTRY_INTO);
    buf_cut(&listing->path, before);
    return rc == NG_OK ? files_check_cancelled(listing->call) : rc;
}

/* The folder listing->path. Its names stay in memory while those below it are read. */
static int walk_folder(struct listing *listing, int top, uint32_t depth)
{
    struct walk_folder folder = {.items = NULL};
    int rc = walk_names(listing, &folder, top);
    for (size_t i = 0; i < folder.count && rc == NG_OK && !listing->stopped; i++) {
        rc = walk_entry(listing, &folder.items[i], top, depth);
    }
    listing->count -= (uint32_t)folder.count;
    arena_done(&folder.names);
    free(folder.items);
    return rc;
}

/* The listed path is a file itself. */
static int walk_one(struct listing *listing, struct file_place *place)
{
    int fd = -1;
    int rc = files_open_regular(listing->call, place, false, &fd);
    struct ng_file_entry entry = {
        .size = sizeof(entry),
        .name = ng_str_of(""),
        .type = NG_FILE_REGULAR,
        .bytes = (uint64_t)place->st.st_size,
        .modified_ms =
            (int64_t)place->st.st_mtim.tv_sec * 1000 + place->st.st_mtim.tv_nsec / 1000000,
    };
    if (rc == NG_OK && listing->entry(listing->user, &entry) == NG_ENTRY_INTO) {
        walk_read(listing, fd, entry.bytes);
        rc = files_check_cancelled(listing->call);
    }
    files_close_fd(&fd);
    return rc;
}

static int walk(struct listing *listing, struct file_place *place)
{
    listing->block = alloc_bytes(FILES_BLOCK);
    if (listing->block == NULL) {
        return call_no_memory(listing->call);
    }
    buf_init(&listing->path, FILES_PATH_MAX);
    int rc = NG_OK;
    if (files_place_type(place) == NG_FILE_DIRECTORY) {
        int top = files_open_beneath(place->dir, place->name.data, O_PATH | O_DIRECTORY);
        rc = top < 0 ? files_fail_os(listing->call, errno, "list", listing->list->path)
                     : walk_folder(listing, top, u32_max(listing->list->depth, 1));
        files_close_fd(&top);
    } else {
        rc = walk_one(listing, place);
    }
    buf_done(&listing->path);
    free(listing->block);
    return rc;
}

int files_list(struct files *files, struct call *call, const struct ng_file_list *list,
               ng_entry_fn *entry, void *user)
{
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    struct file_place place;
    int rc = files_resolve(files, call, list->path, &place);
    if (rc != NG_OK) {
        return rc;
    }
    struct listing listing = {
        .files = files,
        .call = call,
        .list = list,
        .place = &place,
        .entry = entry,
        .user = user,
        .sorted = list->sorted,
        .max = NG_FILE_ENTRIES_MAX,
    };
    if (list->max_entries > 0) {
        listing.max = u32_min(list->max_entries, NG_FILE_ENTRIES_MAX);
    }
    if (list->content != NULL && place.exists) {
        rc = walk(&listing, &place);
    } else if (files_place_type(&place) == NG_FILE_DIRECTORY) {
        rc = list_all(&listing);
    } else if (place.exists) {
        rc = call_fail(call, NG_EFAILED, "The path %.*s is not a folder.", (int)list->path.len,
                       list->path.data);
    } else {
        rc = files_fail_missing(call, list->path);
    }
    files_place_done(&place);
    return rc;
}
