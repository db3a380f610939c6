/* SPDX-License-Identifier: MIT */
/* bad_plugin - the plausible mistakes of a plugin's author, one tool each. */
#define _GNU_SOURCE
#define NG_ABI 1
#include <notegate/plugin.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char until[] =
    "{\"type\":\"object\",\"properties\":{\"until\":{\"type\":\"string\"}}}";
static const char count[] =
    "{\"type\":\"object\",\"properties\":{\"count\":{\"type\":\"string\"}}}";
static const char nothing[] = "{\"type\":\"object\"}";

/* Until the file is there. */
static void wait_for_file(struct ng_call *call, struct ng_str path)
{
    struct ng_str name = call->host->format(call, "%.*s", (int)path.len, path.data);
    while (access(name.data, F_OK) != 0) {
        usleep(10000);
    }
}

static int blocks_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    wait_for_file(call, ng_arg_text(call, "until"));
    return ng_reply(call, ng_str_of("done"));
}

static int crashes_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)call;
    (void)args;
    return *(volatile int *)self;
}

static void *crash_later(void *user)
{
    (void)user;
    abort();
}

static int crashes_later_run(void *self, struct ng_call *call, struct ng_str args)
{
    pthread_t thread;
    (void)self;
    (void)args;
    if (pthread_create(&thread, NULL, crash_later, NULL) != 0) {
        return ng_fail(call, NG_EFAILED, "no thread");
    }
    pthread_join(thread, NULL);
    return ng_reply(call, ng_str_of("not reached"));
}

static int exits_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)call;
    (void)args;
    exit(0);
}

static int prints_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    printf("printed by a tool\n");
    fflush(stdout);
    return ng_reply(call, ng_str_of("done"));
}

/* Never finished. The file `count` grows by a byte. */
static int leaks_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_str path = ng_arg_text(call, "count");
    struct ng_str name = call->host->format(call, "%.*s", (int)path.len, path.data);
    (void)self;
    (void)args;
    int fd = open(name.data, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || call->host->defer(call) == NULL) {
        return ng_fail(call, NG_EFAILED, "no file, or no memory");
    }
    if (write(fd, "x", 1) != 1) {
        abort();
    }
    close(fd);
    return NG_PENDING;
}

/* A descriptor that is not its own, found by its open file. */
static int closes_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_str what = ng_arg_text(call, "until");
    char path[64], target[256];
    (void)self;
    (void)args;
    for (int fd = 3; fd < 256; fd++) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, target, sizeof(target) - 1);
        if (len > 0) {
            target[len] = '\0';
            if (memmem(target, (size_t)len, what.data, what.len) != NULL) {
                close(fd);
            }
        }
    }
    return ng_reply(call, ng_str_of("done"));
}

static int bad_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct ng_str path = call->host->conf_text(conf, "start_until");
    (void)ret_self;
    if (path.len > 0) {
        wait_for_file(call, path);
    }
    return NG_OK;
}

static const struct ng_option bad_options[] = {
    {
        .name = "start_until",
        .type = NG_OPTION_TEXT,
        .help = "start() returns when this file is there",
    },
};

static const struct ng_tool bad_tools[] = {
    {
        .name = "bad_blocks_loop",
        .summary = "Blocks an event loop until a file is there.",
        .params = until,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
        .run = blocks_run,
    },
    {
        .name = "bad_blocks",
        .summary = "Blocks a worker until a file is there.",
        .params = until,
        .effect = NG_EFFECT_READS,
        .run = blocks_run,
    },
    {
        .name = "bad_crashes",
        .summary = "Reads from address 0.",
        .params = nothing,
        .run = crashes_run,
    },
    {
        .name = "bad_crashes_later",
        .summary = "Aborts in a thread of its own.",
        .params = nothing,
        .run = crashes_later_run,
    },
    {
        .name = "bad_exits",
        .summary = "Calls exit().",
        .params = nothing,
        .run = exits_run,
    },
    {
        .name = "bad_leaks",
        .summary = "Defers its call and never finishes it.",
        .params = count,
        .effect = NG_EFFECT_READS,
        .run = leaks_run,
    },
    {
        .name = "bad_closes",
        .summary = "Closes descriptors that are open to what `until` says.",
        .params = until,
        .effect = NG_EFFECT_READS,
        .run = closes_run,
    },
    {
        .name = "bad_prints",
        .summary = "Prints to the standard output.",
        .params = nothing,
        .effect = NG_EFFECT_READS,
        .run = prints_run,
    },
};

static const struct ng_plugin bad_plugin = {
    .name = "bad_plugin",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = bad_tools,
    .tool_count = NG_COUNT(bad_tools),
    .options = bad_options,
    .option_count = NG_COUNT(bad_options),
    .start = bad_start,
};

NG_EXPORT_PLUGIN(bad_plugin);
