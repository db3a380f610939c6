/* SPDX-License-Identifier: MIT */
/* test_redis_faults_servers.c - Sentinels that are out of date, a Redis of an earlier version,
 * entries that arrive meanwhile, and the end of the module; played by the test itself. */
#include "test_redis_faults_rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/journal/journal.h"

/* ---- Sentinels ---- */

/* It names that port. */
struct sentinel {
    struct fake fake;
    char texts[2][64];
    size_t count;
};

static void sentinel_name(struct sentinel *sentinel, int port)
{
    char *text = sentinel->texts[sentinel->count++];
    char number[16];
    (void)snprintf(number, sizeof(number), "%d", port);
    (void)snprintf(text, sizeof(sentinel->texts[0]), "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n",
                   strlen(number), number);
    atomic_store(&sentinel->fake.text, text);
}

static void open_by_sentinels(struct fault_test *test, const struct sentinel *sentinels,
                              size_t count)
{
    int len = snprintf(test->uri, sizeof(test->uri), "redis.uri=redis+sentinel://");
    for (size_t i = 0; i < count; i++) {
        len += snprintf(test->uri + len, sizeof(test->uri) - (size_t)len, "%s127.0.0.1:%d",
                        i == 0 ? "" : ",", sentinels[i].fake.port);
    }
    (void)snprintf(test->uri + len, sizeof(test->uri) - (size_t)len, "/mymaster/0");
    atomic_store(&test->fake.text, ":1\r\n");
    open_gateway(test, "redis.timeout=60s");
}

/* One that was cut off names a server that is gone: the next one is asked. */
static void test_stale_sentinel(void **state)
{
    struct fault_test *test = *state;
    struct sentinel *sentinels = calloc(2, sizeof(*sentinels));
    struct fake *gone = calloc(1, sizeof(*gone));
    assert_non_null(sentinels);
    assert_non_null(gone);
    fake_start(gone);
    fake_end(gone);
    for (size_t i = 0; i < 2; i++) {
        fake_start(&sentinels[i].fake);
    }
    sentinel_name(&sentinels[0], gone->port);
    sentinel_name(&sentinels[1], test->fake.port);
    open_by_sentinels(test, sentinels, 2);
    deliver_at_last(test);
    expect_degraded(test, false);
    harness_close(&test->harness);
    memset(&test->harness, 0, sizeof(test->harness));
    for (size_t i = 0; i < 2; i++) {
        fake_end(&sentinels[i].fake);
    }
    free(gone);
    free(sentinels);
}

/* The former primary goes on answering, and nothing is written. */
static void test_replaced_while_idle(void **state)
{
    struct fault_test *test = *state;
    struct sentinel *sentinel = calloc(1, sizeof(*sentinel));
    struct fake *next = calloc(1, sizeof(*next));
    assert_non_null(sentinel);
    assert_non_null(next);
    fake_start(next);
    atomic_store(&next->text, ":1\r\n");
    fake_start(&sentinel->fake);
    sentinel_name(sentinel, test->fake.port);
    open_by_sentinels(test, sentinel, 1);
    deliver_at_last(test);
    assert_int_equal(atomic_load(&next->commands), 0);
    sentinel_name(sentinel, next->port);
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (atomic_load(&next->commands) == 0) {
        assert_true(clock_monotonic_ns() < until);
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
    harness_close(&test->harness);
    memset(&test->harness, 0, sizeof(test->harness));
    fake_end(&sentinel->fake);
    fake_end(next);
    free(next);
    free(sentinel);
}

/* ---- words of entries ---- */

static void wait_for_mark(struct fault_test *test)
{
    struct call *call = harness_new_call(&test->harness);
    call->may_block = true;
    assert_int_equal(journal_flush(test->harness.gateway->journal, call), NG_OK);
    call_unref(call);
}

/* All have them, as Redis says: they are not read once more. */
static void test_words_are_complete(void **state)
{
    struct fault_test *test = *state;
    atomic_store(&test->fake.text, ":1\r\n");
    atomic_store(&test->fake.words, "1");
    open_gateway(test, "redis.timeout=60s");
    for (int i = 0; i < 3; i++) {
        wait_for_mark(test);
    }
    assert_int_equal(atomic_load(&test->fake.walks), 0);
    expect_degraded(test, false);
}

/* That they cannot be made does not stop the deliveries. */
static void test_words_are_refused(void **state)
{
    struct fault_test *test = *state;
    atomic_store(&test->fake.text, ":1\r\n");
    atomic_store(&test->fake.walked, "-NOPERM this user has no permissions\r\n");
    open_gateway(test, "redis.timeout=60s");
    for (int i = 0; i < 3; i++) {
        wait_for_mark(test);
    }
    assert_true(atomic_load(&test->fake.walks) > 0);
    expect_degraded(test, false);
}

/* ---- recall ---- */

struct found {
    size_t count;
    bool seen[FAKE_ROWS + 1];
};

static int found_row(void *user, const struct ng_entry *entry)
{
    struct found *found = user;
    const char *at = memmem(entry->source.data, entry->source.len, "memory:n", 8);
    assert_non_null(at);
    size_t number = strtoul(at + 8, NULL, 10);
    assert_in_range(number, 0, FAKE_ROWS);
    assert_false(found->seen[number]);
    found->seen[number] = true;
    found->count++;
    return 0;
}

static void test_scan_while_entries_arrive(void **state)
{
    struct fault_test *test = *state;
    struct found found = {0};
    const char *engine = "";
    atomic_store(&test->fake.text, ":1\r\n");
    atomic_store(&test->fake.has_rows, true);
    open_gateway(test, "redis.timeout=60s");
    struct ng_recall recall = {.size = sizeof(recall),
                               .space = ng_str_of("shared"),
                               .text = ng_str_of("heron"),
                               .limit = 1000};
    struct call *call = harness_new_call(&test->harness);
    assert_int_equal(
        test->journal->recall(test->db, &call->pub, &recall, found_row, &found, &engine),
        NG_OK);
    call_unref(call);
    assert_string_equal(engine, "scan");
    assert_int_equal(found.count, FAKE_ROWS + 1);
}

/* ---- the module ---- */

/* A thread that looks up a name may outlive the gateway: the code that it runs stays. */
static void test_module_stays(void **state)
{
    static const char path[] = NOTEGATE_MODULES "/backends/redis.so";
    (void)state;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(module);
    assert_int_equal(dlclose(module), 0);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    assert_non_null(module);
    (void)dlclose(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stale_sentinel),
        TEST(test_replaced_while_idle),
        TEST(test_words_are_complete),
        TEST(test_words_are_refused),
        TEST(test_scan_while_entries_arrive),
        cmocka_unit_test(test_module_stays),
    };
    return cmocka_run_group_tests_name("redis servers", tests, NULL, NULL);
}
