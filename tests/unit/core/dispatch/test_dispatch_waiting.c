/* SPDX-License-Identifier: MIT */
/* test_dispatch_waiting.c - calls that wait: for their answer, their deadline, their turn.
 */
#include "core/host/host.h"
#include "test_dispatch_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 64

static void finish_deferred(int rc)
{
    probe_wait(&probe.steps, 1);
    pthread_mutex_lock(&probe.lock);
    struct ng_deferred *deferred = probe.deferred;
    probe.steps = 0;
    pthread_mutex_unlock(&probe.lock);
    call_host.finish(deferred, rc);
}

static void test_deferring(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory",
                                       "limits.call_timeout=100ms", NULL};
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_defer", "{}");
    job_start(&job);
    finish_deferred(NG_OK);
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_defer", "{}");
    job_start(&job);
    finish_deferred(NG_EFAILED);
    job_expect(&job, "TOOL_FAILED");
    harness_close(&harness);
    open_probe(&harness, sets);
    job_new(&harness, &job, "a", "d_defer", "{}");
    job_start(&job);
    job_expect(&job, "TIMEOUT");
    assert_true(dispatch_active(harness.gateway) >= 1); /* the tool is still at it */
    finish_deferred(NG_OK);
    harness_close(&harness);
}

/* A tool that ends at its deadline is late all the same: its answer may be half of one. */
static void test_ending_at_the_deadline(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory",
                                       "limits.call_timeout=5ms", NULL};
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, sets);
    for (int i = 0; i < 20; i++) {
        job_new(&harness, &job, "a", "d_obey", "{}");
        job_start(&job);
        job_expect(&job, "TIMEOUT");
    }
    harness_close(&harness);
}

static void test_cancelled_in_line(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.workers=1",
                                       NULL};
    struct harness harness;
    struct job first;
    struct job second;
    (void)state;
    open_probe(&harness, sets);
    job_new(&harness, &first, "a", "d_block", "{}");
    job_start(&first);
    probe_wait(&probe.blocked, 1);
    job_new(&harness, &second, "b", "d_block", "{}");
    job_start(&second);
    call_cancel(second.call);
    probe_open();
    job_expect(&first, "ok");
    job_expect(&second, "CANCELLED");
    assert_int_equal(probe_read(&probe.runs), 1);
    harness_close(&harness);
}

/* Large arguments are parsed on a worker, and not at all for a client that left. */
static void test_large_arguments(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.workers=1",
                                       NULL};
    static const char *const ends[] = {"{}", "{\"x\":1}", "{", "[]", "{}"};
    static const char *const codes[] = {"ok", "ok", "INVALID_JSON", "INVALID_INPUT",
                                        "CANCELLED"};
    struct harness harness;
    struct job first;
    struct job jobs[5];
    char *texts[5];
    (void)state;
    open_probe(&harness, sets);
    job_new(&harness, &first, "a", "d_block", "{}");
    job_start(&first);
    probe_wait(&probe.blocked, 1);
    for (size_t i = 0; i < 5; i++) {
        texts[i] = alloc_bytes(DISPATCH_INLINE_BYTES + 64);
        assert_non_null(texts[i]);
        memset(texts[i], ' ', DISPATCH_INLINE_BYTES);
        memcpy(texts[i] + DISPATCH_INLINE_BYTES, ends[i], strlen(ends[i]) + 1);
        job_new(&harness, &jobs[i], "b", "d_echo", texts[i])->options |= CALL_ON_LOOP;
        job_start(&jobs[i]);
        assert_int_equal(jobs[i].rc, NG_PENDING);
    }
    call_cancel(jobs[4].call);
    probe_open();
    job_expect(&first, "ok");
    for (size_t i = 0; i < 5; i++) {
        job_expect(&jobs[i], codes[i]);
        free(texts[i]);
    }
    harness_close(&harness);
}

/* A call that its deadline or its client ended before its turn came does not run, and the one
 * behind it does. */
static void test_cancelled_in_gate(void **state)
{
    struct harness harness;
    struct job jobs[3];
    (void)state;
    open_probe(&harness, plain);
    for (size_t i = 0; i < 3; i++) {
        static const char *const agents[] = {"a", "b", "c"};
        job_new(&harness, &jobs[i], agents[i], "s_block", "{}");
        job_start(&jobs[i]);
        if (i == 0) {
            probe_wait(&probe.blocked, 1);
        }
    }
    call_cancel(jobs[1].call);
    probe_open();
    job_expect(&jobs[0], "ok");
    job_expect(&jobs[1], "CANCELLED");
    job_expect(&jobs[2], "ok");
    assert_int_equal(probe_read(&probe.runs), 2);
    harness_close(&harness);
}

