/* SPDX-License-Identifier: MIT */
/* mcp_task_print.c - a task as JSON members. */
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "mcp_task_table.h"
#include "mcp_tasks.h"

static void print_time(struct buf *out, const char *name, int64_t ms)
{
    char text[RFC3339_SIZE];
    rfc3339_write(ms, RFC3339_MS, text);
    buf_printf(out, ",\"%s\":\"%s\"", name, text);
}

void mcp_task_print(struct buf *out, const struct mcp_task *task, bool is_stateless, bool whole)
{
    enum mcp_task_status status = task->status;
    if (!is_stateless && status == MCP_TASK_COMPLETED && task->is_error) {
        status = MCP_TASK_FAILED; /* versions with a handshake have one status for both */
    }
    buf_add_c(out, "\"taskId\":");
    buf_add_json(out, task->id);
    buf_printf(out, ",\"status\":\"%s\"", mcp_task_status_text(status));
    if (task->message.len > 0) {
        buf_add_c(out, ",\"statusMessage\":");
        buf_add_json(out, task->message);
    }
    print_time(out, "createdAt", task->created_ms);
    print_time(out, "lastUpdatedAt", task->updated_ms);
    buf_printf(out,
               is_stateless ? ",\"ttlMs\":%lld,\"pollIntervalMs\":%d"
                            : ",\"ttl\":%lld,\"pollInterval\":%d",
               (long long)task->ttl_ms, MCP_TASK_POLL_MS);
    if (!whole) {
        return;
    }
    if (task->status == MCP_TASK_COMPLETED || task->status == MCP_TASK_FAILED) {
        buf_add_c(out, task->status == MCP_TASK_FAILED ? ",\"error\":" : ",\"result\":");
        buf_add_str(out, str_or(task->outcome, ng_str_of("{}")));
    } else if (task->status == MCP_TASK_INPUT_REQUIRED) {
        buf_add_c(out, ",\"inputRequests\":");
        buf_add_str(out, str_or(task->asks, ng_str_of("{}")));
    }
}
