/* SPDX-License-Identifier: MIT */
/* test_pool.c - lanes take turns; one lane, and one group, has at most half of the workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "core/call/metrics.h"
#include "core/call/pool.h"

#define QUEUE 20
#define ORDER_MAX 64
#define POLITE 20

/* Tasks wait at the gate, come through in the order in which they arrived, and record their
 * order. */
struct turnstile {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned waiting, allowed;
    unsigned next_ticket, serving;
    char order[ORDER_MAX];
    size_t passed;
};

struct job {
    struct task task;
    struct turnstile *turnstile;
    char who;
};

static void job_run(struct task *task)
{
    struct job *job = (struct job *)(void *)task;
    struct turnstile *turnstile = job->turnstile;
    pthread_mutex_lock(&turnstile->lock);
    turnstile->waiting++;
    unsigned ticket = turnstile->next_ticket++;
    pthread_cond_broadcast(&turnstile->moved);
    while (turnstile->allowed == 0 || turnstile->serving != ticket) {
        pthread_cond_wait(&turnstile->moved, &turnstile->lock);
    }
    turnstile->allowed--;
    turnstile->serving++;
    turnstile->waiting--;
    turnstile->order[turnstile->passed++] = job->who;
    pthread_cond_broadcast(&turnstile->moved);
    pthread_mutex_unlock(&turnstile->lock);
    free(job);
}

static int submit_of(struct pool *pool, struct turnstile *turnstile, const char *who,
                     struct pool_group *group)
{
    struct job *job = calloc(1, sizeof(*job));
    assert_non_null(job);
    job->task.run = job_run;
    job->turnstile = turnstile;
    job->who = who[0];
    job->task.group = group;
    int rc = pool_submit(pool, ng_str_of(who), &job->task);
    if (rc != NG_OK) {
        free(job);
    }
    return rc;
}

static int submit(struct pool *pool, struct turnstile *turnstile, const char *who)
{
    return submit_of(pool, turnstile, who, NULL);
}

static void await_waiting(struct turnstile *turnstile, unsigned count)
{
    pthread_mutex_lock(&turnstile->lock);
    while (turnstile->waiting != count) {
        pthread_cond_wait(&turnstile->moved, &turnstile->lock);
    }
    pthread_mutex_unlock(&turnstile->lock);
}

/* Lets so many through, one at a time, each when `at_gate` wait (the others are on their way).
 */
static void let(struct turnstile *turnstile, unsigned count, unsigned at_gate)
{
    pthread_mutex_lock(&turnstile->lock);
    for (unsigned i = 0; i < count; i++) {
        while (turnstile->waiting < at_gate) {
            pthread_cond_wait(&turnstile->moved, &turnstile->lock);
        }
        size_t before = turnstile->passed;
        turnstile->allowed = 1;
        pthread_cond_broadcast(&turnstile->moved);
        while (turnstile->passed == before) {
            pthread_cond_wait(&turnstile->moved, &turnstile->lock);
        }
    }
    pthread_mutex_unlock(&turnstile->lock);
}

static void test_one_lane_has_half(void **state)
{
    (void)state;
    struct turnstile turnstile = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                  .moved = PTHREAD_COND_INITIALIZER};
    struct metrics *metrics = metrics_new();
    struct pool *pool = NULL;
    assert_int_equal(pool_new(2, QUEUE, metrics, &pool), NG_OK);
    assert_int_equal(submit(pool, &turnstile, "flood"), NG_OK);
    await_waiting(&turnstile, 1);
    for (int i = 0; i < QUEUE / 2; i++) {
        assert_int_equal(submit(pool, &turnstile, "flood"), NG_OK);
    }
    /* Half of the workers and half of the queue: the next is told so, and others come in. */
    assert_int_equal(submit(pool, &turnstile, "flood"), NG_ERATE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(submit(pool, &turnstile, "polite"), NG_OK);
    }
    let(&turnstile, 6, 2);
    /* The two lanes took turns. */
    size_t polite = 0;
    for (size_t i = 0; i < 6; i++) {
        polite += turnstile.order[i] == 'p';
    }
    assert_int_equal(polite, 3);
    let(&turnstile, 1 + QUEUE / 2 + 3 - 6, 1);
    /* A queue made smaller keeps what waits, and admits by the new bound. */
    pool_set_queue(pool, 1);
    assert_int_equal(submit(pool, &turnstile, "flood"), NG_OK);
    await_waiting(&turnstile, 1);
    assert_int_equal(submit(pool, &turnstile, "flood"), NG_OK);
    assert_int_equal(submit(pool, &turnstile, "polite"), NG_EBUSY);
    let(&turnstile, 2, 1);
    pool_stop(pool);
    assert_int_equal(submit(pool, &turnstile, "late"), NG_EBUSY);
    pool_free(pool);
    metrics_free(metrics);
}

