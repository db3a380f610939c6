/* SPDX-License-Identifier: MIT */
/* test_as_of.c - the revision that a document had at a point, compared with an oracle at every
 * point of random histories, whole and thinned, with a backend that has revision_at() and with
 * one that has not. The test moves the clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/history/trail.h"
#include "core/store/store_types.h"
#include "harness.h"
#include "test_clock.h"

#define DOCS 4
#define STEPS 420
#define REVISIONS_MAX STEPS
#define KEEP_DAYS 15

/* A revision as the oracle knows it. */
struct past {
    uint64_t seq;
    int64_t time_ms;
    bool kept;
};

/* The revisions of one document; [0] is revision 1. */
struct history {
    char id[16];
    struct past past[REVISIONS_MAX];
    uint64_t count;
};

static struct {
    struct harness harness;
    struct history docs[DOCS];
    uint64_t last_seq;
    unsigned seed;
} rig;

static unsigned below(unsigned limit)
{
    return (unsigned)rand_r(&rig.seed) % limit;
}

static struct store *store(void)
{
    return rig.harness.gateway->store;
}

static struct call *new_call(void)
{
    struct call *call = harness_new_call(&rig.harness);
    call->may_block = true;
    return call;
}

static struct ng_key key_of(const char *id)
{
    return (struct ng_key){ng_str_of("things"), ng_str_of("team"), ng_str_of(id)};
}

#define NOTHING                                                                                \
    "there is no document \"nothing\" in things of the space team; SPACE/COLLECTION/ID, or "   \
    "`space`, names one of another space"

/* ---- histories ---- */

static const struct ng_collection collections[] = {
    {.name = "things"},
    {.name = "others"},
    {.name = "hidden", .flags = NG_COLLECTION_QUIET},
};

static int write_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    struct ng_str pieces[2] = {present->text, ng_str_of(user)};
    if (str_is(pieces[1], "-")) {
        call->host->draft_delete(next);
        return NG_OK;
    }
    return call->host->draft_text(next, pieces, 2);
}

/* Appends; "-": deletes. */
static void write_doc(const struct ng_key *key, const char *text)
{
    struct call *call = new_call();
    char copy[16];
    (void)snprintf(copy, sizeof(copy), "%s", text);
    const struct ng_change change = {
        .size = sizeof(change), .key = *key, .fn = write_fn, .user = copy};
    assert_int_equal(store_write_wait(store(), call, &change, 1), NG_OK);
    call_unref(call);
}

/* So many changes of other documents. */
static void write_many(size_t count)
{
    static struct ng_change changes[NG_CHANGES_MAX];
    static char ids[NG_CHANGES_MAX][16];
    static char text[] = "x";
    for (size_t i = 0; i < NG_CHANGES_MAX; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "many %zu", i);
        changes[i] = (struct ng_change){
            .size = sizeof(changes[i]), .key = key_of(ids[i]), .fn = write_fn, .user = text};
    }
    for (size_t i = 0; i < count; i += NG_CHANGES_MAX) {
        struct call *call = new_call();
        assert_int_equal(store_write_wait(store(), call, changes, NG_CHANGES_MAX), NG_OK);
        call_unref(call);
    }
}

/* Changes beside it, some without an event, some of a document with the same id. */
static void write_beside(const char *id)
{
    static const char *const shelves[][2] = {
        {"others", "team"}, {"hidden", "team"}, {"things", "shared"}};
    const char *const *shelf = shelves[below(NG_COUNT(shelves))];
    const struct ng_key key = {ng_str_of(shelf[0]), ng_str_of(shelf[1]), ng_str_of(id)};
    write_doc(&key, "beside\n");
}

static void write_random(void)
{
    struct history *history = &rig.docs[below(DOCS)];
    struct ng_key key = key_of(history->id);
    struct call *call = new_call();
    const struct ng_doc *doc = NULL;
    assert_int_equal(store_get(store(), call, &key, 0, &doc), NG_OK);
    bool there = doc->revision > 0 && !doc->deleted;
    call_unref(call);
    write_doc(&key, there && below(6) == 0 ? "-" : "line\n");
    if (below(2) == 0) {
        write_beside(history->id);
    }
    if (below(2) == 0) {
        test_clock_pass((int64_t)below(7 * 3600 * 1000));
    }
}

static int take_event(void *user, const struct ng_event *event)
{
    (void)user;
    rig.last_seq = event->seq;
    for (size_t i = 0; i < DOCS; i++) {
        struct history *history = &rig.docs[i];
        if (str_is(event->key.id, history->id) && str_is(event->key.collection, "things") &&
            str_is(event->key.space, "team")) {
            assert_int_equal(event->revision, history->count + 1);
            history->past[history->count++] = (struct past){event->seq, event->time_ms, false};
        }
    }
    return 0;
}

