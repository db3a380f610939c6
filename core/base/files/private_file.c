/* SPDX-License-Identifier: MIT */
/* private_file.c - a new file of this process alone, in a folder of whomever. */
#include "private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "notegate/abi.h"

/* Names tried; each but the first is random. */
#define PRIVATE_TRIES 16

static bool private_is_ours(int fd, struct stat *ret)
{
    return fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) && ret->st_uid == geteuid() &&
           ret->st_nlink == 1;
}

/* False: another process has it locked. A file system without locks has none. */
static bool private_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* A new file, locked. False with errno; EEXIST: the name is taken. */
static bool private_create(struct private_file *file)
{
    struct stat made;
    struct stat named;
    file->fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0) {
        return false;
    }
    /* Until it is locked another process may take it for one that was left. */
    if (private_lock(file->fd) && private_is_ours(file->fd, &made) &&
        lstat(file->path, &named) == 0 && made.st_ino == named.st_ino &&
        made.st_dev == named.st_dev) {
        return true;
    }
    (void)close(file->fd);
    file->fd = -1;
    errno = EEXIST;
    return false;
}

/* NG_OK: what a killed process of ours left is gone; NG_EBUSY: one is at it; NG_EFORBIDDEN: it
 * is not ours. */
static int private_clear(const char *path)
{
    struct stat info;
    int rc = NG_EFORBIDDEN;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT) {
            return NG_OK;
        }
        return NG_EFORBIDDEN;
    }
    if (private_is_ours(fd, &info)) {
        if (!private_lock(fd)) {
            rc = NG_EBUSY;
        } else if (unlink(path) == 0) {
            rc = NG_OK;
        } else {
            rc = NG_EFORBIDDEN;
        }
    }
    (void)close(fd);
    return rc;
}

static bool private_name(const char *path, bool plain, char *ret)
{
    unsigned long long number = 0;
    int len;
    if (plain) {
        len = snprintf(ret, PRIVATE_PATH_MAX, "%s.tmp", path);
    } else if (getrandom(&number, sizeof(number), 0) == (ssize_t)sizeof(number)) {
        len = snprintf(ret, PRIVATE_PATH_MAX, "%s.%016llx.tmp", path, number);
    } else {
        return false;
    }
    errno = ENAMETOOLONG;
    return len > 0 && len < PRIVATE_PATH_MAX;
}

int private_file_make(const char *path, struct private_file *ret)
{
    bool plain = true;
    ret->fd = -1;
    for (int i = 0; i < PRIVATE_TRIES; i++) {
        if (!private_name(path, plain, ret->path)) {
            return NG_EFAILED;
        }
        if (private_create(ret)) {
            return NG_OK;
        }
        if (errno != EEXIST) {
            return NG_EFAILED;
        }
        int rc = private_clear(ret->path);
        if (rc == NG_EBUSY) {
            return rc;
        }
        plain = plain && rc == NG_OK;
    }
    errno = EEXIST;
    return NG_EFAILED;
}
