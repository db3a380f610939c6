/* SPDX-License-Identifier: MIT */
/* own_files.c - tells by the kernel's own records whether a descriptor is the one it was. */
#include "own_files.h"

#include "core/base/minmax.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_SIZE 64

static void read_text(int fd, char out[OWN_FILES_TEXT_SIZE])
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(path, out, OWN_FILES_TEXT_SIZE - 1);
    out[i64_max(len, 0)] = '\0';
}

/* A path changes when the file or a folder above it is renamed or removed. */
static bool same_text(const char *then, const char *now)
{
    if (then[0] == '/') {
        return now[0] == '/';
    }
    return strcmp(then, now) == 0;
}

/* A container may refuse kcmp(), and the copy may be closed, too: then the text decides, by
 * which one file is like another, and one event loop like another. */
static bool is_lost(const struct own_file *file)
{
    char text[OWN_FILES_TEXT_SIZE];
    if (fcntl(file->fd, F_GETFD) < 0) {
        return errno == EBADF;
    }
    if (file->copy >= 0) {
        long order = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, file->fd, file->copy);
        if (order >= 0) {
            return order != 0;
        }
    }
    read_text(file->fd, text);
    return file->text[0] != '\0' && text[0] != '\0' && !same_text(file->text, text);
}

void own_files_note(struct own_files *files, const char *what, int fd)
{
    int type = 0;
    socklen_t size = sizeof(type);
    if (fd < 0 || files->count == OWN_FILES_MAX) {
        return;
    }
    struct own_file *file = &files->items[files->count++];
    *file = (struct own_file){.what = what, .fd = fd, .copy = -1};
    read_text(fd, file->text);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 && errno == ENOTSOCK) {
        file->copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
}

const struct own_file *own_files_lost(const struct own_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (is_lost(&files->items[i])) {
            return &files->items[i];
        }
    }
    return NULL;
}

void own_files_done(struct own_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (files->items[i].copy >= 0) {
            (void)close(files->items[i].copy);
        }
    }
    files->count = 0;
}
