/* SPDX-License-Identifier: MIT */
/* test_trail_many.c - the changes of all documents, newest first: more numbers, origins and
 * documents than one walk looks at; missing memory. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/str.h"
#include "core/store/store.h"
#include "test_trail_rig.h"

static void test_out_of_memory(void **state)
{
    struct ng_trail trail = trail_all();
    size_t failed = 0;
    (void)state;
    trail.since = rig.all.rows[rig.all.count - 20].seq;
    for (long fails = 0; fails < 40; fails++) {
        struct walk walk = {.found = rows_new()};
        struct call *call = harness_new_call(&rig.harness);
        uint64_t next = 0;
        call->may_block = true;
        alloc_fail_after(fails);
        int rc = trail_walk(call, &trail, walk_take, &walk, &next);
        alloc_fail_after(-1);
        assert_true(rc == NG_OK || (rc == NG_EINTERNAL && call->staged.message.data != NULL));
        if (rc == NG_OK) {
            expect_rows(&trail, &walk.found);
        }
        failed += rc != NG_OK;
        call_unref(call);
        free(walk.found.rows);
    }
    assert_true(failed > 0 && failed < 40);
}

/* ---- more numbers than one walk looks at ---- */

static void write_many(const char *collection, const char *run, unsigned first, size_t count)
{
    for (size_t i = 0; i < count; i += NG_CHANGES_MAX) {
        struct group group;
        group_new(&group, "ada", run, "import");
        for (unsigned number = 0; number < NG_CHANGES_MAX; number++) {
            (void)group_add(&group, "team", collection, "many/", first + number);
        }
        group_write(&group);
        first += first > 0 ? NG_CHANGES_MAX : 0;
    }
}

static void test_many_numbers(void **state)
{
    struct ng_trail trail = trail_all();
    struct ng_str bob = ng_str_of("bob");
    (void)state;
    write_many("hidden", "run-1", 0, TRAIL_LOOKS_MAX / 2);
    write_many("things", "run-1", 0, TRAIL_LOOKS_MAX / 2 + 5000);
    read_all();
    uint64_t last = rig.all.rows[rig.all.count - 1].seq;
    trail.agents = (struct ng_names){&bob, 1};
    trail.until = last;
    struct walk walk = {.found = rows_new()};
    assert_int_equal(walk_on(&trail, &walk), last - TRAIL_LOOKS_MAX);
    assert_int_equal(walk.found.count, 0); /* empty, but there is more */
    free(walk.found.rows);
    assert_int_equal(expect_pages(&trail, 0), 2);
    trail.until = last - 777;
    assert_int_equal(expect_pages(&trail, 0), 2);
    trail.since = last - TRAIL_LOOKS_MAX - 777; /* all that one walk looks at */
    assert_int_equal(expect_pages(&trail, 0), 1);
    trail.since--;
    assert_int_equal(expect_pages(&trail, 0), 2);
}

/* ---- trail() of the backend ---- */

static void random_pages(int count)
{
    for (int i = 0; i < count; i++) {
        struct ng_str texts[DIMENSIONS][2];
        struct ng_trail trail;
        random_filter(&trail, texts);
        (void)expect_pages(&trail, 500 + below(1000));
    }
}

/* Changes that the filter does not select cost one walk nothing, where origins or ids tell. */
static void test_found_at_once(void **state)
{
    struct ng_trail trail = trail_all();
    struct ng_str bob = ng_str_of("bob");
    struct ng_str run = ng_str_of("run-2");
    struct ng_str tool = ng_str_of("notebook");
    (void)state;
    write_many("hidden", "run-1", 0, TRAIL_LOOKS_MAX / 2);
    write_many("things", "run-1", 0, TRAIL_LOOKS_MAX / 2 + 1000);
    read_all();
    trail.agents = (struct ng_names){&bob, 1};
    assert_int_equal(expect_pages(&trail, 0), 1);
    trail = trail_all();
    trail.runs = (struct ng_names){&run, 1};
    assert_int_equal(expect_pages(&trail, 0), 1);
    trail = trail_all();
    trail.id = ng_str_of("note/7");
    assert_int_equal(expect_pages(&trail, 0), 1);
    trail = trail_all();
    trail.tools = (struct ng_names){&tool, 1};
    assert_in_range(expect_pages(&trail, 0), 2, 20); /* each change is looked at */
    random_pages(20);
}

/* More origins than are listed. */
static void test_many_origins(void **state)
{
    struct ng_trail trail = trail_all();
    struct ng_str names[] = {ng_str_of("ada"), ng_str_of("eve")};
    struct ng_str things = ng_str_of("things");
    (void)state;
    for (unsigned i = 0; i < 4200; i++) {
        struct group group;
        char run[32];
        (void)snprintf(run, sizeof(run), "many-%u", i);
        group_new(&group, "ada", run, "import");
        (void)group_add(&group, "team", "things", "many/", 0);
        group_write(&group);
    }
    read_all();
    trail.agents = (struct ng_names){names, 2};
    (void)expect_pages(&trail, 0);
    (void)expect_pages(&trail, 900);
    trail.id = ng_str_of("no");
    trail.id_prefix = true;
    (void)expect_pages(&trail, 0);
    trail = trail_all();
    trail.collections = (struct ng_names){&things, 1};
    (void)expect_pages(&trail, 0);
    random_pages(20);
}

/* More documents than are marked, and as many as are looked up. */
static void test_many_documents(void **state)
{
    struct ng_trail trail = trail_all();
    struct ng_str eve = ng_str_of("eve");
    (void)state;
    write_many("others", "run-1", 1, 16500);
    read_all();
    trail.id_prefix = true;
    trail.id = ng_str_of("many/");
    (void)expect_pages(&trail, 3000);
    trail.id = ng_str_of("many/1");
    (void)expect_pages(&trail, 3000);
    trail.id = ng_str_of("many/16");
    (void)expect_pages(&trail, 0);
    trail.id = ng_str_of("");
    trail.agents = (struct ng_names){&eve, 1};
    (void)expect_pages(&trail, 0);
}

/* ---- */

/* Each writes. */
int main(void)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test(test_many_origins),
        cmocka_unit_test(test_many_documents),
        cmocka_unit_test(test_found_at_once),
    };
    const struct CMUnitTest without[] = {
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_many_numbers),
    };
    int failed = cmocka_run_group_tests_name("trail", with, setup, teardown);
    return failed + cmocka_run_group_tests_name("changes", without, setup_without, teardown);
}
