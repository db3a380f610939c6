/* SPDX-License-Identifier: MIT */
/* mcp_message.h - JSON-RPC 2.0 as MCP uses it: parses messages and prints errors. Ids are kept
 * as they were written. */
#ifndef NOTEGATE_API_MCP_MESSAGE_H
#define NOTEGATE_API_MCP_MESSAGE_H

#include "core/json/json.h"

/* JSON-RPC's and MCP's error codes. Refusals of the gateway itself have their HTTP status as
 * the code: the ranges below are not ours to add to. */
enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_MISSING_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022
};

/* Messages in one batch. */
#define MCP_BATCH_MAX 100
/* Levels of JSON-RPC around the arguments of a tool: the message, params; and around those a
 * batch. */
#define MCP_ENVELOPE_DEPTH 2
/* Room for a sentence about a message. */
#define MCP_SENTENCE_MAX 512

enum mcp_kind { MCP_REQUEST = 1, MCP_NOTIFICATION, MCP_RESPONSE };

/* Lent from the parsed text. */
struct mcp_message {
    enum mcp_kind kind;
    const struct ng_value *id; /* requests and responses: a string or an integer; else NULL */
    struct ng_str method;      /* requests and notifications */
    const struct ng_value *params; /* an object, or NULL */
    const struct ng_value *meta;   /* params._meta, an object, or NULL */
};

/* NG_OK, or NG_EINVAL: *ret_error is a sentence (static), ret->id is the id if one could be
 * read. Members that are null count as not given and are taken out: of params, also inside, but
 * for the arguments of a tool and the answers of users; and of result and error. */
int mcp_message_read(const struct ng_value *value, struct mcp_message *ret,
                     const char **ret_error);

/* A member of the message itself that is not null; else NULL. */
const struct ng_value *mcp_message_get(const struct ng_value *message, const char *name);

/* The id of a request of which this was read (NULL: nothing), if it can be told; else NULL. */
const struct ng_value *mcp_message_partial_id(const struct ng_value *read);
/* The same of one that is refused unread, by its beginning. Memory of the arena. */
const struct ng_value *mcp_message_early_id(struct arena *arena, struct ng_str beginning);

/* Two ids are the same: kind and spelling. */
bool mcp_id_equal(const struct ng_value *a, const struct ng_value *b);
/* The id as it came; null where there is none. */
void mcp_print_id(struct buf *out, const struct ng_value *id);
/* {"jsonrpc":"2.0","id":...,"error":{...}}. data: JSON, or absent. */
void mcp_print_error(struct buf *out, const struct ng_value *id, int code,
                     struct ng_str message, struct ng_str data);
/* {"jsonrpc":"2.0","method":"notifications/METHOD","params":{...}}. uri: or absent; meta: JSON
 * members of _meta, or NULL. */
void mcp_print_notification(struct buf *out, const char *method, struct ng_str uri,
                            const char *meta);

#endif
