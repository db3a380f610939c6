/* SPDX-License-Identifier: MIT */
/* test_gateway_audit_calls.c - the entries of calls: which calls have one, and what it says. */
#include "test_gateway_audit_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "core/module/registry.h"
#include "core/store/store.h"
#include "core/store/store_types.h"
#include "faulty_backend.h"

#undef fail /* of cmocka: ng_fail() needs the name */

#define ANY "{\"type\":\"object\"}"
#define MANY 450 /* documents of one call: three entries */

static const char *const plain[] = {"plugins=", "documents=sqlite", "audit=on", NULL};
static const char *const reading[] = {"plugins=", "documents=sqlite", "audit=on",
                                      "audit.reads=true", NULL};

/* ---- the plugin ---- */

static int put_change(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    (void)present;
    (void)user;
    return call->host->draft_json(next, ng_str_of("{\"text\":\"sesame\"}"));
}

static int keep_change(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    (void)next;
    (void)user;
    return NG_OK;
}

static int fail_change(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    (void)present;
    (void)next;
    (void)user;
    return call->host->fail(call, NG_ECONFLICT, "not so");
}

static struct ng_change change_of(const char *id, ng_change_fn *fn)
{
    const struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("things"), ng_str_of("shared"), ng_str_of(id)},
        .fn = fn,
    };
    return change;
}

static int write_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    int rc = ng_reply(call, args);
    const struct ng_change changes[] = {change_of("one", put_change),
                                        change_of("two", put_change)};
    return rc == NG_OK ? call->host->change(call, changes, NG_COUNT(changes)) : rc;
}

/* Changes that come one after the other, in as many commits. */
static int many_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    int rc = call->host->may_block(call) ? NG_OK : NG_EWOULDBLOCK;
    for (int i = 0; rc == NG_OK && i < MANY; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%d", i);
        const struct ng_change change = change_of(id, put_change);
        rc = call->host->change_wait(call, &change, 1);
    }
    return rc == NG_OK ? ng_reply(call, args) : rc;
}

/* The first change is made, the second is not. */
static int half_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_change made = change_of("made", put_change);
    const struct ng_change failed = change_of("failed", fail_change);
    int rc = call->host->may_block(call) ? NG_OK : NG_EWOULDBLOCK;
    if (rc == NG_OK) {
        rc = call->host->change_wait(call, &made, 1);
    }
    return rc == NG_OK ? call->host->change_wait(call, &failed, 1) : rc;
}

static int echo_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

#define PICKS                                                                                  \
    "{\"type\":\"object\",\"required\":[\"mode\"],\"properties\":{\"mode\":{\"type\":"         \
    "\"string\",\"enum\":[\"show\",\"edit\"]},\"text\":{\"type\":\"string\"}},"                \
    "\"additionalProperties\":false}"

static const struct ng_tool tools[] = {
    {.name = "t_write", .summary = "s", .params = ANY, .run = write_run},
    {.name = "t_many", .summary = "s", .params = ANY, .run = many_run},
    {.name = "t_half", .summary = "s", .params = ANY, .run = half_run},
    {.name = "t_read",
     .summary = "s",
     .params = ANY,
     .run = echo_run,
     .effect = NG_EFFECT_READS},
    {.name = "t_pick",
     .summary = "s",
     .params = PICKS,
     .run = echo_run,
     .read_argument = "mode",
     .read_values = "show"},
};

static const struct ng_collection collections[] = {
    {.name = "things", .field_size = sizeof(struct ng_field)}};

static const struct ng_plugin plugin = {
    .name = "things",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = collections,
    .collection_count = NG_COUNT(collections),
};

/* ---- calls ---- */

static void declare(struct harness *harness)
{
    struct plugin *added = NULL;
    struct buf error;
    buf_init(&error, 4096);
    struct gateway *gateway = harness->gateway;
    assert_int_equal(registry_add(gateway->registry, &plugin, NULL, &added, &error), NG_OK);
    for (size_t i = 0; i < added->tool_count; i++) {
        added->tools[i]->metrics_slot =
            metrics_tool(gateway->metrics, added->tools[i]->desc.name);
    }
    buf_done(&error);
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_declare(gateway->store, call, &collections[0]), NG_OK);
    call_unref(call);
}

static void open_with(struct harness *harness, const char *const *sets)
{
    harness_open(harness, sets);
    declare(harness);
}

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool ended;
};

static void call_done(struct call *call, void *user)
{
    struct wait *wait = user;
    (void)call;
    pthread_mutex_lock(&wait->lock);
    wait->ended = true;
    pthread_cond_signal(&wait->done);
    pthread_mutex_unlock(&wait->lock);
}

