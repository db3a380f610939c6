/* SPDX-License-Identifier: MIT */
/* link.h - connections to one Redis: opened, signed in, shared by threads, opened again. */
#ifndef NOTEGATE_REDIS_LINK_H
#define NOTEGATE_REDIS_LINK_H

#include <pthread.h>

#include "reader.h"
#include "wire.h"

/* A sentence for the caller. */
#define LINK_TEXT_SIZE 512

struct link_options {
    struct ng_str uri;
    struct ng_str ca; /* file of certificates to trust, or "": the system's */
    int64_t timeout_ms;
    size_t connections;
};

/* One connection; used by one thread at a time. */
struct link_conn {
    struct wire wire;
    struct reader reader;
    struct link_conn *next; /* while idle */
    bool reused;            /* it was idle before: its server may have gone meanwhile */
};

struct link {
    struct redis_uri uri;
    SSL_CTX *tls;
    int64_t timeout_ms;
    char place[160]; /* "host:port", for messages */
    /* A command that each new connection begins with; what it answers is of no interest. */
    char *greeting;
    size_t greeting_len;
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    struct link_conn *idle;
    size_t open, max;
    /* After a connection that failed: no other attempt before this, doubled each time. */
    int64_t retry_at_ns, retry_wait_ms;
    char retry_error[LINK_TEXT_SIZE];
};

/* A bad URI or certificate file fails; a server that is away does not. */
int link_open(struct ng_call *call, const struct link_options *options, struct link **ret);
/* Before the first connection; copies. */
int link_set_greeting(struct link *link, struct ng_call *call, const char *command, size_t len);
/* No connection may be in use. NULL is a no-op. */
void link_close(struct link *link);

/* The limit of one operation that begins now. */
struct wire_limit link_limit(const struct link *link, struct ng_call *call);
/* A connection that is signed in. Fails the call. fresh: not one that was idle. */
int link_take(struct link *link, struct ng_call *call, bool fresh,
              const struct wire_limit *limit, struct link_conn **ret);
/* keep: it is in a known state and may be used again. */
void link_give(struct link *link, struct link_conn *conn, bool keep);
/* Reads one reply. */
enum wire_end link_read(struct link_conn *conn, const struct wire_limit *limit,
                        redisReply **ret);
/* Fails the call for what the connection did, or for what the server answered. */
int link_fail(const struct link *link, struct ng_call *call, enum wire_end end,
              const char *error);
int link_fail_reply(const struct link *link, struct ng_call *call, const redisReply *reply);

#endif
