/* SPDX-License-Identifier: MIT */
/* mcp_relay.h - MCP on stdin and stdout, passed on to the running gateway's /mcp. */
#ifndef NOTEGATE_API_MCP_RELAY_H
#define NOTEGATE_API_MCP_RELAY_H

#include "attach.h"

/* The command around the relay. Its functions are called in the thread of mcp_relay_run(), as
 * plugins start there and their programs end with the thread that started them. */
struct mcp_relay_host {
    int out_fd;
    int stop_fd; /* -1: none */
    /* One try, without waiting, where no gateway answers at the socket. NG_OK: one answers
     * again, of this process or another. NG_EBUSY: not yet. Else not, after a message. */
    int (*take_over)(void *user);
    /* Now and then. */
    void (*look)(void *user);
    void *user;
};

/* Answers go to out_fd. Until the end of input, or until stop_fd is readable. enum
 * command_exit; `attach` stays open. */
int mcp_relay_run(struct command_line *line, struct attach *attach,
                  const struct mcp_relay_host *host);

#endif
