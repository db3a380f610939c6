/* SPDX-License-Identifier: MIT */
/* older.c - as if compiled with headers that ended at tool_count, whose tools ended at run.
 * What lies behind must not be read. */
#include "record.h"

struct old_tool {
    const char *name, *title, *summary, *params, *result;
    int (*run)(void *self, struct ng_call *call, struct ng_str args);
};

struct old_plugin {
    const char *name;
    const char *version;
    enum ng_threads threads;
    const struct old_tool *tools;
    size_t tool_count;
};

static int test_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static const struct old_tool tools[] = {
    {"one", NULL, "First.", "{\"type\":\"object\"}", NULL, test_run},
    {"two", NULL, "Second.", "{\"type\":\"object\"}", NULL, test_run},
};

static const struct {
    struct old_plugin plugin;
    const char *behind[16];
} older = {
    {"older", "0.9", NG_THREADS_PARALLEL, tools, NG_COUNT(tools)},
    {"not", "to", "be", "read", "not", "to", "be", "read", "x", "x", "x", "x"},
};

TEST_NOTE(1, NG_KIND_PLUGIN);
TEST_RECORD(1, NG_KIND_PLUGIN, sizeof(struct old_plugin), sizeof(struct old_tool), &older);
