/* SPDX-License-Identifier: MIT */
/* mcp_rate.c - the cost of messages in the rate of their key: before they are parsed,
 * after it, or as the method says. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "mcp_resources.h"
#include "mcp_server.h"

/* A message up to this size may be of those that are free. */
#define MCP_FREE_BYTES ((size_t)4 * 1024)
/* Of a message that is refused unread: the id is looked for in them. */
#define MCP_UNREAD_BYTES ((size_t)4 * 1024)

void mcp_job_refuse_unread(struct mcp_job *job, const struct ng_value *value, int status,
                           struct ng_str sentence)
{
    const struct ng_value *id = mcp_message_partial_id(value);
    if (value == NULL) {
        struct ng_str text = job->text;
        text.len = size_min(text.len, MCP_UNREAD_BYTES);
        id = mcp_message_early_id(&job->call->arena, text);
    }
    mcp_print_error(job->out, id, status, sentence, STR_NONE);
    job->status = status;
}

static bool prepay(struct mcp_job *job, const struct ng_value *value)
{
    struct call *call = job->call;
    call->method = ng_str_of("POST"); /* until its message is parsed */
    if (dispatch_take_rate(call) == NG_OK) {
        job->rate = MCP_RATE_PREPAID;
        return true;
    }
    job->retry_after_s = call->final.retry_after_s;
    mcp_job_refuse_unread(job, value, call->final.status, call->final.message);
    return false;
}

bool mcp_rate_before_parse(struct mcp_job *job)
{
    job->rate = MCP_RATE_NONE;
    if (!job->on_loop || job->text.len <= MCP_FREE_BYTES) {
        return true;
    }
    /* The call that asks was counted when it began. */
    if (job->session != NULL && mcp_session_let_in(job->session)) {
        job->rate = MCP_RATE_DUE;
        return true;
    }
    return prepay(job, NULL);
}

static bool is_answer(const struct ng_value *message)
{
    return message->type == NG_TYPE_OBJECT && mcp_message_get(message, "method") == NULL;
}

static bool only_answers(const struct ng_value *value)
{
    if (value->type != NG_TYPE_ARRAY) {
        return is_answer(value);
    }
    bool all = value->count > 0;
    for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
        all = all && is_answer(item);
    }
    return all;
}

bool mcp_rate_after_parse(struct mcp_job *job, const struct ng_value *value)
{
    if (job->rate != MCP_RATE_DUE || (value != NULL && only_answers(value))) {
        return true;
    }
    if (!prepay(job, value)) {
        return false;
    }
    mcp_session_let_in_again(job->session);
    return true;
}

bool mcp_rate_take(struct mcp_exchange *exchange, const struct mcp_method *method)
{
    struct mcp_job *job = exchange->job;
    bool alone = !job->is_batch && job->text.len <= MCP_FREE_BYTES;
    if (job->rate == MCP_RATE_PREPAID) {
        job->rate = MCP_RATE_NONE;
        exchange->call->options |= CALL_NO_RATE;
        return true;
    }
    if (method->cost == MCP_COST_CALL || (method->cost == MCP_COST_FREE && alone) ||
        dispatch_take_rate(exchange->call) == NG_OK) {
        return true;
    }
    mcp_answer_failed(exchange, exchange->call);
    return false;
}
