/* SPDX-License-Identifier: MIT */
/* test_mongo_text.c - searches by a text index, on a server that has them.
 * NOTEGATE_TEST_MONGO_TEXT_URI says where it is; without it the test is skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend_fixture.h"
#include "core/base/str.h"

static const char *const *text_sets;

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture, "mongo", text_sets);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

static const struct ng_query ten_things = {
    .size = sizeof(ten_things),
    .collection = {"things", 6},
    .space = {"team", 4},
    .limit = 10,
    .want_total = true,
};

static struct ng_search search_for(const char *text)
{
    struct ng_search search = {
        .size = sizeof(search), .query = &ten_things, .text = ng_str_of(text)};
    return search;
}

/* The index is made when the server is there, beside everything else. */
static void wait_for_index(struct fixture *f)
{
    const struct timespec nap = {0, 10000000};
    struct ng_search search = search_for("word");
    for (int tries = 0; !str_is(ng_str_of(f->docs->engine(f->db, &search)), "text"); tries++) {
        assert_true(tries < 6000);
        (void)nanosleep(&nap, NULL);
    }
}

static void put_words(struct fixture *f, const char *id, const char *title, const char *text)
{
    struct change change = {.id = ng_str_of(id), .title = title, .text = ng_str_of(text)};
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
}

static void expect_hits(struct fixture *f, const char *text, const char *engine,
                        const char *first, size_t count)
{
    struct ng_search search = search_for(text);
    struct rows rows = {0};
    uint64_t total = 99;
    assert_string_equal(f->docs->engine(f->db, &search), engine);
    if (f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, &total) != NG_OK) {
        fail_msg("searching %s failed: %s", text, fixture_error(f));
    }
    if (rows.count != count) {
        fail_msg("%s: %zu hits, not %zu", text, rows.count, count);
    }
    assert_int_equal(total, count);
    if (count > 0) {
        assert_string_equal(rows.items[0].id, first);
        assert_true(rows.items[0].score > 0);
    }
    rows_done(&rows);
}

/* MongoDB's index finds any of the words, as a search should; other servers want all of them.
 */
static bool finds_any_word(struct fixture *f)
{
    struct ng_search search = search_for("lantern nothing");
    struct rows rows = {0};
    assert_int_equal(f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, NULL),
                     NG_OK);
    bool any = rows.count > 0;
    rows_done(&rows);
    return any;
}

static void test_text_index(void **state)
{
    struct fixture *f = *state;
    wait_for_index(f);
    put_words(f, "a", "lantern", "short");
    put_words(f, "b", "other", "a long text in which the word lantern stands once");
    put_words(f, "c", "third", "quick brown foxes");
    expect_hits(f, "lantern", "text", "a", 2);
    expect_hits(f, "LANTERN", "text", "a", 2);
    expect_hits(f, "lantern word", "text", "b", finds_any_word(f) ? 2 : 1);
    expect_hits(f, "\"quick brown\"", "text", "c", 1);
    expect_hits(f, "\"brown quick\"", "text", "", 0);
    expect_hits(f, "fox", "text", "c", 1); /* the stem of "foxes" */
    expect_hits(f, "fox*", "filter", "c", 1);
    expect_hits(f, "nothing", "text", "", 0);
}

int main(void)
{
    const char *uri = getenv("NOTEGATE_TEST_MONGO_TEXT_URI");
    static char uri_set[512];
    if (uri == NULL || *uri == '\0') {
        printf("skipped: NOTEGATE_TEST_MONGO_TEXT_URI is not set\n");
        return 77;
    }
    (void)snprintf(uri_set, sizeof(uri_set), "mongo.uri=%s", uri);
    const char *const sets[] = {uri_set, "mongo.database=notegate_text_{store}",
                                "mongo.timeout=30s", NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text_index, setup, teardown),
    };
    text_sets = sets;
    return cmocka_run_group_tests_name("searches by a text index", tests, NULL, NULL);
}
