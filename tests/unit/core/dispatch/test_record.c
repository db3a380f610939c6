/* SPDX-License-Identifier: MIT */
/* test_record.c - journal.record_calls: what is left of ended calls, and what never is. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/dispatch/record.h"
#include "core/journal/journal.h"
#include "core/module/registry.h"

#define PATIENCE_MS 60000

static const char params[] =
    "{\"type\":\"object\",\"$defs\":{\"secret\":{\"type\":\"string\",\"writeOnly\":true}},"
    "\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"password\":{\"type\":\"string\",\"x-notegate-secret\":true},"
    "\"token\":{\"$ref\":\"#/$defs/secret\"},"
    "\"login\":{\"type\":\"object\",\"properties\":{\"pin\":{\"type\":\"string\",\"format\":"
    "\"password\"},\"user\":{\"type\":\"string\"}}},"
    "\"keys\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"integer\"},"
    "{\"$ref\":\"#/$defs/secret\"}]}},\"rest\":{\"type\":\"object\",\"additionalProperties\":"
    "{\"writeOnly\":true}}}}";

static void expect_print_by(const char *of, const char *args, const char *text)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *schema = NULL;
    const struct ng_value *value = NULL;
    struct buf out;
    arena_init(&arena, 0);
    buf_init(&out, 1 << 20);
    assert_int_equal(json_parse(&arena, ng_str_of(of), 64, &schema, &error), NG_OK);
    assert_int_equal(json_parse(&arena, ng_str_of(args), 64, &value, &error), NG_OK);
    record_print(&out, value, schema);
    assert_string_equal(buf_cstr(&out), text);
    buf_done(&out);
    arena_done(&arena);
}

static void expect_print(const char *args, const char *text)
{
    expect_print_by(params, args, text);
}

static void test_redacted_by_pattern(void **state)
{
    (void)state;
    expect_print_by("{\"patternProperties\":{\"^key_\":{\"writeOnly\":true}},\"properties\":{"
                    "\"a\":{\"type\":\"integer\"}}}",
                    "{\"key_one\":\"hush\"}", "{\"key_one\":\"[redacted]\"}");
}

/* If a value has more schemas than are checked, none of them is skipped. */
static void test_redacted_by_many(void **state)
{
    (void)state;
    struct buf of;
    buf_init(&of, 1 << 16);
    (void)buf_add_c(&of, "{\"properties\":{\"a\":{\"anyOf\":[");
    for (int i = 0; i < 60; i++) {
        (void)buf_printf(&of, "{\"const\":%d},", i);
    }
    (void)buf_add_c(&of, "{\"writeOnly\":true}]},\"b\":{\"type\":\"integer\"}}}");
    expect_print_by(buf_cstr(&of), "{\"a\":\"hush\",\"b\":1}",
                    "{\"a\":\"[redacted]\",\"b\":1}");
    buf_done(&of);
}

static void test_redacted(void **state)
{
    (void)state;
    expect_print("{}", "{}");
    expect_print("{\"name\":\"n\",\"more\":[1,true,null,\"x\"]}",
                 "{\"name\":\"n\",\"more\":[1,true,null,\"x\"]}");
    expect_print("{\"password\":\"hush\",\"token\":\"hush\"}",
                 "{\"password\":\"[redacted]\",\"token\":\"[redacted]\"}");
    expect_print("{\"login\":{\"pin\":\"hush\",\"user\":\"me\"}}",
                 "{\"login\":{\"pin\":\"[redacted]\",\"user\":\"me\"}}");
    expect_print("{\"keys\":[\"hush\",\"hush\"],\"rest\":{\"a\":\"hush\"}}",
                 "{\"keys\":[\"[redacted]\",\"[redacted]\"],\"rest\":{\"a\":\"[redacted]\"}}");
    expect_print("{\"password\":{\"deep\":[\"hush\"]}}", "{\"password\":\"[redacted]\"}");
}

static void test_cut(void **state)
{
    (void)state;
    char *args = malloc(100000);
    assert_non_null(args);
    size_t at = (size_t)snprintf(args, 100000, "{\"name\":[");
    while (at < 90000) {
        at += (size_t)snprintf(args + at, 100000 - at, "\"%0400d\",", 7);
    }
    (void)snprintf(args + at, 100000 - at, "1]}");
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    struct buf out;
    arena_init(&arena, 0);
    buf_init(&out, 1 << 20);
    assert_int_equal(json_parse(&arena, ng_str_of(args), 64, &value, &error), NG_OK);
    record_print(&out, value, NULL);
    assert_true(out.len > RECORD_ARGUMENTS_MAX && out.len < 2 * RECORD_ARGUMENTS_MAX);
    assert_non_null(strstr(buf_cstr(&out), "... (400 bytes)"));
    buf_done(&out);
    arena_done(&arena);
    free(args);
}

