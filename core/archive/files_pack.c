/* SPDX-License-Identifier: MIT */
/* files_pack.c - reads all files of the roots for an archive. */
#include "files_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/files/files_place.h"

/* Bytes of one piece; a multiple of 3, so that base64 needs no padding. */
#define PACK_PIECE_BYTES ((size_t)192 * 1024)
/* Retries before a backup, while folders of roots are being replaced. */
#define PACK_ROOT_TRIES 512
/* Nesting of folders; deeper ones are reported as left out. */
#define PACK_DEPTH_MAX 256

struct pack {
    struct call *call;
    files_pack_fn *fn;
    void *user;
    const struct file_roots *roots;
    uint64_t root;   /* number of the present root */
    struct buf path; /* relative to it */
    char *piece;
    bool has_hole;
    struct file_identity hole; /* the data directory */
};

static int pack_left_out(struct pack *pack, const char *why)
{
    const struct packed_file file = {
        .kind = PACKED_LEFT_OUT, .root = pack->root, .path = buf_str(&pack->path), .why = why};
    return pack->fn(pack->user, &file);
}

static int64_t pack_ms(struct timespec at)
{
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* Ends the piece between two characters if possible: pieces of a text are texts, too. */
static size_t pack_whole_characters(const char *bytes, size_t len)
{
    for (size_t cut = len; cut > 0 && len - cut < UTF8_BYTES_MAX; cut--) {
        if (utf8_is_start(bytes[cut - 1])) {
            cut -= ((unsigned char)bytes[cut - 1] & 0x80) != 0;
            return cut > 0 ? cut : len;
        }
    }
    return len;
}

/* Reads at most the size at opening, so that a growing file has an end, too. */
static int pack_bytes(struct pack *pack, int fd, uint64_t size, uint64_t *ret_read)
{
    uint64_t at = 0;
    while (at < size) {
        size_t most = (size_t)u64_min(PACK_PIECE_BYTES, size - at);
        ssize_t got = pread(fd, pack->piece, most, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return files_fail_os(pack->call, errno, "back up", buf_str(&pack->path));
        }
        if (got == 0) {
            break;
        }
        size_t len = (size_t)got;
        if (at + len < size) {
            len = pack_whole_characters(pack->piece, len);
        }
        const struct packed_file piece = {.kind = PACKED_PIECE, .bytes = {pack->piece, len}};
        int rc = pack->fn(pack->user, &piece);
        if (rc != NG_OK) {
            return rc;
        }
        at += len;
    }
    *ret_read = at;
    return NG_OK;
}

static int pack_file(struct pack *pack, int fd, const struct stat *before)
{
    struct stat after;
    uint64_t size = 0;
    const struct packed_file begin = {.kind = PACKED_FILE,
                                      .root = pack->root,
                                      .path = buf_str(&pack->path),
                                      .mode = before->st_mode & 0777U,
                                      .modified_ms = pack_ms(before->st_mtim)};
    int rc = pack->fn(pack->user, &begin);
    if (rc != NG_OK) {
        return rc;
    }
    rc = pack_bytes(pack, fd, (uint64_t)before->st_size, &size);
    if (rc != NG_OK) {
        return rc;
    }
    struct packed_file end = {.kind = PACKED_FILE_END};
    end.changed = fstat(fd, &after) != 0 || after.st_size != before->st_size ||
                  size != (uint64_t)before->st_size ||
                  after.st_mtim.tv_sec != before->st_mtim.tv_sec ||
                  after.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
    return pack->fn(pack->user, &end);
}

static int pack_folder(struct pack *pack, int fd, unsigned depth);

static bool pack_is_temporary(const char *name)
{
    return strncmp(name, FILES_TEMP_PREFIX, sizeof(FILES_TEMP_PREFIX) - 1) == 0;
}

/* True if the folder is one of the first `count` configured roots. */
static bool pack_is_root(const struct pack *pack, size_t count, struct file_identity folder)
{
    for (size_t i = 0; i < count; i++) {
        const struct file_root *root = &pack->roots->items[i];
        if (root->owner == NULL && files_same(root->identity, folder)) {
            return true;
        }
    }
    return false;
}

static int pack_opened(struct pack *pack, int fd, unsigned depth)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return pack_left_out(pack, "it cannot be read");
    }
    if (S_ISREG(info.st_mode)) {
        return pack_file(pack, fd, &info);
    }
    if (!S_ISDIR(info.st_mode)) {
        return pack_left_out(pack, "neither a file nor a folder");
    }
    /* A root inside a root is packed under its own number. */
    if ((pack->has_hole && files_same(files_identity(&info), pack->hole)) ||
        pack_is_root(pack, pack->roots->count, files_identity(&info))) {
        return NG_OK;
    }
    if (depth >= PACK_DEPTH_MAX) {
        return pack_left_out(pack, "too deep");
    }
    const struct packed_file folder = {.kind = PACKED_FOLDER,
                                       .root = pack->root,
                                       .path = buf_str(&pack->path),
                                       .mode = info.st_mode & 0777U};
    int rc = pack->fn(pack->user, &folder);
    if (rc != NG_OK) {
        return rc;
    }
    return pack_folder(pack, fd, depth + 1);
}

