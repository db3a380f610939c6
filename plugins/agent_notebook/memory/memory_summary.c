/* SPDX-License-Identifier: MIT */
/* memory_summary.c - memory_summary: the long-term summary, read or set. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/json_writer.h"
#include "entry/entry.h"
#include "memory.h"
#include "memory_tools.h"

/* Bytes of an answer beside the summary. */
#define MEMORY_SUMMARY_END_MAX 160

static int memory_summary_reply(struct ng_call *call, struct ng_str text, const char *status)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    host->json_name(writer, "summary");
    size_t room = host->answer_room(call);
    size_t max = json_cut(text, room - size_min(room, MEMORY_SUMMARY_END_MAX)).len;
    if (text.data == NULL) {
        host->json_null(writer);
    } else {
        host->json_string(writer, entry_cut(call, text, max));
    }
    memory_put(call, writer, "status", ng_str_of(status));
    if (max < text.len) {
        host->json_name(writer, "truncated");
        host->json_bool(writer, true);
    }
    host->json_end(writer);
    return NG_OK;
}

int memory_summary_run(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    struct ng_str text = ng_arg_text(call, "text");
    struct ng_str mode = ng_arg_text(call, "mode");
    (void)self;
    (void)args;
    if (mode.data != NULL && str_is(mode, "set") != (text.data != NULL)) {
        if (text.data == NULL) {
            return entry_invalid(call, "/text", ng_str_of("the new summary, as `mode` is set"),
                                 ng_str_of("nothing"));
        }
        return entry_invalid(call, "/mode", ng_str_of("set with `text`, or no `text`"), mode);
    }
    if (text.data == NULL) {
        int rc = journal->summary(handle, call, call->caller->space, &text);
        if (rc != NG_OK) {
            return rc;
        }
        const char *status = "read";
        if (text.data == NULL) {
            status = "none";
        }
        return memory_summary_reply(call, text, status);
    }
    if (text.len > MEMORY_SUMMARY_MAX) {
        return ng_fail(call, NG_ETOOLARGE,
                       "`text` has %zu bytes, a summary holds at most %zu; shorten it",
                       text.len, MEMORY_SUMMARY_MAX);
    }
    int rc = journal->set_summary(handle, call, call->caller->space, text);
    if (rc != NG_OK) {
        return rc;
    }
    return memory_summary_reply(call, text, "set");
}
