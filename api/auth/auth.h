/* SPDX-License-Identifier: MIT */
/* auth.h - the identity of a caller: decided from the connection and the headers, never from
 * arguments. */
#ifndef NOTEGATE_API_AUTH_H
#define NOTEGATE_API_AUTH_H

#include "auth_started.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/dispatch/run_id.h"

enum auth_mode {
    AUTH_AUTO = 0, /* while no key exists: the gateway's own user on loopback; else keys */
    AUTH_ON,       /* everyone needs a key */
    AUTH_OFF       /* no key is required (a key that is sent is still checked); loopback only */
};

/* Facts about a connection, determined once: when it is accepted, or at its first request. */
enum auth_way {
    AUTH_REMOTE = 0,
    AUTH_LOOPBACK, /* both ends */
    AUTH_SOCKET    /* the Unix socket in the data directory: the owner */
};

struct auth_connection {
    enum auth_way way;
    bool is_own_user; /* the peer's socket belongs to the gateway's user */
    bool is_unknown;  /* the kernel could not be asked for the owner */
    bool is_mute;     /* nor can it ever be: this system does not tell */
    /* YES, UNSEEN: by the gateway or a program of its own: neither owner nor keyless. */
    enum auth_started started;
    bool knows_user; /* the peer's Unix user is known: */
    uid_t user;
};

/* The headers that decide. All lent; absent = {NULL, 0}. */
struct auth_headers {
    struct ng_str authorization;
    struct ng_str agent, space, mode; /* X-Notegate-... */
    struct ng_str run, process_run;   /* the same */
    const char *proxied;              /* the name of a header that only a proxy adds, or NULL */
};

/* An authenticated caller. Texts are lent for the request. */
struct auth_caller {
    struct ng_str agent;
    struct ng_str space; /* the one named, or absent */
    enum ng_role role;
    enum ng_mode mode;
    bool run;                    /* code */
    const struct ng_str *spaces; /* further ones a key gives */
    size_t space_count;
    bool all_spaces;
    struct key *key; /* NULL: came without a key. The reference is the request's (auth_release);
                        take another one to keep the key longer. A session belongs to the key
                        that opened it */
    struct ng_str request_id, traceparent;
    /* See run_id.h: the run it names, and the label of its process where that speaks MCP on
     * stdio; both checked, or absent. */
    struct ng_str run_id, process_run;
    struct ng_str remote, client; /* for the audit log: address and program, or absent */
    bool knows_user;              /* the Unix user at the other end is known: */
    uid_t user;
};

/* A sentence that may list a key's spaces. */
#define AUTH_TEXT_MAX 512
/* Of an agent's name and of a key's id, for the logs. */
#define AUTH_AGENT_SIZE 72
#define AUTH_KEY_SIZE 16

/* A refusal: the code, a sentence and a hint (static or in `text`). */
struct auth_refusal {
    int rc;           /* NG_EUNAUTHENTICATED, NG_EFORBIDDEN, NG_EMODE, NG_EINVAL */
    const char *hint; /* static, or NULL */
    bool bad_token;   /* a key was sent, and it is the reason */
    char text[AUTH_TEXT_MAX];
    /* Whose good key was shown all the same; "" where none was. */
    char agent[AUTH_AGENT_SIZE], key[AUTH_KEY_SIZE];
};

struct auth;

/* The run of a call that has nothing nearer (_meta, or a session of MCP). Lent as the caller's
 * texts are. */
static inline struct ng_str auth_run(const struct auth_caller *caller)
{
    const struct run_given given = {.named = caller->run_id,
                                    .traceparent = caller->traceparent};
    return run_id_choose(&given);
}

int auth_new(struct gateway *gateway, struct auth **ret, struct buf *error);
void auth_free(struct auth *auth);
/* May the gateway listen there? NG_EINVAL and a sentence where a public address has no key. On
 * a public address everyone needs a key from then on, whatever becomes of the keys. */
int auth_check_listen(struct auth *auth, const char *address, bool is_loopback,
                      struct buf *error);
/* Does a key exist (or does the mode or the address want one all the same)? */
bool auth_needs_key(const struct auth *auth);
/* NG_OK and *ret (auth_release() it), or the refusal's code. Never blocks. */
int auth_check(const struct auth *auth, const struct auth_connection *connection,
               const struct auth_headers *headers, struct auth_caller *ret,
               struct auth_refusal *refusal);
/* Gives back the caller's key. */
static inline void auth_release(struct auth_caller *caller)
{
    key_unref(caller->key);
    caller->key = NULL;
}
/* Logs the reason of a refused caller: at most a few lines a second, never the text that was
 * sent as a key. peer: "" for the Unix socket. */
void auth_log_refusal(struct auth *auth, const char *why, const char *peer,
                      const char *request_id);
/* Makes `caller` the caller of a call, which takes a reference of the key. NG_EINVAL: a name is
 * not of the form; the call's result says which. */
int auth_apply(const struct auth_caller *caller, struct call *call);
/* A call of the same caller, which has a key, with the rights that the key has now. NULL: the
 * key is gone, or out of memory. */
struct call *auth_call_again(const struct call *call);
/* A copy that lives as long as `call`, to which it was applied before: the call has the key.
 * NULL: out of memory. */
const struct auth_caller *auth_keep(const struct auth_caller *caller, struct call *call);

#endif
