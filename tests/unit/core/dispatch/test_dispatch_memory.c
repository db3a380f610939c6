/* SPDX-License-Identifier: MIT */
/* test_dispatch_memory.c - calls whose allocations fail: no answer is missing, no write is
 * half. */
#include "test_dispatch_rig.h"

#include <stdio.h>

#include "core/base/str.h"
#include "core/keys/keys.h"
#include "core/store/store.h"

#define OOM_MOST 150

/* The call with the allocation after `fails` more ones failing. */
static int oom(struct harness *harness, const char *tool, const char *args, const char *key,
               long fails)
{
    struct job job;
    struct call *call = job_new(harness, &job, "a", tool, args);
    if (key != NULL) {
        call->idempotency_key = ng_str_of(key);
    }
    if (fails % 2 == 0) {
        call->options |= CALL_ON_LOOP;
    }
    call->client_asks = 1U << NG_ASK_MODEL;
    alloc_fail_after(fails);
    job_start(&job);
    int rc = job_wait(&job)->rc;
    alloc_fail_after(-1);
    assert_non_null(job.call->final.code);
    assert_true(rc == NG_OK || job.call->final.message.data != NULL);
    assert_int_not_equal(rc, NG_EBUSY); /* no other thread is there to wait for */
    call_unref(job.call);
    return rc;
}

static size_t length_of(struct harness *harness, const char *id)
{
    struct call *call = harness_new_call(harness);
    struct ng_key key = {ng_str_of(docs.name), ng_str_of("shared"), ng_str_of(id)};
    const struct ng_doc *doc = NULL;
    assert_int_equal(store_get(harness->gateway->store, call, &key, 0, &doc), NG_OK);
    size_t len = doc->text.len;
    call_unref(call);
    return len;
}

static void test_out_of_memory(void **state)
{
    static const char *const calls[][2] = {
        {"d_echo", "{\"a\":[1,2,{\"b\":null}]}"},
        {"d_ehco", "{}"},
        {"d_write", "{\"text\":1}"},
        {"d_step", "{}"},
        {"d_background", "{}"},
        {"d_ask", "{}"},
        {"d_big", "{\"bytes\":100000}"},
        {"d_shape", "{\"kind\":\"number\"}"},
        {"d_shape", "{\"kind\":\"wrong\"}"},
        {"s_run", "{}"},
    };
    struct harness harness;
    (void)state;
    open_probe(&harness, plain);
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        for (long fails = 0; fails < OOM_MOST / 3; fails++) {
            (void)oom(&harness, calls[i][0], calls[i][1], NULL, fails);
        }
    }
    harness_close(&harness);
}

/* Acknowledged writes are stored, failed ones are not, and a retry succeeds. */
static void test_starved_writes(void **state)
{
    struct harness harness;
    size_t stored = 0;
    (void)state;
    open_probe(&harness, plain);
    for (long fails = 0; fails < OOM_MOST; fails++) {
        stored += oom(&harness, "d_write", "{\"text\":\"x\"}", NULL, fails) == NG_OK;
        assert_int_equal(length_of(&harness, "one"), stored);
    }
    assert_true(stored > 0 && stored < OOM_MOST);
    for (long fails = 0; fails < OOM_MOST; fails++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%ld", fails);
        (void)oom(&harness, "d_write", "{\"text\":\"x\"}", key, fails);
        assert_int_equal(oom(&harness, "d_write", "{\"text\":\"x\"}", key, -1), NG_OK);
        assert_int_equal(length_of(&harness, "one"), ++stored);
    }
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_starved_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
