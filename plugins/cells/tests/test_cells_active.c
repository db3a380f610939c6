/* SPDX-License-Identifier: MIT */
/* test_cells_active.c - which notebook a call means that names none: by session, agent and
 * space, after a restart, and after time without use. */
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "hub.h"
#include "test_clock.h"

#define TEXT_MAX 2048
/* Far more than anything here takes. */
#define PATIENCE_NS (INT64_C(60) * 1000 * 1000 * 1000)

static const char *const own[] = {"plugins=cells", "documents=memory", NULL};
static const char *const shared[] = {"plugins=cells", "documents=" HUB_MODULE, NULL};

static const char source[] =
    "{\"cells\":[{\"cell_type\":\"code\",\"execution_count\":null,\"id\":\"%s\",\"metadata\":{}"
    ","
    "\"outputs\":[],\"source\":[]}],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}";

/* The notebook DIR/files/NAME.ipynb, with one cell that has this name as its id. */
static void put(const struct harness *harness, const char *name)
{
    char path[TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/files/%s.ipynb", harness->dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fprintf(file, source, name);
    assert_int_equal(fclose(file), 0);
}

static void open_with(struct harness *harness, const char *const *sets)
{
    harness->session = NULL;
    harness_open(harness, sets);
    put(harness, "a");
    put(harness, "b");
}

static void begin(struct harness *harness)
{
    test_clock_reset();
    open_with(harness, own);
}

static void end(struct harness *harness)
{
    harness_close(harness);
    test_clock_reset();
}

static void attach(struct harness *harness, const char *session, const char *name)
{
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args), "{\"notebook\":\"%s.ipynb\"}", name);
    harness->session = session;
    struct answer answer = harness_call(harness, "attachNotebook", args);
    assert_string_equal(answer.message, "");
    answer_free(&answer);
}

/* A call that names no notebook uses this one; NULL: there is none. */
static void expect_active(struct harness *harness, const char *session, const char *name)
{
    char wanted[TEXT_MAX];
    harness->session = session;
    struct answer answer = harness_call(harness, "getNotebookCells", "{}");
    if (name == NULL) {
        assert_string_equal(answer.code, "NO_ACTIVE_NOTEBOOK");
        assert_string_equal(answer.message, "No active notebook found");
        assert_string_equal(answer.meta, "");
    } else {
        assert_string_equal(answer.message, "");
        (void)snprintf(wanted, sizeof(wanted), "\nNotebook: %s/files/%s.ipynb", harness->dir,
                       name);
        assert_string_equal(answer.text + answer.text_len - strlen(wanted), wanted);
        (void)snprintf(wanted, sizeof(wanted), "\"notegate/notebook\":\"%s/files/%s.ipynb\"",
                       harness->dir, name);
        assert_string_equal(answer.meta, wanted);
    }
    answer_free(&answer);
}

static void expect_change(struct harness *harness, const char *session, const char *name)
{
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args), "{\"cellId\":\"%s\",\"content\":\"1\"}", name);
    harness->session = session;
    struct answer answer = harness_call(harness, "updateNotebookCell", args);
    assert_string_equal(answer.message, "");
    answer_free(&answer);
}

static void expect_ambiguous(struct harness *harness, const char *tool, const char *args)
{
    char wanted[TEXT_MAX];
    harness->session = NULL;
    struct answer answer = harness_call(harness, tool, args);
    assert_string_equal(answer.code, "NOTEBOOK_AMBIGUOUS");
    assert_int_equal(answer.status, 400);
    (void)snprintf(
        wanted, sizeof(wanted),
        "2 notebooks are attached, and the call does not name one: %s/files/a.ipynb, "
        "%s/files/b.ipynb",
        harness->dir, harness->dir);
    assert_string_equal(answer.message, wanted);
    answer_free(&answer);
}

static void test_each_session_has_its_own(void **state)
{
    struct harness harness;
    (void)state;
    begin(&harness);
    attach(&harness, "one", "a");
    expect_active(&harness, "one", "a");
    expect_active(&harness, "two", NULL);
    expect_active(&harness, NULL, NULL);
    attach(&harness, "two", "b");
    attach(&harness, NULL, "b");
    expect_active(&harness, "one", "a");
    expect_active(&harness, "two", "b");
    expect_active(&harness, NULL, "b");
    expect_change(&harness, "one", "a"); /* a session's is clear */
    expect_change(&harness, "two", "b");
    /* Detached is detached for all sessions of the agent. */
    harness.session = "one";
    struct answer answer =
        harness_call(&harness, "detachNotebook", "{\"notebook\":\"b.ipynb\"}");
    assert_string_equal(answer.message, "");
    answer_free(&answer);
    expect_active(&harness, "one", "a");
    expect_active(&harness, "two", NULL);
    expect_active(&harness, NULL, NULL);
    end(&harness);
}

static void test_not_after_a_restart(void **state)
{
    static const char *const kept[] = {"plugins=cells", NULL};
    struct harness harness;
    (void)state;
    test_clock_reset();
    open_with(&harness, kept);
    attach(&harness, "one", "a");
    attach(&harness, NULL, "a");
    harness_reopen(&harness);
    expect_active(&harness, "one", NULL);
    expect_active(&harness, NULL, NULL);
    harness.session = NULL;
    struct answer answer =
        harness_call(&harness, "detachNotebook", "{\"notebook\":\"a.ipynb\"}");
    assert_string_equal(answer.message, ""); /* it is attached still */
    answer_free(&answer);
    end(&harness);
}

