/* SPDX-License-Identifier: MIT */
/* other_gateway.h - looks whether a gateway answers at an address, over plain HTTP. */
#ifndef NOTEGATE_API_OTHER_GATEWAY_H
#define NOTEGATE_API_OTHER_GATEWAY_H

#include "client.h"
#include "core/base/buf.h"

/* address: "127.0.0.1:8420". True: a gateway does. If it refuses this user, its hint is added
 * to `hint`. Waits OTHER_GATEWAY_WAIT_MS at most. */
bool other_gateway_answers(const struct client_api *client, struct ng_str address,
                           struct buf *hint);

#define OTHER_GATEWAY_WAIT_MS 1000

#endif
