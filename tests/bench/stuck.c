/* SPDX-License-Identifier: MIT */
/* stuck - a tool that keeps its worker busy for as long as it is told, or until a file is gone:
 * for measuring what that does to others. */
#include <notegate/plugin.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* `until_gone`, if it is given, is there no more. */
static bool stuck_let_go(struct ng_call *call)
{
    char path[4096];
    struct ng_str text = ng_arg_text(call, "until_gone");
    if (text.data == NULL) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%.*s", (int)text.len, text.data);
    return access(path, F_OK) != 0;
}

static int stuck_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    int64_t left = ng_arg_int(call, "ms", 0);
    while (left > 0 && !call->host->cancelled(call) && !stuck_let_go(call)) {
        struct timespec step = {0, 10000000};
        (void)nanosleep(&step, NULL);
        left -= 10;
    }
    return ng_reply(call, ng_str_of("done"));
}

static const struct ng_tool stuck_tools[] = {
    {
        .name = "stuck",
        .summary = "Keep a worker busy.",
        .params = "{\"type\":\"object\",\"properties\":{\"ms\":{\"type\":\"integer\"},"
                  "\"until_gone\":{\"type\":\"string\"}}}",
        .run = stuck_run,
        .effect = NG_EFFECT_READS,
    },
};

static const struct ng_plugin stuck = {
    .name = "stuck",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = stuck_tools,
    .tool_count = NG_COUNT(stuck_tools),
};

NG_EXPORT_PLUGIN(stuck);
