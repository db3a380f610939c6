/* SPDX-License-Identifier: MIT */
/* mcp_listen_tasks.h - the part of subscriptions/listen that tells of tasks:
 * notifications/tasks, each with the whole task. */
#ifndef NOTEGATE_API_MCP_LISTEN_TASKS_H
#define NOTEGATE_API_MCP_LISTEN_TASKS_H

#include "mcp_tasks.h"

struct mcp_listen_tasks;

/* The part of `asked` in `taskIds`: *ret in the memory of the job's call (NULL: none); the
 * caller's own tasks go into the acknowledgement. False: answered with an error. meta: members
 * of _meta, lent. */
bool mcp_listen_tasks_begin(struct mcp_exchange *exchange, const struct ng_value *asked,
                            struct ng_str meta, struct ng_writer *acknowledgement,
                            struct mcp_listen_tasks **ret);
/* The acknowledgement is sent: what happened since follows now, the rest as it happens. */
void mcp_listen_tasks_acknowledged(struct mcp_listen_tasks *listen); /* NULL is a no-op */
/* Nothing is sent any more when it returns. Again, and NULL: a no-op. */
void mcp_listen_tasks_end(struct mcp_listen_tasks *listen);

#endif
