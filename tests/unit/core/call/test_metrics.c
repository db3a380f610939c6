/* SPDX-License-Identifier: MIT */
/* test_metrics.c - counting from many threads, and the text format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/call/metrics.h"

#define THREADS 4
#define CALLS 20000

static char *print(struct metrics *metrics)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(metrics_print(metrics, NULL, &out), NG_OK);
    assert_non_null(buf_cstr(&out));
    return buf_take(&out, &(size_t){0});
}

static void expect_line(struct metrics *metrics, const char *line)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(metrics_print(metrics, NULL, &out), NG_OK);
    const char *at = strstr(buf_cstr(&out), line);
    if (at == NULL) {
        print_error("not there: %s\nin:\n%s", line, buf_cstr(&out));
    }
    assert_non_null(at);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the assertion above ends the test */
    assert_true(at == buf_cstr(&out) || at[-1] == '\n');
    assert_int_equal(at[strlen(line)], '\n');
    buf_done(&out);
}

static void test_calls(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    size_t a = metrics_tool(metrics, "notebook");
    size_t b = metrics_tool(metrics, "fileEditor");
    assert_int_not_equal(a, b);
    metrics_call(metrics, a, "ok", ng_str_of("anna"), 50000);
    metrics_call(metrics, a, "ok", ng_str_of("anna"), 1500000);
    metrics_call(metrics, a, "CONFLICT", ng_str_of("bert"), 3000000000);
    metrics_call(metrics, b, "ok", ng_str_of("bert"), 500000000000);
    expect_line(metrics, "notegate_calls_total{tool=\"notebook\",outcome=\"ok\"} 2");
    expect_line(metrics, "notegate_calls_total{tool=\"notebook\",outcome=\"CONFLICT\"} 1");
    expect_line(metrics, "notegate_calls_total{tool=\"fileEditor\",outcome=\"ok\"} 1");
    expect_line(metrics, "notegate_agent_calls_total{agent=\"anna\"} 2");
    expect_line(metrics, "notegate_agent_calls_total{agent=\"bert\"} 2");
#define BUCKET "notegate_call_duration_seconds_bucket"
    expect_line(metrics, BUCKET "{tool=\"notebook\",le=\"0.0001\"} 1");
    expect_line(metrics, BUCKET "{tool=\"notebook\",le=\"0.001\"} 1");
    expect_line(metrics, BUCKET "{tool=\"notebook\",le=\"0.0025\"} 2");
    expect_line(metrics, BUCKET "{tool=\"notebook\",le=\"120\"} 3");
    expect_line(metrics, BUCKET "{tool=\"notebook\",le=\"+Inf\"} 3");
    expect_line(metrics, BUCKET "{tool=\"fileEditor\",le=\"120\"} 0");
    expect_line(metrics, BUCKET "{tool=\"fileEditor\",le=\"+Inf\"} 1");
    expect_line(metrics, "notegate_call_duration_seconds_count{tool=\"notebook\"} 3");
    expect_line(metrics, "notegate_call_duration_seconds_sum{tool=\"notebook\"} 3.001550000");
    expect_line(metrics, "notegate_agent_errors_total{agent=\"anna\"} 0");
    expect_line(metrics, "notegate_agent_errors_total{agent=\"bert\"} 1");
    metrics_free(metrics);
    metrics_free(NULL);
}

static void test_limits(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    metrics_limit(metrics, METRICS_BODY, 4194304);
    assert_int_equal(metrics_use(metrics, METRICS_STREAMS, 3), 3);
    assert_int_equal(metrics_use(metrics, METRICS_STREAMS, -1), 2);
    expect_line(metrics, "notegate_limit{name=\"body\"} 4194304");
    expect_line(metrics, "notegate_in_use{name=\"streams\"} 2");
    const char *const names[] = {"connections",  "streams",       "queue",  "workers",
                                 "buffered",     "body",          "result", "depth",
                                 "call_timeout", "stream_backlog"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        char line[80];
        (void)snprintf(line, sizeof(line), "notegate_limit{name=\"%s\"} ", names[i]);
        char *text = print(metrics);
        assert_non_null(strstr(text, line));
        free(text);
    }
    metrics_free(metrics);
}

static void test_agents_are_bounded(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    size_t slot = metrics_tool(metrics, "t");
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < METRICS_AGENTS_MAX + 50; i++) {
            (void)snprintf(name, sizeof(name), "agent-%d", i);
            metrics_call(metrics, slot, "ok", ng_str_of(name), 1);
        }
    }
    /* An agent that is called so shares the series: a name may come only once. */
    char *text = print(metrics);
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "notegate_agent_calls_total{")) != NULL;
         at++) {
        lines++;
    }
    assert_int_equal(lines, METRICS_AGENTS_MAX + 1);
    free(text);
    expect_line(metrics, "notegate_agent_calls_total{agent=\"agent-0\"} 2");
    expect_line(metrics, "notegate_agent_calls_total{agent=\"other\"} 100");
    metrics_free(metrics);
}

