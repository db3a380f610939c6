/* SPDX-License-Identifier: MIT */
/* test_dispatch_keys.c - calls with a bearer key: its spaces, tools, collections and rate.
 */
#include "test_dispatch_rig.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/files/files.h"
#include "core/keys/keys.h"

/* A key that lives as long as a case; what it allows. */
static void key_init(struct key *key, const struct ng_str *allowed, size_t tool_count,
                     const struct ng_str *spaces, size_t space_count)
{
    memset(key, 0, sizeof(*key));
    atomic_init(&key->refs, 1);
    lock_init(&key->lock, LOCK_KEY);
    key->tools = allowed;
    key->tool_count = tool_count;
    key->spaces = spaces;
    key->space_count = space_count;
}

static struct call *job_new_keyed(struct harness *harness, struct job *job, struct key *key,
                                  const char *tool)
{
    struct call *call = job_new(harness, job, "a", tool, "{}");
    call->caller.role = NG_ROLE_WRITER;
    call->caller.spaces = key->spaces;
    call->caller.space_count = key->space_count;
    key_ref(key);
    call->key = key;
    return call;
}

static void expect_space(struct harness *harness, struct key *key, const char *tool,
                         const char *space)
{
    struct job job;
    struct call *call = job_new_keyed(harness, &job, key, tool);
    call_ref(call);
    job_start(&job);
    job_expect(&job, "ok");
    assert_true(str_is(call->caller.space, space));
    call_unref(call);
}

static void test_key_spaces(void **state)
{
    static const struct ng_str both[] = {{"~a", 2}, {"shared", 6}};
    static const struct ng_str team[] = {{"team", 4}, {"other", 5}};
    struct harness harness;
    struct key key;
    struct key other; /* background work may still hold the first */
    (void)state;
    open_probe(&harness, plain);
    key_init(&key, NULL, 0, both, 2);
    expect_space(&harness, &key, "d_echo", "~a");
    expect_space(&harness, &key, "d_background", "shared");
    key_init(&other, NULL, 0, team, 2);
    expect_space(&harness, &other, "d_echo", "team");
    expect_space(&harness, &other, "d_background", "team");
    harness_close(&harness);
    assert_int_equal(atomic_load(&key.refs), 1);
    assert_int_equal(atomic_load(&other.refs), 1);
}

static void test_key_tools(void **state)
{
    static const struct ng_str allowed[] = {{"d_echo", 6}, {"d_write", 7}};
    static const struct ng_str spaces[] = {{"~a", 2}};
    struct harness harness;
    struct job job;
    struct key key;
    (void)state;
    open_probe(&harness, plain);
    key_init(&key, allowed, 2, spaces, 1);
    job_new_keyed(&harness, &job, &key, "d_echo");
    job_start(&job);
    job_expect(&job, "ok");
    struct call *call = job_new_keyed(&harness, &job, &key, "d_both");
    call_ref(call);
    job_start(&job);
    job_expect(&job, "FORBIDDEN");
    assert_non_null(strstr(call->final.message.data, "`d_echo`, `d_write`"));
    const struct registry *registry = harness.gateway->registry;
    assert_true(dispatch_allows(call, registry_find(registry, ng_str_of("d_echo"))));
    assert_false(dispatch_allows(call, registry_find(registry, ng_str_of("d_both"))));
    struct plugin *const *plugins = NULL;
    assert_int_equal(registry_plugins(registry, &plugins), 2);
    assert_true(dispatch_sees_plugin(call, plugins[0]));
    assert_false(dispatch_sees_plugin(call, plugins[1])); /* serial: none of its tools */
    call_unref(call);
    /* The name of a tool that it may not use is no hint. */
    call = job_new_keyed(&harness, &job, &key, "d_bot");
    call_ref(call);
    job_start(&job);
    job_expect(&job, "UNKNOWN_TOOL");
    assert_true(call->final.hint.data == NULL ||
                strstr(call->final.hint.data, "d_both") == NULL);
    call_unref(call);
    call = job_new(&harness, &job, "a", "d_both", "{}");
    assert_true(dispatch_sees_plugin(call, plugins[1]));
    call_unref(call);
    harness_close(&harness);
    assert_int_equal(atomic_load(&key.refs), 1);
}

static void test_key_collections(void **state)
{
    static const char *const sets[] = {"plugins=notebook,file_editor", "documents=memory",
                                       NULL};
    static const struct ng_str notebook[] = {{"notebook", 8}};
    static const struct ng_str editor[] = {{"fileEditor", 10}};
    struct harness harness;
    struct key key;
    (void)state;
    harness_open(&harness, sets);
    struct call *call = harness_new_call(&harness);
    assert_true(dispatch_sees_collection(call, ng_str_of("notebooks")));
    assert_true(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    assert_true(dispatch_sees_collection(call, ng_str_of(KEYS_COLLECTION))); /* admin */
    call->caller.role = NG_ROLE_WRITER;
    assert_false(dispatch_sees_collection(call, ng_str_of(KEYS_COLLECTION)));
    call->caller.role = NG_ROLE_ADMIN;
    key_init(&key, notebook, 1, NULL, 0);
    key_ref(&key);
    call->key = &key;
    assert_true(dispatch_sees_collection(call, ng_str_of("notebooks")));
    assert_false(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    assert_false(dispatch_sees_collection(call, ng_str_of(KEYS_COLLECTION)));
    assert_false(dispatch_sees_collection(call, ng_str_of("unheard_of")));
    key.tools = editor;
    assert_false(dispatch_sees_collection(call, ng_str_of("notebooks")));
    assert_true(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    call_unref(call);
    harness_close(&harness);
}

static int count_step(struct ng_call *call, void *user)
{
    atomic_uint *steps = user;
    atomic_fetch_add(steps, 1);
    return ng_reply(call, ng_str_of("step"));
}

static void test_key_rate(void **state)
{
    static const struct ng_str spaces[] = {{"~a", 2}};
    struct harness harness;
    struct job job;
    struct key key;
    atomic_uint steps = 0;
    (void)state;
    open_probe(&harness, plain);
    key_init(&key, NULL, 0, spaces, 1);
    key.rate = 1e-3; /* a burst of one, then nothing for the length of this case */
    key.tokens = 1;
    key.filled_ns = clock_monotonic_ns();
    job_new_keyed(&harness, &job, &key, "d_background");
    job_start(&job);
    job_expect(&job, "ok"); /* its continuation takes no token */
    probe_wait(&probe.steps, 1);
    struct call *call = job_new_keyed(&harness, &job, &key, "d_echo");
    call_ref(call);
    job_start(&job);
    job_expect(&job, "RATE_LIMITED");
    assert_true(call->final.retry_after_s > 0);
    assert_int_equal(call->final.status, 429);
    call_unref(call);
    /* A transport's own work counts as a call. */
    call = job_new_keyed(&harness, &job, &key, "");
    assert_int_equal(dispatch_step(call, count_step, &steps), NG_OK);
    assert_string_equal(call->final.code, "RATE_LIMITED");
    assert_int_equal(atomic_load(&steps), 0);
    call_unref(call);
    harness_close(&harness);
    assert_int_equal(atomic_load(&key.refs), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_spaces),
        cmocka_unit_test(test_key_tools),
        cmocka_unit_test(test_key_collections),
        cmocka_unit_test(test_key_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