static int pack_entry(struct pack *pack, int dir, const char *name, unsigned depth)
{
    size_t len = pack->path.len;
    int rc = NG_OK;
    if (len > 0) {
        buf_add_char(&pack->path, '/');
    }
    buf_add_c(&pack->path, name);
    if (pack->path.rc != NG_OK) {
        return call_fail(pack->call, NG_EINTERNAL, "Out of memory for a path.");
    }
    if (pack->path.len >= FILES_PATH_MAX) {
        pack->path.len = utf8_cut(buf_str(&pack->path), FILES_PATH_MAX / 2).len;
        rc = pack_left_out(pack, "its path is too long (this is its beginning)");
        pack->path.len = len;
        return rc;
    }
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        rc = pack_opened(pack, fd, depth);
        (void)close(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        rc = files_fail_os(pack->call, errno, "back up", buf_str(&pack->path));
    } else if (errno == ELOOP) {
        rc = pack_left_out(pack, "a link");
    } else if (errno == EACCES) {
        rc = pack_left_out(pack, "the gateway may not read it");
    } else if (errno != ENOENT) { /* ENOENT: removed meanwhile */
        rc = pack_left_out(pack, "it cannot be read");
    }
    pack->path.len = len;
    return rc;
}

/* Opens the folder once more: reading may be suspended while a slow client takes the bytes of a
 * file, so each folder needs its own stream position. */
static int pack_folder(struct pack *pack, int fd, unsigned depth)
{
    int rc = NG_OK;
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = files_open_stream(own);
    if (stream == NULL) {
        return files_fail_os(pack->call, errno, "back up", buf_str(&pack->path));
    }
    while (rc == NG_OK) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            if (errno != 0) {
                rc = files_fail_os(pack->call, errno, "back up", buf_str(&pack->path));
            }
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !pack_is_temporary(entry->d_name)) {
            rc = pack_entry(pack, own, entry->d_name, depth);
        }
    }
    (void)closedir(stream);
    return rc;
}

static int pack_root(struct pack *pack, const struct file_root *root)
{
    int fd = openat(root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return files_fail_os(pack->call, errno, "back up the root", ng_str_of(root->path));
    }
    int rc = pack_folder(pack, fd, 0);
    (void)close(fd);
    return rc;
}

static bool pack_is_below(const char *path, const char *root)
{
    size_t len = strlen(root);
    return strncmp(path, root, len) == 0 && (path[len] == '/' || (len == 1 && path[1] != '\0'));
}