/* What is kept is what can be read. Returns how many are not. */
static size_t read_histories(void)
{
    size_t thinned = 0;
    struct call *call = new_call();
    for (size_t i = 0; i < DOCS; i++) {
        rig.docs[i].count = 0;
    }
    assert_int_equal(store_changes(store(), call, 0, UINT32_MAX, take_event, NULL), NG_OK);
    for (size_t i = 0; i < DOCS; i++) {
        struct ng_key key = key_of(rig.docs[i].id);
        for (uint64_t number = 1; number <= rig.docs[i].count; number++) {
            const struct ng_doc *doc = NULL;
            struct call *read = new_call();
            int rc = store_get(store(), read, &key, number, &doc);
            assert_true(rc == NG_OK || rc == NG_ENOTFOUND);
            rig.docs[i].past[number - 1].kept = rc == NG_OK;
            thinned += rc != NG_OK;
            call_unref(read);
        }
    }
    call_unref(call);
    return thinned;
}

/* ---- the oracle ---- */

static struct ng_as_of oracle(const struct history *history, const struct point *point)
{
    struct ng_as_of found = {.size = sizeof(found)};
    for (uint64_t number = 1; number <= history->count; number++) {
        const struct past *past = &history->past[number - 1];
        bool reached = point->kind == POINT_REVISION ? number <= point->number
                       : point->kind == POINT_SEQ    ? past->seq <= point->number
                                                     : past->time_ms <= point->time_ms;
        if (reached) {
            found.revision = number;
        }
    }
    if (found.revision == 0) {
        return found;
    }
    found.kept = history->past[found.revision - 1].kept;
    for (uint64_t number = 1; number <= history->count && !found.kept; number++) {
        if (history->past[number - 1].kept && number < found.revision) {
            found.before = number;
        } else if (history->past[number - 1].kept && found.after == 0) {
            found.after = number;
        }
    }
    return found;
}

static bool as_of_equal(const struct ng_as_of *a, const struct ng_as_of *b)
{
    return a->revision == b->revision && a->kept == b->kept && a->before == b->before &&
           a->after == b->after;
}

static void expect_point(const struct history *history, const struct point *point)
{
    struct call *call = new_call();
    struct ng_key key = key_of(history->id);
    struct ng_as_of want = oracle(history, point);
    struct ng_as_of found = {.size = sizeof(found)};
    int rc = as_of_find(call, &key, "at", point, &found);
    if (rc != NG_OK || !as_of_equal(&found, &want)) {
        fail_msg("%s at %d %llu %lld: %d: revision %llu, kept %d, %llu to %llu, not revision "
                 "%llu, kept %d, %llu to %llu",
                 history->id, (int)point->kind, (unsigned long long)point->number,
                 (long long)point->time_ms, rc, (unsigned long long)found.revision, found.kept,
                 (unsigned long long)found.before, (unsigned long long)found.after,
                 (unsigned long long)want.revision, want.kept, (unsigned long long)want.before,
                 (unsigned long long)want.after);
    }
    call_unref(call);
}

/* Each revision, each number, each time and those next to it. */
static void expect_all(const struct history *history)
{
    struct point point = {.kind = POINT_REVISION};
    for (point.number = 1; point.number <= history->count; point.number++) {
        expect_point(history, &point);
    }
    point.kind = POINT_SEQ;
    for (point.number = 0; point.number <= rig.last_seq + 2; point.number++) {
        expect_point(history, &point);
    }
    point = (struct point){.kind = POINT_TIME};
    for (size_t i = 0; i < DOCS; i++) {
        for (uint64_t number = 0; number < rig.docs[i].count; number++) {
            for (int64_t ms = -1; ms <= 1; ms++) {
                point.time_ms = rig.docs[i].past[number].time_ms + ms;
                expect_point(history, &point);
            }
        }
    }
    static const int64_t ends[] = {INT64_MIN, 0, INT64_MAX};
    for (size_t i = 0; i < NG_COUNT(ends); i++) {
        point.time_ms = ends[i];
        expect_point(history, &point);
    }
}

static void thin(void)
{
    struct call *call = new_call();
    store_set_keep(store(), KEEP_DAYS * TEST_CLOCK_DAY_MS); /* due now */
    assert_int_equal(store_maintain(store(), call), NG_OK);
    call_unref(call);
}

static bool pin_some(void *user, const struct ng_key *key, uint64_t revision)
{
    (void)user;
    (void)key;
    return revision % 11 == 3;
}

