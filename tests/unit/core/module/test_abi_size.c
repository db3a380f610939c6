/* SPDX-License-Identifier: MIT */
/* test_abi_size.c - structs that are read by their size, from plugins and backends whose
 * headers are older or newer than this gateway's. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/module/abi_size.h"
#include "core/module/registry.h"
#include "core/store/store.h"

#define GUARD 0x5a
#define GROWN 32

/* As headers of a later release have them. */
struct grown_change {
    struct ng_change change;
    unsigned char more[GROWN];
};

struct grown_query {
    struct ng_query query;
    unsigned char more[GROWN];
};

struct grown_file {
    struct ng_file file;
    unsigned char more[GROWN];
};

static const struct ng_field fields[] = {{.name = "n", .use = NG_FIELD_NUMBER}};

/* Fields of a later release: the second begins behind what today's struct is. */
static const struct grown_field {
    struct ng_field field;
    const char *more[4];
} grown_fields[] = {
    {{.name = "first", .use = NG_FIELD_NUMBER}, {"a", "b", "c", "d"}},
    {{.name = "second", .use = NG_FIELD_STRING}, {"e", "f", "g", "h"}},
};

static const struct ng_collection collections[] = {
    {.name = "sizes",
     .fields = fields,
     .field_count = NG_COUNT(fields),
     .field_size = sizeof(struct ng_field)},
    {.name = "grown",
     .fields = &grown_fields[0].field,
     .field_count = NG_COUNT(grown_fields),
     .field_size = sizeof(struct grown_field)},
};

static int write_one(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    (void)present;
    const char *json = user;
    int rc = call->host->draft_json(next, ng_str_of(json));
    return rc != NG_OK ? rc : ng_reply(call, ng_str_of("written"));
}

static struct ng_change change_of(const char *collection, const char *id, const char *json)
{
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(collection), ng_str_of("shared"), ng_str_of(id)},
        .fn = write_one,
        .user = (void *)(uintptr_t)json,
    };
    return change;
}

/* Two changes, each as large as a later release's. */
static int run_grown_changes(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct grown_change changes[2];
    memset(changes, GUARD, sizeof(changes));
    changes[0].change = change_of("sizes", "a", "{\"n\":1}");
    changes[1].change = change_of("grown", "b", "{\"first\":1,\"second\":\"x\"}");
    changes[0].change.size = sizeof(changes[0]);
    changes[1].change.size = sizeof(changes[1]);
    return call->host->change(call, &changes[0].change, 2);
}

/* The argument is the size that one change says. */
static int run_change_of_size(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_change change = change_of("sizes", "c", "{}");
    change.size = (size_t)ng_arg_int(call, "size", 0);
    return call->host->change(call, &change, 1);
}

static int count_row(void *user, const struct ng_doc *row)
{
    assert_true(NG_HAS(row, snippet));
    ++*(int *)user;
    return 0;
}

static int run_query(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct grown_query grown;
    int rows = 0;
    struct ng_term term = {.field = ng_str_of("second"), .op = NG_TERM_EQ};
    term.value = ng_str_of("x");
    memset(&grown, GUARD, sizeof(grown));
    grown.query = (struct ng_query){
        .size = sizeof(grown),
        .collection = ng_str_of("grown"),
        .space = ng_str_of("shared"),
        .terms = &term,
        .term_count = 1,
        .limit = 9,
    };
    if (ng_has_arg(call, "size")) {
        grown.query.size = (size_t)ng_arg_int(call, "size", 0);
    }
    int rc = call->host->query(call, &grown.query, count_row, &rows, NULL);
    return rc != NG_OK ? rc : ng_reply(call, call->host->format(call, "%d", rows));
}

/* Bytes after the caller's struct are not changed; a larger one is filled as far as it goes.
 */
