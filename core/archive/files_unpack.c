/* SPDX-License-Identifier: MIT */
/* files_unpack.c - restores files of an archive into the roots; never replaces a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/files/fd_io.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/base/text_choice.h"
#include "core/files/files_place.h"
#include "files_pack.h"

#define UNPACK_ROOTS_MAX 512
/* Bytes of one comparison. */
#define UNPACK_COMPARED ((size_t)16 * 1024)
#define UNPACK_NAME_MAX 64
#define UNPACK_ERRNO_TEXT 128
/* File systems of the roots and of mounts below them. */
#define UNPACK_DEVICES_MAX 256

/* A configured root, or a configured folder of a plugin. */
struct unpack_root {
    struct ng_str plugin, space, path; /* plugin "": a root */
    int fd;                            /* -1: not opened yet */
    bool taken;
};

/* A root of the archive. */
struct unpack_source {
    struct ng_str plugin, space, path, real;
    size_t at; /* index in the configured ones; their count: none */
};

struct unpack {
    struct arena arena;
    struct unpack_root roots[UNPACK_ROOTS_MAX];
    size_t root_count;
    struct ng_str own_root;
    struct unpack_source sources[UNPACK_ROOTS_MAX];
    size_t source_count;
    struct ng_str only; /* absent: everything */
    bool found;         /* `only` */
    bool skips;         /* the present file */
    bool write;
    uint64_t made; /* files */
    /* One folder of each file system with new files. */
    struct unpack_device {
        dev_t device;
        int fd;
    } devices[UNPACK_DEVICES_MAX];
    size_t device_count;
    /* The present file. */
    size_t root;
    struct buf path, parent;
    struct ng_str name; /* of `path`, behind `parent` */
    int there;          /* an existing file to compare with; -1: none */
    int dir, fd;        /* the folder and the new file, named `temporary` */
    char temporary[UNPACK_NAME_MAX];
    uint64_t at;
    uint32_t mode;
    int64_t modified_ms;
};

static int unpack_fail(struct unpack *unpack, struct buf *error, const char *what, int number)
{
    char reason[UNPACK_ERRNO_TEXT];
    const struct unpack_root *root = &unpack->roots[unpack->root];
    buf_printf(error, "%.*s/%.*s %s: %s", (int)root->path.len, root->path.data,
               (int)unpack->path.len, buf_cstr(&unpack->path), what,
               strerror_r(number, reason, sizeof(reason)));
    return NG_EFAILED;
}

/* Closes the present file and removes an incomplete one. */
static void unpack_leave(struct unpack *unpack)
{
    if (unpack->fd >= 0) {
        (void)unlinkat(unpack->dir, unpack->temporary, 0);
    }
    files_close_fd(&unpack->there);
    files_close_fd(&unpack->fd);
    files_close_fd(&unpack->dir);
}

