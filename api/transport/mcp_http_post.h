/* SPDX-License-Identifier: MIT */
/* mcp_http_post.h - state shared by the two halves of MCP over HTTP. */
#ifndef NOTEGATE_API_MCP_HTTP_POST_H
#define NOTEGATE_API_MCP_HTTP_POST_H

#include <pthread.h>

#include "api/server/mcp_client_request.h"
#include "core/base/lock.h"
#include "mcp_forward.h"
#include "mcp_http.h"

struct mcp_http {
    struct gateway *gateway;
    const struct mcp_methods *methods;
    bool notifiers; /* the gateway's list of them is open */
    struct mcp_sessions *sessions;
    struct mcp_client_requests *client_requests;
    struct mcp_forwards *forwards;       /* NULL: sessions of other gateways are not reached */
    struct mcp_session_orphans *orphans; /* mcp_find_sweep() */
    atomic_bool sweeps;
    int64_t swept_ns;
    struct lock lock;
    pthread_cond_t idle;
    int jobs; /* jobs that ended pending, also those whose client left; negative while one of
                 them is over before it is counted */
};

/* mcp_http.c */
int mcp_http_refuse(struct mcp_http_response *response, int status, int code,
                    const char *message);
int mcp_http_refuse_session(struct mcp_http_response *response);
/* The media types that a list like "application/json;q=0.9, text/event-stream" accepts; an
 * absent one none. */
enum mcp_http_accept { MCP_HTTP_JSON = 1, MCP_HTTP_EVENTS = 2 };
unsigned mcp_http_accepts(struct ng_str list);
/* The owner of a session: the agent, and the key it came with. */
struct ng_str mcp_http_owner(const struct auth_caller *caller,
                             char owner[MCP_SESSION_OWNER_MAX]);
int mcp_http_get(struct mcp_http *mcp, const struct mcp_http_request *request,
                 struct mcp_http_response *response);
void mcp_http_count_job(struct mcp_http *mcp, bool begins);

/* mcp_http_post.c */
int mcp_http_post(struct mcp_http *mcp, const struct mcp_http_request *request,
                  struct mcp_http_response *response, mcp_http_done_fn *done, void *user);
void mcp_http_give_stream(struct mcp_http_response *response, struct http_stream *stream);

#endif
