/* SPDX-License-Identifier: MIT */
/* mcp_relay_message.h - the facts about a message that the relay needs to pass it on over
 * HTTP. */
#ifndef NOTEGATE_API_MCP_RELAY_MESSAGE_H
#define NOTEGATE_API_MCP_RELAY_MESSAGE_H

#include "core/base/buf.h"

#define RELAY_HEADER_MAX 128
#define RELAY_NAME_MAX 4096

struct relay_message {
    char method[RELAY_HEADER_MAX];  /* "": none, or too long for one */
    char version[RELAY_HEADER_MAX]; /* in _meta: the stateless version; else "" */
    char name[RELAY_NAME_MAX];      /* for Mcp-Name, encoded where it must be */
    struct buf id;                  /* JSON of the id; "" = no request */
    struct buf answers; /* JSON of the id where it is a response of the client; or "" */
    struct buf cancels; /* JSON of params.requestId of notifications/cancelled; or "" */
    bool is_initialize, is_initialized;
    bool is_listen; /* its answer is a stream without end */
    bool is_batch;
};

/* Any text: the gateway refuses a text that is no message. */
void relay_message_read(struct ng_str text, struct relay_message *ret);
void relay_message_done(struct relay_message *message);
/* The kind of a message of the gateway. */
enum relay_said { RELAY_SAYS, RELAY_ANSWERS, RELAY_ASKS };
/* ret_id: the id of RELAY_ASKS as JSON, "" where it does not fit. */
enum relay_said relay_message_said(struct ng_str text, char *ret_id, size_t size);
/* The version an initialize result agrees on; "" stays where there is none. */
void relay_message_agreed(struct ng_str answer, char ret_version[RELAY_HEADER_MAX]);
/* The JSON-RPC error for a request that got no answer: the gateway's own where `body` has one,
 * with this id; status 0: `body` is a sentence. */
void relay_message_error(const struct relay_message *message, int status, struct ng_str body,
                         struct buf *out);

#endif
