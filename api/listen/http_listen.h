/* SPDX-License-Identifier: MIT */
/* http_listen.h - listening sockets: an address of the configuration, the data directory's
 * socket.
 */
#ifndef NOTEGATE_API_HTTP_LISTEN_H
#define NOTEGATE_API_HTTP_LISTEN_H

#include "core/base/buf.h"

/* Connections that wait to be accepted. */
#define HTTP_BACKLOG 1024

struct http_listener {
    int fd;
    int family;
    bool is_loopback;
    unsigned port;
    char host[256]; /* numeric, without brackets */
};

/* Resolves without listening: "127.0.0.1:8420", "[::1]:0", "localhost:8420". fd is bound, not
 * listening yet. NG_EINVAL: no such address; NG_EBUSY: another process has it; NG_EUNAVAILABLE.
 */
int http_listen_tcp(struct ng_str address, struct http_listener *ret, struct buf *error);
/* Can other machines reach it? Also where that cannot be told. */
bool http_listen_is_public(struct ng_str address);
/* `data_dir`/`name`, mode 0600; a socket of an earlier run is removed. */
int http_listen_unix(const char *data_dir, const char *name, int *ret_fd, struct buf *error);
/* Removes the file of that socket. */
void http_listen_end(const char *data_dir, const char *name);

#endif
