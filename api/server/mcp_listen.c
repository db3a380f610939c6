/* SPDX-License-Identifier: MIT */
/* mcp_listen.c - subscriptions/listen: a request that stays open and sends the requested
 * notifications, after an acknowledgement, each with the subscription's id. */
#include "api/http/http_stream.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "mcp_notifier.h"

#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* Memory of the job's call. */
struct listening {
    struct mcp_exchange *exchange;
    struct mcp_notifier *notifier;
    struct mcp_listen_tasks *tasks; /* or NULL */
    struct ng_str meta;             /* of every message */
    struct buf ack;
    bool placed; /* has a place among limits.streams */
};

static const struct {
    const char *name;
    unsigned list;
} listen_lists[] = {
    {"toolsListChanged", NG_LIST_TOOLS},
    {"promptsListChanged", NG_LIST_PROMPTS},
    {"resourcesListChanged", NG_LIST_RESOURCES},
};

static void send_to_client(void *user, struct ng_str message)
{
    struct listening *listening = user;
    struct mcp_job *job = listening->exchange->job;
    job->transport->notify(job, message);
}

static void free_ack(void *object)
{
    struct listening *listening = object;
    buf_done(&listening->ack);
}

/* The notifier keeps the call, whose memory this is: nothing is touched afterwards. */
static void let_go(struct listening *listening)
{
    struct call *call = listening->exchange->job->call;
    if (listening->placed) {
        listening->placed = false;
        http_stream_give(call->gateway, call->caller.agent);
    }
    struct mcp_notifier *notifier = listening->notifier;
    listening->notifier = NULL;
    mcp_notifier_unref(notifier);
}

static void end_tasks(struct listening *listening)
{
    listening->exchange->job->methods->tasks->listen_end(listening->tasks);
}

/* The client left or cancelled, or the gateway stops, which alone is worth an answer. */
static void listen_over(struct mcp_exchange *exchange)
{
    struct listening *listening = exchange->wait_user;
    mcp_notifier_close(listening->notifier);
    end_tasks(listening);
    if (atomic_load(&exchange->job->gateway->stopping)) {
        (void)mcp_result_open(exchange);
        mcp_result_close(exchange, listening->meta);
    }
    let_go(listening);
    mcp_exchange_finish(exchange);
}

/* ---- requested notifications ---- */

static bool refuse(struct mcp_exchange *exchange, int status, int code, const char *sentence)
{
    (void)mcp_refuse(exchange, status, code, sentence);
    return false;
}

static bool refuse_params(struct mcp_exchange *exchange, const char *sentence)
{
    return refuse(exchange, 200, MCP_INVALID_PARAMS, sentence);
}

static bool refuse_oom(struct mcp_exchange *exchange)
{
    (void)mcp_refuse_oom(exchange);
    return false;
}

static bool read_lists(struct mcp_exchange *exchange, const struct ng_value *asked,
                       unsigned *ret)
{
    *ret = 0;
    for (size_t i = 0; i < NG_COUNT(listen_lists); i++) {
        const struct ng_value *value = json_get(asked, listen_lists[i].name);
        if (value != NULL && value->type != NG_TYPE_TRUE && value->type != NG_TYPE_FALSE) {
            return refuse_params(exchange, "`toolsListChanged`, `promptsListChanged` and "
                                           "`resourcesListChanged` must be true or false");
        }
        if (json_is(value, NG_TYPE_TRUE)) {
            *ret |= listen_lists[i].list;
        }
    }
    return true;
}

/* One resource joins the subscription and its acknowledgement; one that the caller cannot
 * subscribe to is left out of both. */
static int add_resource(struct listening *listening, struct ng_writer *writer,
                        struct ng_str text)
{
    struct call *call = listening->exchange->call;
    struct mcp_source source;
    struct mcp_uri uri;
    const char *why = NULL;
    int rc = mcp_source_of_uri(call, text, &source, &uri, &why);
    if (rc == NG_EINTERNAL) {
        return rc;
    }
    if (rc != NG_OK || uri.revision > 0 ||
        (source.desc->kind != NULL && !mcp_space_visible(call, uri.space))) {
        return NG_OK;
    }
    rc = mcp_notifier_add(listening->notifier, &source, &uri, text);
    if (rc == NG_OK) {
        json_string(writer, text);
    }
    return rc;
}

static bool add_resources(struct listening *listening, struct ng_writer *writer,
                          const struct ng_value *asked)
{
    struct mcp_exchange *exchange = listening->exchange;
    const struct ng_value *uris = json_get(asked, "resourceSubscriptions");
    int rc = NG_OK;
    if (uris == NULL) {
        return true;
    }
    if (uris->type != NG_TYPE_ARRAY) {
        return refuse_params(exchange, "`resourceSubscriptions` must be a list of URIs");
    }
    json_name(writer, "resourceSubscriptions");
    json_array(writer);
    for (const struct ng_value *at = uris->first; at != NULL && rc == NG_OK; at = at->next) {
        if (at->type != NG_TYPE_STRING) {
            return refuse_params(
                exchange, "`resourceSubscriptions` must be a list of URIs, which are strings");
        }
        rc = add_resource(listening, writer, at->text);
    }
    json_end(writer);
    if (rc == NG_EBUSY) {
        exchange->job->retry_after_s = MCP_NOTIFIER_RETRY_S;
        return refuse(exchange, 503, 503, MCP_NOTIFIER_NO_ROOM);
    }
    if (rc == NG_ETOOLARGE) {
        return refuse_params(exchange,
                             "`resourceSubscriptions` may have 1000 URIs, of 1 MiB together");
    }
    return rc == NG_OK || refuse_oom(exchange);
}

