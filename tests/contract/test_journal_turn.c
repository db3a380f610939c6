/* SPDX-License-Identifier: MIT */
/* test_journal_turn.c - calls that wait while the journal in documents is dumped or restored.
 */
#include "journal_contract.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/journal/journal_delivery.h"

#define WAIT_NS INT64_C(60000000000)
#define SHORT_NS INT64_C(200000000)
#define EMPTY_DUMP                                                                             \
    "{\"format\":\"notegate-journal-1\",\"days\":[],\"references\":[],\"memories\":[],"        \
    "\"summary\":null}"

static const char *const sets[] = {"plugins=notebook", "documents=sqlite", NULL};

struct bench {
    struct harness harness;
    struct journal_front *front;
    const struct ng_journal *journal;
    void *db;
    struct call *holder; /* has the turn, as a long dump has */
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    harness_open(&bench->harness, sets);
    bench->front = bench->harness.gateway->journal;
    bench->journal = journal_vtable(bench->front, &bench->db);
    bench->holder = harness_new_call(&bench->harness);
    assert_int_equal(journal_turn_take(bench->front, bench->holder), NG_OK);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    call_unref(bench->holder);
    harness_close(&bench->harness);
    free(bench);
    return 0;
}

/* Operations that need a turn; each returns the code of its wait. */
static int do_dump(struct bench *bench, struct call *call)
{
    struct ng_str json = {NULL, 0};
    return bench->journal->dump(bench->db, &call->pub, ng_str_of("team"), &json);
}

static int do_restore(struct bench *bench, struct call *call)
{
    return bench->journal->restore(bench->db, &call->pub, ng_str_of("team"),
                                   ng_str_of(EMPTY_DUMP));
}

static int do_restore_over(struct bench *bench, struct call *call)
{
    return bench->journal->restore_over(bench->db, &call->pub, ng_str_of("team"),
                                        ng_str_of(EMPTY_DUMP), ng_str_of(EMPTY_DUMP));
}

static int do_restore_aside(struct bench *bench, struct call *call)
{
    return bench->journal->restore_aside(bench->db, &call->pub, ng_str_of("team"),
                                         ng_str_of("k1"), ng_str_of(EMPTY_DUMP));
}

static int do_delete(struct bench *bench, struct call *call)
{
    int rc = bench->journal->checkpoint_delete(bench->db, &call->pub, ng_str_of("team"),
                                               ng_str_of("none"));
    return rc == NG_ENOTFOUND ? NG_OK : rc;
}

static int (*const works[])(struct bench *bench, struct call *call) = {
    do_dump, do_restore, do_restore_over, do_restore_aside, do_delete,
};

static struct call *new_call(struct bench *bench, int64_t time_ns)
{
    struct call *call = harness_new_call(&bench->harness);
    call->may_block = true;
    call->deadline_ns = clock_monotonic_ns() + time_ns;
    return call;
}

static void test_deadline(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < NG_COUNT(works); i++) {
        struct call *call = new_call(bench, SHORT_NS);
        assert_int_equal(works[i](bench, call), NG_ETIMEOUT);
        call_unref(call);
    }
    journal_turn_release(bench->front);
    for (size_t i = 0; i < NG_COUNT(works); i++) {
        struct call *call = new_call(bench, WAIT_NS);
        assert_int_equal(works[i](bench, call), NG_OK);
        call_unref(call);
    }
}

struct waiting {
    struct bench *bench;
    struct call *call;
    int rc;
};

static void *run_dump(void *user)
{
    struct waiting *waiting = user;
    waiting->rc = do_dump(waiting->bench, waiting->call);
    return NULL;
}

/* A waiting operation blocks no other one: entries arrive, a summary is stored. */
static void test_waits_without_the_rwlock(void **state)
{
    struct bench *bench = *state;
    struct waiting waiting = {.bench = bench, .call = new_call(bench, WAIT_NS)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_dump, &waiting), 0);
    struct call *call = NULL;
    /* However far it has come. */
    for (int64_t until = clock_monotonic_ns() + 2 * SHORT_NS; clock_monotonic_ns() < until;) {
        call = new_call(bench, SHORT_NS);
        assert_int_equal(bench->journal->set_summary(bench->db, &call->pub, ng_str_of("team"),
                                                     ng_str_of("text")),
                         NG_OK);
        call_unref(call);
    }
    call_cancel(waiting.call);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiting.rc, NG_ECANCELLED);
    call_unref(waiting.call);
    journal_turn_release(bench->front);
    call = new_call(bench, WAIT_NS);
    assert_int_equal(do_dump(bench, call), NG_OK);
    call_unref(call);
}

/* One that does not get the rwlock gives its turn back. */
static void test_turn_is_given_back(void **state)
{
    struct bench *bench = *state;
    journal_turn_release(bench->front);
    assert_int_equal(journal_rwlock_lock(bench->front, bench->holder, false), NG_OK);
    struct call *call = new_call(bench, SHORT_NS);
    assert_int_equal(do_dump(bench, call), NG_ETIMEOUT);
    call_unref(call);
    journal_rwlock_unlock(bench->front, false);
    for (size_t i = 0; i < NG_COUNT(works); i++) {
        call = new_call(bench, WAIT_NS);
        assert_int_equal(works[i](bench, call), NG_OK);
        call_unref(call);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_deadline),
        TEST(test_waits_without_the_rwlock),
        TEST(test_turn_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
