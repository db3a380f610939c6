/* SPDX-License-Identifier: MIT */
/* test_journal_rwlock.c - a journal that hangs: calls that wait for it, and calls that must not
 * wait. */
#include "journal_contract.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/journal/journal.h"
#include "core/store/store.h"

#define WAIT_NS INT64_C(60000000000)
#define SETTERS 6

static const char *const sets[] = {"plugins=notebook", NULL};

static const struct ng_collection papers = {
    .name = "papers",
    .flags = NG_COLLECTION_REFERENCED,
    .field_size = sizeof(struct ng_field),
};

/* A journal whose functions do not return before they may. */
struct hanging {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool deliveries_hang, summaries_hang;
    int delivering, setting, most_setting, dumps;
};

static void hanging_wait(struct hanging *hanging, const bool *hangs, int *count, int *most)
{
    pthread_mutex_lock(&hanging->lock);
    ++*count;
    if (most != NULL && *count > *most) {
        *most = *count;
    }
    pthread_cond_broadcast(&hanging->changed);
    while (*hangs) {
        pthread_cond_wait(&hanging->changed, &hanging->lock);
    }
    --*count;
    pthread_mutex_unlock(&hanging->lock);
}

static void hanging_set(struct hanging *hanging, bool *what, bool value)
{
    pthread_mutex_lock(&hanging->lock);
    *what = value;
    pthread_cond_broadcast(&hanging->changed);
    pthread_mutex_unlock(&hanging->lock);
}

/* Waits until as many are within. */
static void hanging_reach(struct hanging *hanging, const int *count, int want)
{
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    pthread_mutex_lock(&hanging->lock);
    while (*count < want) {
        assert_true(clock_monotonic_ns() < until);
        struct timespec at;
        (void)clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec++;
        (void)pthread_cond_timedwait(&hanging->changed, &hanging->lock, &at);
    }
    pthread_mutex_unlock(&hanging->lock);
}

static int hanging_open(struct ng_call *call, const struct ng_conf *conf, void **ret_journal)
{
    (void)call;
    /* The test hands its own state in as the configuration. */
    *ret_journal = (void *)(uintptr_t)conf;
    return NG_OK;
}

static void hanging_close(void *journal)
{
    (void)journal;
}

static int hanging_deliver(void *journal, struct ng_call *call,
                           const struct ng_entry *const *entries, size_t count)
{
    struct hanging *hanging = journal;
    (void)call;
    (void)entries;
    (void)count;
    hanging_wait(hanging, &hanging->deliveries_hang, &hanging->delivering, NULL);
    return NG_OK;
}

static int hanging_set_summary(void *journal, struct ng_call *call, struct ng_str space,
                               struct ng_str text)
{
    struct hanging *hanging = journal;
    (void)call;
    (void)space;
    (void)text;
    hanging_wait(hanging, &hanging->summaries_hang, &hanging->setting, &hanging->most_setting);
    return NG_OK;
}

static int hanging_dump(void *journal, struct ng_call *call, struct ng_str space,
                        struct ng_str *ret_json)
{
    struct hanging *hanging = journal;
    (void)call;
    (void)space;
    pthread_mutex_lock(&hanging->lock);
    assert_int_equal(hanging->delivering + hanging->setting, 0);
    hanging->dumps++;
    pthread_mutex_unlock(&hanging->lock);
    *ret_json = ng_str_of("{}");
    return NG_OK;
}

static const struct ng_journal hanging_journal = {
    .name = "hanging",
    .version = "1",
    .open = hanging_open,
    .close = hanging_close,
    .deliver = hanging_deliver,
    .set_summary = hanging_set_summary,
    .dump = hanging_dump,
};

/* ---- the bench ---- */

struct bench {
    struct harness harness;
    struct hanging hanging;
    struct journal_front *front;
    const struct ng_journal *journal;
    void *db;
};

static void open_front(struct bench *bench)
{
    struct call *call = harness_new_call(&bench->harness);
    assert_int_equal(journal_open(call, bench->harness.gateway, &hanging_journal,
                                  (const struct ng_conf *)(const void *)&bench->hanging,
                                  &bench->front),
                     NG_OK);
    bench->journal = journal_vtable(bench->front, &bench->db);
    call_unref(call);
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    harness_open(&bench->harness, sets);
    pthread_mutex_init(&bench->hanging.lock, NULL);
    pthread_cond_init(&bench->hanging.changed, NULL);
    journal_stop(bench->harness.gateway->journal);
    struct call *call = harness_new_call(&bench->harness);
    assert_int_equal(store_declare(bench->harness.gateway->store, call, &papers), NG_OK);
    call_unref(call);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    journal_stop(bench->front);
    /* The store may tell the front until it is closed. */
    harness_close(&bench->harness);
    journal_close(bench->front);
    pthread_cond_destroy(&bench->hanging.changed);
    pthread_mutex_destroy(&bench->hanging.lock);
    free(bench);
    return 0;
}

