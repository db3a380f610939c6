/* SPDX-License-Identifier: MIT */
/*
 * client.h - requests to a gateway: to a running one through its Unix socket, or over TCP.
 *
 * The client is a module (client.so) of its own, so that serving does not load libcurl. It
 * exports one symbol, `notegate_client`, of type struct client_api.
 */
#ifndef NOTEGATE_API_CLIENT_H
#define NOTEGATE_API_CLIENT_H

#include <stdatomic.h>

#include "notegate/abi.h"

#define CLIENT_MODULE_NAME "client.so"
#define CLIENT_SYMBOL "notegate_client"
/* Raised with every change of these structs: binary and module come from one build. */
#define CLIENT_API 2
/* The commands' own name, in audit lines. */
#define CLIENT_NAME "notegate/" NOTEGATE_VERSION
/* A header of every answer of a gateway that `notegate mcp` has opened: it ends with its
 * client, and nothing starts it again. */
#define CLIENT_GATEWAY_HEADER "x-notegate-gateway"
#define CLIENT_GATEWAY_MCP "mcp"
/* Headers in one request. */
#define CLIENT_HEADERS_MAX 16

/* One request and where its answer goes. Lent until send() returns. */
struct client_request {
    const char *socket_path;                 /* NULL: over TCP, to `address` */
    const char *address;                     /* "127.0.0.1:8420" */
    const char *method;                      /* "GET", "POST" */
    const char *path;                        /* "/v1/tools" */
    const char *headers[CLIENT_HEADERS_MAX]; /* "Name: value" */
    size_t header_count;
    struct ng_str body; /* absent: none */
    long wait_ms;       /* for the whole answer; 0: no limit */
    /* The answer, as it comes. Not 0 ends the request. status: of the answer. */
    int (*on_body)(void *user, int status, const char *data, size_t len);
    /* May be NULL. Name in lower case. */
    void (*on_header)(void *user, const char *name, struct ng_str value);
    void *user;
    const atomic_bool *stop; /* becomes true: the request ends. May be NULL */
};

enum client_outcome {
    CLIENT_OK = 0,
    CLIENT_NOBODY = 1,  /* no listener there */
    CLIENT_STOPPED = 2, /* on_body or `stop` ended it */
    CLIENT_BROKEN = 3   /* the connection broke, or what came is not HTTP */
};

struct client_api {
    unsigned version; /* CLIENT_API */
    /* Any thread. `error`: where it is not CLIENT_OK, a sentence. */
    enum client_outcome (*send)(const struct client_request *request, int *ret_status,
                                char *error, size_t error_size);
};

#endif
