/* SPDX-License-Identifier: MIT */
/* test_plugin_faults.c - plugins that answer nothing, wait for nothing, or write what is no
 * JSON: a failure that names the plugin, and what was wrong. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/module/registry.h"
#include "core/store/store.h"

static const struct ng_collection collection = {.name = "faults"};

static int run_nothing(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)call;
    (void)args;
    return NG_OK;
}

static int run_pending(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)call;
    (void)args;
    return NG_PENDING;
}

static int change_nothing(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    (void)user;
    return call->host->draft_json(next, ng_str_of("{}"));
}

/* A change is pending, and nothing says what it did. */
static int run_silent(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("faults"), ng_str_of("shared"), ng_str_of("a")},
        .fn = change_nothing,
    };
    return ng_change_one(call, &change);
}

/* A change of another document, or of the same one, whose lock is held; or of a file. */
static int change_more(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("faults"), ng_str_of("shared"), ng_str_of(user)},
        .fn = change_nothing,
    };
    struct ng_file_undo undo = {.size = sizeof(undo), .path = ng_str_of("/tmp/none")};
    (void)present;
    (void)next;
    return strcmp(user, "file") == 0 ? call->host->file_undo(call, &undo)
                                     : ng_change_one(call, &change);
}

static int run_nested(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    static char same[] = "nested";
    static char other[] = "other";
    static char file[] = "file";
    struct ng_str how = ng_arg_text(call, "how");
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("faults"), ng_str_of("shared"), ng_str_of("nested")},
        .fn = change_more,
        .user = str_is(how, "same")   ? same
                : str_is(how, "file") ? file
                                      : other,
    };
    int rc = call->host->reply(call, ng_str_of("done"));
    return rc != NG_OK ? rc : ng_change_one(call, &change);
}

static int run_plain(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("faults"), ng_str_of("shared"), ng_str_of("nested")},
        .fn = change_nothing,
    };
    int rc = call->host->reply(call, ng_str_of("done"));
    return rc != NG_OK ? rc : ng_change_one(call, &change);
}

/* Writes as the letters of `how` say. */
static void write_how(const struct ng_host *host, struct ng_writer *writer, struct ng_str how)
{
    for (size_t i = 0; i < how.len; i++) {
        switch (how.data[i]) {
        case '{':
            host->json_object(writer);
            break;
        case '[':
            host->json_array(writer);
            break;
        case '}':
            host->json_end(writer);
            break;
        case '1':
            host->json_int(writer, 1);
            break;
        default:
            host->json_name_str(writer, str_make(how.data + i, 1));
            break;
        }
    }
}

static int run_write(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_writer *writer = call->host->reply_json(call);
    assert_non_null(writer);
    write_how(call->host, writer, ng_arg_text(call, "how"));
    return NG_OK;
}

#define ANY "{\"type\":\"object\"}"

static const struct ng_tool tools[] = {
    {.name = "f_nothing", .summary = "s", .params = ANY, .run = run_nothing},
    {.name = "f_pending", .summary = "s", .params = ANY, .run = run_pending},
    {.name = "f_silent", .summary = "s", .params = ANY, .run = run_silent},
    {.name = "f_nested", .summary = "s", .params = ANY, .run = run_nested},
    {.name = "f_plain", .summary = "s", .params = ANY, .run = run_plain},
    {.name = "f_write", .summary = "s", .params = ANY, .run = run_write},
    {.name = "f_declared", .summary = "s", .params = ANY, .run = run_write, .result = ANY},
    {.name = "f_memory",
     .summary = "s",
     .params = ANY,
     .run = run_pending,
     .effect = NG_EFFECT_READS,
     .flags = NG_TOOL_MEMORY},
};

static const struct ng_plugin plugin_desc = {
    .name = "faults",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = &collection,
    .collection_count = 1,
};

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    struct plugin *plugin = NULL;
    struct buf error;
    assert_non_null(harness);
    harness_open(harness, NULL);
    buf_init(&error, 4096);
    assert_int_equal(
        registry_add(harness->gateway->registry, &plugin_desc, NULL, &plugin, &error), NG_OK);
    buf_done(&error);
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_declare(harness->gateway->store, call, &collection), NG_OK);
    call_unref(call);
    *state = harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

static void test_no_answer(void **state)
{
    expect_error(
        *state, "f_nothing", "{}", "INTERNAL",
        "`f_nothing` (plugin faults) succeeded without an answer; its changes are kept");
    expect_error(
        *state, "f_silent", "{}", "INTERNAL",
        "`f_silent` (plugin faults) succeeded without an answer; its changes are kept");
}

static void test_nothing_pending(void **state)
{
    static const char *const names[] = {"f_pending", "f_memory"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        char message[256];
        (void)snprintf(message, sizeof(message),
                       "`%s` (plugin faults) returned NG_PENDING, but nothing is pending: it "
                       "made no change and took no deferral",
                       names[i]);
        expect_error(*state, names[i], "{}", "INTERNAL", message);
    }
}

/* Refused at once, and the document takes the next change. */
static void test_change_in_a_change(void **state)
{
    static const char *const args[] = {"{\"how\":\"same\"}", "{\"how\":\"other\"}",
                                       "{\"how\":\"file\"}"};
    for (size_t i = 0; i < NG_COUNT(args); i++) {
        expect_error(*state, "f_nested", args[i], "INTERNAL",
                     "a change function may not change documents or files, because it runs "
                     "under the lock of its document; name all documents in one change");
        expect_text(*state, "f_plain", "{}", "done");
    }
}

static void test_writing(void **state)
{
    static const struct {
        const char *how, *wrong;
    } cases[] = {
        {"{ab", "two names without a value between them"},
        {"{1", "a value in an object without a name before it"},
        {"{a}", "an end after a name without a value"},
        {"}", "an end without a beginning"},
        {"[a", "a name outside of an object"},
        {"{}{", "a value after the whole"},
        {"{a{", "an end is missing"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char args[64];
        char message[256];
        (void)snprintf(args, sizeof(args), "{\"how\":\"%s\"}", cases[i].how);
        (void)snprintf(
            message, sizeof(message),
            "`f_write` (plugin faults) made an answer that is not one JSON object: %s",
            cases[i].wrong);
        expect_error(*state, "f_write", args, "INTERNAL", message);
    }
    expect_text(*state, "f_write", "{\"how\":\"{a1b1}\"}", "{\"a\":1,\"b\":1}");
    expect_error(
        *state, "f_write", "{\"how\":\"{a1a1}\"}", "INTERNAL",
        "the answer of `f_write` (plugin faults) is not valid JSON: member \"a\" occurs twice");
    expect_error(*state, "f_declared", "{\"how\":\"{a1a1}\"}", "INTERNAL",
                 "the answer of `f_declared` (plugin faults) is not valid JSON: member \"a\" "
                 "occurs twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_pending, setup, teardown),
        cmocka_unit_test_setup_teardown(test_change_in_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(test_writing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
