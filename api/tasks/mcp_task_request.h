/* SPDX-License-Identifier: MIT */
/* mcp_task_request.h - requests about tasks: what mcp_tasks.c and mcp_tasks_handshake.c share.
 */
#ifndef NOTEGATE_API_MCP_TASK_REQUEST_H
#define NOTEGATE_API_MCP_TASK_REQUEST_H

#include "mcp_tasks.h"

/* The state of a method; memory of the exchange's call, which has it as its step_user. */
struct mcp_task_request {
    bool is_stateless;
    struct mcp_tasks *tasks;
    struct ng_str owner;
    struct ng_str id;
    struct mcp_task task;
    /* update */
    const struct ng_value *answers;
    struct call *prepared;
    struct ng_str asks_before, answers_before;
    bool is_complete; /* everything asked was answered */
    int merge_rc;
    /* cancel */
    bool did_cancel;
    /* result */
    const struct ng_value *outcome;
    /* list */
    bool has_place; /* the page begins behind it; then where the next one does */
    struct mcp_task_place place;
    struct mcp_task *page;
    size_t count;
    bool has_more;
};

/* May this request be about tasks at all? NULL: no, and that is answered. */
struct mcp_task_request *mcp_task_request_new(struct mcp_exchange *exchange);
/* The same for a method that names a task. */
struct mcp_task_request *mcp_task_request_named(struct mcp_exchange *exchange);
/* Answers that came for the task; if they are all, its tool runs again. On workers. */
int mcp_task_request_apply(struct mcp_task_request *request, struct call *call);
/* The kinds of requests that the client of a handshake session takes. */
unsigned mcp_task_session_asks(const struct mcp_exchange *exchange);
/* The call in which the tool runs again, kept by `call`. False: out of memory. */
bool mcp_task_request_prepare(struct mcp_task_request *request, struct call *call);
/* Runs the request's step; request NULL: it is answered already. */
int mcp_task_request_run(struct mcp_exchange *exchange, struct mcp_task_request *request,
                         const struct mcp_run *run);
/* For struct mcp_run: the answer to a step that failed. */
void mcp_task_request_failed(struct mcp_exchange *exchange, const struct call *call);

#endif
