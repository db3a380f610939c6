/* SPDX-License-Identifier: MIT */
/* test_agent_notebook.c - the notebook tools through a whole gateway. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static const char *const plain_sets[] = {"plugins=agent_notebook", "documents=memory", NULL};

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, plain_sets);
    *state = harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

static void test_create(void **state)
{
    struct answer made =
        harness_call(*state, "notebook_create",
                     "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"C\"}");
    assert_int_equal(made.rc, NG_OK);
    assert_true(made.is_json);
    assert_non_null(strstr(made.text, "\"status\":\"created\""));
    assert_int_equal(made.revision, 1);
    answer_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
