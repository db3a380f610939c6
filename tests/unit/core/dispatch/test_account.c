/* SPDX-License-Identifier: MIT */
/* test_account.c - how the end of a call is told: one line in the audit log, one count in the
 * metrics, both of what its caller was told. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/host/host.h"
#include "core/keys/keys.h"

#undef fail /* of cmocka: ng_fail() needs the name */

#define CAUGHT_MAX ((size_t)1024 * 1024)
#define ANY "{\"type\":\"object\"}"
#define WAIT_NS (INT64_C(20) * 1000000000)

static const char *const plain[] = {"plugins=", "documents=memory", NULL};
static const char *const hasty[] = {"plugins=", "documents=memory", "limits.call_timeout=100ms",
                                    NULL};

/* ---- the plugin ---- */

static _Atomic(struct ng_deferred *) deferred;
static atomic_uint steps;

static int echo_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static int defer_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    int rc = ng_reply(call, args);
    atomic_store(&deferred, call->host->defer(call));
    return rc == NG_OK ? NG_PENDING : rc;
}

static int ask_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    (void)call->host->ask(call, "k", NG_ASK_FORM, ng_str_of("{}"));
    return NG_EINPUT;
}

static int step_run(struct ng_call *call, void *user)
{
    (void)call;
    (void)user;
    atomic_fetch_add(&steps, 1);
    return NG_OK;
}

static int background_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    int rc = call->host->background(call, step_run, NULL);
    return rc == NG_OK ? ng_reply(call, args) : rc;
}

static const struct ng_tool tools[] = {
    {.name = "a_write", .summary = "s", .params = ANY, .run = echo_run},
    {.name = "a_read",
     .summary = "s",
     .params = ANY,
     .run = echo_run,
     .effect = NG_EFFECT_READS},
    {.name = "a_defer", .summary = "s", .params = ANY, .run = defer_run},
    {.name = "a_ask", .summary = "s", .params = ANY, .run = ask_run},
    {.name = "a_background",
     .summary = "s",
     .params = ANY,
     .run = background_run,
     .effect = NG_EFFECT_READS},
};

static const struct ng_plugin plugin = {
    .name = "account",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
};

/* ---- what it tells ---- */

/* A gateway whose audit log goes to a file without a name. */
struct account {
    struct harness harness;
    FILE *file;
    int saved;
};

static void account_open(struct account *account, const char *const *sets)
{
    struct plugin *added = NULL;
    struct buf error;
    buf_init(&error, 4096);
    harness_open(&account->harness, sets);
    struct gateway *gateway = account->harness.gateway;
    assert_int_equal(registry_add(gateway->registry, &plugin, NULL, &added, &error), NG_OK);
    for (size_t i = 0; i < added->tool_count; i++) {
        added->tools[i]->metrics_slot =
            metrics_tool(gateway->metrics, added->tools[i]->desc.name);
    }
    buf_done(&error);
    (void)fflush(stderr);
    account->file = tmpfile();
    account->saved = dup(STDERR_FILENO);
    assert_true(account->file != NULL && account->saved >= 0);
    assert_true(dup2(fileno(account->file), STDERR_FILENO) >= 0);
    log_set_format(LOG_JSON);
    log_set_switch(LOG_AUDIT, true);
}

/* When every call has ended. */
static void account_settle(struct account *account)
{
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (dispatch_active(account->harness.gateway) > 0 && clock_monotonic_ns() < until) {
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
    assert_int_equal(dispatch_active(account->harness.gateway), 0);
}

/* How many lines of the audit log have this in them. */
static size_t told(struct account *account, const char *what)
{
    char *text = calloc(1, CAUGHT_MAX);
    assert_non_null(text);
    assert_true(pread(fileno(account->file), text, CAUGHT_MAX - 1, 0) >= 0);
    size_t count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        count += strstr(line, "\"where\":\"audit\"") != NULL && strstr(line, what) != NULL;
    }
    free(text);
    return count;
}

static bool counted(struct account *account, const char *series)
{
    struct buf text;
    buf_init(&text, CAUGHT_MAX);
    assert_int_equal(metrics_print(account->harness.gateway->metrics, NULL, &text), NG_OK);
    bool found = strstr(buf_cstr(&text), series) != NULL;
    buf_done(&text);
    return found;
}

static void account_close(struct account *account)
{
    log_set_switch(LOG_AUDIT, false);
    assert_true(dup2(account->saved, STDERR_FILENO) >= 0);
    (void)close(account->saved);
    (void)fclose(account->file);
    harness_close(&account->harness);
}

/* ---- a call, waited for ---- */

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

