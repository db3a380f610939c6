/* SPDX-License-Identifier: MIT */
/* test_gateway.c - tools for tests of MCP: text, objects, parts, failures, questions, waiting.
 */
#include "test_gateway.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/call/quota.h"
#include "core/config/config.h"
#include "core/dispatch/timers.h"
#include "core/gateway/gateway_open.h"
#include "core/host/host.h"
#include "core/module/registry.h"
#include "core/module/watchdog.h"

#define CLOSE_MS 10000 /* the most that it waits for calls */

#define NG_TEXT(text)                                                                          \
    {                                                                                          \
        (text), sizeof(text) - 1                                                               \
    }

/* t_wait gives up after this many milliseconds, so that a failed test ends. */
#define WAIT_MAX_MS 20000

static atomic_int waiting;
static atomic_bool released;

int test_tools_waiting(void)
{
    return atomic_load(&waiting);
}

void test_tools_release(bool release)
{
    atomic_store(&released, release);
}

static int echo_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_str pieces[2] = {NG_TEXT("echo:"), ng_arg_text(call, "text")};
    return call->host->reply_parts(call, pieces, 2);
}

static int object_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    (void)self;
    (void)args;
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    host->json_name(writer, "count");
    host->json_int(writer, ng_arg_int(call, "count", 3));
    host->json_name(writer, "name");
    host->json_string(writer, ng_str_of("a \"b\"\n"));
    host->json_end(writer);
    return NG_OK;
}

static int parts_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    struct ng_str bytes = NG_TEXT("\x01\x02\x03\xff");
    (void)self;
    (void)args;
    int rc = ng_reply(call, ng_str_of("first"));
    rc = rc == NG_OK ? host->reply_media(call, "image", "image/png", bytes) : rc;
    rc = rc == NG_OK ? host->reply_media(call, "audio", "audio/wav", bytes) : rc;
    rc = rc == NG_OK ? host->reply_resource(call, ng_str_of("test://text"), "text/plain",
                                            ng_str_of("inside"), true)
                     : rc;
    rc = rc == NG_OK ? host->reply_resource(call, ng_str_of("test://blob"), NULL, bytes, false)
                     : rc;
    return rc == NG_OK
               ? host->reply_link(call, ng_str_of("test://link"), ng_str_of("link"), NULL)
               : rc;
}

static int revision_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    int rc = ng_has_arg(call, "text")
                 ? call->host->revision_text(call, ng_arg_text(call, "text"))
                 : call->host->revision_number(call, 7);
    return rc == NG_OK ? ng_reply(call, ng_str_of("done")) : rc;
}

static int fail_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    int rc = ng_fail(call, NG_ENOTFOUND, "there is no note \"%s\"", "x");
    call->host->hint(call, "list the notes first");
    return rc;
}

static int ask_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_value *answer =
        call->host->ask(call, "q", NG_ASK_MODEL, ng_str_of("{\"messages\":[]}"));
    return answer == NULL ? NG_EINPUT : ng_reply(call, ng_str_of("asked"));
}

static int big_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    int64_t bytes = ng_arg_int(call, "bytes", 0);
    char *text = ng_alloc(call, (size_t)bytes);
    if (text == NULL) {
        return ng_fail(call, NG_ETOOLARGE, "too many bytes");
    }
    for (int64_t i = 0; i < bytes; i++) {
        text[i] = '\x01'; /* six bytes each once it is escaped */
    }
    struct ng_str reply = {text, (size_t)bytes};
    return ng_reply(call, reply);
}

static int log_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    call->host->notify_log(call, NG_LOG_DEBUG, "t_log", ng_str_of("\"quiet\""));
    call->host->notify_log(call, NG_LOG_WARNING, "t_log", ng_str_of("{\"loud\":true}"));
    return ng_reply(call, ng_str_of("logged"));
}

static int wait_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct timespec step = {0, 1000000};
    (void)self;
    (void)args;
    atomic_fetch_add(&waiting, 1);
    call->host->progress(call, 1, 2, ng_str_of("waiting"));
    call->host->progress(call, 1, 2, ng_str_of("not further"));
    for (int i = 0; i < WAIT_MAX_MS; i++) {
        if (atomic_load(&released) || call->host->cancelled(call)) {
            break;
        }
        (void)nanosleep(&step, NULL);
    }
    atomic_fetch_sub(&waiting, 1);
    if (call->host->cancelled(call)) {
        return ng_fail(call, NG_ECANCELLED, "cancelled");
    }
    call->host->progress(call, 2, 2, ng_str_of(""));
    return ng_reply(call, ng_str_of("waited"));
}

static const char text_params[] =
    "{\"type\":\"object\",\n\"properties\":{\"text\":{\"type\":\"string\"}},"
    "\"additionalProperties\":false}";
