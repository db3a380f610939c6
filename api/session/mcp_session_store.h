/* SPDX-License-Identifier: MIT */
/*
 * mcp_session_store.h - sessions as documents of a database that gateways share: as much as
 * another gateway needs to go on with a session when its own has stopped. Calls under way,
 * questions to the client and streams are not part of it.
 *
 * A document names the start of the gateway that has the session (cluster_token()). Another one
 * takes it when that start holds nothing any more (cluster_holds()).
 */
#ifndef NOTEGATE_API_MCP_SESSION_STORE_H
#define NOTEGATE_API_MCP_SESSION_STORE_H

#include "mcp_session.h"

struct mcp_session_record {
    struct ng_str id, owner, client;
    struct ng_str gateway, token; /* of the gateway that has it */
    enum mcp_version version;
    enum mcp_log_level log_level;
    unsigned asks, abilities;
    unsigned moves;              /* how often it was taken */
    const struct ng_value *uris; /* an array, or NULL */
    uint64_t revision;
};

enum mcp_session_edit_kind {
    MCP_SESSION_CREATE = 0,
    MCP_SESSION_LEVEL,
    MCP_SESSION_SUBSCRIBE,
    MCP_SESSION_UNSUBSCRIBE,
    MCP_SESSION_TAKE,
    MCP_SESSION_ERASE,
    MCP_SESSION_FORGET /* erases it, if no gateway has taken it since */
};

/* CREATE: all of `record` but the gateway. LEVEL: its log_level. TAKE: the record as it was
 * loaded; it becomes this gateway's, unless another one has taken it since. ERASE: as it was
 * loaded, or with its id alone. FORGET: its moves. Always its id. */
struct mcp_session_edit {
    enum mcp_session_edit_kind kind;
    struct mcp_session_record record;
    struct ng_str uri; /* (UN)SUBSCRIBE */
    /* Returned: it is another gateway's, or gone. Also read while the step may still run. */
    atomic_bool moved;
};

/* Before the first one. */
int mcp_session_declare(struct gateway *gateway, struct buf *error);
/* Into memory of the call. NG_ENOTFOUND. On workers. */
int mcp_session_load(struct call *call, struct ng_str id, struct mcp_session_record *ret);
/* Waits until it is on disk. NG_ECONFLICT: ERASE, and the document has changed. NG_EUNAVAILABLE
 * also for a session that another gateway has taken (moved). On workers. */
int mcp_session_edit(struct call *call, struct mcp_session_edit *edit);
/* As the step of a call; user: struct mcp_session_edit. */
int mcp_session_edit_step(struct ng_call *call, void *user);
/* Those that no gateway has any more and none wanted since the last time are erased; of this
 * gateway, those that are not in its table: their end could not be stored, or no client came
 * back for them. *known: of the caller, NULL at first; freed by it. */
struct mcp_session_orphans;
int mcp_session_sweep_stored(struct call *call, struct mcp_sessions *sessions,
                             struct mcp_session_orphans **known);
void mcp_session_orphans_free(struct mcp_session_orphans *orphans); /* NULL is a no-op */

#endif
