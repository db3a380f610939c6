/* SPDX-License-Identifier: MIT */
/* test_store_shared.c - several gateways on one store: changes that another was faster with,
 * ends, repeats. */
#include "test_store_shared_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "core/gateway/gateway_open.h"

static uint64_t expect_answer(struct cluster *cluster, size_t gateway, const char *tool,
                              const char *args, const char *text)
{
    struct answer answer = harness_call(&cluster->harness[gateway], tool, args);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", answer.code, answer.message);
    }
    if (text != NULL) {
        assert_string_equal(answer.text, text);
    }
    uint64_t revision = answer.revision;
    answer_free(&answer);
    return revision;
}

static struct {
    struct cluster *cluster;
    atomic_int left; /* how many more times it is faster */
    atomic_bool busy;
    const char *args;
} rival;

static void rival_writes(void *user)
{
    (void)user;
    if (atomic_exchange(&rival.busy, true)) {
        return; /* its own */
    }
    if (atomic_fetch_sub(&rival.left, 1) > 0) {
        struct answer answer = harness_call(&rival.cluster->harness[1], "append", rival.args);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
    }
    atomic_store(&rival.busy, false);
}

static void rival_comes(struct cluster *cluster, int times, const char *args)
{
    rival.cluster = cluster;
    rival.args = args;
    atomic_store(&rival.left, times);
    atomic_store(&rival.busy, false);
    hub->hook(rival_writes, NULL);
}

/* ---- cases ---- */

/* The write of the other gateway is visible, and the earlier reply is dropped. */
static void test_again(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"one\"}", "1:one");
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\"theirs\"}");
    uint64_t revision = expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"two\"}",
                                      "3:one\ntheirs\ntwo");
    assert_int_equal(revision, 3);
    for (size_t i = 0; i < GATEWAYS; i++) {
        expect_answer(&cluster, i, "read", "{\"id\":\"a\"}", "one\ntheirs\ntwo\n");
    }
    /* It loses many times, and wins at last. */
    rival_comes(&cluster, 7, "{\"id\":\"a\",\"text\":\".\"}");
    revision = expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"three\"}", NULL);
    assert_int_equal(revision, 11);
    /* A reply of the run itself stays. */
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\".\"}");
    revision = expect_answer(&cluster, 0, "append",
                             "{\"id\":\"a\",\"text\":\"four\",\"first\":1}", "said before");
    assert_int_equal(revision, 13);
    gateways_close(&cluster);
}

/* A function that reads its own document does not wait for itself. */
static void test_reads_inside(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    rival_comes(&cluster, 2, "{\"id\":\"a\",\"text\":\"theirs\"}");
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"x\",\"looks\":1}",
                  "3:theirs\ntheirs\nx");
    gateways_close(&cluster);
}

/* A caller with an expected revision gets the present revision. */
static void test_expected(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"one\"}", NULL);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"two\",\"expected\":1}",
                  "2:one\ntwo");
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\"theirs\"}");
    struct answer answer = harness_call(&cluster.harness[0], "append",
                                        "{\"id\":\"a\",\"text\":\"x\",\"expected\":2}");
    assert_string_equal(answer.code, "CONFLICT");
    assert_string_equal(answer.details, "{\"currentRevision\":3}");
    answer_free(&answer);
    /* Memory says 3, the other gateway made 4: that is what counts. */
    expect_answer(&cluster, 2, "append", "{\"id\":\"a\",\"text\":\"more\"}", NULL);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"last\",\"expected\":4}",
                  "5:one\ntwo\ntheirs\nmore\nlast");
    gateways_close(&cluster);
}

/* A function that fails on what memory has does not fail if it is otherwise by now. */
static void test_failing(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\"theirs\"}");
    struct answer answer = harness_call(&cluster.harness[0], "append",
                                        "{\"id\":\"a\",\"text\":\"x\",\"fails\":1}");
    assert_string_equal(answer.code, "TOOL_FAILED");
    assert_string_equal(answer.message, "there is something already");
    answer_free(&answer);
    expect_answer(&cluster, 0, "read", "{\"id\":\"a\"}", "theirs\n");
    gateways_close(&cluster);
}

static void test_several_documents(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    rival_comes(&cluster, 3, "{\"id\":\"b\",\"text\":\"theirs\"}");
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"also\":\"b\",\"text\":\"x\"}",
                  "both");
    expect_answer(&cluster, 2, "read", "{\"id\":\"a\"}", "x\n");
    expect_answer(&cluster, 2, "read", "{\"id\":\"b\"}", "theirs\ntheirs\ntheirs\nx\n");
    gateways_close(&cluster);
}

/* ---- ends ---- */

/* Another gateway is always faster: there is an end to it, and it is told. */
static void test_never(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open_as(&cluster, &plugin_desc, "limits.call_timeout=500ms");
    rival_comes(&cluster, INT32_MAX, "{\"id\":\"a\",\"text\":\".\"}");
    struct answer answer =
        harness_call(&cluster.harness[0], "append", "{\"id\":\"a\",\"text\":\"x\"}");
    assert_true(strcmp(answer.code, "TIMEOUT") == 0 || strcmp(answer.code, "BUSY") == 0);
    answer_free(&answer);
    assert_true(gateway_drain(cluster.harness[0].gateway, 30000));
    hub_reset();
    answer = harness_call(&cluster.harness[1], "read", "{\"id\":\"a\"}");
    assert_null(strchr(answer.text, 'x'));
    answer_free(&answer);
    gateways_close(&cluster);
}