static struct call *call_make(struct account *account, const char *tool)
{
    struct call *call = harness_new_call(&account->harness);
    call->tool_name = ng_str_of(tool);
    call->args_text = ng_str_of("{}");
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

static void test_every_outcome_once(void **state)
{
    struct account account;
    (void)state;
    account_open(&account, plain);
    call_expect(call_make(&account, "a_write"), "ok");
    call_expect(call_make(&account, "a_read"), "ok");
    struct call *call = call_make(&account, "a_write");
    call->caller.role = NG_ROLE_READER;
    call_expect(call, "FORBIDDEN");
    call = call_make(&account, "a_write");
    call_cancel(call);
    call_expect(call, "CANCELLED");
    account_settle(&account);
    assert_int_equal(told(&account, "\"tool\":\"a_write\""), 3);
    assert_int_equal(told(&account, "\"outcome\":\"ok\""), 1);
    assert_int_equal(told(&account, "\"outcome\":\"FORBIDDEN\""), 1);
    assert_int_equal(told(&account, "\"role\":\"reader\""), 1);
    assert_int_equal(told(&account, "\"outcome\":\"CANCELLED\""), 1);
    assert_int_equal(told(&account, "a_read"), 0);
    assert_int_equal(told(&account, "ended"), 0);
    assert_int_equal(told(&account, "repeated"), 0);
    account_close(&account);
}

/* A call that was answered with TIMEOUT does not count as successful when its tool ends later.
 */
static void test_a_deadline(void **state)
{
    struct account account;
    (void)state;
    account_open(&account, hasty);
    call_expect(call_make(&account, "a_defer"), "TIMEOUT");
    assert_int_equal(told(&account, "a_defer"), 0); /* it goes on */
    call_host.finish(atomic_exchange(&deferred, NULL), NG_OK);
    account_settle(&account);
    assert_int_equal(told(&account, "a_defer"), 1);
    assert_int_equal(told(&account, "\"outcome\":\"TIMEOUT\",\"ended\":\"ok\""), 1);
    assert_true(counted(&account, "{tool=\"a_defer\",outcome=\"TIMEOUT\"} 1\n"));
    assert_false(counted(&account, "{tool=\"a_defer\",outcome=\"ok\"}"));
    assert_true(counted(&account, "notegate_agent_errors_total{agent=\"local\"} 1\n"));
    account_close(&account);
}

static void test_repeats(void **state)
{
    struct account account;
    (void)state;
    account_open(&account, plain);
    for (int i = 0; i < 3; i++) {
        struct call *call = call_make(&account, "a_write");
        call->idempotency_key = ng_str_of("k");
        call_expect(call, "ok");
    }
    account_settle(&account);
    assert_int_equal(told(&account, "a_write"), 3);
    assert_int_equal(told(&account, "\"repeated\":true"), 2);
    account_close(&account);
}

static void test_a_question_is_no_failure(void **state)
{
    struct account account;
    (void)state;
    account_open(&account, plain);
    struct call *call = call_make(&account, "a_ask");
    call->client_asks = 1U << NG_ASK_FORM;
    call_expect(call, "INPUT_REQUIRED");
    account_settle(&account);
    assert_true(counted(&account, "{tool=\"a_ask\",outcome=\"INPUT_REQUIRED\"} 1\n"));
    assert_true(counted(&account, "notegate_agent_errors_total{agent=\"local\"} 0\n"));
    account_close(&account);
}

/* Deferred work of a call that only reads only reads, too. */
static void test_background(void **state)
{
    struct account account;
    (void)state;
    account_open(&account, plain);
    unsigned before = atomic_load(&steps);
    call_expect(call_make(&account, "a_background"), "ok");
    account_settle(&account);
    assert_int_equal(atomic_load(&steps), before + 1);
    assert_int_equal(told(&account, "a_background"), 0);
    account_close(&account);
}

/* A tool whose plugin has nothing to do with files opens no view of them. */
static void test_files_are_not_everybodys(void **state)
{
    static const struct ng_str allowed[] = {{"a_read", 6}};
    struct account account;
    struct key key;
    (void)state;
    account_open(&account, plain);
    memset(&key, 0, sizeof(key));
    atomic_init(&key.refs, 2);
    key.tools = allowed;
    key.tool_count = 1;
    struct call *call = call_make(&account, "a_read");
    assert_true(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    call->key = &key;
    assert_false(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    call_unref(call);
    account_close(&account);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_outcome_once),
        cmocka_unit_test(test_a_deadline),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_a_question_is_no_failure),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_files_are_not_everybodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