static void test_one_at_a_time(void **state)
{
    struct harness harness;
    struct job jobs[JOBS_MAX];
    (void)state;
    open_probe(&harness, plain);
    for (size_t i = 0; i < JOBS_MAX; i++) {
        char agent[16];
        (void)snprintf(agent, sizeof(agent), "agent%zu", i % 8);
        job_new(&harness, &jobs[i], agent, "s_run", "{}")->options |=
            i % 3 == 0 ? CALL_ON_LOOP : 0;
        job_start(&jobs[i]);
    }
    for (size_t i = 0; i < JOBS_MAX; i++) {
        job_expect(&jobs[i], "ok");
    }
    assert_int_equal(probe_read(&probe.most_serial), 1); /* continuations too */
    assert_int_equal(probe_read(&probe.runs), 2 * JOBS_MAX);
    harness_close(&harness);
}

static void test_fairness(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.workers=8",
                                       "limits.queue=8", NULL};
    struct harness harness;
    struct job jobs[7];
    struct job more;
    (void)state;
    open_probe(&harness, sets);
    for (size_t i = 0; i < 7; i++) {
        job_new(&harness, &jobs[i], "busy", "d_block", "{}");
        job_start(&jobs[i]);
        if (i < 3) {
            probe_wait(&probe.blocked, (unsigned)i + 1);
        }
    }
    /* Three run, of the four workers that the plugin has at most, and four wait: what one agent
     * may have of both. */
    job_new(&harness, &more, "busy", "d_block", "{}");
    job_start(&more);
    assert_int_equal(more.rc, NG_OK);
    assert_int_equal(job_wait(&more)->retry_after_s, 1);
    job_expect(&more, "BUSY");
    probe_open();
    for (size_t i = 0; i < 7; i++) {
        job_expect(&jobs[i], "ok");
    }
    harness_close(&harness);
    open_probe(&harness, plain);
    for (size_t i = 0; i < 7; i++) {
        job_new(&harness, &jobs[i], "busy", "d_block", "{}");
        job_start(&jobs[i]);
    }
    probe_wait(&probe.blocked, 1);
    struct answer answer = harness_call_as(&harness, "other", NULL, "d_echo", "{}");
    assert_int_equal(answer.rc, NG_OK); /* one of the plugin's workers is for others */
    answer_free(&answer);
    assert_int_equal(probe_read(&probe.blocked), 1);
    probe_open();
    for (size_t i = 0; i < 7; i++) {
        job_expect(&jobs[i], "ok");
    }
    harness_close(&harness);
}

static void test_background(void **state)
{
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    call_set_run(job_new(&harness, &job, "bob", "d_background", "{}"), ng_str_of("work-7"));
    job_start(&job);
    job_expect(&job, "ok");
    probe_wait(&probe.steps, 1);
    pthread_mutex_lock(&probe.lock);
    assert_string_equal(probe.space,
                        "bob shared"); /* the timeout of the tool, as for the call */
    assert_string_equal(probe.run, "work-7");
    pthread_mutex_unlock(&probe.lock);
    /* A start() has no spaces of its own. */
    struct call *call = call_new(harness.gateway);
    assert_non_null(call);
    assert_int_equal(call_host.background(&call->pub, background_step, NULL), NG_OK);
    call_unref(call);
    probe_wait(&probe.steps, 2);
    probe_wait(&probe.ended, 2);
    assert_string_equal(probe.run, "");
    harness_close(&harness);
}

/* Work of a caller whose call has ended: until it begins no call is in progress. */
static void test_later(void **state)
{
    struct harness harness;
    (void)state;
    open_probe(&harness, plain);
    struct call *call = call_new(harness.gateway);
    assert_non_null(call);
    call_set_run(call, ng_str_of("later-1"));
    struct ng_later *first = call_host.later(&call->pub);
    struct ng_later *second = call_host.later(&call->pub);
    struct ng_later *third = call_host.later(&call->pub);
    assert_true(first != NULL && second != NULL && third != NULL);
    call_unref(call);
    assert_int_equal(dispatch_active(harness.gateway), 0);
    assert_int_equal(call_host.start_later(first, background_step, NULL), NG_OK);
    probe_wait(&probe.steps, 1);
    probe_wait(&probe.ended, 1);
    assert_string_equal(probe.run, "later-1");
    assert_int_equal(call_host.start_later(second, NULL, NULL), NG_OK);
    assert_int_equal(call_host.start_later(NULL, NULL, NULL), NG_OK);
    atomic_store(&harness.gateway->stopping, true);
    assert_int_equal(call_host.start_later(third, background_step, NULL), NG_EBUSY);
    assert_int_equal(probe_read(&probe.steps), 1);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deferring),
        cmocka_unit_test(test_ending_at_the_deadline),
        cmocka_unit_test(test_cancelled_in_line),
        cmocka_unit_test(test_large_arguments),
        cmocka_unit_test(test_cancelled_in_gate),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
