/* SPDX-License-Identifier: MIT */
/* mcp_forward_state.h - a forwarded request as the files of forwarding see it; others include
 * mcp_forward.h. */
#ifndef NOTEGATE_API_MCP_FORWARD_STATE_H
#define NOTEGATE_API_MCP_FORWARD_STATE_H

#include "api/client/exchange.h"
#include "core/base/lock.h"
#include "core/cluster/cluster.h"
#include "mcp_http_post.h"

#define FORWARD_HEADER "Notegate-Forwarded"
#define FORWARD_HEADERS_MAX 128
/* Of the other gateway: it is not the one that was meant, but a later start or another one. */
#define STATUS_MISDIRECTED 421
#define STATUS_OK 200
#define STATUS_TOO_MANY 429
#define STATUS_UNAVAILABLE 503
#define STATUS_NO_CONTENT 204
/* Gateways that one request goes to; each of them may just have lost the session. */
#define FORWARD_ROUNDS 4
/* A stream whose gateway says nothing for so long, not even a comment, is lost. Not libcurl's
 * low speed limit: a comment is too short to count there. */
#define FORWARD_SILENCE_MS (3 * HTTP_STREAM_KEEPALIVE_MS)
/* Sessions whose gateways are remembered; of two at one place the later one is. */
#define FORWARD_HINTS 1024

/* The last known place of a session; it may have moved since. */
struct hint {
    uint64_t session;
    char gateway[CLUSTER_ID_LEN + 1];
};

struct mcp_forwards {
    void *module;
    const struct exchange_api *api;
    struct exchanges *exchanges;
    char *authorities;
    struct hint hints[FORWARD_HINTS]; /* under the lock of mcp */
    atomic_uint_fast64_t lapses;      /* of the cluster, as far as its sessions went then */
};

enum forward_phase {
    FORWARD_ASKED = 0, /* no head yet */
    FORWARD_BODY,      /* the answer is collected */
    FORWARD_STREAM,    /* the response was given */
    FORWARD_AWAY,      /* it is not with the gateway that was asked */
    FORWARD_GONE       /* there is no such session */
};

/* Memory of its call. References of the call: the exchange, the stream, the response. */
struct forward {
    struct exchange exchange;
    struct mcp_http *mcp;
    struct call *call;
    struct mcp_http_response *response; /* until done() */
    mcp_http_done_fn *done;
    void *user;
    char target[CLUSTER_ID_LEN + 1]; /* the gateway that is asked; "": none yet */
    enum http_method method;
    struct ng_str id, accept, last_event_id;
    const struct auth_caller *caller;
    const char *lines[FORWARD_HEADERS_MAX];
    enum forward_phase phase;             /* of the thread of the exchanges, as the next */
    int64_t heard_ms;                     /* when the stream's last bytes came */
    bool is_change;                       /* counts as a call under way */
    bool came;                            /* another gateway sent it here */
    unsigned rounds;                      /* how often the session was looked up */
    char token[CLUSTER_SECRET_LEN + 1];   /* the one sent; "": none yet */
    char refused[CLUSTER_SECRET_LEN + 1]; /* token of a start that is gone */
    struct lock lock;                     /* of the members below */
    struct http_stream *stream;
    struct buf out;
    size_t whole;     /* bytes of `out` up to the end of an event */
    bool begun, gone; /* the exchange; the client, before it */
    bool paused;
    enum http_stream_state state; /* of the stream */
};

static inline const struct exchange_api *mcp_forward_api(const struct forward *forward)
{
    return forward->mcp->forwards->api;
}

/* mcp_forward_exchange.c */
/* One reference of its call is the caller's. NULL: out of memory. */
struct forward *mcp_forward_new(struct mcp_http *mcp);
/* Everything of the request that is needed when it is gone. */
int mcp_forward_keep(struct forward *forward, const struct mcp_http_request *request);
/* Under way from now on. */
void mcp_forward_start(struct forward *forward, struct mcp_http_response *response);
/* Begins and ends: as a call under way, and as a job of the transport. */
void mcp_forward_count(struct forward *forward, bool begins);
/* The request goes to forward->target. False: it has no address, or the client has left. */
bool mcp_forward_begin(struct forward *forward);
/* The client gets what there is, and the reference of the run is given back. */
void mcp_forward_finish(struct forward *forward, enum exchange_outcome outcome);

/* Is there no more to hope for? On the thread of the exchanges. */
bool mcp_forward_is_lost(struct exchange *exchange);

/* mcp_forward.c: looks the session up. refused: nothing listens where it was. */
void mcp_forward_find(struct forward *forward, bool refused);

#endif
