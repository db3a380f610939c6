/* SPDX-License-Identifier: MIT */
/* auth_peer.h - the owner of the socket at the other end of a TCP connection within this
 * machine. */
#ifndef NOTEGATE_API_AUTH_PEER_H
#define NOTEGATE_API_AUTH_PEER_H

#include <sys/socket.h>
#include <sys/types.h>

#include "notegate/abi.h"

/* Is it 127.0.0.0/8 or ::1 (also as ::ffff:127.0.0.1)? */
bool auth_peer_is_loopback(const struct sockaddr_storage *address);
/* The socket at the other end. */
struct auth_peer {
    uid_t uid;
    uint32_t inode;
};

/*
 * Asks the kernel's socket table (sock_diag) for the socket whose own end is `peer` and whose
 * other end is `local`. NG_OK: an open socket. NG_ENOTFOUND: there is none any more, or no
 * process holds it (its user cannot be told then). NG_EUNAVAILABLE: the kernel does not answer
 * just now. NG_EFORBIDDEN: it cannot be asked here, for good. Does not block.
 */
int auth_peer_find(const struct sockaddr_storage *peer, const struct sockaddr_storage *local,
                   struct auth_peer *ret);

#endif
