/* SPDX-License-Identifier: MIT */
/* test_backend_example.c - the example of backends/README.md does what the guide says. */
/* First: cmocka has a macro by the name of a host service. */
#include "../sdk/backend_example/ram.c"

#include "backend_fixture.h"

static void test_example(void **state)
{
    (void)state;
    struct fixture f = {.inner = ng_module.desc, .docs = ng_module.desc};
    assert_int_equal(f.docs->open(fixture_call(&f), NULL, &f.db), NG_OK);
    assert_int_equal(fixture_put(&f, "a", 0, "", "one"), NG_OK);
    assert_int_equal(fixture_put(&f, "b", 0, "", "other"), NG_OK);
    assert_int_equal(fixture_put(&f, "a", 1, "one", "two"), NG_OK);
    assert_int_equal(fixture_put(&f, "a", 1, "one", "three"), NG_ECONFLICT);
    expect_doc(&f, "a", 2, "two");
    expect_doc(&f, "c", 0, "");
    struct change batch[2] = {
        {.id = ng_str_of("c"), .text = ng_str_of("c")},
        {.id = ng_str_of("a"), .base = 1, .only_condition = true},
    };
    assert_int_equal(fixture_commit(&f, batch, 2, NULL, NULL, NULL), NG_ECONFLICT);
    expect_doc(&f, "c", 0, "");
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .limit = 1,
                             .want_total = true};
    struct rows rows = {0};
    uint64_t total = 0;
    assert_int_equal(f.docs->query(f.db, fixture_call(&f), &query, rows_add, &rows, &total),
                     NG_OK);
    assert_int_equal(rows.count, 1);
    assert_string_equal(rows.items[0].id, "a");
    assert_int_equal(total, 2);
    rows_done(&rows);
    f.docs->close(f.db);
    call_unref(f.call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_example)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
