/* SPDX-License-Identifier: MIT */
/* mcp_work.c - the work that a request belongs to: its trace and its run. What stands in its
 * _meta, whatever carried it, is nearer to the caller than a header of the transport. */
#include <stdio.h>

#include "api/listen/http_check.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/dispatch/run_id.h"
#include "mcp_resources.h"
#include "mcp_server.h"

/* As sentences call it. */
#define META_NAME "`_meta[\"" RUN_ID_META "\"]`"
/* Bytes of a value that is no string, in a sentence. */
#define SHOWN_MAX 80

/* A valid one of the message, or absent. */
static struct ng_str trace_of(const struct ng_value *meta)
{
    struct ng_str trace = json_get_text(meta, "traceparent");
    return http_traceparent_valid(trace) ? trace : STR_NONE;
}

/* Of a request with this _meta, which may be NULL. */
static struct ng_str run_of(const struct mcp_job *job, const struct ng_value *meta)
{
    const struct auth_caller *caller = job->caller;
    struct run_given given = {
        .meta = json_get_text(meta, RUN_ID_META),
        .named = caller->run_id,
        .traceparent = str_or(trace_of(meta), caller->traceparent),
        .session = caller->process_run,
    };
    if (given.session.data == NULL && job->session != NULL) {
        given.session = ng_str_of(job->session->run);
    }
    return run_id_choose(&given);
}

/* The form of the run that a request names, if it names one. */
static int check_meta(const struct ng_value *meta, char text[RUN_ID_TEXT_MAX])
{
    const struct ng_value *run = mcp_message_get(meta, RUN_ID_META);
    if (run == NULL || run->type == NG_TYPE_STRING) {
        return run == NULL ? NG_OK : run_id_check(META_NAME, run->text, text);
    }
    struct buf value;
    buf_init(&value, CALL_MEMORY_MAX);
    (void)json_print(&value, run);
    struct ng_str shown = utf8_cut(buf_str(&value), SHOWN_MAX);
    (void)snprintf(text, RUN_ID_TEXT_MAX,
                   META_NAME " is %.*s; it must be a string that has " RUN_ID_FORM,
                   (int)shown.len, text_or(shown.data, ""));
    buf_done(&value);
    return NG_EINVAL;
}

bool mcp_take_work(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    struct call *call = exchange->call;
    const struct ng_value *meta = exchange->message.meta;
    char text[RUN_ID_TEXT_MAX];
    if (check_meta(meta, text) != NG_OK) {
        mcp_run_set_result(exchange, NG_EINVAL, text);
        mcp_answer_failed(exchange, call);
        return false;
    }
    struct ng_str trace = arena_copy(&call->arena, trace_of(meta));
    if (trace.data != NULL) {
        call->caller.traceparent = trace;
    }
    call_set_run(call, run_of(job, meta));
    if (!job->is_batch) {
        utf8_copy(job->run, sizeof(job->run), call->caller.run_id);
    }
    return true;
}

static bool is_request(const struct ng_value *message)
{
    return mcp_message_get(message, "method") != NULL && mcp_message_get(message, "id") != NULL;
}

void mcp_take_batch_run(struct mcp_job *job, const struct ng_value *batch)
{
    struct ng_str run = STR_NONE;
    bool any = false;
    char text[RUN_ID_TEXT_MAX];
    for (const struct ng_value *item = batch->first; item != NULL; item = item->next) {
        if (!is_request(item)) {
            continue;
        }
        const struct ng_value *meta = json_get(json_get(item, "params"), "_meta");
        if (check_meta(meta, text) != NG_OK) {
            return;
        }
        struct ng_str own = run_of(job, meta);
        if (any && !str_equal(own, run)) {
            return;
        }
        run = own;
        any = true;
    }
    utf8_copy(job->run, sizeof(job->run), run);
}