/* Two agents block a plugin's half of the workers; tasks of others pass them by, in the same
 * lanes and resumed, and the plugin's own go on when one of its workers is free. */
static void test_one_group_has_half(void **state)
{
    (void)state;
    struct turnstile blocked = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                .moved = PTHREAD_COND_INITIALIZER};
    struct turnstile others = {.lock = PTHREAD_MUTEX_INITIALIZER,
                               .moved = PTHREAD_COND_INITIALIZER};
    struct metrics *metrics = metrics_new();
    struct pool_group group = {0};
    struct pool *pool = NULL;
    assert_int_equal(pool_new(4, QUEUE, metrics, &pool), NG_OK);
    assert_int_equal(submit_of(pool, &blocked, "a", &group), NG_OK);
    assert_int_equal(submit_of(pool, &blocked, "b", &group), NG_OK);
    await_waiting(&blocked, 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(submit_of(pool, &blocked, i % 2 == 0 ? "a" : "b", &group), NG_OK);
    }
    struct job *resumed = calloc(1, sizeof(*resumed));
    assert_non_null(resumed);
    *resumed = (struct job){{.run = job_run, .group = &group}, &blocked, 'r'};
    pool_resume(pool, &resumed->task);
    assert_int_equal(submit(pool, &others, "a"), NG_OK);
    assert_int_equal(submit(pool, &others, "c"), NG_OK);
    await_waiting(&others, 2);
    await_waiting(&blocked, 2);
    let(&others, 2, 1);
    let(&blocked, 6, 1);
    pool_free(pool);
    assert_int_equal(group.running, 0);
    metrics_free(metrics);
}

/* One agent always has its half of the queue full of slow tasks of one plugin. While a worker
 * is left, another agent's tasks wait for none of these. */
static void test_a_flood_has_not_all_workers(void **state)
{
    (void)state;
    struct turnstile slow = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .moved = PTHREAD_COND_INITIALIZER};
    struct turnstile quick = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .moved = PTHREAD_COND_INITIALIZER};
    struct metrics *metrics = metrics_new();
    struct pool_group group = {0};
    struct pool *pool = NULL;
    assert_int_equal(pool_new(4, QUEUE, metrics, &pool), NG_OK);
    assert_int_equal(submit_of(pool, &slow, "flood", &group), NG_OK);
    await_waiting(&slow, 1);
    for (int i = 0; i < QUEUE / 2; i++) {
        assert_int_equal(submit_of(pool, &slow, "flood", &group), NG_OK);
    }
    for (int i = 0; i < POLITE; i++) {
        assert_int_equal(submit_of(pool, &slow, "flood", &group), NG_ERATE);
        assert_int_equal(submit_of(pool, &quick, "polite", &group), NG_OK);
        let(&quick, 1, 1);
        assert_int_equal(submit(pool, &quick, "polite"), NG_OK);
        let(&quick, 1, 1);
    }
    assert_int_equal(slow.passed, 0);
    assert_int_equal(quick.passed, 2 * POLITE);
    let(&slow, 1 + QUEUE / 2, 1);
    pool_free(pool);
    metrics_free(metrics);
}

/* The same where there is one worker: another agent's tasks wait for the one that it runs. */
static void test_a_flood_takes_turns(void **state)
{
    (void)state;
    struct turnstile turnstile = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                  .moved = PTHREAD_COND_INITIALIZER};
    struct metrics *metrics = metrics_new();
    struct pool *pool = NULL;
    assert_int_equal(pool_new(1, QUEUE, metrics, &pool), NG_OK);
    assert_int_equal(submit(pool, &turnstile, "flood"), NG_OK);
    for (size_t i = 0; i < POLITE; i++) {
        await_waiting(&turnstile, 1);
        while (submit(pool, &turnstile, "flood") == NG_OK) {
        }
        assert_int_equal(submit(pool, &turnstile, "polite"), NG_OK);
        let(&turnstile, 2, 1);
        assert_memory_equal(turnstile.order + 2 * i, "fp", 2);
    }
    let(&turnstile, QUEUE / 2, 1);
    pool_free(pool);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_lane_has_half),
        cmocka_unit_test(test_one_group_has_half),
        cmocka_unit_test(test_a_flood_has_not_all_workers),
        cmocka_unit_test(test_a_flood_takes_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
