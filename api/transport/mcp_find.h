/* SPDX-License-Identifier: MIT */
/*
 * mcp_find.h - which gateway of a shared database has a session, by the session's document. One
 * whose gateway holds nothing any more is taken by the gateway that looks: of several that look
 * at the same time one gets it.
 */
#ifndef NOTEGATE_API_MCP_FIND_H
#define NOTEGATE_API_MCP_FIND_H

#include "mcp_http_post.h"

enum mcp_place {
    MCP_PLACE_UNKNOWN = 0, /* the database did not answer */
    MCP_PLACE_MOVED,       /* another gateway took it meanwhile: to be looked up again */
    MCP_PLACE_NONE,        /* there is no such session of this caller */
    MCP_PLACE_HERE,
    MCP_PLACE_THERE,  /* `gateway` has it */
    MCP_PLACE_ENDED,  /* as it was asked to */
    MCP_PLACE_REFUSED /* over the rate of the caller's key */
};

/* Copied, but for the caller's texts: they live until found(). */
struct mcp_asked {
    struct ng_str id;
    const struct auth_caller *caller;
    bool ends;       /* the session is to end, if it is not elsewhere */
    bool is_counted; /* in the key's rate before, or by the gateway that sent the request */
    char refused[CLUSTER_SECRET_LEN + 1]; /* this start of a gateway is gone; or "" */
};

struct mcp_found {
    enum mcp_place place;
    char gateway[CLUSTER_ID_LEN + 1];
    struct ng_str message; /* REFUSED: a sentence, valid during found() */
    int retry_after_s;
};

/* Calls found(user) once, perhaps before it returns. */
typedef void mcp_found_fn(const struct mcp_found *found, void *user);
void mcp_find(struct mcp_http *mcp, const struct mcp_asked *asked, mcp_found_fn *found,
              void *user);

/* A call of the gateway's own: the document of a session that ended here is erased. */
void mcp_find_forget(struct mcp_http *mcp, const struct mcp_session *session);
/* From time to time: documents of sessions whose gateways are gone for long. */
void mcp_find_sweep(struct mcp_http *mcp);

#endif
