/* SPDX-License-Identifier: MIT */
/* mute_netlink.c - preloaded into the gateway: the kernel's table of sockets cannot be asked.
 * MUTE_NETLINK is the errno that opening the way to it fails with; "ask": it opens, but the
 * kernel has no such table. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define QUERY_MAX 512
#define NO_FAMILY 255

int socket(int domain, int type, int protocol)
{
    static int (*real)(int, int, int);
    const char *how = getenv("MUTE_NETLINK");
    if (real == NULL) {
        real = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    }
    if (domain == AF_NETLINK && protocol == NETLINK_SOCK_DIAG && how != NULL &&
        strcmp(how, "ask") != 0) {
        errno = (int)strtol(how, NULL, 10);
        return -1;
    }
    return real(domain, type, protocol);
}

ssize_t sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
               socklen_t to_len)
{
    static ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    unsigned char query[QUERY_MAX];
    const char *how = getenv("MUTE_NETLINK");
    if (real == NULL) {
        real = (ssize_t(*)(int, const void *, size_t, int, const struct sockaddr *,
                           socklen_t))dlsym(RTLD_NEXT, "sendto");
    }
    if (to == NULL || to->sa_family != AF_NETLINK || len > sizeof(query) ||
        len <= NLMSG_HDRLEN || how == NULL || strcmp(how, "ask") != 0) {
        return real(fd, data, len, flags, to, to_len);
    }
    memcpy(query, data, len);
    query[NLMSG_HDRLEN] = NO_FAMILY; /* the first of struct sock_diag_req */
    return real(fd, query, len, flags, to, to_len);
}
