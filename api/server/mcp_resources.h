/* SPDX-License-Identifier: MIT */
/* mcp_resources.h - shared by resources, completion and subscriptions: the
 * kinds of resources, and those that a caller may see. */
#ifndef NOTEGATE_API_MCP_RESOURCES_H
#define NOTEGATE_API_MCP_RESOURCES_H

#include "api/protocol/mcp_uri.h"
#include "mcp_server.h"

/* How long a client may cache a list (rights can be removed), and a content: resources
 * change at any time, an earlier revision never does. */
#define MCP_LIST_TTL_MS 60000
#define MCP_RESOURCES_TTL_MS 0
#define MCP_REVISION_TTL_MS 3600000

/* A kind of resource and whose it is. */
struct mcp_source {
    struct plugin *plugin;
    const struct ng_resources *desc;
};

/* All kinds, in stable order. False: there are no more. */
bool mcp_source_at(struct gateway *gateway, size_t index, struct mcp_source *ret);
/* The kind's name, or its template where it has no kind. */
struct ng_str mcp_source_name(const struct ng_resources *desc);
/* By that name, if the caller may see it; *ret_index may be NULL. */
bool mcp_source_find(struct call *call, struct ng_str name, struct mcp_source *ret,
                     size_t *ret_index);
/* The resource that a URI names, if the caller may see such kinds. NG_OK; NG_ENOTFOUND;
 * NG_EINVAL with *ret_why; NG_EINTERNAL. For a plugin's own URI only ret_uri->id is set. */
int mcp_source_of_uri(struct call *call, struct ng_str text, struct mcp_source *ret,
                      struct mcp_uri *ret_uri, const char **ret_why);
/* Do its revisions stay readable? */
bool mcp_source_keeps_history(const struct mcp_source *source);

/* May the caller see anything of this plugin? */
bool mcp_sees_plugin(struct call *call, const struct plugin *plugin);
/* And has that something to list (configured())? */
bool mcp_lists_plugin(struct call *call, const struct plugin *plugin);
/* The spaces a caller's lists are of, each once, in the order of its key. In a step only. NULL:
 * out of memory. */
const struct ng_str *mcp_spaces(struct call *call, size_t *ret_count);
bool mcp_space_listed(const struct call *call, struct ng_str space);
/* May the caller read it? A caller that may see all spaces need not have them in its lists. */
bool mcp_space_visible(const struct call *call, struct ng_str space);

/* The place at which a step runs code of `plugin`: NG_OK right here, else the return value of
 * the step (it is called again, in that plugin's gate). */
int mcp_enter_plugin(struct call *call, struct plugin *plugin, ng_step_fn *step, void *user);

/* ,"ttlMs":N,"cacheScope":"private" where the version has them. */
void mcp_print_cache(struct mcp_exchange *exchange, struct buf *out, int ttl_ms);
/* The failure of a call as a JSON-RPC error, whose code says whether the request was at fault.
 */
void mcp_answer_failed(struct mcp_exchange *exchange, const struct call *call);
/* {"uri":...} */
void mcp_answer_unknown_uri(struct mcp_exchange *exchange, struct ng_str uri,
                            struct ng_str message);
/* The answer {"NAME":[...]} of a list that has one page, between these two. NULL: a cursor
 * came, which is answered with an error. */
struct buf *mcp_list_open(struct mcp_exchange *exchange, const char *name,
                          struct ng_writer *writer);
int mcp_list_close(struct mcp_exchange *exchange, struct ng_writer *writer);
/* mcp_tools.c: the revision that a call answers with, as a member of _meta; or nothing. */
void mcp_print_revision(struct buf *meta, const struct result *result);
/* A string of params; absent: answered with an error that says `what`. */
struct ng_str mcp_text_param(struct mcp_exchange *exchange, const char *name, const char *what);

#endif