static int run_stat(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct grown_file out;
    struct ng_str path = ng_arg_text(call, "path");
    memset(&out, GUARD, sizeof(out));
    out.file.size = (size_t)ng_arg_int(call, "size", sizeof(out.file));
    size_t said = out.file.size;
    int rc = call->host->file_stat(call, path, &out.file);
    if (rc != NG_OK) {
        return rc;
    }
    assert_int_equal(out.file.size, said);
    assert_int_equal(out.file.type, NG_FILE_NONE);
    for (size_t i = 0; i < GROWN; i++) {
        assert_int_equal(out.more[i], GUARD);
    }
    return ng_reply(call, ng_str_of("whole"));
}

/* A collection that another plugin, or the core, has. */
static int run_foreign(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_change change = change_of("keys", "c", "{}");
    change.key.collection = ng_arg_text(call, "collection");
    return call->host->change(call, &change, 1);
}

static int run_texts(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_host *host = call->host;
    assert_true(NG_HAS(host, hint_text));
    assert_true(NG_HAS(host, log_text));
    host->log_text(call, NG_LOG_DEBUG, ng_str_of("100% of it, %s"));
    (void)host->fail_text(call, NG_EFAILED, ng_str_of("100%s"));
    host->hint_text(call, ng_str_of("%d and so on"));
    return NG_EFAILED;
}

/* An earlier hint is removed. */
static int run_unhint(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    call->host->hint(call, "do it");
    if (ng_arg(call, "text") != NULL) {
        call->host->hint_text(call, ng_str_of(""));
    } else {
        call->host->hint(call, "%s", "");
    }
    (void)args;
    (void)call->host->fail_text(call, NG_EFAILED, ng_str_of("failed"));
    return NG_EFAILED;
}

#define ANY "{\"type\":\"object\"}"

static const struct ng_tool tools[] = {
    {.name = "z_grown", .summary = "s", .params = ANY, .run = run_grown_changes},
    {.name = "z_change", .summary = "s", .params = ANY, .run = run_change_of_size},
    {.name = "z_query", .summary = "s", .params = ANY, .run = run_query},
    {.name = "z_stat", .summary = "s", .params = ANY, .run = run_stat},
    {.name = "z_foreign", .summary = "s", .params = ANY, .run = run_foreign},
    {.name = "z_texts", .summary = "s", .params = ANY, .run = run_texts},
    {.name = "z_unhint", .summary = "s", .params = ANY, .run = run_unhint},
};

static const struct ng_plugin plugin_desc = {
    .name = "sizes",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = collections,
    .collection_count = NG_COUNT(collections),
    .uses = "notebook_of_another notebooks",
};

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    const char *sets[] = {"plugins=notebook", NULL};
    struct plugin *plugin = NULL;
    struct buf error;
    assert_non_null(harness);
    harness_open(harness, sets);
    buf_init(&error, 4096);
    assert_int_equal(
        registry_add(harness->gateway->registry, &plugin_desc, NULL, &plugin, &error), NG_OK);
    buf_done(&error);
    struct call *call = harness_new_call(harness);
    for (size_t i = 0; i < NG_COUNT(collections); i++) {
        assert_int_equal(store_declare(harness->gateway->store, call, &collections[i]), NG_OK);
    }
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

static void test_arrays(void **state)
{
    expect_text(*state, "z_grown", "{}", "written");
    expect_text(*state, "z_query", "{}", "1");
    char args[64];
    (void)snprintf(args, sizeof(args), "{\"size\":%zu}", sizeof(struct ng_query));
    expect_text(*state, "z_query", args, "1");
}

