/* SPDX-License-Identifier: MIT */
/* uri.h - addresses and credentials of Redis: redis://, rediss://, unix://, and
 * redis+sentinel:// URIs. */
#ifndef NOTEGATE_REDIS_URI_H
#define NOTEGATE_REDIS_URI_H

#include <notegate/abi.h>

/* Longest URI, in bytes. */
#define REDIS_URI_MAX 4096
#define REDIS_URI_ERROR_SIZE 160
/* Most hosts of one URI. */
#define REDIS_NODES_MAX 16
/* A DNS name has at most 253 bytes. */
#define REDIS_HOST_SIZE 256
#define REDIS_PORT_SIZE 24

/* The address of one server. */
struct redis_place {
    char host[REDIS_HOST_SIZE]; /* without brackets; "": none */
    char port[REDIS_PORT_SIZE];
};

struct redis_uri {
    bool tls;
    const char *path;   /* of a Unix socket; NULL: hosts are given */
    const char *master; /* its name at the Sentinels; NULL: the hosts are servers */
    struct redis_place nodes[REDIS_NODES_MAX];
    size_t node_count;
    const char *user;     /* NULL: not given */
    const char *password; /* NULL: not given */
    const char *sentinel_user;
    const char *sentinel_password;
    int database;
    char *memory; /* holds the texts above */
};

/* redis[s]://[[user]:password@]host[:port][,host[:port]...][/database][?db=N],
 * unix://[[user]:password@]/path[?db=N], or
 * redis[s]+sentinel://[[user]:password@]host[:port][,...]/master[/database][?db=N
 * &sentinel_user=U&sentinel_password=P]; percent-encoded where needed. NG_EINVAL: `error` says
 * what is wrong, without a password. */
int redis_uri_parse(struct ng_str text, struct redis_uri *ret,
                    char error[REDIS_URI_ERROR_SIZE]);
void redis_uri_free(struct redis_uri *uri);

/* Reads "host:port"; the host may be an IPv6 address without brackets. false: it is not one. */
bool redis_place_parse(struct ng_str text, struct redis_place *ret);
bool redis_place_is(const struct redis_place *left, const struct redis_place *right);

#endif
