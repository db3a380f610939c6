/* SPDX-License-Identifier: MIT */
/*
 * mcp_state.h - state that a client keeps for the gateway: sealed with a key of the
 * gateway's own, so that it comes back as it was, in time, and for the same request of the same
 * caller. It is not secret: a client can read it.
 */
#ifndef NOTEGATE_API_MCP_STATE_H
#define NOTEGATE_API_MCP_STATE_H

#include "core/base/arena.h"
#include "core/base/buf.h"

/* The key's file in the data directory (mode 0600): sealed state survives a restart. */
#define MCP_SEAL_KEY_NAME "mcp.key"
#define MCP_SEAL_KEY_BYTES 32
/* The lifetime of a seal. In a shared database it is counted in the minutes of cluster.h, by no
 * clock: from one minute less to a tenth more. */
#define MCP_SEAL_LIFE_MS ((int64_t)60 * 60 * 1000)
/* Bytes that can be sealed. */
#define MCP_SEAL_PAYLOAD_MAX ((size_t)256 * 1024)
#define MCP_SEAL_BINDING_BYTES 32

struct mcp_seal;

/* The binding of a seal: a hash of pieces, each with its length. */
struct mcp_binding {
    unsigned char bytes[MCP_SEAL_BINDING_BYTES];
};
int mcp_binding_make(const struct ng_str *pieces, size_t count, struct mcp_binding *ret);

/* data_dir NULL: a key for this run only. NG_OK, or NG_EINTERNAL: no key could be read or made.
 */
int mcp_seal_new(const char *data_dir, struct mcp_seal **ret);
/* The gateways of a shared database open what another one sealed. cluster: NULL, or one whose
 * documents are not shared: a no-op. */
struct cluster;
void mcp_seal_share(struct mcp_seal *seal, struct cluster *cluster);
void mcp_seal_free(struct mcp_seal *seal); /* NULL is a no-op */

/* Adds base64url text to `out`. now_ms: Unix time. NG_ETOOLARGE: more than
 * MCP_SEAL_PAYLOAD_MAX. */
int mcp_seal_close(const struct mcp_seal *seal, const struct mcp_binding *binding,
                   int64_t now_ms, struct ng_str payload, struct buf *out);
/* *ret lies in the arena. NG_EINVAL: not from here, altered, expired, or for another request
 * (*ret_why: static sentence). NG_EUNAVAILABLE: the shared secret was not read yet. */
int mcp_seal_open(const struct mcp_seal *seal, const struct mcp_binding *binding,
                  int64_t now_ms, struct ng_str text, struct arena *arena, struct ng_str *ret,
                  const char **ret_why);

#endif
