/* SPDX-License-Identifier: MIT */
/* late_recv.c - preloaded into the gateway: the thread of libzmq, which reads what kernels
 * send, is late as on a busy machine while the file exists that LATE_RECV names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

ssize_t recv(int fd, void *data, size_t len, int flags)
{
    static ssize_t (*real)(int, void *, size_t, int);
    const char *path = getenv("LATE_RECV");
    char name[16] = "";
    if (real == NULL) {
        real = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
    }
    (void)prctl(PR_GET_NAME, name);
    if (path != NULL && strncmp(name, "ZMQbg/IO", 8) == 0 && access(path, F_OK) == 0) {
        const struct timespec late = {0, 300000000};
        (void)nanosleep(&late, NULL);
    }
    return real(fd, data, len, flags);
}
