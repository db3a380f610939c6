/* SPDX-License-Identifier: MIT */
/*
 * mcp_notifier.h - notifications of one client: changed lists and subscribed resources. A
 * session of the handshake versions has one, every subscriptions/listen has one.
 *
 * Changes come from the event feed and from plugins that report changed lists; they are sent on
 * a worker, in order, each once. Nothing here blocks.
 */
#ifndef NOTEGATE_API_MCP_NOTIFIER_H
#define NOTEGATE_API_MCP_NOTIFIER_H

#include "mcp_resources.h"

/* Resources that one session, or one listen, subscribes to. */
#define MCP_SUBSCRIPTIONS_MAX 1000
#define MCP_SUBSCRIPTIONS_BYTES_MAX ((size_t)1024 * 1024)

struct mcp_notifier;

/* How messages leave. Called with the notifier locked, never after mcp_notifier_close(). */
typedef void mcp_notifier_send_fn(void *user, struct ng_str message);

/* The gateway's list of notifiers; a reference for each transport that serves MCP. */
int mcp_notifiers_open(struct gateway *gateway);
void mcp_notifiers_close(struct gateway *gateway);

/*
 * caller: its spaces are known (dispatch_spaces); a reference is taken. lists: of enum
 * ng_lists, subscribed to. meta: JSON members of every message's _meta, or absent; copied.
 * Returns one reference; mcp_notifier_open() begins.
 */
int mcp_notifier_new(struct call *caller, unsigned lists, struct ng_str meta,
                     mcp_notifier_send_fn *send, void *user, struct mcp_notifier **ret);
/* From now on. first: sent before anything else; or absent. NG_OK (also where it was closed
 * already: a no-op), or the feed's failure. */
int mcp_notifier_open(struct mcp_notifier *notifier, struct ng_str first);
/* As if all that it tells of had changed. */
void mcp_notifier_tell_all(struct mcp_notifier *notifier);
/* Nothing is sent any more when it returns. Not from within send(). Again: a no-op. */
void mcp_notifier_close(struct mcp_notifier *notifier);
void mcp_notifier_ref(struct mcp_notifier *notifier);
void mcp_notifier_unref(struct mcp_notifier *notifier); /* NULL is a no-op */

/* Subscribes. uri: in the client's spelling, which notifications repeat. Known already: NG_OK.
 * NG_ETOOLARGE: the maximum is reached; NG_EBUSY: limits.buffered; NG_EINTERNAL. */
#define MCP_NOTIFIER_RETRY_S 1
#define MCP_NOTIFIER_NO_ROOM                                                                   \
    "bodies and subscriptions take as much memory as they may (limits.buffered, of which one " \
    "agent has half); unsubscribe from some first"
int mcp_notifier_add(struct mcp_notifier *notifier, const struct mcp_source *source,
                     const struct mcp_uri *uri, struct ng_str text);
/* False: it was not subscribed to. */
bool mcp_notifier_remove(struct mcp_notifier *notifier, const struct mcp_source *source,
                         const struct mcp_uri *uri);

#endif
