/* SPDX-License-Identifier: MIT */
/*
 * failing_sync.c - preloaded into a gateway under test: as long as the file named by
 * FAILING_SYNC is there, fsync() and fdatasync() fail with EIO, as on a disk that gives up.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int sync_or_fail(const char *name, int fd)
{
    const char *path = getenv("FAILING_SYNC");
    if (path != NULL && access(path, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fsync(int fd)
{
    return sync_or_fail("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_or_fail("fdatasync", fd);
}
