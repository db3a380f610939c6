/* SPDX-License-Identifier: MIT */
/* test_http_monitor.c - a client that leaves just as its call ends: the monitor's look, the
 * call's end and the event loop in each order, on one connection that goes on. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/http_monitor.h"
#include "api/http/http_request.h"

struct test {
    struct harness harness;
    struct http_monitor monitor;
    struct http_connection *connection;
    struct call *call;
};

static void begin(struct test *test)
{
    static const char *const sets[] = {"plugins=notebook", "documents=memory", NULL};
    memset(test, 0, sizeof(*test));
    harness_open(&test->harness, sets);
    lock_init(&test->monitor.lock, LOCK_HTTP_MONITOR);
    (void)pthread_cond_init(&test->monitor.wake, NULL);
    test->connection = calloc(1, sizeof(*test->connection));
    assert_non_null(test->connection);
    test->connection->request.connection = test->connection;
    http_monitor_add(&test->monitor, test->connection);
    test->call = harness_new_call(&test->harness);
}

static void end(struct test *test)
{
    assert_int_equal(atomic_load(&test->call->refs), 1);
    call_unref(test->call);
    free(test->connection);
    (void)pthread_cond_destroy(&test->monitor.wake);
    lock_done(&test->monitor.lock);
    harness_close(&test->harness);
}

/* A request waits, and its client leaves: the monitor takes it off the connection. */
static void leave_behind(struct test *test)
{
    const struct http_wait wait = {.call = test->call};
    http_monitor_suspend(&test->monitor, test->connection, &wait);
    test->connection->client = HTTP_CLIENT_BEHIND;
    atomic_store(&test->connection->request.stage, HTTP_ABANDONED);
}

static void test_its_call_still_runs(void **state)
{
    struct test test;
    (void)state;
    begin(&test);
    leave_behind(&test);
    assert_true(http_monitor_resume(&test.monitor, test.connection));
    assert_int_equal(atomic_load(&test.call->refs), 2);
    http_monitor_remove(&test.monitor, test.connection);
    assert_ptr_equal(test.monitor.behind, test.connection);
    http_monitor_forget(&test.monitor, test.connection); /* its call came back */
    assert_null(test.monitor.behind);
    end(&test);
}

static void test_its_call_has_come_back(void **state)
{
    struct test test;
    (void)state;
    begin(&test);
    for (int i = 0; i < 3; i++) { /* requests that were sent at once, on one connection */
        leave_behind(&test);
        atomic_store(&test.connection->request.stage, HTTP_DONE);
        assert_false(http_monitor_resume(&test.monitor, test.connection));
        assert_int_equal(atomic_load(&test.call->refs), 1);
        assert_int_not_equal(test.connection->client, HTTP_CLIENT_BEHIND);
    }
    http_monitor_remove(&test.monitor, test.connection);
    assert_null(test.monitor.behind);
    http_monitor_forget(&test.monitor, test.connection);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_its_call_still_runs),
        cmocka_unit_test(test_its_call_has_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
