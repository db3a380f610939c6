/* SPDX-License-Identifier: MIT */
/* test_trail.c - the changes of all documents, newest first: filters, pages, rights; of a
 * backend that has trail(), and of one that has not. */
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/call/key.h"
#include "test_trail_rig.h"

/* ---- filters and pages ---- */

static void test_newest_first(void **state)
{
    struct ng_trail trail = trail_all();
    (void)state;
    assert_true(rig.all.count > 2000);
    assert_true(rig.all.rows[rig.all.count - 1].seq > rig.all.count + 500); /* quiet ones */
    assert_int_equal(expect_pages(&trail, 0), 1);
}

static void test_each_filter(void **state)
{
    (void)state;
    for (size_t i = 0; i < DIMENSIONS; i++) {
        struct ng_str two[2] = {ng_str_of("unheard of"), ng_str_of("unheard of")};
        struct ng_trail trail = trail_all();
        *names_of(&trail, i) = (struct ng_names){two, 1};
        assert_int_equal(expect_pages(&trail, 0), 1);
        for (size_t value = 0; value < VALUES; value++) {
            two[0] = ng_str_of(values[i][value]);
            two[1] = ng_str_of(values[i][(value + 1) % VALUES]);
            *names_of(&trail, i) = (struct ng_names){two, 1};
            assert_int_equal(expect_pages(&trail, 0), 1);
            *names_of(&trail, i) = (struct ng_names){two, 2};
            assert_int_equal(expect_pages(&trail, 0), 1);
        }
    }
}

static void test_ids(void **state)
{
    static const char *const ids[] = {"", "n", "no", "note", "note*", "note*1", "note/7", "y"};
    (void)state;
    for (size_t i = 0; i < 2 * NG_COUNT(ids); i++) {
        struct ng_trail trail = trail_all();
        trail.id = ng_str_of(ids[i / 2]);
        trail.id_prefix = i % 2 == 0;
        (void)expect_pages(&trail, 0);
    }
}

static void test_filters_together(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct ng_str texts[DIMENSIONS][2];
        struct ng_trail trail;
        random_filter(&trail, texts);
        (void)expect_pages(&trail, 0);
        (void)expect_pages(&trail, 20 + below(100));
    }
}

static void test_since_and_until(void **state)
{
    (void)state;
    const struct row *rows = rig.all.rows;
    for (size_t i = 0; i + 5 < rig.all.count; i += 331) {
        struct ng_trail trail = trail_all();
        struct walk walk = {.found = rows_new()};
        trail.since = rows[i].seq;
        trail.until = rows[i + 5].seq;
        assert_int_equal(walk_on(&trail, &walk), 0);
        assert_int_equal(walk.found.count, 5);
        assert_int_equal(walk.found.rows[0].seq, rows[i + 5].seq);
        assert_int_equal(walk.found.rows[4].seq, rows[i + 1].seq);
        trail.since = trail.until; /* nothing lies between */
        walk.found.count = 0;
        assert_int_equal(walk_on(&trail, &walk), 0);
        trail.since = trail.until + 1;
        assert_int_equal(walk_on(&trail, &walk), 0);
        assert_int_equal(walk.found.count, 0);
        free(walk.found.rows);
    }
}

static void test_pages(void **state)
{
    static const size_t sizes[] = {100, 999, 1000, 1001, 5000};
    (void)state;
    struct ng_trail trail = trail_all();
    for (size_t i = 0; i < NG_COUNT(sizes); i++) {
        size_t walks = expect_pages(&trail, sizes[i]);
        assert_true(walks >= (rig.all.count + sizes[i] - 1) / sizes[i]);
    }
    struct ng_str run = ng_str_of("run-2");
    trail.runs = (struct ng_names){&run, 1};
    trail.since = rig.all.rows[rig.all.count - 500].seq;
    (void)expect_pages(&trail, 1);
}

/* A callback that stops has taken its change: the next walk begins with the one before. */
static void test_stop(void **state)
{
    struct ng_trail trail = trail_all();
    struct walk walk = {.found = rows_new(), .most = 3};
    (void)state;
    uint64_t next = walk_on(&trail, &walk);
    assert_int_equal(walk.found.count, 3);
    assert_int_equal(next, walk.found.rows[2].seq - 1);
    /* The first change of all is the end. */
    trail.until = rig.all.rows[2].seq;
    trail.since = rig.all.rows[0].seq - 1;
    walk.found.count = 0;
    assert_int_equal(walk_on(&trail, &walk), 0);
    assert_int_equal(walk.found.count, 3);
    free(walk.found.rows);
}

