/* SPDX-License-Identifier: MIT */
/* tasker.c - tools that run as tasks, one for each way that can end: after a time, with a
 * failure, with a fault, after questions. */
#include <notegate/plugin.h>
#include <time.h>

#define STEP_NS 2000000L

/* Until the time is up or the call is cancelled. */
static int slow_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    int64_t until = host->now_ms() + ng_arg_int(call, "ms", 0);
    (void)self;
    (void)args;
    host->progress(call, 1, 3, ng_str_of("one of three"));
    while (host->now_ms() < until) {
        const struct timespec step = {0, STEP_NS};
        if (host->cancelled(call)) {
            return ng_fail(call, NG_ECANCELLED, "stopped");
        }
        (void)nanosleep(&step, NULL);
    }
    return ng_reply(call, host->format(call, "slept for %.*s in %.*s",
                                       (int)call->caller->agent.len, call->caller->agent.data,
                                       (int)call->caller->space.len, call->caller->space.data));
}

static int fail_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_fail(call, NG_ENOTFOUND, "the job found nothing");
}

static int break_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_fail(call, NG_EINTERNAL, "the job broke");
}

static struct ng_str form(void)
{
    return ng_str_of("{\"mode\":\"form\",\"message\":\"Say it\",\"requestedSchema\":{"
                     "\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}}");
}

static struct ng_str said(struct ng_call *call, const struct ng_value *answer)
{
    const struct ng_value *content = call->host->json_get(answer, "content");
    return call->host->json_text(call->host->json_get(content, "name"));
}

/* `count` questions at once, then the answers in a row. */
static int ask_run(void *self, struct ng_call *call, struct ng_str args)
{
    static const char *const keys[] = {"first", "second", "third"};
    struct ng_str pieces[NG_COUNT(keys) * 2];
    size_t count = (size_t)ng_arg_int(call, "count", 1);
    bool waits = false;
    (void)self;
    (void)args;
    for (size_t i = 0; i < count && i < NG_COUNT(keys); i++) {
        const struct ng_value *answer = call->host->ask(call, keys[i], NG_ASK_FORM, form());
        waits = waits || answer == NULL;
        pieces[2 * i] = ng_str_of("+");
        pieces[2 * i + 1] = said(call, answer);
    }
    if (waits) {
        call->host->ask_state(call, ng_str_of("asked"));
        return NG_EINPUT;
    }
    return call->host->reply_parts(call, pieces, 2 * count);
}

static const struct ng_tool tools[] = {
    {
        .name = "k_slow",
        .summary = "Waits.",
        .params = "{\"type\":\"object\",\"properties\":{\"ms\":{\"type\":\"integer\"}},"
                  "\"additionalProperties\":false}",
        .run = slow_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_ALLOWED,
    },
    {
        .name = "k_write",
        .summary = "Waits, and counts as a change.",
        .params = "{\"type\":\"object\"}",
        .run = slow_run,
        .flags = NG_TOOL_TASK_ALLOWED,
    },
    {
        .name = "k_plain",
        .summary = "Runs no task.",
        .params = "{\"type\":\"object\"}",
        .run = slow_run,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "k_fail",
        .summary = "Fails.",
        .params = "{\"type\":\"object\"}",
        .run = fail_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_REQUIRED,
    },
    {
        .name = "k_break",
        .summary = "Breaks.",
        .params = "{\"type\":\"object\"}",
        .run = break_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_ALLOWED,
    },
    {
        .name = "k_ask",
        .summary = "Asks.",
        .params = "{\"type\":\"object\"}",
        .run = ask_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_ALLOWED | NG_TOOL_BY_SPACE,
    },
    {
        .name = "k_ask_first",
        .summary = "Asks, then becomes a task.",
        .params = "{\"type\":\"object\"}",
        .run = ask_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_REQUIRED | NG_TOOL_TASK_AFTER_ASKING | NG_TOOL_BY_SPACE,
    },
};

static const struct ng_plugin tasker = {
    .name = "tasker",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
};

NG_EXPORT_PLUGIN(tasker);
