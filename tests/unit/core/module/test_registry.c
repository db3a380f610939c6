/* SPDX-License-Identifier: MIT */
/* test_registry.c - plugins are added whole or not at all, also while others look tools up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/call/call.h"
#include "core/module/registry.h"

#define PLUGINS 60
#define TOOLS 3
#define READERS 3
#define NAME_MAX_LEN 32
#define ERROR_MAX 4096

static int run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_reply(call, ng_str_of("ok"));
}

/* A plugin with tools p<N>_t<I>, each with an alias p<N>_a<I>. */
struct sample {
    struct ng_plugin desc;
    struct ng_tool tools[TOOLS];
    char name[NAME_MAX_LEN];
    char names[TOOLS][NAME_MAX_LEN], aliases[TOOLS][NAME_MAX_LEN];
};

static void sample_make(struct sample *sample, int number)
{
    memset(sample, 0, sizeof(*sample));
    (void)snprintf(sample->name, sizeof(sample->name), "p%d", number);
    for (int i = 0; i < TOOLS; i++) {
        (void)snprintf(sample->names[i], NAME_MAX_LEN, "p%d_t%d", number, i);
        (void)snprintf(sample->aliases[i], NAME_MAX_LEN, "p%d_a%d p%d_b%d", number, i, number,
                       i);
        sample->tools[i] = (struct ng_tool){
            .name = sample->names[i],
            .aliases = sample->aliases[i],
            .summary = "A sample.",
            .params = "{\"type\":\"object\"}",
            .run = run,
        };
    }
    sample->desc = (struct ng_plugin){
        .name = sample->name,
        .version = "1",
        .tools = sample->tools,
        .tool_count = TOOLS,
    };
}

static void expect_error(struct registry *registry, const struct ng_plugin *desc,
                         const char *part)
{
    struct buf error;
    struct plugin *plugin = NULL;
    buf_init(&error, ERROR_MAX);
    assert_int_not_equal(registry_add(registry, desc, NULL, &plugin, &error), NG_OK);
    assert_non_null(strstr(buf_cstr(&error), part));
    buf_done(&error);
}

static void test_tools_by_space(void **state)
{
    (void)state;
    struct registry *registry = registry_new();
    struct sample sample;
    struct plugin *plugin = NULL;
    struct buf error;
    assert_non_null(registry);
    sample_make(&sample, 1);
    sample.tools[0].flags = NG_TOOL_BY_SPACE;
    sample.tools[0].result = "{\"type\":\"object\",\"properties\":{\"space\":{}}}";
    expect_error(registry, &sample.desc, "tool p1_t0: a schema has the property space");
    sample.tools[0].result =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},"
        "\"additionalProperties\":false}";
    buf_init(&error, ERROR_MAX);
    assert_int_equal(registry_add(registry, &sample.desc, NULL, &plugin, &error), NG_OK);
    buf_done(&error);
    const struct tool *tool = registry_find(registry, ng_str_of("p1_t0"));
    const struct ng_value *added = json_get(json_get(tool->params_tree, "properties"), "space");
    assert_true(str_is(json_get_text(added, "type"), "string"));
    added = json_get(json_get(tool->result_tree, "properties"), "space");
    assert_true(str_is(json_get_text(added, "type"), "string"));
    tool = registry_find(registry, ng_str_of("p1_t1"));
    assert_null(json_get(tool->params_tree, "properties"));
    registry_free(registry);
}

static void test_all_or_none(void **state)
{
    (void)state;
    struct registry *registry = registry_new();
    struct sample first;
    struct sample second;
    struct plugin *plugin = NULL;
    struct buf error;
    const struct tool *const *tools = NULL;
    assert_non_null(registry);
    assert_null(registry_find(registry, ng_str_of("p1_t0")));
    buf_init(&error, ERROR_MAX);
    sample_make(&first, 1);
    assert_int_equal(registry_add(registry, &first.desc, NULL, &plugin, &error), NG_OK);
    assert_string_equal(registry_find(registry, ng_str_of("p1_b2"))->desc.name, "p1_t2");
    expect_error(registry, &first.desc, "two plugins are called p1");
    /* The last tool's alias is taken: none of its tools is there. */
    sample_make(&second, 2);
    second.tools[TOOLS - 1].aliases = "fresh p1_a0";
    expect_error(registry, &second.desc, "the tool name p1_a0 is taken by plugin p1");
    assert_null(registry_find(registry, ng_str_of("p2_t0")));
    assert_null(registry_find(registry, ng_str_of("fresh")));
    second.tools[TOOLS - 1].aliases = NULL;
    second.tools[1].params = "{\"type\":\"nonsense\"}";
    expect_error(registry, &second.desc, "plugin p2, tool p2_t1: its schema is not usable");
    second.tools[1].params = "{\"type\":\"object\"}";
    second.tools[1].name = "1x";
    expect_error(registry, &second.desc, "is not of the form");
    assert_int_equal(registry_tools(registry, &tools), TOOLS);
    /* Created but not published: it is not visible, and can be dropped. */
    sample_make(&second, 2);
    assert_int_equal(registry_make(registry, &second.desc, NULL, &plugin, &error), NG_OK);
    assert_int_equal(registry_check(registry, plugin, &error), NG_OK);
    assert_null(registry_find(registry, ng_str_of("p2_t0")));
    registry_drop(registry, plugin);
    assert_int_equal(registry_make(registry, &second.desc, NULL, &plugin, &error), NG_OK);
    plugin->asked = ng_str_of("/path/of/it");
    assert_true(registry_knows(registry, ng_str_of("/path/of/it")));
    assert_false(registry_knows(registry, ng_str_of("p2")));
    assert_int_equal(registry_publish(registry, plugin, &error), NG_OK);
    assert_int_equal(registry_tools(registry, &tools), 2 * TOOLS);
    assert_string_equal(tools[TOOLS]->desc.name, "p2_t0");
    assert_int_equal(tools[TOOLS]->index, TOOLS);
    buf_done(&error);
    registry_free(registry);
}

