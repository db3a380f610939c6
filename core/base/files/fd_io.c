/* SPDX-License-Identifier: MIT */
/* fd_io.c - read(2) and write(2), again until they are done. */
#include "fd_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

int fd_get(void *fd, char *to, size_t room, size_t *ret_len)
{
    ssize_t len;
    do {
        len = read(*(const int *)fd, to, room);
    } while (len < 0 && errno == EINTR);
    *ret_len = 0;
    if (len < 0) {
        return NG_EFAILED;
    }
    *ret_len = (size_t)len;
    return NG_OK;
}

int fd_put(int fd, struct ng_str bytes)
{
    while (bytes.len > 0) {
        ssize_t len = write(fd, bytes.data, bytes.len);
        if (len > 0) {
            bytes.data += len;
            bytes.len -= (size_t)len;
        } else if (len == 0) {
            errno = ENOSPC;
            return NG_EFAILED;
        } else if (errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            (void)poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return NG_EFAILED;
        }
    }
    return NG_OK;
}

int fd_is_empty_folder(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    int entries = 0;
    if (stream == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    while (entries <= 2 && readdir(stream) != NULL) {
        entries++;
    }
    (void)closedir(stream);
    return entries <= 2; /* . and .. */
}
