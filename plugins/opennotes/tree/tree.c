/* SPDX-License-Identifier: MIT */
/* tree.c - opens and reads files below a notebook's root; openat2() refuses paths that leave
 * it. */
#include "tree.h"

#include "core/base/minmax.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_TRIES 8 /* RESOLVE_BENEATH fails with EAGAIN while another file is renamed */
#define READ_STEP ((size_t)256 * 1024)

static int open_beneath(int root_fd, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };
    for (int try = 0; try < OPEN_TRIES; try++) {
        long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
        if (fd >= 0) {
            return (int)fd;
        }
        if (errno == EPERM && (how.flags & O_NOATIME) != 0) {
            how.flags &= ~(uint64_t)O_NOATIME; /* only the owner may use O_NOATIME */
        } else if (errno != EAGAIN && errno != EINTR) {
            return -errno;
        }
    }
    return -EAGAIN;
}

char *notes_tree_path_of(int fd)
{
    char name[64];
    char *path = malloc(PATH_MAX + 1);
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ssize_t len = -1;
    if (path != NULL) {
        len = readlink(name, path, PATH_MAX);
    }
    if (len <= 0 || path[0] != '/') {
        free(path);
        return NULL;
    }
    path[len] = '\0';
    return path;
}

/* The kernel refuses links that are absolute or leave the root on the way, even if they end
 * inside. Such a link is resolved without opening anything, and its target is opened by its
 * real path. */
static int open_linked(int root_fd, const char *path, int flags)
{
    int fd = openat(root_fd, path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    char *real = notes_tree_path_of(fd);
    char *root = notes_tree_path_of(root_fd);
    (void)close(fd);
    struct ng_str rest = {NULL, 0};
    if (real != NULL && root != NULL) {
        rest = notes_path_below(ng_str_of(real), ng_str_of(root));
    }
    int rc = -EXDEV;
    if (rest.data != NULL) {
        rc = open_beneath(root_fd, rest.data, flags, RESOLVE_NO_SYMLINKS);
    } else if (real != NULL && root != NULL && strcmp(real, root) == 0) {
        rc = open_beneath(root_fd, ".", flags, RESOLVE_NO_SYMLINKS);
    }
    free(real);
    free(root);
    return rc;
}

int notes_tree_open(int root_fd, const char *path, int flags)
{
    if ((flags & O_PATH) == 0) {
        flags |= O_NOATIME | O_NOCTTY | O_NONBLOCK;
    }
    int fd = open_beneath(root_fd, path, flags, 0);
    if (fd != -EXDEV) {
        return fd;
    }
    return open_linked(root_fd, path, flags);
}

int notes_tree_open_folder(const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    if (fd >= 0) {
        return (int)fd;
    }
    return -errno;
}

bool notes_tree_is_note(struct ng_str name)
{
    return name.len > 3 && strncasecmp(name.data + name.len - 3, ".md", 3) == 0;
}

bool notes_tree_is_hidden(struct ng_str name)
{
    return name.len > 0 && name.data[0] == '.';
}

static int64_t nanoseconds(struct statx_timestamp time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_nsec;
}

bool notes_tree_is_busy(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static int take_stat(int dir_fd, const char *name, int flags, struct notes_stat *ret_stat,
                     bool *ret_loose)
{
    struct statx found;
    if (statx(dir_fd, name, flags, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
        if (notes_tree_is_busy(errno)) {
            return NG_EBUSY;
        }
        return NG_ENOTFOUND;
    }
    if (!S_ISREG(found.stx_mode)) {
        return NG_ENOTFOUND;
    }
    *ret_stat = (struct notes_stat){
        .size = (int64_t)found.stx_size,
        .mtime_ns = nanoseconds(found.stx_mtime),
        .ctime_ns = nanoseconds(found.stx_ctime),
        .birth_ns = (found.stx_mask & STATX_BTIME) != 0 ? nanoseconds(found.stx_btime) : 0,
        .inode = (int64_t)found.stx_ino,
        .device = (int64_t)(((uint64_t)found.stx_dev_major << 32) | found.stx_dev_minor),
    };
    *ret_loose = found.stx_nlink > 1 || (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    return NG_OK;
}

int notes_tree_stat_at(int dir_fd, const char *name, struct notes_stat *ret_stat,
                       bool *ret_loose)
{
    return take_stat(dir_fd, name, AT_SYMLINK_NOFOLLOW, ret_stat, ret_loose);
}

int notes_tree_stat_of(int fd, struct notes_stat *ret_stat, bool *ret_loose)
{
    return take_stat(fd, "", AT_EMPTY_PATH, ret_stat, ret_loose);
}

int notes_tree_stat(int root_fd, const char *path, struct notes_stat *ret_stat, bool *ret_loose)
{
    struct stat entry;
    int fd = notes_tree_open(root_fd, path, O_PATH);
    if (fd < 0) {
        if (notes_tree_is_busy(-fd)) {
            return NG_EBUSY;
        }
        return NG_ENOTFOUND;
    }
    int rc = take_stat(fd, "", AT_EMPTY_PATH, ret_stat, ret_loose);
    (void)close(fd);
    if (rc == NG_OK && fstatat(root_fd, path, &entry, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(entry.st_mode)) {
        *ret_loose = true;
    }
    return rc;
}

int notes_tree_read_fd(int fd, size_t max, struct ng_str *ret_bytes)
{
    struct stat found;
    struct buf bytes;
    size_t step = READ_STEP;
    buf_init(&bytes, max);
    if (fstat(fd, &found) == 0 && found.st_size > 0) {
        step = (size_t)found.st_size + 1; /* one read sees the end too */
    }
    int rc = buf_reserve(&bytes, 0) != NULL ? NG_OK : NG_EINTERNAL;
    while (rc == NG_OK && bytes.len < max) {
        char *to = buf_reserve(&bytes, size_min(step, max - bytes.len));
        if (to == NULL) {
            rc = NG_EINTERNAL;
            break;
        }
        ssize_t got = read(fd, to, size_min(step, max - bytes.len));
        if (got == 0) {
            break;
        }
        if (got > 0) {
            bytes.len += (size_t)got;
            step = READ_STEP;
        } else if (errno != EINTR) {
            rc = NG_EFAILED;
        }
    }
    if (rc != NG_OK) {
        buf_done(&bytes);
        return rc;
    }
    ret_bytes->data = buf_take(&bytes, &ret_bytes->len);
    return NG_OK;
}
