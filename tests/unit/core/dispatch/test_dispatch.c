/* SPDX-License-Identifier: MIT */
/* test_dispatch.c - the way of a call: what it answers, what it is refused for, its repeats,
 * the end. */
#include "test_dispatch_rig.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/gateway/gateway_open.h"
#include "core/keys/keys.h"
#include "core/store/idempotency.h"

static void run_as(struct harness *harness, enum ng_role role, enum ng_mode mode,
                   const char *tool, const char *args, const char *code)
{
    struct job job;
    struct call *call = job_new(harness, &job, "a", tool, args);
    call->caller.role = role;
    call->caller.mode = mode;
    job_start(&job);
    job_expect(&job, code);
}

static void test_ways(void **state)
{
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_echo", "{\"x\":1}")->options |= CALL_ON_LOOP;
    job_start(&job);
    assert_int_equal(job.rc, NG_OK); /* its result */
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_echo", "");
    job_start(&job);
    assert_int_equal(job.rc, NG_PENDING);
    assert_true(str_is(job_wait(&job)->text, "{}"));
    job_expect(&job, "ok");
    /* The first needs to load, the second is queued its result. */
    for (int i = 0; i < 2; i++) {
        job_new(&harness, &job, "a", "d_write", "{\"text\":\"x\"}")->options |= CALL_ON_LOOP;
        job_start(&job);
        assert_int_equal(job_wait(&job)->revision_number, i + 1);
        job_expect(&job, "ok");
    }
    job_new(&harness, &job, "a", "d_step", "{}")->options |= CALL_ON_LOOP;
    job_start(&job);
    assert_true(str_is(job_wait(&job)->text, "stepped"));
    job_expect(&job, "ok");
    assert_int_equal(probe_read(&probe.steps), 2);
    expect_text(&harness, "d_handled", "{}", "handled");
    expect_text(&harness, "d_twice", "{}", "twice");
    harness_close(&harness);
}

static void test_refusals(void **state)
{
    struct harness harness;
    (void)state;
    open_probe(&harness, plain);
    expect_error(&harness, "d_ehco", "{}", "UNKNOWN_TOOL", "no tool is called \"d_ehco\"");
    expect_error(&harness, "d_loose", "[1]", "INVALID_INPUT",
                 "the arguments: expected an object");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_AGENT, "d_admin", "{}", "FORBIDDEN");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_EDIT, "d_agent", "{}", "MODE_FORBIDDEN");
    run_as(&harness, NG_ROLE_READER, NG_MODE_AGENT, "d_both", "{}", "FORBIDDEN");
    run_as(&harness, NG_ROLE_READER, NG_MODE_AGENT, "d_both", "{\"mode\":\"rea\"}",
           "FORBIDDEN");
    run_as(&harness, NG_ROLE_READER, NG_MODE_AGENT, "d_both", "{\"mode\":\"list\"}", "ok");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_ASK, "d_both", "{}", "MODE_FORBIDDEN");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_ASK, "d_both", "{\"mode\":\"read\"}", "ok");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_EDIT, "d_write", "{\"text\":7}", "INVALID_INPUT");
    struct job job;
    struct call *call = job_new(&harness, &job, "a", "d_echo", "{}");
    struct ng_str only = ng_str_of("team");
    assert_int_equal(call_allow_spaces(call, &only, 1, false), NG_OK);
    call_ref(call);
    job_start(&job);
    job_expect(&job, "ok"); /* the tool's own space is not the caller's: its first one */
    assert_true(str_is(call->caller.space, "team"));
    call_unref(call);
    call = job_new(&harness, &job, "a", "d_echo", "{}");
    assert_int_equal(call_set_caller(call, ng_str_of("a"), ng_str_of("other"), NG_ROLE_WRITER,
                                     NG_MODE_AGENT, true),
                     NG_OK);
    assert_int_equal(call_allow_spaces(call, &only, 1, false), NG_OK);
    job_start(&job);
    job_expect(&job, "FORBIDDEN");
    harness_close(&harness);
}

static void test_answers(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.result=1000",
                                       NULL};
    struct harness harness;
    (void)state;
    open_probe(&harness, sets);
    expect_text(&harness, "d_shape", "{\"kind\":\"number\"}", "{\"n\":1}");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_shape", "{\"kind\":\"string\"}",
           "INTERNAL");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_shape", "{\"kind\":\"open\"}",
           "INTERNAL");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_shape", "{\"kind\":\"text\"}",
           "INTERNAL");
    expect_error(&harness, "d_shape", "{\"kind\":\"silent\"}", "TOOL_FAILED",
                 "`d_shape` failed without a message");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_big", "{\"bytes\":1000}", "ok");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_big", "{\"bytes\":1001}", "TOO_LARGE");
    harness_close(&harness);
}

