/* SPDX-License-Identifier: MIT */
/* conn.h - one connection: opened, signed in, read; and its errors by name. */
#ifndef NOTEGATE_REDIS_CONN_H
#define NOTEGATE_REDIS_CONN_H

#include "core/base/buf.h"
#include "reader.h"
#include "socket.h"

/* Bytes of an error message. */
#define CONN_TEXT_SIZE 640
/* Bytes of the name of a server in messages. */
#define CONN_NAME_SIZE (REDIS_HOST_SIZE + REDIS_PORT_SIZE + 96)

/* The server that a connection expects. */
enum conn_kind {
    CONN_SERVER,    /* a single one */
    CONN_PRIMARY,   /* the primary that a Sentinel named */
    CONN_CLUSTER,   /* the node of a cluster that has the keys */
    CONN_IMPORTING, /* the node to which they are being moved */
    CONN_SENTINEL
};

/* Settings of all connections of a pool. */
struct conn_settings {
    struct redis_uri uri;
    SSL_CTX *tls;
    int64_t timeout_ms;
    struct ng_str prefix; /* of all keys; borrowed */
    char *probe;          /* a key with that prefix; any node of a cluster tells its node */
    /* A command sent first on each new connection to a server, if there is one; its reply is
     * ignored. */
    struct buf greeting;
};

/* One connection; used by one thread at a time. */
struct conn {
    struct redis_socket sock;
    struct reader reader;
    struct redis_place place; /* host "": a Unix socket */
    struct conn *next;        /* while idle */
    uint64_t turn;            /* of the pool when it was opened */
    bool reused;              /* taken from the idle list: the server may have closed it */
};

/* The error of an attempt. */
struct conn_error {
    char text[CONN_TEXT_SIZE];
    bool permanent; /* a refusal that only a change of the configuration ends */
    /* CONN_CLUSTER: the node that has the keys instead; host "": none was named. */
    struct redis_place moved;
};

/* place: ignored for a Unix socket. *ret_error is set on failure; NG_EUNAVAILABLE: the server's
 * fault. */
int conn_open(const struct conn_settings *settings, enum conn_kind kind,
              const struct redis_place *place, const struct socket_limit *limit,
              struct conn **ret, struct conn_error *ret_error);
void conn_free(struct conn *conn);

/* Adds one command as it is sent; with an absent word (data NULL) the buffer fails. */
void redis_command(struct buf *out, const struct ng_str *words, size_t count);
/* Reads one reply. */
enum socket_result conn_read(struct conn *conn, const struct socket_limit *limit,
                             redisReply **ret);
/* Sends one command and reads its reply. */
enum socket_result conn_command(struct conn *conn, const struct socket_limit *limit,
                                const struct buf *command, redisReply **ret);

/* ---- refusal.c ---- */

/* The name of a server in messages. */
void conn_name(const struct conn_settings *settings, enum conn_kind kind,
               const struct redis_place *place, char name[CONN_NAME_SIZE]);
/* An operation's end as a message. NG_OK for SOCKET_OK. */
int conn_describe(const struct conn_settings *settings, const char *name,
                  enum socket_result end, const char *error, struct conn_error *ret);
/* The same of an error reply, or of one of an unexpected type (also NULL). */
int conn_describe_reply(const struct conn_settings *settings, const char *name,
                        const redisReply *reply, struct conn_error *ret);
bool redis_error_is(const redisReply *reply, const char *code);
/* Whether the reply says that the keys are, or soon will be, at another server. */
bool redis_error_moves(const redisReply *reply);
/* Reads "MOVED slot host:port" or "ASK slot host:port", sent from `from`. */
bool redis_error_place(const redisReply *reply, const struct redis_place *from,
                       struct redis_place *ret);
/* The bytes of a string reply; {NULL, 0} if it is no string. */
struct ng_str redis_text(const redisReply *reply);

#endif
