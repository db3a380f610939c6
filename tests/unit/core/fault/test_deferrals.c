/* SPDX-License-Identifier: MIT */
/* test_deferrals.c - of which plugin an unfinished deferral is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/call/call.h"
#include "core/module/registry.h"

struct two {
    struct plugin *first, *second;
    struct call *call;
};

static int set_up(void **state)
{
    struct two *two = calloc(1, sizeof(*two));
    assert_non_null(two);
    two->first = calloc(1, sizeof(*two->first));
    two->second = calloc(1, sizeof(*two->second));
    two->call = calloc(1, sizeof(*two->call));
    assert_true(two->first != NULL && two->second != NULL && two->call != NULL);
    deferrals_init(&two->first->deferrals);
    deferrals_init(&two->second->deferrals);
    *state = two;
    return 0;
}

static int tear_down(void **state)
{
    struct two *two = *state;
    deferrals_done(&two->first->deferrals);
    deferrals_done(&two->second->deferrals);
    free(two->first);
    free(two->second);
    free(two->call);
    free(two);
    return 0;
}

static size_t left(struct plugin *plugin)
{
    int64_t since = 0;
    size_t count = deferrals_look(&plugin->deferrals, &since);
    assert_int_equal(count > 0, since > 0);
    return count;
}

/* A list of resources goes through all plugins in one call. */
static void test_a_call_goes_on_to_another_plugin(void **state)
{
    struct two *two = *state;
    two->call->plugin = two->first;
    deferrals_add(two->call);
    assert_int_equal(1, left(two->first));
    deferrals_remove(two->call);
    two->call->plugin = two->second;
    deferrals_add(two->call);
    assert_int_equal(0, left(two->first));
    assert_int_equal(1, left(two->second));
    deferrals_remove(two->call);
    assert_int_equal(0, left(two->second));
}

/* One that the first did not finish stays the first's; the call is in one list at a time. */
static void test_a_call_that_an_earlier_plugin_keeps(void **state)
{
    struct two *two = *state;
    two->call->plugin = two->first;
    deferrals_add(two->call);
    two->call->plugin = two->second;
    deferrals_add(two->call);
    deferrals_remove(two->call);
    assert_int_equal(1, left(two->first));
    assert_int_equal(0, left(two->second));
    deferrals_remove(two->call);
    assert_int_equal(0, left(two->first));
    deferrals_add(two->call);
    assert_int_equal(1, left(two->second));
    deferrals_remove(two->call);
}

/* The core's own runs have no plugin. */
static void test_a_call_without_a_plugin(void **state)
{
    struct two *two = *state;
    deferrals_add(two->call);
    deferrals_remove(two->call);
    two->call->plugin = two->first;
    deferrals_add(two->call);
    assert_int_equal(1, left(two->first));
    deferrals_remove(two->call);
    assert_int_equal(0, left(two->first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_call_goes_on_to_another_plugin, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_call_that_an_earlier_plugin_keeps, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_call_without_a_plugin, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