/* The prefix of tools' names can be another word; INVALID_INPUT can be called otherwise. */
static void test_prefix_and_names(void **state)
{
    (void)state;
    struct registry *registry = registry_new();
    struct sample sample;
    struct plugin *plugin = NULL;
    struct buf error;
    assert_non_null(registry);
    buf_init(&error, ERROR_MAX);
    sample_make(&sample, 3);
    sample.desc.name_prefix = "p3_";
    sample.desc.invalid_input = "INVALID_PARAMS";
    assert_int_equal(registry_make(registry, &sample.desc, NULL, &plugin, &error), NG_OK);
    assert_int_equal(registry_rename(plugin, ng_str_of("9"), &error), NG_EINVAL);
    assert_non_null(strstr(buf_cstr(&error), "9t0"));
    assert_int_equal(registry_rename(plugin, ng_str_of("vault_"), &error), NG_OK);
    assert_int_equal(registry_publish(registry, plugin, &error), NG_OK);
    const struct tool *tool = registry_find(registry, ng_str_of("vault_t0"));
    assert_non_null(tool);
    assert_null(registry_find(registry, ng_str_of("p3_t0")));
    assert_string_equal(error_name(tool, NG_EINVAL), "INVALID_PARAMS");
    assert_int_equal(error_status(tool, NG_EINVAL), 400);
    assert_string_equal(error_name(tool, NG_ENOTFOUND), "NOT_FOUND");
    assert_string_equal(error_name(NULL, NG_EINVAL), "INVALID_INPUT");
    buf_done(&error);
    registry_free(registry);
}

struct reading {
    struct registry *registry;
    atomic_int added; /* plugins that are published */
    atomic_bool stop;
    atomic_int rounds;
};

static bool is_there(const struct registry *registry, char kind, int plugin, int tool)
{
    char name[NAME_MAX_LEN];
    (void)snprintf(name, sizeof(name), "p%d_%c%d", plugin, kind, tool);
    const struct tool *found = registry_find(registry, ng_str_of(name));
    return found != NULL && found->params != NULL && found->plugin->desc.tool_count == TOOLS;
}

/* An added plugin is complete, by name and alias; lists are whole plugins. */
static void *read_on(void *user)
{
    struct reading *reading = user;
    bool good = true;
    while (!atomic_load(&reading->stop)) {
        int added = atomic_load(&reading->added);
        for (int i = 0; i < added; i++) {
            for (int tool = 0; tool < TOOLS; tool++) {
                good = good && is_there(reading->registry, 't', i, tool) &&
                       is_there(reading->registry, 'a', i, tool);
            }
        }
        const struct tool *const *tools = NULL;
        size_t count = registry_tools(reading->registry, &tools);
        good = good && count % TOOLS == 0 && count >= (size_t)added * TOOLS;
        for (size_t i = 0; i < count; i++) {
            good = good && tools[i]->index == i;
        }
        (void)registry_nearest(reading->registry, ng_str_of("p1_tx"));
        (void)atomic_fetch_add(&reading->rounds, 1);
    }
    return good ? reading : NULL;
}

static void test_adding_while_others_look(void **state)
{
    (void)state;
    static struct sample samples[PLUGINS];
    struct reading reading = {.registry = registry_new()};
    pthread_t threads[READERS];
    struct buf error;
    buf_init(&error, ERROR_MAX);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &reading), 0);
    }
    for (int i = 0; i < PLUGINS; i++) {
        struct plugin *plugin = NULL;
        sample_make(&samples[i], i);
        assert_int_equal(
            registry_add(reading.registry, &samples[i].desc, NULL, &plugin, &error), NG_OK);
        atomic_store(&reading.added, i + 1);
        int rounds = atomic_load(&reading.rounds);
        while (i % 10 == 0 && atomic_load(&reading.rounds) < rounds + READERS) {
        }
    }
    atomic_store(&reading.stop, true);
    for (int i = 0; i < READERS; i++) {
        void *result = NULL;
        (void)pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    registry_free(reading.registry);
    buf_done(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_tools_by_space),
        cmocka_unit_test(test_prefix_and_names),
        cmocka_unit_test(test_adding_while_others_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
