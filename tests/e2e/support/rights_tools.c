/* SPDX-License-Identifier: MIT */
/* rights_tools - one tool of each kind that rights differ by, for the test of the guide. */
#define NG_ABI 1
#include <notegate/plugin.h>

static const char nothing[] = "{\"type\":\"object\"}";

static int rights_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static int rights_ask(void *self, struct ng_call *call, struct ng_str args)
{
    if (call->host->json_type(ng_arg(call, "run")) != NG_TYPE_TRUE || call->caller->run) {
        return rights_run(self, call, args);
    }
    return ng_fail(call, NG_ERUN, "`run` is for callers that may run code");
}

static const struct ng_tool rights_list[] = {
    {
        .name = "rights_reads",
        .summary = "Reads.",
        .params = nothing,
        .effect = NG_EFFECT_READS,
        .run = rights_run,
    },
    {
        .name = "rights_writes",
        .summary = "Writes.",
        .params = nothing,
        .run = rights_run,
    },
    {
        .name = "rights_agent",
        .summary = "Writes, in mode agent only.",
        .params = nothing,
        .flags = NG_TOOL_AGENT_MODE,
        .run = rights_run,
    },
    {
        .name = "rights_runs",
        .summary = "Runs code.",
        .params = nothing,
        .effect = NG_EFFECT_RUNS,
        .run = rights_run,
    },
    {
        .name = "rights_asks",
        .summary = "Runs code for some arguments, and asks whether it may.",
        .params = nothing,
        .effect = NG_EFFECT_READS,
        .run = rights_ask,
    },
    {
        .name = "rights_admin",
        .summary = "For admins.",
        .params = nothing,
        .effect = NG_EFFECT_ADMIN,
        .run = rights_run,
    },
};

static const struct ng_plugin rights_tools = {
    .name = "rights_tools",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = rights_list,
    .tool_count = NG_COUNT(rights_list),
};

NG_EXPORT_PLUGIN(rights_tools);