/* ---- rights ---- */

/* A key that lives as long as a case; what it allows. */
static void key_allow(struct call *call, struct key *key, const struct ng_str *tools,
                      size_t tool_count)
{
    memset(key, 0, sizeof(*key));
    atomic_init(&key->refs, 1);
    lock_init(&key->lock, LOCK_KEY);
    key->tools = tools;
    key->tool_count = tool_count;
    call_take_key(call, key);
}

/* The rows that a caller of these spaces finds are those of `seen`; NULL: none. */
static void expect_seen(struct call *call, const struct ng_trail *trail,
                        const struct ng_trail *seen)
{
    struct walk walk = {.found = rows_new()};
    assert_int_equal(walk_by(call, trail, &walk), 0);
    if (seen == NULL) {
        assert_int_equal(walk.found.count, 0);
    } else {
        assert_true(walk.found.count > 100);
        expect_rows(seen, &walk.found);
    }
    free(walk.found.rows);
}

/* A space that the key does not allow is refused by its name. */
static void expect_refused(struct call *call, const struct ng_trail *trail)
{
    struct walk walk = {.found = rows_new()};
    uint64_t next = 0;
    assert_int_equal(trail_walk(call, trail, walk_take, &walk, &next), NG_EFORBIDDEN);
    assert_string_equal(call->staged.message.data,
                        "the caller's key does not allow the space \"team\"; it allows "
                        "shared, ~ada");
    assert_int_equal(walk.found.count, 0);
    free(walk.found.rows);
    call_reset_result(call);
}

static struct call *call_of_spaces(const struct ng_str *spaces, size_t count)
{
    struct call *call = harness_new_call(&rig.harness);
    call->caller.all_spaces = false;
    call->caller.spaces = spaces;
    call->caller.space_count = count;
    call->caller.role = NG_ROLE_WRITER;
    return call;
}

static void test_other_spaces(void **state)
{
    static const struct ng_str both[] = {{"shared", 6}, {"~ada", 4}};
    static const struct ng_str team[] = {{"team", 4}};
    struct ng_trail all = trail_all();
    struct ng_trail mine = trail_all();
    struct ng_trail others = trail_all();
    struct key key;
    (void)state;
    mine.spaces = (struct ng_names){both, 2};
    others.spaces = (struct ng_names){team, 1};
    struct call *call = call_of_spaces(both, 2);
    expect_seen(call, &all, &mine);
    expect_seen(call, &others, &others); /* without keys: what it names */
    key_allow(call, &key, NULL, 0);
    expect_seen(call, &all, &mine);
    expect_refused(call, &others);
    call->caller.all_spaces = true;
    expect_seen(call, &all, &all);
    expect_seen(call, &others, &others);
    call_unref(call);
    call = call_of_spaces(NULL, 0);
    key_allow(call, &key, NULL, 0);
    expect_seen(call, &all, NULL);
    call_unref(call);
}

static void test_keys_of_some_tools(void **state)
{
    static const struct ng_str notebook[] = {{"notebook", 8}};
    static const struct ng_str editor[] = {{"fileEditor", 10}};
    static const struct ng_str notebooks[] = {{"notebooks", 9}};
    struct ng_trail all = trail_all();
    struct ng_trail mine = trail_all();
    struct key of_notebook;
    struct key of_editor;
    (void)state;
    mine.collections = (struct ng_names){notebooks, 1};
    struct call *call = call_of_spaces(NULL, 0);
    call->caller.all_spaces = true;
    key_allow(call, &of_notebook, notebook, 1);
    expect_seen(call, &all, &mine);
    expect_seen(call, &mine, &mine);
    key_allow(call, &of_editor, editor, 1);
    expect_seen(call, &all, NULL);
    expect_seen(call, &mine, NULL);
    call_unref(call);
}

/* ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_first),
        cmocka_unit_test(test_each_filter),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_filters_together),
        cmocka_unit_test(test_since_and_until),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_other_spaces),
        cmocka_unit_test(test_keys_of_some_tools),
    };
    int failed = cmocka_run_group_tests_name("trail", tests, setup, teardown);
    return failed + cmocka_run_group_tests_name("changes", tests, setup_without, teardown);
}
