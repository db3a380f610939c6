/* SPDX-License-Identifier: MIT */
/* http_listen.c - binding: TCP of both families, port 0, and the Unix socket. */
#include "http_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/auth/auth_peer.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "http_check.h"

#define LISTEN_ERROR_MAX 1024

/* Takes "host:port" apart; port 0 means "any". */
static int split(struct ng_str address, char *host, size_t host_size, char *port,
                 size_t port_size)
{
    struct http_authority authority;
    struct ng_str name = address;
    size_t at = address.len;
    while (at > 0 && address.data[at - 1] != ':') {
        at--;
    }
    uint64_t number = 0;
    if (at == 0 || address.len - at > 5 ||
        !str_number(str_make(address.data + at, address.len - at), 65535, &number)) {
        return NG_EINVAL;
    }
    name.len = at - 1;
    if (!http_parse_authority(name, &authority) || authority.port != 0 ||
        authority.host.len >= host_size) {
        return NG_EINVAL;
    }
    memcpy(host, authority.host.data, authority.host.len);
    host[authority.host.len] = '\0';
    (void)snprintf(port, port_size, "%u", (unsigned)number);
    return NG_OK;
}

static int describe(struct http_listener *listener, struct buf *error)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    char port[8];
    memset(&bound, 0, sizeof(bound));
    if (getsockname(listener->fd, (struct sockaddr *)&bound, &size) != 0 ||
        getnameinfo((const struct sockaddr *)&bound, size, listener->host,
                    sizeof(listener->host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        (void)buf_add_c(error, "cannot read the address of the listening socket");
        return NG_EINTERNAL;
    }
    in_port_t number = 0;
    if (bound.ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, &bound, sizeof(in6));
        number = in6.sin6_port;
    } else {
        struct sockaddr_in in;
        memcpy(&in, &bound, sizeof(in));
        number = in.sin_port;
    }
    listener->port = ntohs(number);
    listener->is_loopback = auth_peer_is_loopback(&bound);
    listener->family = bound.ss_family;
    return NG_OK;
}

/* Resolves "host:port". The caller frees the list with freeaddrinfo(). NG_EINVAL: no such
 * address. */
static int resolve(struct ng_str address, struct addrinfo **ret, struct buf *error)
{
    char host[256];
    char port[8];
    struct addrinfo hints = {
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM,
    };
    if (split(address, host, sizeof(host), port, sizeof(port)) != NG_OK) {
        (void)buf_printf(
            error,
            "listen is \"%.*s\", it must be ADDRESS:PORT such as 127.0.0.1:8420 or "
            "[::1]:8420",
            (int)address.len, address.data);
        return NG_EINVAL;
    }
    int failed = getaddrinfo(host, port, &hints, ret);
    if (failed != 0) {
        (void)buf_printf(error, "cannot listen on %.*s: %s", (int)address.len, address.data,
                         gai_strerror(failed));
        return NG_EINVAL;
    }
    return NG_OK;
}

bool http_listen_is_public(struct ng_str address)
{
    struct addrinfo *found = NULL;
    struct sockaddr_storage first;
    struct buf error;
    buf_init(&error, LISTEN_ERROR_MAX);
    bool loopback = resolve(address, &found, &error) == NG_OK;
    if (loopback) {
        memset(&first, 0, sizeof(first));
        memcpy(&first, found->ai_addr, found->ai_addrlen);
        loopback = auth_peer_is_loopback(&first);
        freeaddrinfo(found);
    }
    buf_done(&error);
    return !loopback;
}

int http_listen_tcp(struct ng_str address, struct http_listener *ret, struct buf *error)
{
    static const int on = 1;
    struct addrinfo *found = NULL;
    ret->fd = -1;
    int rc = resolve(address, &found, error);
    if (rc != NG_OK) {
        return rc;
    }
    ret->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ret->fd < 0 || setsockopt(ret->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(ret->fd, found->ai_addr, found->ai_addrlen) != 0) {
        int number = errno;
        (void)buf_printf(
            error, "cannot listen on %.*s: %s%s", (int)address.len, address.data,
            text_errno(number),
            text_if(number == EADDRINUSE,
                    "; choose another one with --listen ADDRESS:PORT (port 0: a free "
                    "one)"));
        rc = NG_EUNAVAILABLE;
        if (number == EADDRINUSE) {
            rc = NG_EBUSY;
        }
    }
    freeaddrinfo(found);
    if (rc == NG_OK) {
        rc = describe(ret, error);
    }
    if (rc != NG_OK && ret->fd >= 0) {
        (void)close(ret->fd);
        ret->fd = -1;
    }
    return rc;
}

int http_listen_unix(const char *data_dir, const char *name, int *ret_fd, struct buf *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dir = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Through the directory's descriptor, because sun_path holds only short paths. The mode of
     * the socket before bind() is the one of the file: there is no moment when others may
     * connect. */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir,
                   name);
    int rc = NG_OK;
    if (dir < 0 || fd < 0 || (unlinkat(dir, name, 0) != 0 && errno != ENOENT) ||
        fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, HTTP_BACKLOG) != 0) {
        (void)buf_printf(error, "cannot listen on %s/%s: %s", data_dir, name,
                         text_errno(errno));
        rc = NG_EUNAVAILABLE;
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    if (rc != NG_OK && fd >= 0) {
        (void)close(fd);
        fd = -1;
    }
    *ret_fd = fd;
    return rc;
}

void http_listen_end(const char *data_dir, const char *name)
{
    int dir = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        (void)unlinkat(dir, name, 0);
        (void)close(dir);
    }
}