/* ---- with a gateway ---- */

static int hush_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_str name = ng_arg_text(call, "name");
    return name.len > 0 ? ng_reply(call, name)
                        : call->host->fail_text(call, NG_EFAILED, ng_str_of("no name"));
}

static const struct ng_tool tools[] = {
    {.name = "hush", .summary = "Say it.", .params = params, .run = hush_run},
};

static const struct ng_plugin plugin_desc = {
    .name = "husher",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
};

struct found {
    size_t count;
    char texts[8][256];
    char tags[8][64];
};

static int find_entry(void *user, const struct ng_entry *entry)
{
    struct found *found = user;
    if (entry->kind != NG_ENTRY_MEMORY || found->count == NG_COUNT(found->texts)) {
        return 0;
    }
    assert_true(str_is(entry->source, "tool"));
    assert_true(str_is(entry->agent, "someone"));
    assert_int_equal(entry->tag_count, 2);
    (void)snprintf(found->texts[found->count], sizeof(found->texts[0]), "%.*s",
                   (int)entry->content.len, entry->content.data);
    (void)snprintf(found->tags[found->count], sizeof(found->tags[0]), "%.*s,%.*s",
                   (int)entry->tags[0].len, entry->tags[0].data, (int)entry->tags[1].len,
                   entry->tags[1].data);
    found->count++;
    return 0;
}

static void find(struct harness *harness, struct found *found)
{
    void *db = NULL;
    const struct ng_journal *journal = journal_vtable(harness->gateway->journal, &db);
    struct call *call = harness_new_call(harness);
    struct ng_timeline timeline = {
        .size = sizeof(timeline), .space = {"team", 4}, .limit = 100};
    memset(found, 0, sizeof(*found));
    assert_int_equal(journal->timeline(db, &call->pub, &timeline, find_entry, found), NG_OK);
    call_unref(call);
}

static void add_tools(struct harness *harness)
{
    struct plugin *plugin = NULL;
    struct buf error;
    buf_init(&error, 4096);
    assert_int_equal(
        registry_add(harness->gateway->registry, &plugin_desc, NULL, &plugin, &error), NG_OK);
    buf_done(&error);
    plugin->started = true;
}

static void say(struct harness *harness, const char *args)
{
    struct answer answer = harness_call_as(harness, "someone", "team", "hush", args);
    answer_free(&answer);
}

static void test_recorded(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory",
                                       "journal.record_calls=true", NULL};
    struct harness harness;
    struct found found;
    (void)state;
    harness_open(&harness, sets);
    add_tools(&harness);
    say(&harness, "{\"name\":\"n\",\"password\":\"hush\"}");
    say(&harness, "{\"token\":\"hush\"}");
    say(&harness, "{\"name\":7}");
    int64_t until = clock_monotonic_ns() + (int64_t)PATIENCE_MS * 1000000;
    for (find(&harness, &found); found.count < 3; find(&harness, &found)) {
        const struct timespec step = {0, 2000000};
        assert_true(clock_monotonic_ns() < until);
        (void)nanosleep(&step, NULL);
    }
    /* Newest first. */
    assert_string_equal(found.tags[2], "hush,ok");
    assert_non_null(strstr(found.texts[2], "\"name\":\"n\",\"password\":\"[redacted]\""));
    assert_string_equal(found.tags[1], "hush,TOOL_FAILED");
    assert_string_equal(found.tags[0], "hush,INVALID_INPUT");
    for (size_t i = 0; i < 3; i++) {
        assert_null(strstr(found.texts[i], "\"hush\""));
    }
    assert_int_equal(record_lost(harness.gateway->recorder), 0);
    harness_close(&harness);
}

/* Off is the default. And what ended just before the end is kept. */
static void test_ends(void **state)
{
    static const char *const off[] = {"plugins=", "documents=memory", NULL};
    static const char *const on[] = {"plugins=", "journal.record_calls=true", NULL};
    struct harness harness;
    struct found found;
    (void)state;
    harness_open(&harness, off);
    assert_null(harness.gateway->recorder);
    harness_close(&harness);
    harness_open(&harness, on);
    add_tools(&harness);
    for (size_t i = 0; i < 8; i++) {
        say(&harness, "{\"name\":\"n\"}");
    }
    harness_reopen(&harness);
    struct call *call = harness_new_call(&harness);
    assert_int_equal(journal_flush(harness.gateway->journal, call), NG_OK);
    call_unref(call);
    find(&harness, &found);
    assert_int_equal(found.count, 8);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redacted),         cmocka_unit_test(test_redacted_by_pattern),
        cmocka_unit_test(test_redacted_by_many), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_recorded),         cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
