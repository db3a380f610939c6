/* SPDX-License-Identifier: MIT */
/* dispatch.h - the one way of a call through the gateway, whatever protocol it came by. */
#ifndef NOTEGATE_CORE_DISPATCH_H
#define NOTEGATE_CORE_DISPATCH_H

#include "core/call/call.h"
#include "core/module/registry.h"

/* A text up to this many bytes may be parsed and handled on an event loop; a larger one goes to
 * a worker, in the lane of the agent that sent it, before it is parsed. */
#define DISPATCH_INLINE_BYTES ((size_t)64 * 1024)

/*
 * tool by name -> may this caller? -> input valid? -> limits -> plugin -> answer.
 * NG_OK: the call is done, read call->final (call->done is not called). NG_PENDING:
 * call->done(call, user) runs once, on another thread, possibly before this function returns.
 * Either way the transport then drops its reference with call_unref().
 */
int dispatch(struct call *call);

/* The object where the arguments came as its text, in the call's arena; else what was given, or
 * NULL. */
const struct ng_value *dispatch_arguments(struct call *call, const struct ng_value *given);

/* Takes one call from the rate of the caller's key, for work that is no call of dispatch() or
 * is done before it. NG_ERATE: call->final says so. */
int dispatch_take_rate(struct call *call);

/* Does a call of the tool with these arguments change nothing? */
bool dispatch_only_reads(const struct tool *tool, const struct ng_value *args);
/* May this caller use the tool (role, mode, tool allow-list)? */
bool dispatch_may(struct call *call, const struct tool *tool);
/* Has the plugin something to work on for this caller (configured())? Not asked of one that was
 * not started. */
bool dispatch_configured(struct call *call, const struct plugin *plugin);
/* Both, and is it listed for it now (listed())? Used by every list but those of MCP without
 * sessions, which may vary by rights only. */
bool dispatch_allows(struct call *call, const struct tool *tool);

/* A key that allows only some tools sees the resources, prompts and events of a plugin only if
 * it may use one of its tools. Other callers see them all. */
bool dispatch_sees_plugin(struct call *call, const struct plugin *plugin);
/* The same of documents and events of a collection: it belongs to the plugins that declare it
 * or name it in a resource. The keys themselves are seen by admins only. */
bool dispatch_sees_collection(struct call *call, struct ng_str collection);

/* May this caller change documents of the collection by a tool of the plugin that declares it?
 * (Its role, mode and key; not its spaces.) */
bool dispatch_may_change(struct call *call, struct ng_str collection);

/* The space where the caller named none, and the spaces it may see where no key says so: in
 * call->caller. tool: may be NULL. NG_EFORBIDDEN: the key does not allow the one it named. */
int dispatch_spaces(struct call *call, const struct tool *tool);

/* The deadline of a call came (timers.c): its transport gets TIMEOUT now, whatever the tool
 * still does. */
void dispatch_expire(struct call *call);

/* Runs `step` on a worker as the call's work, with done() as in dispatch(): for transports that
 * do more than call tools (resource reads, listings). */
int dispatch_step(struct call *call, ng_step_fn *step, void *user);

/* call->over of a call of dispatch(): ends it. Code that runs a plugin beside it, start(), sets
 * it, too. */
void dispatch_over(struct call *call);

/* A call of the same caller and origin that has not begun: for work of its own memory, or in
 * the background. NULL: out of memory. */
struct call *dispatch_child(struct call *call);
/* The changes that the child has made are in the audit entry of the call. */
void dispatch_take_changes(struct call *call, const struct call *child);

/* Runs `step` on a worker after the present run: continue_on_worker() of plugins. */
int dispatch_continue(struct ng_call *pub, ng_step_fn *step, void *user);

/* Calls under way (of all transports). Waiting for it to get 0: gateway_drain. */
int64_t dispatch_active(struct gateway *gateway);

#endif
