/* SPDX-License-Identifier: MIT */
/* mcp_tools.c - tools/list and tools/call: the registry's tools in MCP's words, and calls
 * through dispatch(). Answers are printed straight into the response. */
#include <stdio.h>

#include "api/base/content.h"
#include "api/definitions/tool_formats.h"
#include "core/base/str.h"
#include "mcp_client_request.h"

/* How long a client may keep the list: rights can be taken away. */
#define MCP_TOOLS_TTL_MS 60000
/* Bytes around a text answer, asked for at once so that the buffer grows once. */
#define MCP_TOOLS_ENVELOPE 512

static const struct ng_str no_text = {NULL, 0};

/* ---- tools/list ---- */

int mcp_tools_list(struct mcp_exchange *exchange)
{
    if (json_get(exchange->message.params, "cursor") != NULL) {
        mcp_answer_error(
            exchange, 200, MCP_INVALID_PARAMS,
            ng_str_of("`params.cursor` is not a cursor of this gateway: the list has one page"),
            no_text);
        return NG_OK;
    }
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(exchange->job->gateway->registry, &tools);
    bool stateless = mcp_is_stateless(exchange->terms.version);
    enum tool_format format = TOOL_FORMAT_MCP;
    if (exchange->terms.version == MCP_2025_11_25) {
        format = TOOL_FORMAT_MCP_TASKS;
    }
    struct buf *out = mcp_answer_open(exchange);
    struct ng_writer writer;
    mcp_result_begin(exchange, out);
    buf_add_c(out, "\"tools\":");
    json_writer_init(&writer, out);
    json_array(&writer);
    for (size_t i = 0; i < count; i++) {
        /* Without sessions a list varies with what the caller may do, not with what it did. */
        bool listed;
        if (stateless) {
            listed = dispatch_may(exchange->call, tools[i]) &&
                     dispatch_configured(exchange->call, tools[i]->plugin);
        } else {
            listed = dispatch_allows(exchange->call, tools[i]);
        }
        if (listed) {
            tool_formats_write_tool(&writer, tools[i], format);
        }
    }
    json_end(&writer);
    if (stateless) {
        buf_printf(out, ",\"ttlMs\":%d,\"cacheScope\":\"private\"", MCP_TOOLS_TTL_MS);
    }
    mcp_result_end(exchange, out, no_text);
    if (exchange->call->arena.oom) {
        out->rc = NG_EINTERNAL; /* whether one is listed could not be found out */
    }
    mcp_answer_close(exchange);
    return NG_OK;
}

/* ---- an answer's parts ---- */

/* Of a number of 64 bits. */
#define REVISION_DIGITS_MAX 20

static void print_content(struct buf *out, const struct result *result)
{
    bool any = false;
    buf_add_c(out, "\"content\":[");
    if (result->has_text || result->parts == NULL) {
        buf_add_c(out, "{\"type\":\"text\",\"text\":");
        buf_add_json(out, result->text);
        buf_add_char(out, '}');
        any = true;
    }
    for (const struct part *part = result->parts; part != NULL; part = part->next) {
        if (any) {
            buf_add_char(out, ',');
        }
        content_print_part(out, part);
        any = true;
    }
    buf_add_char(out, ']');
    if (result->is_json) {
        buf_add_c(out, ",\"structuredContent\":");
        buf_add_str(out, result->text);
    }
}

/* ---- a call's end ---- */

/* Rendering uses no memory of the call: where the deadline gave the answer, the tool still runs
 * and may be using it. */

static void print_revision(struct buf *meta, const struct result *result)
{
    if (result->revision_kind == REVISION_NUMBER) {
        /* Not with printf: every read comes by here. */
        char digits[REVISION_DIGITS_MAX];
        size_t at = sizeof(digits);
        uint64_t left = result->revision_number;
        do {
            digits[--at] = (char)('0' + left % 10);
            left /= 10;
        } while (left > 0);
        buf_add_c(meta, "\"notegate/revision\":");
        buf_add(meta, digits + at, sizeof(digits) - at);
    } else if (result->revision_kind == REVISION_TEXT) {
        buf_add_c(meta, "\"notegate/revision\":");
        buf_add_json(meta, result->revision_text);
    }
}

/* Message and hint as one text. */
void mcp_join_hint(struct buf *both, const struct result *result, const char *between)
{
    struct ng_str message = result->message;
    buf_init(both, message.len + result->hint.len + strlen(between));
    if (result->hint.len > 0 && between[0] == '.' && message.len > 0 &&
        message.data[message.len - 1] == '.') {
        message.len--;
    }
    buf_add_str(both, message);
    if (result->hint.len > 0) {
        buf_add_c(both, between);
        buf_add_str(both, result->hint);
    }
}

/* The members of a result, and those of its _meta. */
static void print_result(struct buf *out, struct buf *meta, const struct call *call)
{
    const struct result *result = &call->final;
    if (result->rc == NG_OK) {
        print_revision(meta, result);
        print_content(out, result);
        return;
    }
    struct buf both;
    mcp_join_hint(&both, result, "\n");
    buf_add_c(meta, "\"notegate/error\":");
    (void)call_print_error(call, meta);
    buf_add_c(out, "\"content\":[{\"type\":\"text\",\"text\":");
    buf_add_json(out, buf_str_or(&both, result->message));
    buf_add_c(out, "}],\"isError\":true");
    buf_done(&both);
}

