/* SPDX-License-Identifier: MIT */
/* test_module_lint.c - faulty declarations of modules, each with its error message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/config/config.h"
#include "core/module/module_lint.h"
#include "core/module/registry.h"

#define OBJECT "{\"type\":\"object\"}"
#define KNOWS " (notegate " NOTEGATE_VERSION ")"

static int test_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static int test_read(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                     uint64_t revision)
{
    (void)self;
    (void)space;
    (void)revision;
    return ng_reply(call, id);
}

/* A plugin with one of each; every case spoils one thing. */
struct sample {
    struct ng_tool tool;
    struct ng_option option;
    struct ng_code code;
    struct ng_field field;
    struct ng_collection collection;
    struct ng_resources resources[2];
    struct ng_prompt prompt;
    struct ng_content_kind content;
    struct module module;
};

static void sample_init(struct sample *sample)
{
    memset(sample, 0, sizeof(*sample));
    sample->tool =
        (struct ng_tool){.name = "one", .summary = "First.", .params = OBJECT, .run = test_run};
    sample->option = (struct ng_option){.name = "key"};
    sample->code = (struct ng_code){"ODD", 422, "odd"};
    sample->field = (struct ng_field){.name = "n", .use = NG_FIELD_NUMBER};
    sample->collection = (struct ng_collection){.name = "things",
                                                .fields = &sample->field,
                                                .field_count = 1,
                                                .field_size = sizeof(struct ng_field)};
    sample->resources[0] =
        (struct ng_resources){.kind = "thing", .collection = "things", .read = test_read};
    sample->resources[1] = (struct ng_resources){
        .uri_template = "x://{id}", .collection = "others", .read = test_read};
    sample->prompt = (struct ng_prompt){.name = "ask", .params = OBJECT};
    sample->content = (struct ng_content_kind){.ending = ".x"};
    sample->module.kind = NG_KIND_PLUGIN;
    sample->module.desc.plugin = (struct ng_plugin){
        .name = "p",
        .version = "1",
        .tools = &sample->tool,
        .tool_count = 1,
        .options = &sample->option,
        .option_count = 1,
        .codes = &sample->code,
        .code_count = 1,
        .collections = &sample->collection,
        .collection_count = 1,
        .resources = sample->resources,
        .resource_count = 2,
        .prompts = &sample->prompt,
        .prompt_count = 1,
        .contents = &sample->content,
        .content_count = 1,
        .uses = "more others",
    };
}

static void lints(const struct sample *sample, const char *message)
{
    struct buf error;
    buf_init(&error, 8192);
    int rc = module_lint(&sample->module, &error);
    assert_string_equal(buf_cstr(&error), message);
    assert_int_equal(rc, message[0] == '\0' ? NG_OK : NG_EINVAL);
    buf_done(&error);
}

static void test_fine(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    lints(&sample, "");
    sample.tool.params =
        "{\"type\":\"object\",\"x-mine\":1,\"$comment\":\"c\",\"properties\":{\"propertis\":"
        "{\"type\":\"string\",\"format\":\"date\",\"title\":\"t\"},\"requird\":true},"
        "\"examples\":[{\"typ\":1}],\"default\":{\"item\":1},\"enum\":[{\"minimun\":1}]}";
    lints(&sample, "");
}

static void test_schemas(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *message;
    } cases[] = {
        {"{}", "has `one` whose `params` schema is not one of an object: it must say \"type\": "
               "\"object\", or clients refuse the whole list of tools"},
        {"{\"type\":\"string\"}",
         "has `one` whose `params` schema is not one of an object: it must say \"type\": "
         "\"object\", or clients refuse the whole list of tools"},
        {"{\"type\":[\"object\"]}",
         "has `one` whose `params` schema is not one of an object: it must say \"type\": "
         "\"object\", or clients refuse the whole list of tools"},
        {"true",
         "has `one` whose `params` schema is not one of an object: it must say \"type\": "
         "\"object\", or clients refuse the whole list of tools"},
        {"{\"type\":\"object\",\"propertis\":{}}",
         "has `one` with a keyword \"propertis\" in its `params` schema: did you mean "
         "\"properties\"?"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"minlength\":1}}}",
         "has `one` with a keyword \"minlength\" in its `params` schema: did you mean "
         "\"minLength\"?"},
        {"{\"type\":\"object\",\"$defs\":{\"a\":{\"anyOf\":[{\"item\":{}}]}}}",
         "has `one` with a keyword \"item\" in its `params` schema: did you mean \"items\"?"},
    };
    struct sample sample;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        sample_init(&sample);
        sample.tool.params = cases[i].schema;
        lints(&sample, cases[i].message);
    }
    sample_init(&sample);
    sample.tool.result = "{\"type\":\"array\"}";
    lints(&sample,
          "has `one` whose `result` schema is not one of an object: it must say \"type\": "
          "\"object\", or clients refuse the whole list of tools");
    sample_init(&sample);
    sample.prompt.params = "{\"type\":\"object\",\"require\":[]}";
    lints(&sample, "has `ask` with a keyword \"require\" in its `params` schema: did you mean "
                   "\"required\"?");
}

