/* SPDX-License-Identifier: MIT */
/* mcp_relay.h - MCP on stdin and stdout, passed on to the running gateway's /mcp. */
#ifndef NOTEGATE_API_MCP_RELAY_H
#define NOTEGATE_API_MCP_RELAY_H

#include "attach.h"

/* The command around the relay. Its functions are called in the thread of mcp_relay_run(), as
 * plugins start there and their programs end with the thread that started them. */
struct mcp_relay_host {
    int out_fd;
    int stop_fd;     /* -1: none */
    const char *run; /* the label of this process (run_id.h), or "" */
    /* Called when no gateway answers at the socket: tries once, without waiting. NG_OK: a
     * gateway of this or another process answers. NG_EBUSY: not yet. Other codes: none will,
     * and a message says why. */
    int (*take_over)(void *user);
    /* Called while the relay waits for input, at least every 5 s. */
    void (*look)(void *user);
    void *user;
};

/* Answers go to out_fd. Until the end of input, or until stop_fd is readable. enum
 * command_exit; `attach` stays open. */
int mcp_relay_run(struct command_line *line, struct attach *attach,
                  const struct mcp_relay_host *host);

#endif