void mcp_tools_print_result(struct buf *out, const struct call *call)
{
    struct buf meta;
    buf_init(&meta, out->max);
    buf_add_char(out, '{');
    print_result(out, &meta, call);
    if (meta.rc != NG_OK && out->rc == NG_OK) {
        out->rc = meta.rc; /* no answer rather than one without its revision */
    } else if (meta.len > 0) {
        buf_add_c(out, ",\"_meta\":{");
        buf_add_str(out, buf_str(&meta));
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
    buf_done(&meta);
}

#define ANSWER_TRIES 8

/* False: there was no memory. */
static bool write_result(struct mcp_exchange *exchange, struct buf *out,
                         const struct call *call)
{
    const struct result *result = &call->final;
    struct buf meta;
    bool oom = false;
    buf_init(&meta, out->max);
    if (buf_reserve(out, 0) != NULL && out->max - out->len > MCP_TOOLS_ENVELOPE) {
        size_t most = out->max - out->len - MCP_TOOLS_ENVELOPE;
        (void)buf_reserve(out, MCP_TOOLS_ENVELOPE +
                                   (result->text.len < most ? result->text.len : 0));
    }
    mcp_result_begin(exchange, out);
    print_result(out, &meta, call);
    mcp_result_end(exchange, out, buf_str_or(&meta, no_text));
    oom = out->rc == NG_EINTERNAL || meta.rc == NG_EINTERNAL;
    if (oom && out->rc == NG_OK) {
        out->rc = NG_EINTERNAL; /* no answer rather than one without its revision */
    }
    buf_done(&meta);
    return !oom;
}

static void answer_result(struct mcp_exchange *exchange, const struct call *call)
{
    struct buf *out = mcp_answer_open(exchange);
    size_t from = out->len;
    /* The tool has made its change: memory that is out for a moment must not turn that into a
     * failure. */
    for (int i = 0; i < ANSWER_TRIES && !write_result(exchange, out, call); i++) {
        if (i + 1 < ANSWER_TRIES) {
            out->len = from;
            out->rc = NG_OK;
        }
    }
    mcp_answer_close(exchange);
}

/* Refused before the tool ran: an error of the protocol, with the gateway's error object. Its
 * message has the hint too: clients show nothing else. */
static void answer_refused(struct mcp_exchange *exchange, const struct call *call, int code)
{
    const struct result *result = &call->final;
    struct buf data;
    struct buf both;
    buf_init(&data, exchange->job->out->max);
    (void)call_print_error(call, &data);
    mcp_join_hint(&both, result, ". ");
    if (!exchange->job->is_batch) {
        exchange->job->retry_after_s = result->retry_after_s;
    }
    mcp_answer_error(exchange, code == MCP_INVALID_PARAMS ? 200 : result->status, code,
                     buf_str_or(&both, result->message), buf_str_or(&data, no_text));
    buf_done(&both);
    buf_done(&data);
}

void mcp_tools_answer(struct mcp_exchange *exchange, const struct call *call)
{
    const struct result *result = &call->final;
    switch (result->rc) {
    case NG_OK:
        answer_result(exchange, call);
        break;
    case NG_EUNKNOWN_TOOL:
        answer_refused(exchange, call, MCP_INVALID_PARAMS);
        break;
    case NG_EUNAUTHENTICATED:
    case NG_ERATE:
    case NG_EBUSY:
        answer_refused(exchange, call, result->status);
        break;
    default:
        if (!mcp_answer_cannot_ask(exchange, result)) {
            answer_result(exchange, call);
        }
        break;
    }
}

static void answer_call(struct mcp_exchange *exchange)
{
    mcp_tools_answer(exchange, exchange->call);
}

/* ---- tools/call ---- */

static const struct ng_value no_arguments = {.type = NG_TYPE_OBJECT};

static int start_call(struct mcp_exchange *exchange)
{
    const struct ng_value *params = exchange->message.params;
    const struct ng_value *arguments = json_get(params, "arguments");
    exchange->call->tool_name = json_get(params, "name")->text;
    if (arguments == NULL) {
        exchange->call->pub.args = &no_arguments;
    } else {
        exchange->call->pub.args = arguments;
    }
    return dispatch(exchange->call);
}

int mcp_tools_call(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_call, answer_call};
    struct mcp_job *job = exchange->job;
    const struct ng_value *name = json_get(exchange->message.params, "name");
    const struct ng_value *arguments = json_get(exchange->message.params, "arguments");
    const char *wrong;
    if (name == NULL || name->type != NG_TYPE_STRING) {
        wrong = "`params.name` must be a string, the name of a tool";
    } else if (arguments != NULL && arguments->type != NG_TYPE_OBJECT) {
        wrong = "`params.arguments` must be an object; leave it out for none";
    } else {
        wrong = NULL;
    }
    if (wrong != NULL) {
        mcp_answer_error(exchange, 200, MCP_INVALID_PARAMS, ng_str_of(wrong), no_text);
        return NG_OK;
    }
    if (mcp_is_stateless(exchange->terms.version) && job->headers != NULL &&
        !mcp_params_match(exchange, name->text, arguments)) {
        return NG_OK;
    }
    int rc = NG_OK;
    if (job->methods->tasks->take(exchange, name->text,
                                  arguments == NULL ? &no_arguments : arguments, &rc)) {
        return rc;
    }
    return mcp_run(exchange, &run);
}
