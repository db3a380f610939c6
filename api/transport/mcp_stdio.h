/* SPDX-License-Identifier: MIT */
/* mcp_stdio.h - MCP over a pair of descriptors: one message a line, several calls at once,
 * answers as they finish. */
#ifndef NOTEGATE_API_MCP_STDIO_H
#define NOTEGATE_API_MCP_STDIO_H

#include "api/auth/auth.h"

/* Requests under way at once; further ones are answered with 503. */
#define MCP_STDIO_IN_FLIGHT_MAX 1024
#define MCP_STDIO_LOOK_MS 5000

struct mcp_methods;

struct mcp_stdio {
    struct gateway *gateway;
    const struct mcp_methods *methods;
    int in_fd, out_fd;
    int stop_fd;                      /* readable: end as at the end of input; -1: none */
    const struct auth_caller *caller; /* of every call */
    bool is_shared; /* others use the gateway, too: only calls of this client are cancelled */
    /* Called before it waits for input, and then each MCP_STDIO_LOOK_MS; NULL: no need. */
    void (*look)(void *user);
    void *look_user;
};

/*
 * Serves until the end of input (or stop_fd), lets running calls finish, and returns NG_OK. If
 * the client leaves (out_fd has no reader), running calls are cancelled; that is NG_OK too.
 * NG_EINTERNAL: could not start. A line longer than limits.body is refused, the next one read.
 * While more than limits.buffered of answers wait to be read, no input is read.
 */
int mcp_stdio_run(const struct mcp_stdio *stdio);

#endif
