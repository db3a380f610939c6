/* SPDX-License-Identifier: MIT */
/* uri.h - address and credentials of a Redis: redis://, rediss:// and unix:// URIs. */
#ifndef NOTEGATE_REDIS_URI_H
#define NOTEGATE_REDIS_URI_H

#include <notegate/abi.h>

/* Longest URI, in bytes. */
#define REDIS_URI_MAX 4096
#define REDIS_URI_ERROR_SIZE 160

struct redis_uri {
    bool tls;
    const char *host; /* without brackets; NULL: a socket path is given */
    const char *path;
    const char *user;     /* NULL: not given */
    const char *password; /* NULL: not given */
    char port[24];
    int database;
    char *memory; /* holds the texts above */
};

/* redis[s]://[[user]:password@]host[:port][/database] or unix://[[user]:password@]/path[?db=N];
 * percent-encoded where needed. NG_EINVAL: `error` says what is wrong, without the password. */
int redis_uri_parse(struct ng_str text, struct redis_uri *ret,
                    char error[REDIS_URI_ERROR_SIZE]);
void redis_uri_free(struct redis_uri *uri);

#endif