static void expect_histories(void)
{
    for (int i = 0; i < STEPS; i++) {
        write_random();
    }
    assert_int_equal(read_histories(), 0);
    for (size_t i = 0; i < DOCS; i++) {
        expect_all(&rig.docs[i]);
    }
    thin(); /* only what is old */
    size_t some = read_histories();
    assert_true(some > STEPS / 4 && some < STEPS * 3 / 4);
    for (size_t i = 0; i < DOCS; i++) {
        expect_all(&rig.docs[i]);
    }
    test_clock_pass(60 * TEST_CLOCK_DAY_MS);
    thin();
    assert_true(read_histories() > some);
    for (size_t i = 0; i < DOCS; i++) {
        expect_all(&rig.docs[i]);
    }
}

static void declare_all(void)
{
    struct call *call = new_call();
    for (size_t i = 0; i < NG_COUNT(collections); i++) {
        assert_int_equal(store_declare(store(), call, &collections[i]), NG_OK);
    }
    call_unref(call);
}

static void test_every_point(void **state)
{
    (void)state;
    expect_histories();
    harness_reopen(&rig.harness);
    declare_all();
    assert_true(read_histories() > 0);
    expect_all(&rig.docs[0]);
}

static void test_every_point_with_pins(void **state)
{
    (void)state;
    store_pin_revisions(store(), &(struct store_pinner){.pinned = pin_some});
    expect_histories();
}

/* ---- cases ---- */

static struct ng_as_of found_at(const char *id, enum point_kind kind, uint64_t number,
                                int64_t time_ms)
{
    struct call *call = new_call();
    struct ng_key key = key_of(id);
    struct ng_as_of found = {.size = sizeof(found)};
    const struct point point = {kind, number, time_ms};
    assert_int_equal(as_of_find(call, &key, "at", &point, &found), NG_OK);
    call_unref(call);
    return found;
}

static void expect_failure(const char *id, const struct point *point, const char *message)
{
    struct call *call = new_call();
    struct ng_key key = key_of(id);
    struct ng_as_of found = {.size = sizeof(found), .revision = 77};
    assert_int_equal(as_of_find(call, &key, "from", point, &found), NG_ENOTFOUND);
    assert_string_equal(call->staged.message.data, message);
    assert_int_equal(found.revision, 77);
    call_unref(call);
}

/* A deletion is a revision, too: who reads it sees a tombstone. */
static void test_created_and_deleted(void **state)
{
    struct ng_key key = key_of("doc 0");
    (void)state;
    write_beside("doc 0");
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    write_doc(&key, "one\n");
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    write_doc(&key, "-");
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    assert_int_equal(read_histories(), 0);
    const struct past *past = rig.docs[0].past;
    assert_int_equal(found_at("doc 0", POINT_SEQ, past[0].seq - 1, 0).revision, 0);
    assert_false(found_at("doc 0", POINT_SEQ, past[0].seq - 1, 0).kept);
    assert_int_equal(found_at("doc 0", POINT_TIME, 0, past[0].time_ms - 1).revision, 0);
    assert_int_equal(found_at("doc 0", POINT_TIME, 0, past[0].time_ms).revision, 1);
    assert_int_equal(found_at("doc 0", POINT_SEQ, past[0].seq, 0).revision, 1);
    assert_int_equal(found_at("doc 0", POINT_TIME, 0, past[1].time_ms - 1).revision, 1);
    assert_int_equal(found_at("doc 0", POINT_SEQ, past[1].seq, 0).revision, 2);
    struct ng_as_of now = found_at("doc 0", POINT_TIME, 0, clock_unix_ms());
    assert_int_equal(now.revision, 2);
    assert_true(now.kept);
    assert_int_equal(now.before, 0);
    assert_int_equal(now.after, 0);
    assert_int_equal(found_at("doc 0", POINT_REVISION, 1, 0).revision, 1);
    expect_failure("doc 0", &(struct point){POINT_REVISION, 3, 0},
                   "there is no revision 3 (`from`): the newest one is 2");
    expect_failure("doc 0", &(struct point){POINT_REVISION, 0, 0},
                   "there is no revision 0 (`from`): the newest one is 2");
    expect_failure("doc 0", &(struct point){POINT_REVISION, UINT64_MAX, 0},
                   "there is no revision 18446744073709551615 (`from`): the newest one is 2");
    expect_failure("nothing", &(struct point){POINT_TIME, 0, 0}, NOTHING);
    expect_failure("nothing", &(struct point){POINT_REVISION, 1, 0}, NOTHING);
}

/* Of a document with one revision a day none is thinned. */
static void test_one_a_day(void **state)
{
    struct ng_key key = key_of("doc 1");
    (void)state;
    for (int i = 0; i < 40; i++) {
        test_clock_begin_day();
        write_doc(&key, "line\n");
    }
    test_clock_begin_day();
    thin();
    assert_int_equal(read_histories(), 0);
    expect_all(&rig.docs[1]);
}