static void test_twelve_hours_without_use(void **state)
{
    static const char *const sessions[] = {NULL, "one"};
    struct harness harness;
    (void)state;
    begin(&harness);
    for (size_t i = 0; i < NG_COUNT(sessions); i++) {
        attach(&harness, sessions[i], "a");
        test_clock_pass(12 * TEST_CLOCK_HOUR_MS - 60000);
        expect_active(&harness, sessions[i], "a");
        test_clock_pass(12 * TEST_CLOCK_HOUR_MS - 60000); /* since that use */
        expect_active(&harness, sessions[i], "a");
        test_clock_pass(12 * TEST_CLOCK_HOUR_MS);
        expect_active(&harness, sessions[i], NULL);
    }
    end(&harness);
}

static void test_several_without_a_session(void **state)
{
    static const char *const tools[][2] = {
        {"updateNotebookCell", "{\"cellId\":\"a\",\"content\":\"\"}"},
        {"addNotebookCell", "{\"type\":\"code\",\"index\":0,\"content\":\"\"}"},
        {"deleteNotebookCells", "{\"cellIds\":[\"a\"]}"},
        {"moveNotebookCell", "{\"cellId\":\"a\",\"index\":0}"},
        {"clearCellOutputs", "{}"},
        {"runNotebookCells", "{\"cellIds\":[\"a\"]}"},
        {"interruptKernel", "{}"},
        {"restartKernel", "{}"},
    };
    struct harness harness;
    (void)state;
    begin(&harness);
    attach(&harness, NULL, "a");
    expect_change(&harness, NULL, "a");
    attach(&harness, NULL, "b");
    for (size_t i = 0; i < NG_COUNT(tools); i++) {
        expect_ambiguous(&harness, tools[i][0], tools[i][1]);
    }
    expect_active(&harness, NULL, "b"); /* what reads takes the newest */
    harness.session = NULL;
    struct answer answer =
        harness_call(&harness, "updateNotebookCell",
                     "{\"notebook\":\"a.ipynb\",\"cellId\":\"a\",\"content\":\"2\"}");
    assert_string_equal(answer.message, "");
    answer_free(&answer);
    /* One that was not used for long does not count, and neither does one that is detached. */
    test_clock_pass(7 * TEST_CLOCK_HOUR_MS);
    expect_active(&harness, NULL, "b");
    expect_ambiguous(&harness, tools[0][0], tools[0][1]);
    test_clock_pass(6 * TEST_CLOCK_HOUR_MS);
    expect_change(&harness, NULL, "b");
    attach(&harness, NULL, "a");
    expect_ambiguous(&harness, tools[0][0], tools[0][1]);
    answer = harness_call(&harness, "detachNotebook", "{\"notebook\":\"b.ipynb\"}");
    assert_string_equal(answer.message, "");
    answer_free(&answer);
    expect_change(&harness, NULL, "a");
    end(&harness);
}

static void test_the_session_unused_longest_makes_room(void **state)
{
    enum { MANY = 65 };
    struct harness harness;
    char session[16];
    (void)state;
    begin(&harness);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(session, sizeof(session), "s%d", i);
        attach(&harness, session, "a");
        test_clock_pass(1000);
    }
    expect_active(&harness, "s0", NULL);
    expect_active(&harness, "s1", "a");
    expect_active(&harness, "s64", "a");
    end(&harness);
}

static void wait_inactive(struct harness *harness, const char *session)
{
    const struct timespec time = {0, 2000000};
    bool is_over = false;
    harness->session = session;
    for (int64_t until = clock_monotonic_ns() + PATIENCE_NS; !is_over;) {
        struct answer answer = harness_call(harness, "getNotebookCells", "{}");
        is_over = strcmp(answer.code, "NO_ACTIVE_NOTEBOOK") == 0;
        answer_free(&answer);
        assert_true(clock_monotonic_ns() < until);
        (void)nanosleep(&time, NULL);
    }
}

/* Another gateway finds it active; it ends with the gateway that made it active. */
static void test_two_gateways(void **state)
{
    struct harness one;
    struct harness two;
    char path[TEXT_MAX];
    (void)state;
    hub_reset();
    open_with(&one, shared);
    open_with(&two, shared);
    (void)snprintf(path, sizeof(path), "{\"notebook\":\"%s/files/a.ipynb\"}", one.dir);
    one.session = "s";
    struct answer answer = harness_call(&one, "attachNotebook", path);
    assert_string_equal(answer.message, "");
    answer_free(&answer);
    /* The other one may not read that file, but finds it active. */
    two.session = "s";
    answer = harness_call(&two, "getNotebookCells", "{}");
    assert_string_equal(answer.code, "PATH_OUTSIDE_ROOTS");
    answer_free(&answer);
    harness_reopen(&one);
    expect_active(&one, "s", NULL);
    wait_inactive(&two, "s"); /* it hears of the restart with the next heartbeats */
    hub_reset();
    harness_close(&one);
    harness_close(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_session_has_its_own),
        cmocka_unit_test(test_not_after_a_restart),
        cmocka_unit_test(test_twelve_hours_without_use),
        cmocka_unit_test(test_several_without_a_session),
        cmocka_unit_test(test_the_session_unused_longest_makes_room),
        cmocka_unit_test(test_two_gateways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