/* A plugin's folder in a root or in another folder is packed as part of that one. */
static bool pack_is_inside(const struct file_roots *roots, size_t at)
{
    const struct file_root *folder = &roots->items[at];
    for (size_t i = 0; i < roots->count && folder->owner != NULL; i++) {
        const struct file_root *root = &roots->items[i];
        if (i != at && (pack_is_below(folder->real, root->real) ||
                        (i < at && files_same(folder->identity, root->identity)))) {
            return true;
        }
    }
    return false;
}

/* names: only the list of roots. It comes first, so that a restore can refuse it before the
 * first file. */
static int pack_roots(struct pack *pack, bool names)
{
    const struct file_roots *roots = pack->roots;
    int rc = NG_OK;
    pack->root = 0;
    for (size_t i = 0; i < roots->count && rc == NG_OK; i++) {
        const struct file_root *root = &roots->items[i];
        if (pack_is_inside(roots, i)) {
            continue;
        }
        struct packed_file file = {.kind = PACKED_ROOT,
                                   .root = pack->root,
                                   .space = ng_str_of(root->space),
                                   .path = ng_str_of(root->path),
                                   .real = ng_str_of(root->real),
                                   .plugin = ng_str_of("")};
        if (root->owner != NULL) {
            file.plugin = ng_str_of(root->owner->desc.name);
        }
        if (names) {
            int empty = fd_is_empty_folder(root->fd, ".");
            file.empty = empty == 1 || (empty < 0 && errno == ENOENT);
            rc = pack->fn(pack->user, &file);
        } else if (!pack_is_root(pack, i, root->identity)) { /* not packed before */
            rc = pack_root(pack, root);
        }
        pack->root++;
    }
    return rc;
}

/* Opens roots again whose folder was replaced. */
static int pack_current_roots(struct files *files, struct call *call, struct file_roots **ret)
{
    struct file_roots *roots = files_roots_ref(files);
    int rc = NG_OK;
    unsigned tries = 0;
    for (size_t i = 0; rc == NG_OK && i < roots->count;) {
        const struct file_root *root = &roots->items[i];
        if (pack_is_inside(roots, i) || files_root_is_current(root)) {
            i++;
            continue;
        }
        if (++tries > PACK_ROOT_TRIES) {
            rc = call_fail(call, NG_EUNAVAILABLE, "The folder %s is replaced repeatedly.",
                           root->path);
        } else {
            rc = files_roots_reopen(files, call, roots, root);
        }
        files_roots_unref(roots);
        roots = files_roots_ref(files);
        i = 0;
    }
    *ret = roots;
    return rc;
}

int files_pack_roots(struct files *files, struct call *call, files_pack_fn *fn, void *user)
{
    struct file_roots *roots = files_roots_ref(files);
    struct pack pack = {.call = call, .fn = fn, .user = user, .roots = roots};
    int rc = pack_roots(&pack, true);
    files_roots_unref(roots);
    return rc;
}

int files_pack(struct files *files, struct call *call, files_pack_fn *fn, void *user)
{
    struct stat info;
    struct pack pack = {.call = call, .fn = fn, .user = user};
    pack.piece = alloc_bytes(PACK_PIECE_BYTES);
    if (pack.piece == NULL) {
        return call_no_memory(call);
    }
    const char *data_dir = call->gateway->data_dir;
    if (data_dir != NULL && stat(data_dir, &info) == 0) {
        pack.has_hole = true;
        pack.hole = files_identity(&info);
    }
    buf_init(&pack.path, (size_t)FILES_PATH_MAX * PACK_DEPTH_MAX);
    struct file_roots *roots = NULL;
    int rc = pack_current_roots(files, call, &roots);
    pack.roots = roots;
    if (rc == NG_OK) {
        rc = pack_roots(&pack, true);
    }
    if (rc == NG_OK) {
        rc = pack_roots(&pack, false);
    }
    files_roots_unref(roots);
    buf_done(&pack.path);
    free(pack.piece);
    return rc;
}