/* Between the first revision and the last one of the day all are thinned: the nearest kept are
 * these two, at each point between. */
static void test_one_of_many(void **state)
{
    struct ng_key key = key_of("doc 2");
    (void)state;
    test_clock_begin_day();
    for (int i = 0; i < 40; i++) {
        write_doc(&key, i % 10 == 7 ? "-" : "line\n");
        test_clock_pass(i % 2); /* two of the same time */
    }
    test_clock_pass(2 * KEEP_DAYS * TEST_CLOCK_DAY_MS);
    write_doc(&key, "line\n");
    thin();
    assert_int_equal(read_histories(), 38);
    struct ng_as_of found = found_at("doc 2", POINT_SEQ, rig.docs[2].past[20].seq, 0);
    assert_int_equal(found.revision, 21);
    assert_false(found.kept);
    assert_int_equal(found.before, 1);
    assert_int_equal(found.after, 40);
    expect_all(&rig.docs[2]);
}

/* More changes of others than one walk looks at: each point has its revision all the same. */
static void test_many_between(void **state)
{
    struct ng_key key = key_of("doc 3");
    (void)state;
    test_clock_begin_day();
    write_doc(&key, "one\n");
    write_many(TRAIL_LOOKS_MAX + NG_CHANGES_MAX);
    for (int i = 0; i < 4; i++) {
        write_doc(&key, "more\n");
    }
    test_clock_pass(2 * KEEP_DAYS * TEST_CLOCK_DAY_MS);
    write_doc(&key, "last\n");
    thin();
    assert_int_equal(read_histories(), 3);
    const struct past *past = rig.docs[3].past;
    struct ng_as_of found = found_at("doc 3", POINT_SEQ, past[0].seq + TRAIL_LOOKS_MAX - 1, 0);
    assert_true(as_of_equal(&found, &(struct ng_as_of){.revision = 1, .kept = true}));
    found = found_at("doc 3", POINT_SEQ, past[1].seq - 1, 0);
    assert_true(as_of_equal(&found, &(struct ng_as_of){.revision = 1, .kept = true}));
    for (uint64_t revision = 2; revision < 5; revision++) {
        const struct ng_as_of wanted = {.revision = revision, .before = 1, .after = 5};
        found = found_at("doc 3", POINT_SEQ, past[revision - 1].seq, 0);
        assert_true(as_of_equal(&found, &wanted));
    }
    assert_int_equal(found_at("doc 3", POINT_SEQ, past[4].seq, 0).revision, 5);
    assert_true(found_at("doc 3", POINT_REVISION, 1, 0).kept);
}

/* ---- */

static int setup_with(const char *documents)
{
    const char *const sets[] = {"plugins=", documents, NULL};
    test_clock_reset();
    test_clock_begin_day();
    harness_open(&rig.harness, sets);
    declare_all();
    for (size_t i = 0; i < DOCS; i++) {
        (void)snprintf(rig.docs[i].id, sizeof(rig.docs[i].id), "doc %zu", i);
    }
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_with("documents=memory");
}

static int setup_sqlite(void **state)
{
    (void)state;
    return setup_with("documents=sqlite");
}

static int setup_without(void **state)
{
    (void)state;
    int rc = setup_with("documents=sqlite");
    harness_documents(&rig.harness)->revision_at = NULL;
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&rig.harness);
    test_clock_reset();
    return 0;
}

static int seed(void **state)
{
    const char *wanted = getenv("NOTEGATE_TEST_SEED");
    (void)state;
    rig.seed = wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10);
    print_message("NOTEGATE_TEST_SEED=%u\n", rig.seed);
    return 0;
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define TEST_SQLITE(test) cmocka_unit_test_setup_teardown(test, setup_sqlite, teardown)
#define TEST_WITHOUT(test) cmocka_unit_test_setup_teardown(test, setup_without, teardown)

int main(void)
{
    const struct CMUnitTest with[] = {
        TEST_SQLITE(test_every_point),  TEST(test_every_point_with_pins),
        TEST(test_created_and_deleted), TEST(test_one_a_day),
        TEST(test_one_of_many),         TEST(test_many_between),
    };
    const struct CMUnitTest without[] = {
        TEST_WITHOUT(test_every_point),         TEST_WITHOUT(test_every_point_with_pins),
        TEST_WITHOUT(test_created_and_deleted), TEST_WITHOUT(test_one_a_day),
        TEST_WITHOUT(test_one_of_many),         TEST_WITHOUT(test_many_between),
    };
    int failed = cmocka_run_group_tests_name("revision_at", with, seed, NULL);
    return failed + cmocka_run_group_tests_name("history", without, seed, NULL);
}
