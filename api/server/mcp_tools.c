/* SPDX-License-Identifier: MIT */
/* mcp_tools.c - tools/list and tools/call: the registry's tools in MCP's words, and calls
 * through dispatch(). Answers are printed straight into the response. */
#include <stdio.h>

#include "api/base/content.h"
#include "api/definitions/tool_formats.h"
#include "core/base/str.h"
#include "mcp_client_request.h"
#include "mcp_resources.h"

/* Bytes around a text answer, asked for at once so that the buffer grows once. */
#define MCP_TOOLS_ENVELOPE 512

/* ---- tools/list ---- */

int mcp_tools_list(struct mcp_exchange *exchange)
{
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(exchange->job->gateway->registry, &tools);
    bool stateless = mcp_is_stateless(exchange->terms.version);
    enum tool_format format = TOOL_FORMAT_MCP;
    struct ng_writer writer;
    if (exchange->terms.version == MCP_2025_11_25) {
        format = TOOL_FORMAT_MCP_TASKS;
    }
    if (mcp_list_open(exchange, "tools", &writer) == NULL) {
        return NG_OK;
    }
    for (size_t i = 0; i < count; i++) {
        /* Without sessions a list depends on the caller's rights, not on earlier calls. */
        bool listed;
        if (stateless) {
            listed = dispatch_may(exchange->call, tools[i]) &&
                     dispatch_configured(exchange->call, tools[i]->plugin);
        } else {
            listed = dispatch_allows(exchange->call, tools[i]);
        }
        if (listed) {
            tool_formats_write_tool(&writer, tools[i], exchange->call, format);
        }
    }
    return mcp_list_close(exchange, &writer);
}

/* ---- an answer's parts ---- */

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

void mcp_print_revision(struct buf *meta, const struct result *result)
{
    if (result->revision_kind == REVISION_NUMBER) {
        buf_add_c(meta, "\"notegate/revision\":");
        buf_add_number(meta, result->revision_number);
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

static void print_meta(struct buf *meta, const struct result *result)
{
    if (meta->len > 0 && result->meta != NULL) {
        buf_add_char(meta, ',');
    }
    call_print_meta(result, meta);
}

/* The members of a result, and those of its _meta. */
static void print_result(struct buf *out, struct buf *meta, const struct call *call)
{
    const struct result *result = &call->final;
    if (result->rc == NG_OK) {
        mcp_print_revision(meta, result);
        print_meta(meta, result);
        print_content(out, result);
        return;
    }
    struct buf both;
    mcp_join_hint(&both, result, "\n");
    buf_add_c(meta, "\"notegate/error\":");
    (void)call_print_error(call, meta);
    print_meta(meta, result);
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
    mcp_result_end(exchange, "complete", buf_str_or(&meta, STR_NONE));
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

/* A refusal before the tool ran is an error of the protocol, with the gateway's error
 * object. Its message has the hint too: clients show nothing else. */
void mcp_tools_answer(struct mcp_exchange *exchange, const struct call *call)
{
    const struct result *result = &call->final;
    switch (result->rc) {
    case NG_OK:
        answer_result(exchange, call);
        break;
    case NG_EUNKNOWN_TOOL:
    case NG_EUNAUTHENTICATED:
    case NG_ERATE:
    case NG_EBUSY:
        mcp_answer_failed(exchange, call);
        break;
    default:
        if (!mcp_answer_cannot_ask(exchange, result)) {
            answer_result(exchange, call);
        }
        break;
    }
}

/* ---- tools/call ---- */

static const struct ng_value no_arguments = {.type = NG_TYPE_OBJECT};

static int start_call(struct mcp_exchange *exchange)
{
    const struct ng_value *params = exchange->message.params;
    const struct ng_value *arguments = json_get(params, "arguments");
    exchange->call->tool_name = json_get(params, "name")->text;
    exchange->call->pub.args = &no_arguments;
    if (arguments != NULL) {
        exchange->call->pub.args = arguments;
    }
    return dispatch(exchange->call);
}

int mcp_tools_call(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_call, mcp_tools_answer, mcp_tools_answer, NULL};
    struct mcp_job *job = exchange->job;
    const struct ng_value *name = json_get(exchange->message.params, "name");
    const struct ng_value *arguments =
        dispatch_arguments(job->call, json_get(exchange->message.params, "arguments"));
    if (!json_is(name, NG_TYPE_STRING)) {
        return mcp_refuse_params(exchange,
                                 "`params.name` must be a string, the name of a tool");
    }
    if (arguments != NULL && arguments->type != NG_TYPE_OBJECT) {
        return mcp_refuse_params(exchange,
                                 "`params.arguments` must be an object; leave it out for none");
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