/* The size of a struct that ends with this member. */
static size_t padded(size_t bytes)
{
    return (bytes + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

static void test_wrong_sizes(void **state)
{
    static const long long wrong[] = {0, 8, 15, 100000, -8};
    for (size_t i = 0; i < NG_COUNT(wrong); i++) {
        char args[64];
        char message[256];
        size_t said = (size_t)wrong[i];
        (void)snprintf(args, sizeof(args), "{\"size\":%lld}", wrong[i]);
        (void)snprintf(
            message, sizeof(message),
            "plugin sizes gave a struct ng_change whose `size` is %zu: it must be set "
            "to sizeof(struct ng_change), at least %zu",
            said, padded(NG_UP_TO(ng_change, expected_revision)));
        expect_error(*state, "z_change", args, "INTERNAL", message);
        (void)snprintf(
            message, sizeof(message),
            "plugin sizes gave a struct ng_query whose `size` is %zu: it must be set "
            "to sizeof(struct ng_query), at least %zu",
            said, padded(NG_UP_TO(ng_query, want_total)));
        expect_error(*state, "z_query", args, "INTERNAL", message);
    }
}

static void test_outputs(void **state)
{
    struct harness *harness = *state;
    char args[512];
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/none\"}", harness->dir);
    expect_text(harness, "z_stat", args, "whole");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/none\",\"size\":%zu}",
                   harness->dir, sizeof(struct grown_file));
    expect_text(harness, "z_stat", args, "whole");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/none\",\"size\":0}", harness->dir);
    expect_error(harness, "z_stat", args, "INTERNAL",
                 "plugin sizes gave a struct ng_file whose `size` is 0: it must be set to "
                 "sizeof(struct ng_file), at least 120");
}

static void test_foreign(void **state)
{
    expect_error(*state, "z_foreign", "{\"collection\":\"keys\"}", "INTERNAL",
                 "plugin sizes may not change the collection \"keys\": it has not declared it, "
                 "and does not name it in `uses`");
    expect_text(*state, "z_foreign", "{\"collection\":\"notebooks\"}", "written");
    expect_text(*state, "z_foreign", "{\"collection\":\"sizes\"}", "written");
}

static void test_texts(void **state)
{
    struct answer answer = harness_call(*state, "z_texts", "{}");
    assert_string_equal(answer.message, "100%s");
    assert_string_equal(answer.hint, "%d and so on");
    answer_free(&answer);
}

static void test_no_hint(void **state)
{
    static const char *const args[] = {"{}", "{\"text\":true}"};
    for (size_t i = 0; i < NG_COUNT(args); i++) {
        struct answer answer = harness_call(*state, "z_unhint", args[i]);
        assert_string_equal(answer.message, "failed");
        assert_false(answer.has_hint);
        answer_free(&answer);
    }
}

/* ---- what backends give ---- */

static int take_row(void *user, const struct ng_doc *row)
{
    *(struct ng_doc *)user = *row;
    return 0;
}

static void test_rows(void **state)
{
    (void)state;
    struct ng_doc seen;
    struct ng_doc row = {.size = sizeof(row), .revision = 7};
    struct abi_given given = {.backend = "b", .to.row = take_row, .user = &seen};
    assert_int_equal(abi_give_row(&given, &row), 0);
    assert_int_equal(seen.revision, 7);
    row.size = sizeof(row) + GROWN; /* newer than the core: what it has is passed on */
    assert_int_equal(abi_give_row(&given, &row), 0);
    assert_null(given.wrong);
    struct call *call = call_new(NULL);
    for (size_t i = 0; i < 3; i++) {
        static const size_t wrong[] = {0, 8, (size_t)1 << 20};
        row.size = wrong[i];
        given.wrong = NULL;
        assert_int_not_equal(abi_give_row(&given, &row), 0);
        assert_int_equal(abi_given_end(call, &given, NG_OK), NG_EINTERNAL);
        assert_true(str_is(call->staged.message,
                           "the backend b gave a struct ng_doc with an invalid "
                           "size: it must be set to sizeof(struct ng_doc)"));
    }
    call_unref(call);
}

static void test_fill(void **state)
{
    (void)state;
    struct {
        size_t size;
        uint64_t a, b;
    } small = {16, 1, 2}, large = {24, 3, 4};
    ng_fill(&small, &large);
    assert_int_equal(small.size, 16);
    assert_int_equal(small.a, 3);
    assert_int_equal(small.b, 2);
    small.a = 5;
    ng_fill(&large, &small);
    assert_int_equal(large.size, 24);
    assert_int_equal(large.a, 5);
    assert_int_equal(large.b, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arrays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
        cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_hint, setup, teardown),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
