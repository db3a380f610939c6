/* SPDX-License-Identifier: MIT */
/* test_opennotes.c - notebooks, the index and the tools that list and get, through the real
 * gateway. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void no_notebook(void **state)
{
    struct harness harness;
    (void)state;
    harness_open(&harness, NULL);
    struct answer answer = harness_call(&harness, "opennotes_list", "{}");
    assert_string_equal(answer.code, "NOTEBOOK_NOT_FOUND");
    assert_int_equal(answer.status, 404);
    answer_free(&answer);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_notebook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
