/* SPDX-License-Identifier: MIT */
/*
 * mcp_forward.h - requests of a session that another gateway of the same database has go there,
 * as they came, and its answer comes back, also as a stream. If that gateway is gone, this one
 * takes the session.
 *
 * The session's gateway checks the caller's key itself: a gateway never speaks for a caller.
 * The header Notegate-Forwarded has the token of the gateway that is meant, which only the
 * shared database knows; a request with this header is never forwarded again, but by a gateway
 * to itself.
 */
#ifndef NOTEGATE_API_MCP_FORWARD_H
#define NOTEGATE_API_MCP_FORWARD_H

#include "mcp_http.h"

struct mcp_forwards;

/* *ret NULL: this gateway does not advertise an address. Not NG_OK: `error` has a sentence. */
int mcp_forwards_open(struct gateway *gateway, struct mcp_forwards **ret, struct buf *error);
/* The transport stops: those under way end. NULL is a no-op. */
void mcp_forwards_cancel(struct mcp_forwards *forwards);
/* None is under way. NULL is a no-op. */
void mcp_forwards_close(struct mcp_forwards *forwards);

/*
 * NG_ENOTFOUND: the request is this gateway's own. Else as mcp_http_handle(): NG_OK also for
 * one with a wrong header.
 */
int mcp_forward(struct mcp_http *mcp, const struct mcp_http_request *request,
                struct mcp_http_response *response, mcp_http_done_fn *done, void *user);
/* Sessions of before a lapse of this gateway's lease may be another one's by now: they are let
 * go. From time to time, too: a client with an open stream may send its requests elsewhere. */
void mcp_forward_check_lapses(struct mcp_http *mcp);

#endif