/* The notifier and the acknowledgement: the accepted part of the request. */
static bool prepare(struct listening *listening, const struct ng_value *asked, unsigned lists)
{
    struct mcp_exchange *exchange = listening->exchange;
    struct ng_writer writer;
    struct buf meta;
    buf_init(&meta, MCP_SENTENCE_MAX + 6 * MCP_SENTENCE_MAX);
    buf_add_c(&meta, "\"" MCP_META_SUBSCRIPTION "\":");
    mcp_print_id(&meta, exchange->message.id);
    if (meta.rc == NG_OK) {
        listening->meta = arena_copy(&exchange->job->call->arena, buf_str(&meta));
    }
    buf_done(&meta);
    if (listening->meta.data == NULL && meta.rc != NG_ETOOLARGE) {
        return refuse_oom(exchange);
    }
    if (listening->meta.data == NULL) {
        return refuse(exchange, 200, MCP_INVALID_REQUEST, "`id` is too long");
    }
    if (mcp_notifier_new(exchange->call, lists, listening->meta, send_to_client, listening,
                         &listening->notifier) != NG_OK) {
        return refuse_oom(exchange);
    }
    buf_printf(&listening->ack,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
               "acknowledged\",\"params\":{\"_meta\":{%s},\"notifications\":",
               listening->meta.data);
    json_writer_init(&writer, &listening->ack);
    json_object(&writer);
    for (size_t i = 0; i < NG_COUNT(listen_lists); i++) {
        if ((lists & listen_lists[i].list) != 0) {
            json_member_bool(&writer, listen_lists[i].name, true);
        }
    }
    if (!add_resources(listening, &writer, asked) ||
        !exchange->job->methods->tasks->listen_begin(exchange, asked, listening->meta, &writer,
                                                     &listening->tasks)) {
        return false;
    }
    json_end(&writer);
    buf_add_c(&listening->ack, "}}");
    return listening->ack.rc == NG_OK || refuse_oom(exchange);
}

static bool take_place(struct listening *listening)
{
    struct mcp_exchange *exchange = listening->exchange;
    const struct mcp_transport *transport = exchange->job->transport;
    struct call *call = exchange->job->call;
    if (!transport->is_http) {
        return true; /* its one connection is its place */
    }
    int rc = http_stream_take(call->gateway, call->caller.agent);
    listening->placed = rc == NG_OK;
    return rc == NG_OK || refuse(exchange, 503, 503,
                                 "all event streams are in use (limits.streams), or this agent "
                                 "has its half of them; close streams that are not needed");
}

/* Once it waits the exchange may end at any moment; the notifier keeps its memory. */
static void begin(struct mcp_exchange *exchange, struct listening *listening)
{
    struct mcp_notifier *notifier = listening->notifier;
    mcp_notifier_ref(notifier);
    mcp_wait(exchange, listen_over, listening);
    struct mcp_job *job = exchange->job;
    if (mcp_notifier_open(notifier, buf_str(&listening->ack)) == NG_OK &&
        (job->transport->streams == NULL || job->transport->streams(job))) {
        job->methods->tasks->listen_acknowledged(listening->tasks);
    } else if (mcp_wait_over(exchange)) {
        mcp_notifier_close(notifier);
        end_tasks(listening);
        (void)refuse(exchange, 503, 503, "the changes cannot be read just now; try again");
        let_go(listening);
        mcp_exchange_finish(exchange);
    }
    mcp_notifier_unref(notifier);
}

int mcp_subscriptions_listen(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    const struct ng_value *asked = json_get(exchange->message.params, "notifications");
    unsigned lists = 0;
    if (!json_is(asked, NG_TYPE_OBJECT)) {
        return mcp_refuse_params(
            exchange, "`params.notifications` must be an object that names the subscriptions");
    }
    bool reads = job->transport->notify != NULL &&
                 (job->transport->can_notify == NULL || job->transport->can_notify(job));
    if (job->is_batch || !reads) {
        return mcp_refuse(exchange, 406, MCP_INVALID_REQUEST,
                          "subscriptions/listen is answered by an event stream: Accept must "
                          "take text/event-stream");
    }
    struct listening *listening = arena_zalloc(&job->call->arena, sizeof(*listening));
    if (listening == NULL || dispatch_spaces(exchange->call, NULL) != NG_OK) {
        return mcp_refuse(exchange, 403, MCP_INVALID_REQUEST,
                          "the caller's space is not its own");
    }
    listening->exchange = exchange;
    buf_init(&listening->ack, 6 * MCP_SUBSCRIPTIONS_BYTES_MAX);
    if (call_pin(job->call, free_ack, listening) != NG_OK) {
        return mcp_refuse_oom(exchange);
    }
    if (!read_lists(exchange, asked, &lists) || !prepare(listening, asked, lists) ||
        !take_place(listening)) {
        end_tasks(listening);
        let_go(listening);
        return NG_OK;
    }
    begin(exchange, listening);
    return NG_PENDING;
}