static struct call *call_make(struct harness *harness, const char *tool, const char *args)
{
    struct call *call = harness_new_call(harness);
    call->tool_name = ng_str_of(tool);
    call->args_text = ng_str_of(args);
    call->face = "rest";
    return call;
}

static void call_expect(struct call *call, const char *code)
{
    struct wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    call->done = call_done;
    call->done_user = &wait;
    if (dispatch(call) == NG_PENDING) {
        pthread_mutex_lock(&wait.lock);
        while (!wait.ended) {
            pthread_cond_wait(&wait.done, &wait.lock);
        }
        pthread_mutex_unlock(&wait.lock);
    }
    assert_string_equal(call->final.code, code);
    call_unref(call);
}

/* ---- cases ---- */

static void test_a_change(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    struct call *call = call_make(&harness, "t_write", "{\"x\":\"sesame\"}");
    call->remote = ng_str_of("10.0.0.1");
    call->caller.client = ng_str_of("editor/1");
    call->caller.request_id = ng_str_of("r-1");
    call->caller.traceparent =
        ng_str_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    call_set_run(call, ng_str_of("run-1"));
    call_expect(call, "ok");
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "{\"v\":1"), 1);
    assert_null(strstr(text, "sesame"));
    assert_null(strstr(text, "10.0.0.1"));
    assert_null(strstr(text, "editor/1"));
    assert_non_null(strstr(text, "\"face\":\"rest\",\"agent\":\"~"));
    assert_non_null(strstr(text, ",\"role\":\"admin\",\"mode\":\"agent\",\"space\":\"~"));
    assert_non_null(strstr(text, "\"remote\":\"~"));
    assert_non_null(strstr(text, "\"client\":\"~"));
    assert_non_null(strstr(text, "\"tool\":\"t_write\",\"outcome\":\"ok\",\"docs\":["));
    assert_int_equal(audit_count(text, "\"run\":\"run-1\",\"trace\":"
                                       "\"0af7651916cd43dd8448eb211c80319c\",\"request\":"
                                       "\"r-1\",\"ms\":"),
                     1);
    /* In the order in which they were made, with the numbers of the store. */
    const char *first = strstr(text, "\"revision\":1,\"seq\":1}");
    const char *second = strstr(text, "\"revision\":1,\"seq\":2}]");
    assert_true(first != NULL && second != NULL && first < second);
    free(text);
    harness_close(&harness);
}

static void background_done(void *user, int rc)
{
    struct wait *wait = user;
    assert_int_equal(rc, NG_OK);
    pthread_mutex_lock(&wait->lock);
    wait->ended = true;
    pthread_cond_signal(&wait->done);
    pthread_mutex_unlock(&wait->lock);
}

static void change_in_background(struct harness *harness, const char *id, ng_change_fn *fn)
{
    struct wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    const struct ng_change change = change_of(id, fn);
    const struct ng_host *host = &harness->gateway->host;
    assert_int_equal(
        host->change_as(host, ng_str_of("ann"), &change, 1, background_done, &wait), NG_OK);
    pthread_mutex_lock(&wait.lock);
    while (!wait.ended) {
        pthread_cond_wait(&wait.done, &wait.lock);
    }
    pthread_mutex_unlock(&wait.lock);
}

/* A plugin changes documents outside of calls; a change that changes nothing has no entry. */
static void test_background(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    change_in_background(&harness, "one", put_change);
    change_in_background(&harness, "none", keep_change);
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "{\"v\":1"), 1);
    assert_non_null(
        strstr(text, "\"operation\":\"background\",\"outcome\":\"ok\",\"docs\":[{"));
    assert_non_null(strstr(text, "\"agent\":\"~"));
    assert_non_null(strstr(text, "\"revision\":1,\"seq\":1}]}"));
    free(text);
    /* One without an entry, as a kill may leave it. */
    static const char *off[] = {"plugins=", "documents=sqlite", "audit=off", NULL};
    const char **on = harness.sets;
    harness.sets = off;
    harness_reopen(&harness);
    declare(&harness);
    change_in_background(&harness, "two", put_change);
    harness.sets = on;
    harness_reopen(&harness); /* recovers it */
    text = audit_text(&harness);
    assert_int_equal(audit_count(text, "{\"v\":1"), 2);
    assert_int_equal(audit_count(text, "\"operation\":\"created\",\"outcome\":\"recovered\""),
                     1);
    free(text);
    harness_close(&harness);
}