static void test_other_comes_once(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    size_t slot = metrics_tool(metrics, "t");
    metrics_call(metrics, slot, "ok", ng_str_of("other"), 1);
    expect_line(metrics, "notegate_agent_calls_total{agent=\"other\"} 1");
    metrics_free(metrics);
}

static void test_escaping(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    size_t slot = metrics_tool(metrics, "a\"b\\c\nd");
    metrics_call(metrics, slot, "ok", ng_str_of("x\"y"), 1);
    metrics_call(metrics, slot, "ok", str_make(NULL, 0), 1);
    expect_line(metrics, "notegate_calls_total{tool=\"a\\\"b\\\\c\\nd\",outcome=\"ok\"} 2");
    expect_line(metrics, "notegate_agent_calls_total{agent=\"x\\\"y\"} 1");
    expect_line(metrics, "notegate_agent_calls_total{agent=\"\"} 1");
    metrics_free(metrics);
}

static void test_many_tools_and_outcomes(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    size_t slot = 0;
    for (int i = 0; i < 600; i++) {
        slot = metrics_tool(metrics, "t");
    }
    metrics_call(metrics, slot, "ok", ng_str_of("a"), 1);
    expect_line(metrics, "notegate_calls_total{tool=\"other\",outcome=\"ok\"} 1");
    static char names[40][8];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "C%d", i);
        metrics_call(metrics, 0, names[i], ng_str_of("a"), 1);
    }
    expect_line(metrics, "notegate_calls_total{tool=\"t\",outcome=\"C31\"} 1");
    expect_line(metrics, "notegate_calls_total{tool=\"t\",outcome=\"other\"} 8");
    /* A negative duration (a clock's fault) counts as none. */
    metrics_call(metrics, 0, "C0", ng_str_of("a"), -5);
    expect_line(metrics, "notegate_calls_total{tool=\"t\",outcome=\"C0\"} 2");
    metrics_free(metrics);
}

/* Every sample belongs to the family named by the TYPE line before it, families come once. */
static void test_format(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    metrics_call(metrics, metrics_tool(metrics, "t"), "ok", ng_str_of("a"), 1);
    char *text = print(metrics);
    char family[80] = "";
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_int_equal(sscanf(line + 7, "%79s", family), 1);
        } else if (strncmp(line, "# HELP ", 7) != 0) {
            assert_memory_equal(line, family, strlen(family));
            const char *value = strrchr(line, ' ');
            assert_non_null(value);
            char *end;
            (void)strtod(value + 1, &end);
            assert_int_equal(*end, '\0');
        }
    }
    free(text);
    metrics_free(metrics);
}

static void test_full_buffer(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    struct buf out;
    buf_init(&out, 100);
    assert_int_equal(metrics_print(metrics, NULL, &out), NG_ETOOLARGE);
    buf_done(&out);
    metrics_free(metrics);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (long i = 0; i < 3; i++) {
        alloc_fail_after(i);
        assert_null(metrics_new());
    }
    alloc_fail_after(-1);
}

struct job {
    struct metrics *metrics;
    size_t slot;
    int number;
};

static void *work(void *arg)
{
    struct job *job = arg;
    char name[16];
    for (int i = 0; i < CALLS; i++) {
        (void)snprintf(name, sizeof(name), "a%d", i % 7);
        metrics_call(job->metrics, job->slot, i % 2 == 0 ? "ok" : "BUSY", ng_str_of(name), i);
        (void)metrics_use(job->metrics, METRICS_QUEUE, 1);
        (void)metrics_use(job->metrics, METRICS_QUEUE, -1);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    struct metrics *metrics = metrics_new();
    assert_non_null(metrics);
    size_t slot = metrics_tool(metrics, "t");
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){metrics, slot, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    expect_line(metrics, "notegate_calls_total{tool=\"t\",outcome=\"ok\"} 40000");
    expect_line(metrics, "notegate_calls_total{tool=\"t\",outcome=\"BUSY\"} 40000");
    expect_line(metrics, "notegate_call_duration_seconds_count{tool=\"t\"} 80000");
    expect_line(metrics, "notegate_in_use{name=\"queue\"} 0");
    expect_line(metrics, "notegate_agent_calls_total{agent=\"a6\"} 11428");
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_agents_are_bounded),
        cmocka_unit_test(test_other_comes_once),
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_many_tools_and_outcomes),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_full_buffer),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