/* The answer of a call that changes something: never a failure for its size. */
static void expect_grown(struct harness *harness, const char *tool, const char *args,
                         const char *has, bool is_json, size_t part_count)
{
    struct job job;
    size_t parts = 0;
    size_t size = 0;
    job_new(harness, &job, "a", tool, args);
    job_start(&job);
    const struct result *result = job_wait(&job);
    char *text = strndup(result->text.data, result->text.len);
    assert_non_null(text);
    if (strstr(text, has) == NULL) {
        print_error("%s %s: %s\n", tool, args, text);
    }
    assert_non_null(strstr(text, has));
    assert_int_equal(result->is_json, is_json);
    size = result->text.len;
    for (const struct part *part = result->parts; part != NULL; part = part->next) {
        size += part->kind == PART_TEXT ? 0 : part->data.len;
        parts++;
    }
    assert_true(size <= 1000);
    assert_int_equal(parts, part_count);
    free(text);
    job_expect(&job, "ok");
}

static void test_answers_of_changes(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.result=1000",
                                       NULL};
    static const char left_out[] = "limits.result allows 1000";
    struct harness harness;
    (void)state;
    open_probe(&harness, sets);
    expect_grown(&harness, "d_grow", "{\"bytes\":1000}", "x", false, 0);
    expect_grown(&harness, "d_grow", "{\"bytes\":1001}", left_out, false, 0);
    expect_grown(&harness, "d_grow", "{\"bytes\":100000}", "The call succeeded", false, 0);
    expect_grown(&harness, "d_grow", "{\"bytes\":990,\"kind\":\"part\"}", "x", false, 1);
    /* The part is left out, and the text has room for what is told of that. */
    expect_grown(&harness, "d_grow", "{\"bytes\":995,\"kind\":\"part\"}", left_out, false, 0);
    expect_grown(&harness, "d_grow", "{\"bytes\":9999,\"kind\":\"part\"}", left_out, false, 0);
    /* An object stays one of the declared form. */
    expect_grown(&harness, "d_grow_object", "{\"bytes\":5000}", "bytes left out", true, 0);
    expect_grown(&harness, "d_grow_object", "{\"bytes\":5000,\"members\":500}", left_out, false,
                 0);
    harness_close(&harness);
}

/* Texts over tools.max_answer are cut, of any plugin; `raw` ones and objects are not. */
static void test_answers_fit(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "tools.max_answer=4KiB",
                                       NULL};
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, sets);
    job_new(&harness, &job, "a", "d_big", "{\"bytes\":4096}");
    job_start(&job);
    assert_int_equal(job_wait(&job)->text.len, 4096);
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_big", "{\"bytes\":4097}");
    job_start(&job);
    const struct result *result = job_wait(&job);
    assert_true(result->text.len <= 4096);
    assert_true(str_ends(result->text, "\n[cut inside this line, after 3936 of 4097 bytes "
                                       "(tools.max_answer); ask for a part]"));
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_big", "{\"bytes\":4097}")->options |= CALL_RAW_ANSWER;
    job_start(&job);
    assert_int_equal(job_wait(&job)->text.len, 4097);
    job_expect(&job, "ok");
    /* A call that changed something succeeds: only its text is cut. */
    job_new(&harness, &job, "a", "d_grow", "{\"bytes\":9000}");
    job_start(&job);
    assert_true(job_wait(&job)->text.len <= 4096);
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_grow", "{\"bytes\":9000,\"kind\":\"part\"}");
    job_start(&job);
    assert_non_null(job_wait(&job)->parts); /* an image is no text */
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_grow_object", "{\"bytes\":9000}");
    job_start(&job);
    result = job_wait(&job);
    assert_true(result->is_json && result->text.len <= 4096);
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_grow_object", "{\"bytes\":9000}")->options |=
        CALL_RAW_ANSWER;
    job_start(&job);
    assert_true(job_wait(&job)->text.len > 9000);
    job_expect(&job, "ok");
    harness_close(&harness);
}