static void test_many_documents(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    call_expect(call_make(&harness, "t_many", "{}"), "ok");
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"tool\":\"t_many\""), 3);
    for (unsigned i = 1; i <= MANY; i++) {
        char wanted[64];
        (void)snprintf(wanted, sizeof(wanted), "\"revision\":1,\"seq\":%u}", i);
        assert_int_equal(audit_count(text, wanted), 1);
    }
    free(text);
    harness_close(&harness);
}

/* A change that was not made is none of the entry's documents. */
static void test_a_failed_change(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    call_expect(call_make(&harness, "t_half", "{}"), "CONFLICT");
    char *text = audit_text(&harness);
    char *line = audit_line(text, "\"tool\":\"t_half\"");
    assert_non_null(
        strstr(line, "\"outcome\":\"CONFLICT\",\"docs\":[{\"collection\":\"things\""));
    assert_null(strstr(line, "},{"));
    free(line);
    free(text);
    harness_close(&harness);
}

/* Nor one whose commit failed. */
static void test_a_failed_commit(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    struct store *store = harness.gateway->store;
    store->db = faulty_new(store->backend, store->db);
    store->backend = &faulty_documents;
    assert_non_null(store->db);
    faulty_arm(store->db, FAULT_COMMIT, 0);
    call_expect(call_make(&harness, "t_write", "{}"), "BACKEND_UNAVAILABLE");
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"outcome\":\"BACKEND_UNAVAILABLE\""), 1);
    assert_null(strstr(text, "\"docs\""));
    free(text);
    harness_close(&harness);
}

static void test_refused_calls(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    for (int i = 0; i < 5; i++) { /* each of them */
        struct call *call = call_make(&harness, "t_write", "{}");
        call->caller.role = NG_ROLE_READER;
        call_expect(call, "FORBIDDEN");
    }
    call_expect(call_make(&harness, "t_none", "{}"), "UNKNOWN_TOOL");
    call_expect(call_make(&harness, "t_write", "{"), "INVALID_JSON");
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"role\":\"reader\""), 5);
    assert_int_equal(audit_count(text, "\"outcome\":\"FORBIDDEN\",\"request\""), 0);
    assert_int_equal(audit_count(text, "\"tool\":\"t_none\",\"outcome\":\"UNKNOWN_TOOL\""), 1);
    assert_int_equal(audit_count(text, "\"tool\":\"t_write\",\"outcome\":\"INVALID_JSON\""), 1);
    assert_int_equal(audit_count(text, "\"docs\""), 0);
    free(text);
    harness_close(&harness);
}

/* The operation only as the tool's schema has it: anything else may be content. */
static void test_operations(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    call_expect(call_make(&harness, "t_pick", "{\"mode\":\"edit\"}"), "ok");
    struct call *call = call_make(&harness, "t_pick", "{\"mode\":\"edit\"}");
    call->caller.role = NG_ROLE_READER;
    call_expect(call, "FORBIDDEN");
    call_expect(call_make(&harness, "t_pick", "{\"mode\":\"sesame\"}"), "INVALID_INPUT");
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"operation\":\"edit\",\"outcome\":\"ok\""), 1);
    assert_int_equal(audit_count(text, "\"operation\":\"edit\",\"outcome\":\"FORBIDDEN\""), 1);
    assert_int_equal(audit_count(text, "\"tool\":\"t_pick\",\"outcome\":\"INVALID_INPUT\""), 1);
    assert_null(strstr(text, "sesame"));
    free(text);
    harness_close(&harness);
}

static void read_twice(struct harness *harness)
{
    call_expect(call_make(harness, "t_read", "{}"), "ok");
    call_expect(call_make(harness, "t_pick", "{\"mode\":\"show\"}"), "ok");
}

static void test_reads(void **state)
{
    struct harness harness;
    (void)state;
    open_with(&harness, plain);
    read_twice(&harness);
    char *text = audit_text(&harness);
    assert_string_equal(text, "");
    free(text);
    harness_close(&harness);
    open_with(&harness, reading);
    read_twice(&harness);
    text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"tool\":\"t_read\",\"outcome\":\"ok\""), 1);
    assert_int_equal(audit_count(text, "\"operation\":\"show\",\"outcome\":\"ok\""), 1);
    free(text);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_change),        cmocka_unit_test(test_background),
        cmocka_unit_test(test_many_documents),  cmocka_unit_test(test_a_failed_change),
        cmocka_unit_test(test_a_failed_commit), cmocka_unit_test(test_refused_calls),
        cmocka_unit_test(test_operations),      cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
