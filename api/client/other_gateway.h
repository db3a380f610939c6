/* SPDX-License-Identifier: MIT */
/*
 * other_gateway.h - a gateway that answers at the configured address, over plain HTTP, and
 * whose data directory is another one than that of the command.
 */
#ifndef NOTEGATE_API_OTHER_GATEWAY_H
#define NOTEGATE_API_OTHER_GATEWAY_H

#include "attach.h"

#define OTHER_GATEWAY_WAIT_MS 1000
/* In the environment: the key of a client, as in the guides. */
#define OTHER_GATEWAY_KEY "NOTEGATE_KEY"

enum other_gateway {
    OTHER_GATEWAY_NONE,    /* or the command works on its own data directory, after a message */
    OTHER_GATEWAY_KEYED,   /* takes the key of the environment: the command works on it */
    OTHER_GATEWAY_REFUSED, /* the command must not run; after a message */
};

/*
 * For a command whose data directory is the default, and not served; waits
 * OTHER_GATEWAY_WAIT_MS at most for each answer. A user without a store uses the gateway with
 * the key of the environment. KEYED: address and authorization of `attach` are set.
 */
enum other_gateway other_gateway_find(struct command_line *line, struct attach *attach);

#endif