static int write_paper(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    (void)user;
    return store_draft_json(next, ng_str_of("{\"a\":1}"));
}

static void change_paper(struct bench *bench)
{
    struct call *call = harness_new_call(&bench->harness);
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("papers"), ng_str_of("team"), ng_str_of("p1")},
        .fn = write_paper,
    };
    assert_int_equal(store_write_wait(bench->harness.gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

static void *set_summary(void *user)
{
    struct bench *bench = user;
    struct call *call = harness_new_call(&bench->harness);
    call->may_block = true;
    assert_int_equal(bench->journal->set_summary(bench->db, &call->pub, ng_str_of("team"),
                                                 ng_str_of("text")),
                     NG_OK);
    call_unref(call);
    return NULL;
}

static void *dump(void *user)
{
    struct bench *bench = user;
    struct call *call = harness_new_call(&bench->harness);
    struct ng_str json = {NULL, 0};
    call->may_block = true;
    assert_int_equal(bench->journal->dump(bench->db, &call->pub, ng_str_of("team"), &json),
                     NG_OK);
    call_unref(call);
    return NULL;
}

/* ---- tests ---- */

/* Each agent waits for its own answer alone: not for another's, nor for the delivery's. */
static void test_nobody_queues(void **state)
{
    struct bench *bench = *state;
    pthread_t threads[SETTERS];
    open_front(bench);
    hanging_set(&bench->hanging, &bench->hanging.deliveries_hang, true);
    hanging_set(&bench->hanging, &bench->hanging.summaries_hang, true);
    change_paper(bench);
    hanging_reach(&bench->hanging, &bench->hanging.delivering, 1);
    for (int i = 0; i < SETTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, set_summary, bench), 0);
    }
    hanging_reach(&bench->hanging, &bench->hanging.most_setting, SETTERS);
    hanging_set(&bench->hanging, &bench->hanging.summaries_hang, false);
    for (int i = 0; i < SETTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    hanging_set(&bench->hanging, &bench->hanging.deliveries_hang, false);
}

/* A dump has the lock alone; a waiting call waits no longer than its own time limit. */
static void test_dump_is_alone(void **state)
{
    struct bench *bench = *state;
    pthread_t setter;
    pthread_t dumper;
    open_front(bench);
    hanging_set(&bench->hanging, &bench->hanging.summaries_hang, true);
    assert_int_equal(pthread_create(&setter, NULL, set_summary, bench), 0);
    hanging_reach(&bench->hanging, &bench->hanging.setting, 1);
    assert_int_equal(pthread_create(&dumper, NULL, dump, bench), 0);
    /* In the end the dump waits for the lock, and no other call gets it. */
    int rc = NG_OK;
    pthread_t others[SETTERS];
    int started = 0;
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (rc == NG_OK && clock_monotonic_ns() < until) {
        struct call *call = harness_new_call(&bench->harness);
        struct ng_str json = {NULL, 0};
        call->may_block = true;
        call->deadline_ns = clock_monotonic_ns() + INT64_C(200000000);
        rc = bench->journal->dump(bench->db, &call->pub, ng_str_of("team"), &json);
        call_unref(call);
    }
    assert_int_equal(rc, NG_ETIMEOUT);
    for (; started < SETTERS; started++) {
        assert_int_equal(pthread_create(&others[started], NULL, set_summary, bench), 0);
    }
    assert_int_equal(bench->hanging.dumps, 0);
    hanging_set(&bench->hanging, &bench->hanging.summaries_hang, false);
    assert_int_equal(pthread_join(setter, NULL), 0);
    assert_int_equal(pthread_join(dumper, NULL), 0);
    for (int i = 0; i < started; i++) {
        assert_int_equal(pthread_join(others[i], NULL), 0);
    }
    assert_int_equal(bench->hanging.dumps, 1);
}

/* Events from before the start are waited for, whether or not they are counted yet. */
static void test_flush_knows_what_was_before(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < 600; i++) {
        change_paper(bench);
    }
    hanging_set(&bench->hanging, &bench->hanging.deliveries_hang, true);
    open_front(bench);
    struct call *call = harness_new_call(&bench->harness);
    uint64_t backlog = 0;
    call->may_block = true;
    assert_int_equal(bench->journal->flush(bench->db, &call->pub, 1, &backlog), NG_OK);
    assert_true(backlog > 0);
    hanging_set(&bench->hanging, &bench->hanging.deliveries_hang, false);
    assert_int_equal(bench->journal->flush(bench->db, &call->pub, 60000, &backlog), NG_OK);
    assert_int_equal(backlog, 0);
    call_unref(call);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nobody_queues),
        TEST(test_dump_is_alone),
        TEST(test_flush_knows_what_was_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
