/* SPDX-License-Identifier: MIT */
/* auth.h - who is calling: decided from the connection and the headers, never from arguments.
 */
#ifndef NOTEGATE_API_AUTH_H
#define NOTEGATE_API_AUTH_H

#include "gateway.h"

enum auth_mode {
    AUTH_AUTO = 0, /* while no key exists: the gateway's own user on loopback; else keys */
    AUTH_ON,       /* everyone needs a key */
    AUTH_OFF       /* nobody needs one; loopback only */
};

/* What is known of a connection, found out once when it was accepted (or at its first request).
 */
struct auth_connection {
    bool is_socket;   /* the Unix socket in the data directory: the owner */
    bool is_loopback; /* both ends */
    bool is_own_user; /* the peer's socket belongs to the gateway's user */
};

/* What of a request's headers decides. All lent; absent = {NULL, 0}. */
struct auth_headers {
    struct ng_str authorization;
    struct ng_str agent, space, mode; /* X-Notegate-... */
    const char *proxied;              /* the name of a header that only a proxy adds, or NULL */
};

/* An authenticated caller. Texts are lent for the request. */
struct auth_caller {
    struct ng_str agent;
    struct ng_str space; /* the one named, or absent */
    enum ng_role role;
    enum ng_mode mode;
    const struct ng_str *spaces; /* further ones a key gives */
    size_t space_count;
    bool all_spaces;
    struct key
        *key; /* lent; NULL: came without one. A session belongs to the key that opened it */
    struct ng_str request_id, traceparent;
};

/* A refusal: the code, a sentence and a hint (static or in `text`). */
struct auth_refusal {
    int rc;           /* NG_EUNAUTHENTICATED, NG_EFORBIDDEN, NG_EMODE, NG_EINVAL */
    const char *hint; /* static, or NULL */
    char text[256];
};

struct auth;

int auth_new(struct gateway *gateway, struct auth **ret, struct buf *error);
void auth_free(struct auth *auth);
/* May the gateway listen there? NG_EINVAL and a sentence where a public address has no key. */
int auth_check_listen(const struct auth *auth, const char *address, bool is_loopback,
                      struct buf *error);
/* Does any key exist (or does the mode want one all the same)? */
bool auth_needs_key(const struct auth *auth);
/* NG_OK and *ret, or the refusal's code. Never blocks. */
int auth_check(const struct auth *auth, const struct auth_connection *connection,
               const struct auth_headers *headers, struct auth_caller *ret,
               struct auth_refusal *refusal);
/* Makes `caller` the caller of a call. NG_EINVAL: a name is not of the form; the call's result
 * says which. */
int auth_apply(const struct auth_caller *caller, struct call *call);

#endif