int unpack_new(const struct ng_str *roots, size_t count, struct ng_str own_root,
               struct unpack **ret, struct buf *error)
{
    struct unpack *unpack = alloc_zeroed(1, sizeof(*unpack));
    if (unpack == NULL || count > UNPACK_ROOTS_MAX) {
        free(unpack);
        const char *why = unpack == NULL ? "out of memory" : "too many roots are configured";
        buf_add_c(error, why);
        return NG_EINTERNAL;
    }
    arena_init(&unpack->arena, 0);
    buf_init(&unpack->path, FILES_PATH_MAX * 2);
    buf_init(&unpack->parent, FILES_PATH_MAX * 2);
    unpack->there = unpack->fd = unpack->dir = -1;
    unpack->own_root = arena_copy(&unpack->arena, own_root);
    for (size_t i = 0; i < count; i++) {
        (void)unpack_add_folder(unpack, "", roots[i]);
    }
    if (unpack->arena.failed) {
        unpack_free(unpack);
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    *ret = unpack;
    return NG_OK;
}

int unpack_add_folder(struct unpack *unpack, const char *plugin, struct ng_str folder)
{
    if (unpack->root_count == UNPACK_ROOTS_MAX) {
        return NG_ETOOLARGE;
    }
    struct unpack_root *root = &unpack->roots[unpack->root_count];
    files_split_root(folder, &root->space, &root->path);
    if (root->path.len == 0) {
        return NG_OK;
    }
    root->plugin = arena_copy(&unpack->arena, ng_str_of(plugin));
    root->space = arena_copy(&unpack->arena, root->space);
    root->path = arena_copy(&unpack->arena, root->path);
    root->fd = -1;
    if (unpack->arena.failed) {
        return NG_EINTERNAL;
    }
    /* Archives have absolute paths. */
    char *real = root->path.data[0] != '/' ? realpath(root->path.data, NULL) : NULL;
    if (real != NULL) {
        root->path = arena_copy(&unpack->arena, ng_str_of(real));
        free(real);
    }
    unpack->root_count++;
    return unpack->arena.failed ? NG_EINTERNAL : NG_OK;
}

void unpack_only(struct unpack *unpack, struct ng_str path)
{
    unpack->only = path;
}

bool unpack_found(struct unpack *unpack, struct buf *ret_path)
{
    if (unpack->found && ret_path != NULL) {
        const struct unpack_root *root = &unpack->roots[unpack->root];
        buf_add_str(ret_path, root->path);
        buf_printf(ret_path, "%s%s", text_if(root->path.len > 1, "/"), buf_cstr(&unpack->path));
    }
    return unpack->found;
}

/* ---- durable names */

/* Notes the file system of `dir` (O_PATH) for unpack_sync(). Also without new files: an earlier
 * restore that failed may have created them without a sync. */
static int unpack_note_device(struct unpack *unpack, int dir)
{
    struct stat info;
    if (!unpack->write) {
        return 0;
    }
    if (fstat(dir, &info) != 0) {
        return -1;
    }
    for (size_t i = 0; i < unpack->device_count; i++) {
        if (unpack->devices[i].device == info.st_dev) {
            return 0;
        }
    }
    if (unpack->device_count == UNPACK_DEVICES_MAX) {
        errno = EMFILE;
        return -1;
    }
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    unpack->devices[unpack->device_count++] = (struct unpack_device){info.st_dev, fd};
    return 0;
}

int unpack_sync(struct unpack *unpack, struct buf *error)
{
    int rc = NG_OK;
    while (unpack->device_count > 0) {
        struct unpack_device *device = &unpack->devices[--unpack->device_count];
        if (syncfs(device->fd) != 0 && rc == NG_OK) {
            char reason[UNPACK_ERRNO_TEXT];
            buf_printf(error, "the files that were made cannot be synced to the disk: %s",
                       strerror_r(errno, reason, sizeof(reason)));
            rc = NG_EFAILED;
        }
        files_close_fd(&device->fd);
    }
    return rc;
}

void unpack_begin(struct unpack *unpack, bool write)
{
    unpack_leave(unpack);
    while (unpack->device_count > 0) {
        files_close_fd(&unpack->devices[--unpack->device_count].fd);
    }
    for (size_t i = 0; i < unpack->root_count; i++) {
        files_close_fd(&unpack->roots[i].fd);
        unpack->roots[i].taken = false;
    }
    unpack->source_count = 0;
    unpack->skips = unpack->found = false;
    unpack->write = write;
}

uint64_t unpack_made(const struct unpack *unpack)
{
    return unpack->made;
}

void unpack_free(struct unpack *unpack)
{
    if (unpack == NULL) {
        return;
    }
    unpack_begin(unpack, false);
    buf_done(&unpack->path);
    buf_done(&unpack->parent);
    arena_done(&unpack->arena);
    free(unpack);
}

/* ---- roots ---- */

/* The root with the same space and path; else the one at the same position within its space. Of
 * the same plugin. */
static size_t unpack_find_root(const struct unpack *unpack, const struct packed_file *file)
{
    size_t before = 0;
    for (size_t i = 0; i < unpack->root_count; i++) {
        const struct unpack_root *root = &unpack->roots[i];
        if (str_equal(root->plugin, file->plugin) && str_equal(root->space, file->space) &&
            (str_equal(root->path, file->path) || str_equal(root->path, file->real))) {
            return i;
        }
    }
    for (size_t i = 0; i < unpack->source_count; i++) {
        before += str_equal(unpack->sources[i].plugin, file->plugin) &&
                  str_equal(unpack->sources[i].space, file->space);
    }
    for (size_t i = 0; i < unpack->root_count; i++) {
        const struct unpack_root *root = &unpack->roots[i];
        if (str_equal(root->plugin, file->plugin) && str_equal(root->space, file->space) &&
            before-- == 0) {
            return i;
        }
    }
    return unpack->root_count;
}

static int unpack_no_root(const struct unpack_source *source, struct buf *error)
{
    buf_printf(error, "the backup has files of %.*s (space %.*s), and ", (int)source->path.len,
               source->path.data, (int)source->space.len, source->space.data);
    if (source->plugin.len == 0) {
        buf_add_c(error, "no root is configured for them: add one to `roots`, as SPACE:/PATH");
    } else {
        buf_printf(error,
                   "no folder of the plugin %.*s is configured for them: add one to its "
                   "folders (of notes: `opennotes.notebooks`), as SPACE:/PATH",
                   (int)source->plugin.len, source->plugin.data);
    }
    return NG_EFAILED;
}

static int unpack_open_root(struct unpack *unpack, size_t number, struct buf *error)
{
    char reason[UNPACK_ERRNO_TEXT];
    const struct unpack_source *source = &unpack->sources[number];
    if (source->at == unpack->root_count) {
        return unpack_no_root(source, error);
    }
    struct unpack_root *root = &unpack->roots[source->at];
    if (root->fd >= 0) {
        return NG_OK;
    }
    if (str_equal(root->path, unpack->own_root)) {
        (void)mkdir(root->path.data, S_IRWXU);
    }
    root->fd = open(root->path.data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root->fd < 0 || unpack_note_device(unpack, root->fd) != 0) {
        bool is_root = root->plugin.len == 0;
        buf_printf(error, "the %s %.*s cannot be opened: %s; make it first, or %s",
                   is_root ? "root" : "folder", (int)root->path.len, root->path.data,
                   strerror_r(errno, reason, sizeof(reason)),
                   is_root ? "set `roots`" : "configure another one");
        return NG_EFAILED;
    }
    return NG_OK;
}

static int unpack_take_root(struct unpack *unpack, const struct packed_file *file,
                            struct buf *error)
{
    if (unpack->source_count == UNPACK_ROOTS_MAX) {
        buf_add_c(error, "the backup has too many roots");
        return NG_EFAILED;
    }
    size_t at = unpack_find_root(unpack, file);
    if (at < unpack->root_count && unpack->roots[at].taken) {
        at = unpack->root_count;
    }
    if (at < unpack->root_count) {
        unpack->roots[at].taken = true;
    }
    unpack->sources[unpack->source_count] = (struct unpack_source){
        .plugin = arena_copy(&unpack->arena, file->plugin),
        .space = arena_copy(&unpack->arena, file->space),
        .path = arena_copy(&unpack->arena, file->path),
        .real = arena_copy(&unpack->arena, file->real),
        .at = at,
    };
    unpack->source_count++;
    if (unpack->arena.failed) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    /* One file needs no other root than its own. */
    return unpack->only.data != NULL ? NG_OK : unpack_open_root(unpack, file->root, error);
}

/* Is this the file that is wanted, or a folder on the way to it? */
static bool unpack_leads_to(struct ng_str wanted, struct ng_str root,
                            const struct packed_file *file)
{
    size_t skip = root.len > 1 ? root.len : 0; /* of the root "/": its slash is the next */
    if (root.len == 0 || !str_starts(wanted, root) || wanted.len <= skip + file->path.len ||
        wanted.data[skip] != '/') {
        return false;
    }
    struct ng_str below = str_make(wanted.data + skip + 1, wanted.len - skip - 1);
    if (file->kind == PACKED_FOLDER) {
        return str_starts(below, file->path) && below.len > file->path.len &&
               below.data[file->path.len] == '/';
    }
    return str_equal(below, file->path);
}

static bool unpack_wants(const struct unpack *unpack, const struct packed_file *file)
{
    const struct unpack_source *source = &unpack->sources[file->root];
    return unpack->only.data == NULL || unpack_leads_to(unpack->only, source->path, file) ||
           unpack_leads_to(unpack->only, source->real, file);
}

/* ---- folders and files ---- */

static int unpack_place(struct unpack *unpack, const struct packed_file *file,
                        struct buf *error)
{
    unpack->root = unpack->sources[file->root].at;
    buf_clear(&unpack->path);
    buf_clear(&unpack->parent);
    buf_add_str(&unpack->path, file->path);
    size_t len = file->path.len;
    while (len > 0 && file->path.data[len - 1] != '/') {
        len--;
    }
    buf_add_str(&unpack->parent, str_make(file->path.data, len > 0 ? len - 1 : 0));
    if (len == 0) {
        buf_add_char(&unpack->parent, '.');
    }
    unpack->name = str_make(buf_cstr(&unpack->path) + len, file->path.len - len);
    if (unpack->path.rc != NG_OK || unpack->parent.rc != NG_OK) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    return NG_OK;
}

static int unpack_parent(struct unpack *unpack)
{
    return files_open_beneath(unpack->roots[unpack->root].fd, buf_cstr(&unpack->parent),
                              O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Restored by root, it belongs to the owner of the folder around it. */
static void unpack_give(struct unpack *unpack, int folder, int fd)
{
    struct stat info;
    if (geteuid() == 0 && fstat(folder, &info) == 0 &&
        fchown(fd, info.st_uid, info.st_gid) != 0) { /* some file systems know no owners */
        log_write(NG_LOG_WARNING, "files", "%s: the owner cannot be that of its folder",
                  buf_cstr(&unpack->path));
    }
}

static int unpack_folder(struct unpack *unpack, const struct packed_file *file,
                         struct buf *error)
{
    struct stat info;
    int root = unpack->roots[unpack->root].fd;
    int there = files_open_beneath(root, buf_cstr(&unpack->path), O_PATH | O_CLOEXEC);
    bool missing = there < 0 && errno == ENOENT;
    bool folder = there >= 0 && fstat(there, &info) == 0 && S_ISDIR(info.st_mode);
    int rc = NG_OK;
    if (folder && unpack_note_device(unpack, there) != 0) {
        rc = unpack_fail(unpack, error, "cannot be opened", errno);
    }
    files_close_fd(&there);
    if (rc != NG_OK || folder || (!unpack->write && missing)) {
        return rc;
    }
    int dir = -1;
    if (missing) {
        dir = unpack_parent(unpack);
    }
    if (dir < 0) {
        return unpack_fail(unpack, error, "cannot be a folder", ENOTDIR);
    }
    int made = -1;
    if (mkdirat(dir, unpack->name.data, S_IRWXU) == 0) {
        made = openat(dir, unpack->name.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    /* Another one that came in its place is not given away. */
    bool own = made >= 0 && fd_is_empty_folder(made, ".") == 1;
    if (own) {
        unpack_give(unpack, dir, made);
    }
    /* The owner needs write permission for the files that follow. */
    if (!own || fchmod(made, (mode_t)(file->mode | S_IRWXU)) != 0) {
        rc = unpack_fail(unpack, error, "cannot be made", errno);
    }
    files_close_fd(&made);
    files_close_fd(&dir);
    return rc;
}

static int unpack_create(struct unpack *unpack, struct buf *error)
{
    char number[17];
    unpack->dir = unpack_parent(unpack);
    if (unpack->dir < 0 || !random_hex(8, number)) {
        return unpack_fail(unpack, error, "cannot be made", errno);
    }
    (void)snprintf(unpack->temporary, sizeof(unpack->temporary), FILES_TEMP_PREFIX "%s%s",
                   number, FILES_TEMP_WRITING);
    unpack->fd = openat(unpack->dir, unpack->temporary,
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (unpack->fd < 0) {
        return unpack_fail(unpack, error, "cannot be made", errno);
    }
    unpack_give(unpack, unpack->dir, unpack->fd);
    return NG_OK;
}

static int unpack_open(struct unpack *unpack, const struct packed_file *file, struct buf *error)
{
    struct stat info;
    unpack->at = 0;
    unpack->mode = file->mode;
    unpack->modified_ms = file->modified_ms;
    unpack->there = files_open_beneath(unpack->roots[unpack->root].fd, buf_cstr(&unpack->path),
                                       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (unpack->there < 0 && errno == ENOENT) {
        return unpack->write ? unpack_create(unpack, error) : NG_OK;
    }
    if (unpack->there < 0) {
        return unpack_fail(unpack, error, "cannot be compared with the backup's", errno);
    }
    if (fstat(unpack->there, &info) != 0 || !S_ISREG(info.st_mode)) {
        return unpack_fail(unpack, error, "exists and is not a file", EEXIST);
    }
    return NG_OK;
}

static int unpack_differs(struct unpack *unpack, struct buf *error)
{
    return unpack_fail(
        unpack, error,
        "exists with other content, and a restore replaces no file; move it away", EEXIST);
}

static int unpack_compare(struct unpack *unpack, struct ng_str bytes, struct buf *error)
{
    char block[UNPACK_COMPARED];
    while (bytes.len > 0) {
        size_t most = size_min(bytes.len, sizeof(block));
        ssize_t got = pread(unpack->there, block, most, (off_t)unpack->at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0 || memcmp(block, bytes.data, (size_t)got) != 0) {
            return unpack_differs(unpack, error);
        }
        unpack->at += (uint64_t)got;
        bytes = str_make(bytes.data + got, bytes.len - (size_t)got);
    }
    return NG_OK;
}

static int unpack_bytes(struct unpack *unpack, struct ng_str bytes, struct buf *error)
{
    if (unpack->there >= 0) {
        return unpack_compare(unpack, bytes, error);
    }
    if (unpack->fd >= 0 && fd_put(unpack->fd, bytes) != NG_OK) {
        return unpack_fail(unpack, error, "cannot be written", errno);
    }
    return NG_OK;
}

static int unpack_end(struct unpack *unpack, struct buf *error)
{
    struct stat info;
    if (unpack->there >= 0) {
        bool same = fstat(unpack->there, &info) == 0 && (uint64_t)info.st_size == unpack->at;
        return same ? NG_OK : unpack_differs(unpack, error);
    }
    if (unpack->fd < 0) {
        return NG_OK;
    }
    int64_t rest = (unpack->modified_ms % 1000 + 1000) % 1000;
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_NOW}, {(unpack->modified_ms - rest) / 1000, (long)rest * 1000000}};
    if (fchmod(unpack->fd, (mode_t)unpack->mode) != 0 || futimens(unpack->fd, times) != 0 ||
        fsync(unpack->fd) != 0 ||
        files_rename_new(unpack->dir, unpack->temporary, unpack->dir, unpack->name.data) != 0) {
        return unpack_fail(unpack, error, "cannot be made", errno);
    }
    files_close_fd(&unpack->fd);
    unpack->made++;
    return NG_OK;
}

static int unpack_item(struct unpack *unpack, const struct packed_file *file, struct buf *error)
{
    unpack_leave(unpack);
    unpack->skips = !unpack_wants(unpack, file);
    if (unpack->skips) {
        return NG_OK;
    }
    int rc = unpack_open_root(unpack, file->root, error);
    if (rc == NG_OK) {
        rc = unpack_place(unpack, file, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (file->kind == PACKED_FOLDER) {
        return unpack_folder(unpack, file, error);
    }
    unpack->found = unpack->only.data != NULL;
    return unpack_open(unpack, file, error);
}

int unpack_file(struct unpack *unpack, const struct packed_file *file, struct buf *error)
{
    int rc = NG_OK;
    switch (file->kind) {
    case PACKED_ROOT:
        return unpack_take_root(unpack, file, error);
    case PACKED_FOLDER:
    case PACKED_FILE:
        return unpack_item(unpack, file, error);
    case PACKED_PIECE:
        return unpack->skips ? NG_OK : unpack_bytes(unpack, file->bytes, error);
    case PACKED_FILE_END:
        rc = unpack->skips ? NG_OK : unpack_end(unpack, error);
        unpack_leave(unpack);
        return rc;
    case PACKED_LEFT_OUT:
        if (unpack->only.data != NULL && unpack_wants(unpack, file)) {
            buf_printf(error, "the backup has not the content of this file: %s", file->why);
            return NG_EFAILED;
        }
        break;
    case PACKED_ROOT_LEFT_OUT:
        break;
    }
    return NG_OK;
}