static void test_asking(void **state)
{
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_ask", "{}");
    job_start(&job);
    job_expect(&job, "TOOL_FAILED");
    job_new(&harness, &job, "a", "d_ask", "{}")->client_asks = 1U << NG_ASK_FORM;
    job_start(&job);
    job_expect(&job, "TOOL_FAILED"); /* not what this client can be asked */
    job_new(&harness, &job, "a", "d_ask", "{\"x\":\"nothing\"}")->client_asks = 1U
                                                                                << NG_ASK_MODEL;
    job_start(&job);
    job_expect(&job, "INTERNAL");
    job_new(&harness, &job, "a", "d_ask", "{}")->client_asks = 1U << NG_ASK_MODEL;
    job_start(&job);
    assert_int_equal(job_wait(&job)->rc, NG_EINPUT);
    assert_non_null(job.call->asks);
    job_expect(&job, "INPUT_REQUIRED");
    harness_close(&harness);
}

static void keyed(struct harness *harness, struct job *job, const char *tool, const char *args,
                  const char *key)
{
    job_new(harness, job, "a", tool, args)->idempotency_key = ng_str_of(key);
    job_start(job);
}

static void test_repeats(void **state)
{
    /* One agent's calls of one plugin: three of these. */
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.workers=8",
                                       NULL};
    struct harness harness;
    struct job jobs[20];
    struct job other;
    (void)state;
    open_probe(&harness, sets);
    for (size_t i = 0; i < 20; i++) {
        keyed(&harness, &jobs[i], "d_hold", "{\"a\":1}", "k");
    }
    probe_wait(&probe.blocked, 1);
    keyed(&harness, &other, "d_write", "{\"text\":\"w\"}", "k"); /* another tool */
    job_expect(&other, "ok");
    probe_open();
    for (size_t i = 0; i < 20; i++) {
        assert_true(str_is(job_wait(&jobs[i])->text, "{\"a\":1}"));
        job_expect(&jobs[i], "ok");
    }
    assert_int_equal(probe_read(&probe.runs), 2);
    keyed(&harness, &other, "d_hold", "{\"a\":2}", "k");
    job_expect(&other, "IDEMPOTENCY_KEY_REUSED");
    for (int i = 0; i < 3; i++) {
        keyed(&harness, &other, "d_write", "{\"text\":\"v\"}", "k2");
        assert_int_equal(job_wait(&other)->revision_number, 2);
        job_expect(&other, "ok");
        keyed(&harness, &other, "d_twice", "{}", "k3"); /* two commits, one key */
        assert_true(str_is(job_wait(&other)->text, "twice"));
        job_expect(&other, "ok");
    }
    assert_int_equal(probe_read(&probe.runs), 4);
    for (int i = 0; i < 2; i++) {
        keyed(&harness, &other, "d_parts", "{}", "k4");
        const struct result *result = job_wait(&other);
        assert_false(result->has_text); /* the repeat is like the first */
        assert_true(str_is(result->parts->data, "{}") && result->parts->next == NULL);
        job_expect(&other, "ok");
    }
    assert_int_equal(probe_read(&probe.runs), 5);
    char key[IDEMPOTENCY_KEY_MAX + 2];
    memset(key, 'k', sizeof(key));
    key[IDEMPOTENCY_KEY_MAX + 1] = '\0';
    keyed(&harness, &other, "d_write", "{\"text\":\"v\"}", key);
    job_expect(&other, "INVALID_INPUT");
    harness_close(&harness);
}

/* As a transport does: the answer is sent, the call has no owner any more. */
static void job_drop(struct call *call, void *user)
{
    (void)user;
    probe_add(&probe.steps, call->final.rc == NG_OK ? 1 : 0);
    call_unref(call);
}

static void test_stopping(void **state)
{
    struct harness harness;
    struct job job;
    struct job late;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_block", "{}")->done = job_drop;
    job_start(&job);
    probe_wait(&probe.blocked, 1);
    assert_false(gateway_drain(harness.gateway, 1));
    job_new(&harness, &late, "a", "d_echo", "{}");
    job_start(&late);
    job_expect(&late, "BUSY");
    /* Closing with a call left waits for its worker and then frees what it used. */
    probe_open();
    gateway_close(harness.gateway);
    harness.gateway = NULL;
    assert_int_equal(probe_read(&probe.steps), 1);
    harness_close(&harness);
}

/* A start() may change documents; the gateway opens when they are on disk. */
static void test_start_writes(void **state)
{
    static const char *const sets[] = {"plugins=" NOTEGATE_BUILD "/tests/modules/starter.so",
                                       NULL};
    struct harness harness;
    (void)state;
    harness_open(&harness, sets);
    expect_text(&harness, "started", "{}", "1");
    harness_reopen(&harness);
    expect_text(&harness, "started", "{}", "2");
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_answers),      cmocka_unit_test(test_answers_of_changes),
        cmocka_unit_test(test_answers_fit),  cmocka_unit_test(test_asking),
        cmocka_unit_test(test_repeats),      cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_start_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