/* The database is away: said at once, also to those that wait behind, and over when it is back.
 */
static void test_away(void **state)
{
    struct cluster cluster;
    (void)state;
    gateways_open(&cluster);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"one\"}", NULL);
    hub->away(true);
    static const char *const calls[] = {"append", "read"};
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        struct answer answer =
            harness_call(&cluster.harness[i], calls[i], "{\"id\":\"a\",\"text\":\"x\"}");
        assert_string_equal(answer.code, "BACKEND_UNAVAILABLE");
        assert_int_equal(answer.status, 503);
        answer_free(&answer);
    }
    hub->away(false);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"two\"}", "2:one\ntwo");
    gateways_close(&cluster);
}

/* ---- idempotency keys ---- */

struct repeat {
    struct cluster *cluster;
    size_t gateway;
    const char *args;
    struct call *call;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void repeat_done(struct call *call, void *user)
{
    struct repeat *repeat = user;
    (void)call;
    pthread_mutex_lock(&repeat->lock);
    repeat->done = true;
    pthread_cond_signal(&repeat->wake);
    pthread_mutex_unlock(&repeat->lock);
}

static void repeat_start(struct repeat *repeat, struct cluster *cluster, size_t gateway,
                         const char *args)
{
    memset(repeat, 0, sizeof(*repeat));
    pthread_mutex_init(&repeat->lock, NULL);
    pthread_cond_init(&repeat->wake, NULL);
    repeat->call = harness_new_call(&cluster->harness[gateway]);
    repeat->call->tool_name = ng_str_of("append");
    repeat->call->args_text = ng_str_of(args);
    repeat->call->idempotency_key = ng_str_of("the key");
    repeat->call->done = repeat_done;
    repeat->call->done_user = repeat;
    if (dispatch(repeat->call) == NG_OK) {
        repeat_done(repeat->call, repeat);
    }
}

static const struct result *repeat_end(struct repeat *repeat)
{
    pthread_mutex_lock(&repeat->lock);
    while (!repeat->done) {
        pthread_cond_wait(&repeat->wake, &repeat->lock);
    }
    pthread_mutex_unlock(&repeat->lock);
    return &repeat->call->final;
}

static void repeat_free(struct repeat *repeat)
{
    call_unref(repeat->call);
    pthread_mutex_destroy(&repeat->lock);
    pthread_cond_destroy(&repeat->wake);
}

static void test_idempotency(void **state)
{
    static const char args[] = "{\"id\":\"a\",\"text\":\"x\"}";
    struct cluster cluster;
    struct repeat repeats[GATEWAYS * 2];
    (void)state;
    gateways_open(&cluster);
    hub->delay(20000); /* so that all are under way together */
    for (size_t i = 0; i < NG_COUNT(repeats); i++) {
        repeat_start(&repeats[i], &cluster, i % GATEWAYS, args);
    }
    for (size_t i = 0; i < NG_COUNT(repeats); i++) {
        const struct result *result = repeat_end(&repeats[i]);
        assert_int_equal(result->rc, NG_OK);
        assert_true(str_is(result->text, "1:x"));
        assert_int_equal(result->revision_number, 1);
        repeat_free(&repeats[i]);
    }
    hub->delay(0);
    assert_int_equal(expect_answer(&cluster, 1, "read", "{\"id\":\"a\"}", "x\n"), 1);
    repeat_start(&repeats[0], &cluster, 2, "{\"id\":\"a\",\"text\":\"y\"}");
    assert_string_equal(repeat_end(&repeats[0])->code, "IDEMPOTENCY_KEY_REUSED");
    repeat_free(&repeats[0]);
    gateways_close(&cluster);
}

/* Changes behind a refused retry are made all the same. */
static void test_behind_a_repeat(void **state)
{
    static const char args[] = "{\"id\":\"a\",\"text\":\"x\"}";
    struct cluster cluster;
    struct repeat repeats[2];
    (void)state;
    gateways_open(&cluster);
    hub->delay(20000);
    for (size_t round = 0; round < 5; round++) {
        for (size_t i = 0; i < 2; i++) {
            repeat_start(&repeats[i], &cluster, i, args);
        }
        run_crowd(&cluster, 6, 1, 2, "\"id\":\"a\"");
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(repeat_end(&repeats[i])->rc, NG_OK);
            repeat_free(&repeats[i]);
        }
    }
    hub->delay(0);
    assert_int_equal(expect_answer(&cluster, 2, "read", "{\"id\":\"a\"}", NULL), 31);
    gateways_close(&cluster);
}

int main(void)
{
    hub = hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_reads_inside),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_failing),
        cmocka_unit_test(test_several_documents),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_away),
        cmocka_unit_test(test_idempotency),
        cmocka_unit_test(test_behind_a_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
