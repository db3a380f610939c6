/* SPDX-License-Identifier: MIT */
/* auth_peer.c - one exact query to NETLINK_SOCK_DIAG. */
#include "auth_peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "api/base/process.h"

/* Room for one answer with its attributes. */
#define ANSWER_MAX 1024

/* A socket's end as the socket table names it: IPv4 also where it came mapped into IPv6. */
struct end {
    int family;
    in_port_t port;
    uint32_t address[4];
};

static bool end_of(const struct sockaddr_storage *address, struct end *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (address->ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        ret->family = AF_INET;
        ret->port = in.sin_port;
        ret->address[0] = in.sin_addr.s_addr;
        return true;
    }
    if (address->ss_family != AF_INET6) {
        return false;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    ret->port = in6.sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
        ret->family = AF_INET;
        memcpy(ret->address, in6.sin6_addr.s6_addr + 12, 4);
    } else {
        ret->family = AF_INET6;
        memcpy(ret->address, in6.sin6_addr.s6_addr, 16);
    }
    return true;
}

bool auth_peer_is_loopback(const struct sockaddr_storage *address)
{
    struct end end;
    if (!end_of(address, &end)) {
        return false;
    }
    if (end.family == AF_INET) {
        return (ntohl(end.address[0]) >> 24) == IN_LOOPBACKNET;
    }
    return memcmp(end.address, &in6addr_loopback, sizeof(in6addr_loopback)) == 0;
}

/* A shortage passes; a kernel, a container or a filter that refuses does so for good. */
static int refused(int error)
{
    bool again = process_is_short(error) || error == EAGAIN || error == EINTR;
    if (again) {
        return NG_EUNAVAILABLE;
    }
    return NG_EFORBIDDEN;
}

static int ask(int fd, const struct end *peer, const struct end *local)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } query;
    memset(&query, 0, sizeof(query));
    query.head.nlmsg_len = sizeof(query);
    query.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    query.head.nlmsg_flags = NLM_F_REQUEST;
    query.body.sdiag_family = (uint8_t)peer->family;
    query.body.sdiag_protocol = IPPROTO_TCP;
    query.body.idiag_states = UINT32_MAX;
    query.body.id.idiag_sport = peer->port;
    query.body.id.idiag_dport = local->port;
    memcpy(query.body.id.idiag_src, peer->address, sizeof(peer->address));
    memcpy(query.body.id.idiag_dst, local->address, sizeof(local->address));
    query.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    query.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t sent =
        sendto(fd, &query, sizeof(query), 0, (const struct sockaddr *)&kernel, sizeof(kernel));
    if (sent == (ssize_t)sizeof(query)) {
        return NG_OK;
    }
    return refused(errno);
}

/* The kernel has answered by the time sendto() returns, so nothing is waited for. */
static int answer(int fd, const struct end *peer, const struct end *local,
                  struct auth_peer *ret)
{
    _Alignas(struct nlmsghdr) char data[ANSWER_MAX];
    struct nlmsghdr head;
    struct inet_diag_msg found;
    ssize_t got = recv(fd, data, sizeof(data), MSG_DONTWAIT);
    if (got < (ssize_t)sizeof(head)) {
        if (got >= 0) {
            return NG_EUNAVAILABLE;
        }
        return refused(errno);
    }
    memcpy(&head, data, sizeof(head));
    if (head.nlmsg_type == NLMSG_ERROR && (size_t)got >= NLMSG_HDRLEN + sizeof(int)) {
        int error = 0; /* the first of struct nlmsgerr */
        memcpy(&error, data + NLMSG_HDRLEN, sizeof(error));
        return refused(-error); /* ENOENT: no such socket, or no table of them */
    }
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || (size_t)got < NLMSG_HDRLEN + sizeof(found)) {
        return NG_EUNAVAILABLE;
    }
    memcpy(&found, data + NLMSG_HDRLEN, sizeof(found));
    /* The look-up falls back to listening sockets; and a socket that no process holds any more
     * is reported as user 0, which must not pass for root. */
    if (found.id.idiag_sport != peer->port || found.id.idiag_dport != local->port ||
        found.idiag_inode == 0) {
        return NG_ENOTFOUND;
    }
    *ret = (struct auth_peer){found.idiag_uid, found.idiag_inode};
    return NG_OK;
}

static int look_up(const struct end *peer, const struct end *local, struct auth_peer *ret)
{
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (fd < 0) {
        return refused(errno);
    }
    int rc = ask(fd, peer, local);
    if (rc == NG_OK) {
        rc = answer(fd, peer, local, ret);
    }
    (void)close(fd);
    return rc;
}

int auth_peer_find(const struct sockaddr_storage *peer, const struct sockaddr_storage *local,
                   struct auth_peer *ret)
{
    struct end from;
    struct end to;
    if (!end_of(peer, &from) || !end_of(local, &to) || from.family != to.family) {
        return NG_EUNAVAILABLE;
    }
    int rc = look_up(&from, &to, ret);
    if (rc != NG_EFORBIDDEN) {
        return rc;
    }
    /* A table that has our own end is there, and does not have the other one. */
    struct auth_peer own;
    rc = look_up(&to, &from, &own);
    if (rc != NG_OK) {
        return rc;
    }
    return NG_ENOTFOUND;
}
