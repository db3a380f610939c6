/* SPDX-License-Identifier: MIT */
/*
 * failing_watch.c - preloaded into a gateway under test: after as many as FAILING_WATCH says,
 * inotify_add_watch() fails as where a user has no more of them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    static atomic_long made;
    const char *most = getenv("FAILING_WATCH");
    if (most != NULL && atomic_fetch_add(&made, 1) >= strtol(most, NULL, 10)) {
        errno = ENOSPC;
        return -1;
    }
    int (*real)(int, const char *, uint32_t) =
        (int (*)(int, const char *, uint32_t))dlsym(RTLD_NEXT, "inotify_add_watch");
    return real(fd, path, mask);
}
