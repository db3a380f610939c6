/* SPDX-License-Identifier: MIT */
/* mcp_listen_tasks.c - tasks in a subscription. What happens before the acknowledgement is out
 * waits for it. */
#include "mcp_listen_tasks.h"

#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/str.h"

/* Around a task: the envelope and the subscription's id. */
#define LISTEN_ENVELOPE_MAX ((size_t)8 * 1024)
/* Changes that may wait for the acknowledgement. */
#define LISTEN_PENDING_MAX 256

struct mcp_listen_tasks {
    struct mcp_exchange *exchange;
    struct mcp_tasks *tasks;
    struct mcp_task_subscription *subscription;
    struct ng_str meta;
    struct lock lock;
    bool is_acknowledged, is_over;
    struct buf pending[LISTEN_PENDING_MAX];
    size_t count;
};

static const char out_of_memory[] = "the gateway ran out of memory";

static bool refuse(struct mcp_exchange *exchange, int status, int code, const char *sentence)
{
    (void)mcp_refuse(exchange, status, code, sentence);
    return false;
}

static void send_message(struct mcp_listen_tasks *listen, struct buf *text)
{
    struct mcp_job *job = listen->exchange->job;
    if (text->rc == NG_OK) {
        job->transport->notify(job, buf_str(text));
    }
    buf_done(text);
}

static void changed(void *user, struct ng_str task)
{
    struct mcp_listen_tasks *listen = user;
    struct buf text;
    buf_init(&text, task.len + listen->meta.len + LISTEN_ENVELOPE_MAX);
    buf_add_c(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{");
    buf_add_str(&text, task);
    buf_add_c(&text, ",\"_meta\":{");
    buf_add_str(&text, listen->meta);
    buf_add_c(&text, "}}}");
    lock_take(&listen->lock);
    if (listen->is_acknowledged && !listen->is_over) {
        send_message(listen, &text);
    } else if (!listen->is_over && listen->count < LISTEN_PENDING_MAX) {
        listen->pending[listen->count++] = text;
    } else {
        buf_done(&text);
    }
    lock_release(&listen->lock);
}

static void release(void *object)
{
    struct mcp_listen_tasks *listen = object;
    mcp_listen_tasks_end(listen);
    lock_done(&listen->lock);
}

static bool read_ids(struct mcp_exchange *exchange, const struct ng_value *ids,
                     struct ng_str **ret)
{
    struct arena *arena = &exchange->job->call->arena;
    bool is_list = ids->type == NG_TYPE_ARRAY;
    for (const struct ng_value *at = ids->first; at != NULL && is_list; at = at->next) {
        is_list = at->type == NG_TYPE_STRING;
    }
    if (!is_list || ids->count > MCP_TASK_WATCHED_MAX) {
        return refuse(exchange, 200, MCP_INVALID_PARAMS,
                      "`taskIds` must be a list of at most 64 strings, the ids of tasks");
    }
    size_t count = 0;
    *ret = arena_alloc(arena, (ids->count + 1) * sizeof(**ret));
    for (const struct ng_value *at = ids->first; at != NULL && *ret != NULL; at = at->next) {
        (*ret)[count++] = at->text;
    }
    return *ret != NULL || refuse(exchange, 500, MCP_INTERNAL_ERROR, out_of_memory);
}

bool mcp_listen_tasks_begin(struct mcp_exchange *exchange, const struct ng_value *asked,
                            struct ng_str meta, struct ng_writer *acknowledgement,
                            struct mcp_listen_tasks **ret)
{
    struct arena *arena = &exchange->job->call->arena;
    const struct ng_value *ids = json_get(asked, "taskIds");
    struct mcp_tasks *tasks = mcp_tasks_of(exchange->job->gateway);
    struct ng_str *texts = NULL;
    *ret = NULL;
    if (ids == NULL || tasks == NULL) {
        return true;
    }
    if (!mcp_tasks_declared(exchange)) {
        (void)mcp_tasks_answer_undeclared(exchange);
        return false;
    }
    if (!read_ids(exchange, ids, &texts)) {
        return false;
    }
    struct ng_str owner = mcp_task_owner(arena, exchange->call);
    struct mcp_listen_tasks *listen = arena_zalloc(arena, sizeof(*listen));
    if (owner.data == NULL || listen == NULL) {
        return refuse(exchange, 500, MCP_INTERNAL_ERROR, out_of_memory);
    }
    listen->exchange = exchange;
    listen->tasks = tasks;
    listen->meta = meta;
    listen->is_over = true; /* until it watches */
    lock_init(&listen->lock, LOCK_MCP_LISTEN);
    int rc = call_pin(exchange->job->call, release, listen);
    if (rc == NG_OK) {
        listen->is_over = false;
        rc = mcp_tasks_subscribe(tasks, owner, texts, ids->count, changed, listen,
                                 &listen->subscription);
    }
    if (rc == NG_EBUSY) {
        return refuse(exchange, 503, 503,
                      "the maximum number of streams watches tasks; close one");
    }
    if (rc != NG_OK) {
        return refuse(exchange, 500, MCP_INTERNAL_ERROR, out_of_memory);
    }
    json_name(acknowledgement, "taskIds");
    json_array(acknowledgement);
    for (size_t i = 0; i < mcp_tasks_subscribed(listen->subscription); i++) {
        json_cstring(acknowledgement, mcp_tasks_subscribed_id(listen->subscription, i));
    }
    json_end(acknowledgement);
    *ret = listen;
    return true;
}

void mcp_listen_tasks_acknowledged(struct mcp_listen_tasks *listen)
{
    if (listen == NULL) {
        return;
    }
    lock_take(&listen->lock);
    listen->is_acknowledged = true;
    for (size_t i = 0; i < listen->count && !listen->is_over; i++) {
        send_message(listen, &listen->pending[i]);
    }
    if (!listen->is_over) {
        listen->count = 0;
    }
    lock_release(&listen->lock);
}

void mcp_listen_tasks_end(struct mcp_listen_tasks *listen)
{
    if (listen == NULL) {
        return;
    }
    lock_take(&listen->lock);
    struct mcp_task_subscription *subscription = listen->subscription;
    listen->subscription = NULL;
    listen->is_over = true;
    for (size_t i = 0; i < listen->count; i++) {
        buf_done(&listen->pending[i]);
    }
    listen->count = 0;
    lock_release(&listen->lock);
    mcp_tasks_unsubscribe(listen->tasks, subscription);
}