static const char any_params[] = "{\"type\":\"object\"}";
static const char region_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"text\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
    "\"count\":{\"type\":\"integer\",\"x-mcp-header\":\"Count\"},"
    "\"inner\":{\"type\":\"object\",\"properties\":{\"flag\":{\"type\":\"boolean\","
    "\"x-mcp-header\":\"Flag\"}}}}}";
static const char big_params[] =
    "{\"type\":\"object\",\"required\":[\"bytes\"],\"properties\":{\"bytes\":{\"type\":"
    "\"integer\",\"minimum\":0,\"maximum\":1000000}}}";

static const struct ng_tool test_tools[] = {
    {
        .name = "t_echo",
        .title = "Echo",
        .summary = "Return the text.",
        .params = text_params,
        .run = echo_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY | NG_TOOL_IDEMPOTENT,
        .aliases = "t_say t_repeat",
    },
    {
        .name = "t_object",
        .summary = "Return an object.",
        .params = any_params,
        .result = "{\"type\":\"object\",\"required\":[\"count\"]}",
        .run = object_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "t_parts",
        .summary = "Return every kind of part.",
        .params = any_params,
        .run = parts_run,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "t_revision",
        .summary = "Return a revision.",
        .params = text_params,
        .run = revision_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "t_fail",
        .summary = "Fail.",
        .params = any_params,
        .run = fail_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "t_ask",
        .summary = "Ask the client's model.",
        .params = any_params,
        .run = ask_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "t_big",
        .summary = "Return many bytes.",
        .params = big_params,
        .run = big_run,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "t_log",
        .summary = "Log to the client.",
        .params = any_params,
        .run = log_run,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "t_write",
        .summary = "Would overwrite.",
        .params = any_params,
        .run = fail_run,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_OPEN_WORLD,
    },
    {
        .name = "t_region",
        .summary = "Take arguments that headers repeat.",
        .params = region_params,
        .run = echo_run,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "t_wait",
        .summary = "Wait to be released.",
        .params = any_params,
        .run = wait_run,
        .effect = NG_EFFECT_READS,
    },
};

static const struct ng_plugin test_plugin = {
    .name = "mcp_test",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = test_tools,
    .tool_count = NG_COUNT(test_tools),
};

int test_tools_add(struct gateway *gateway)
{
    struct plugin *plugin = NULL;
    struct buf error;
    buf_init(&error, 4096);
    int rc = registry_add(gateway->registry, &test_plugin, NULL, &plugin, &error);
    buf_done(&error);
    if (rc == NG_OK) {
        plugin->started = true;
    }
    return rc;
}

static void no_upkeep(void *user)
{
    (void)user;
}

static struct config *load_config(const char *const *sets)
{
    struct config_input input = {.no_file = true, .sets = sets};
    struct config *config = NULL;
    struct buf error;
    while (sets != NULL && sets[input.set_count] != NULL) {
        input.set_count++;
    }
    buf_init(&error, 65536);
    if (config_load(&input, &config, &error) != NG_OK) {
        (void)fprintf(stderr, "%s\n", buf_cstr(&error));
        config = NULL;
    }
    buf_done(&error);
    return config;
}

struct gateway *test_gateway_open(const char *const *sets)
{
    struct config *config = load_config(sets);
    struct gateway *gateway = config == NULL ? NULL : alloc_zeroed(1, sizeof(*gateway));
    if (gateway == NULL) {
        config_free(config);
        return NULL;
    }
    call_init_spares(gateway);
    gateway->host = call_host;
    gateway->config = config;
    gateway->lock_fd = -1;
    gateway->metrics = metrics_new();
    gateway->registry = registry_new();
    gateway->buffered = quota_new();
    if (gateway->metrics == NULL || gateway->registry == NULL || gateway->buffered == NULL) {
        test_gateway_close(gateway);
        return NULL;
    }
    gateway_read_limits(gateway);
    gateway->timers = timers_new(no_upkeep, NULL, (int64_t)3600 * 1000);
    if (gateway->timers == NULL ||
        pool_new(gateway->limits.workers, gateway->limits.queue, gateway->metrics,
                 &gateway->pool) != NG_OK ||
        watchdog_new(gateway->metrics, &gateway->watchdog) != NG_OK ||
        test_tools_add(gateway) != NG_OK) {
        test_gateway_close(gateway);
        return NULL;
    }
    return gateway;
}

/* A call that was answered may still be on its way out, on a thread of its own. */
static void await_calls(const struct gateway *gateway)
{
    for (int left = CLOSE_MS; left > 0 && atomic_load(&gateway->active) > 0; left--) {
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
}

void test_gateway_close(struct gateway *gateway)
{
    await_calls(gateway);
    if (gateway->pool != NULL) {
        pool_free(gateway->pool);
    }
    if (gateway->timers != NULL) {
        timers_free(gateway->timers);
    }
    watchdog_free(gateway->watchdog);
    registry_free(gateway->registry);
    quota_free(gateway->buffered);
    metrics_free(gateway->metrics);
    config_free(gateway->config);
    call_free_spares(gateway);
    free(gateway);
}
