/* SPDX-License-Identifier: MIT */
/* resolve.h - the addresses of a host, within a time limit. */
#ifndef NOTEGATE_REDIS_RESOLVE_H
#define NOTEGATE_REDIS_RESOLVE_H

#include <netdb.h>

#include "socket.h"

#define RESOLVE_WHY_SIZE 96

/* freeaddrinfo() the result. `why`: the error message. */
enum socket_result resolve_host(const char *host, const char *port,
                                const struct socket_limit *limit, struct addrinfo **ret,
                                char why[RESOLVE_WHY_SIZE]);

#endif