static void test_unknown_values(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    sample.tool.effect = (enum ng_effect)7;
    lints(&sample, "has a tool `one` whose `effect` is 7: this gateway" KNOWS " knows 0 to 3");
    sample_init(&sample);
    sample.tool.space = (enum ng_tool_space)5;
    lints(&sample, "has a tool `one` whose `space` is 5: this gateway" KNOWS " knows 0 to 1");
    sample_init(&sample);
    sample.tool.flags = 1U << 30 | NG_TOOL_MEMORY;
    lints(&sample, "has a tool `one` whose `flags` has bits that this gateway" KNOWS
                   " does not know: 1073741824");
    sample_init(&sample);
    sample.module.desc.plugin.threads = (enum ng_threads)3;
    lints(&sample, "has `threads` 3: this gateway" KNOWS " knows 0 to 1");
    sample_init(&sample);
    sample.option.type = (enum ng_option_type)9;
    lints(&sample, "has an option `key` whose `type` is 9: this gateway" KNOWS " knows 0 to 6");
    sample_init(&sample);
    sample.field.use = (enum ng_field_use)9;
    lints(&sample, "has a field `n` whose `use` is 9: this gateway" KNOWS " knows 0 to 4");
    sample.field.use = (enum ng_field_use)0;
    lints(&sample, "has a field `n` without a `use`");
    sample_init(&sample);
    sample.collection.flags = 64;
    lints(&sample, "has a collection `things` whose `flags` has bits that this gateway" KNOWS
                   " does not know: 64");
    sample_init(&sample);
    sample.prompt.modes = 1U << 9;
    lints(&sample, "has a prompt `ask` whose `modes` has bits that this gateway" KNOWS
                   " does not know: 512");
    sample_init(&sample);
    sample.code.status = 200;
    lints(&sample, "has a code `ODD` whose `status` is 200: it must be 400 to 599");
}

static void test_slips(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    sample.tool.summary = " \n";
    lints(&sample, "has a tool `one` with an empty `summary`");
    sample_init(&sample);
    sample.collection.field_size = 8;
    lints(&sample, "has a collection `things` whose `field_size` is 8: it must be set to "
                   "sizeof(struct ng_field), at least 24");
    sample.collection.field_size = 0;
    lints(&sample, "has a collection `things` whose `field_size` is 0: it must be set to "
                   "sizeof(struct ng_field), at least 24");
    sample_init(&sample);
    sample.collection.fields = NULL;
    lints(&sample, "has a collection `things` with a field_count and no `fields`");
    sample_init(&sample);
    sample.resources[1].uri_template = NULL;
    lints(&sample,
          "has a kind of resource (number 2) with neither `kind` nor `uri_template`: one "
          "of them must be set");
    sample.resources[1].kind = "thing";
    lints(&sample, "has two kinds of resource called `thing`");
    sample_init(&sample);
    sample.resources[0].collection = "thing";
    lints(&sample, "has a kind of resource `thing` of the collection `thing`, which the plugin "
                   "neither declares nor names in `uses`");
    static const char *const endings[] = {"", ".", "ipynb"};
    for (size_t i = 0; i < NG_COUNT(endings); i++) {
        char message[256];
        sample_init(&sample);
        sample.content.ending = endings[i];
        (void)snprintf(message, sizeof(message),
                       "has a kind of contents whose `ending` is \"%s\": it must begin with a "
                       "dot, as \".ipynb\" does",
                       endings[i]);
        lints(&sample, message);
    }
}

static void test_backend(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    memset(&sample.module, 0, sizeof(sample.module));
    sample.module.kind = NG_KIND_DOCUMENTS;
    sample.module.desc.documents.name = "b";
    sample.module.desc.documents.flags = NG_DOCUMENTS_SHARED;
    lints(&sample, "");
    sample.module.desc.documents.flags = 32;
    lints(&sample, "has a backend `b` whose `flags` has bits that this gateway" KNOWS
                   " does not know: 32");
}

/* Two plugins with resources of one kind. */
static void test_kinds(void **state)
{
    (void)state;
    struct sample one;
    struct sample other;
    struct plugin *plugin = NULL;
    struct buf error;
    struct registry *registry = registry_new();
    assert_non_null(registry);
    sample_init(&one);
    sample_init(&other);
    other.module.desc.plugin.name = "q";
    other.tool.name = "two";
    buf_init(&error, 4096);
    assert_int_equal(registry_add(registry, &one.module.desc.plugin, NULL, &plugin, &error),
                     NG_OK);
    assert_int_equal(registry_add(registry, &other.module.desc.plugin, NULL, &plugin, &error),
                     NG_EINVAL);
    assert_string_equal(buf_cstr(&error),
                        "plugin q: the kind of resource thing is taken by plugin p");
    buf_done(&error);
    registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fine),           cmocka_unit_test(test_schemas),
        cmocka_unit_test(test_unknown_values), cmocka_unit_test(test_slips),
        cmocka_unit_test(test_backend),        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
