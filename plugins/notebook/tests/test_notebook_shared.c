/* SPDX-License-Identifier: MIT */
/* test_notebook_shared.c - revisions, spaces, many writers at once, and a restart.
 */
#include "test_notebook_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- revisions ---- */

static uint64_t revision_of(struct harness *h, const char *args)
{
    struct answer answer = harness_call(h, "notebook", args);
    assert_int_equal(answer.rc, NG_OK);
    uint64_t revision = answer.revision;
    answer_free(&answer);
    return revision;
}

static void test_revisions(void **state)
{
    struct harness *h = *state;
    assert_int_equal(revision_of(h, "{\"mode\":\"create\",\"name\":\"n\"}"), 1);
    assert_int_equal(revision_of(h, "{\"mode\":\"write\",\"name\":\"n\",\"newStr\":\"a\"}"), 2);
    assert_int_equal(revision_of(h, "{\"mode\":\"read\",\"name\":\"n\"}"), 2);
    assert_int_equal(revision_of(h, "{\"mode\":\"read\",\"name\":\"n\",\"readRange\":[1,1]}"),
                     2);
    assert_int_equal(revision_of(h, "{\"mode\":\"clear\",\"name\":\"n\"}"), 3);
    assert_int_equal(revision_of(h, "{\"mode\":\"write\",\"name\":\"n\",\"newStr\":\"b\","
                                    "\"expectedRevision\":3}"),
                     4);
}

static void expect_conflict(struct harness *h, const char *args, const char *current)
{
    struct answer answer = harness_call(h, "notebook", args);
    assert_string_equal(answer.code, "CONFLICT");
    assert_int_equal(answer.status, 409);
    char want[64];
    (void)snprintf(want, sizeof(want), "\"currentRevision\":%s", current);
    assert_non_null(strstr(answer.details, want));
    answer_free(&answer);
}

static void test_conflicts(void **state)
{
    struct harness *h = *state;
    expect_conflict(h, "{\"mode\":\"write\",\"newStr\":\"a\",\"expectedRevision\":1}", "0");
    assert_int_equal(
        revision_of(h, "{\"mode\":\"write\",\"newStr\":\"a\",\"expectedRevision\":0}"), 1);
    expect_conflict(h, "{\"mode\":\"write\",\"newStr\":\"b\",\"expectedRevision\":0}", "1");
    expect_conflict(h, "{\"mode\":\"clear\",\"expectedRevision\":7}", "1");
    expect_conflict(h, "{\"mode\":\"write\",\"newStr\":\"\",\"expectedRevision\":7}", "1");
    expect_conflict(
        h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"x\",\"expectedRevision\":2}", "0");
    assert_int_equal(
        revision_of(h, "{\"mode\":\"create\",\"name\":\"n\",\"expectedRevision\":0}"), 1);
    expect_conflict(h, "{\"mode\":\"create\",\"name\":\"n\",\"expectedRevision\":0}", "1");
    expect(h, "{\"mode\":\"read\"}", "a");
}

/* ---- spaces ---- */

static void test_spaces(void **state)
{
    struct harness *h = *state;
    struct answer answer =
        harness_call_as(h, "ann", NULL, "notebook", "{\"mode\":\"write\",\"newStr\":\"mine\"}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    answer = harness_call_as(h, "bob", NULL, "notebook", "{\"mode\":\"read\"}");
    assert_string_equal(answer.text, "Notebook 'default' is empty");
    answer_free(&answer);
    answer = harness_call_as(h, "ann", "team", "notebook",
                             "{\"mode\":\"write\",\"newStr\":\"ours\"}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    answer = harness_call_as(h, "bob", "team", "notebook", "{\"mode\":\"read\"}");
    assert_string_equal(answer.text, "ours");
    answer_free(&answer);
    answer = harness_call_as(h, "ann", NULL, "notebook", "{\"mode\":\"read\"}");
    assert_string_equal(answer.text, "mine");
    answer_free(&answer);
}

/* ---- many at once, restart ---- */

#define WRITERS 16
#define APPENDS 50

struct writer {
    struct harness *harness;
    int number;
    int failures;
};

static void *append_many(void *user)
{
    struct writer *writer = user;
    for (int i = 0; i < APPENDS; i++) {
        char args[128];
        char agent[16];
        (void)snprintf(agent, sizeof(agent), "w%d", writer->number);
        (void)snprintf(args, sizeof(args),
                       "{\"mode\":\"write\",\"name\":\"log\",\"newStr\":\"w%d-%d\"}",
                       writer->number, i);
        struct answer answer =
            harness_call_as(writer->harness, agent, "team", "notebook", args);
        writer->failures += answer.rc != NG_OK;
        answer_free(&answer);
    }
    return NULL;
}

/* Every append is there once, and each writer's are in its order. */
static void check_log(struct harness *h)
{
    struct answer read = harness_call_as(h, "reader", "team", "notebook",
                                         "{\"mode\":\"read\",\"name\":\"log\"}");
    assert_int_equal(read.rc, NG_OK);
    assert_int_equal(read.revision, 1 + WRITERS * APPENDS);
    int next[WRITERS] = {0};
    int lines = 0;
    for (char *line = read.text; *line != '\0'; lines++) {
        char *end = line + strcspn(line, "\n");
        int writer = 0;
        int number = 0;
        assert_int_equal(sscanf(line, "w%d-%d", &writer, &number), 2);
        assert_in_range(writer, 0, WRITERS - 1);
        assert_int_equal(number, next[writer]);
        next[writer]++;
        line = *end == '\0' ? end : end + 1;
    }
    assert_int_equal(lines, WRITERS * APPENDS);
    answer_free(&read);
}

static void test_many_writers(void **state)
{
    struct harness *h = *state;
    struct answer made =
        harness_call_as(h, "w0", "team", "notebook", "{\"mode\":\"create\",\"name\":\"log\"}");
    assert_int_equal(made.rc, NG_OK);
    answer_free(&made);
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){h, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, append_many, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failures, 0);
    }
    check_log(h);
    harness_reopen(h);
    check_log(h);
    struct answer list =
        harness_call_as(h, "reader", "team", "notebook", "{\"mode\":\"list\"}");
    assert_string_equal(list.text, "Available notebooks:\n- default: Empty\n- log: 800 lines");
    answer_free(&list);
}

static void test_restart(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"z\",\"newStr\":\"kept\\n\"}",
           "Created notebook 'z' with specified content");
    expect(h, "{\"mode\":\"create\",\"name\":\"a\"}", "Created notebook 'a' (empty)");
    harness_reopen(h);
    expect(h, "{\"mode\":\"read\",\"name\":\"z\"}", "kept\n");
    expect(h, "{\"mode\":\"list\"}",
           "Available notebooks:\n- default: Empty\n- z: 2 lines\n- a: Empty");
    assert_int_equal(revision_of(h, "{\"mode\":\"write\",\"name\":\"z\",\"newStr\":\"x\"}"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_revisions),    TEST(test_conflicts), TEST(test_spaces),
        TEST(test_many_writers), TEST(test_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
