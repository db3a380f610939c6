/* SPDX-License-Identifier: MIT */
/* test_pool.c - lanes take turns, and one has at most half of the workers and of the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "metrics.h"
#include "pool.h"

#define QUEUE 20
#define ORDER_MAX 64

/* Tasks wait at the gate one after the other, and write down who came through. */
struct turnstile {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned waiting, allowed;
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
    pthread_cond_broadcast(&turnstile->moved);
    while (turnstile->allowed == 0) {
        pthread_cond_wait(&turnstile->moved, &turnstile->lock);
    }
    turnstile->allowed--;
    turnstile->waiting--;
    turnstile->order[turnstile->passed++] = job->who;
    pthread_cond_broadcast(&turnstile->moved);
    pthread_mutex_unlock(&turnstile->lock);
    free(job);
}

static int submit(struct pool *pool, struct turnstile *turnstile, const char *who)
{
    struct job *job = calloc(1, sizeof(*job));
    assert_non_null(job);
    job->task.run = job_run;
    job->turnstile = turnstile;
    job->who = who[0];
    int rc = pool_submit(pool, ng_str_of(who), &job->task);
    if (rc != NG_OK) {
        free(job);
    }
    return rc;
}

static void await_waiting(struct turnstile *turnstile, unsigned count)
{
    pthread_mutex_lock(&turnstile->lock);
    while (turnstile->waiting != count) {
        pthread_cond_wait(&turnstile->moved, &turnstile->lock);
    }
    pthread_mutex_unlock(&turnstile->lock);
}

/* Lets so many through, one at a time. */
static void let(struct turnstile *turnstile, unsigned count)
{
    pthread_mutex_lock(&turnstile->lock);
    for (unsigned i = 0; i < count; i++) {
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
    await_waiting(&turnstile, 2);
    let(&turnstile, 6);
    /* Whoever came through: of the first six not more than half and one were the flood's. */
    size_t polite = 0;
    for (size_t i = 0; i < 6; i++) {
        polite += turnstile.order[i] == 'p';
    }
    assert_true(polite >= 2);
    let(&turnstile, 1 + QUEUE / 2 + 3 - 6);
    /* A queue made smaller keeps what waits, and admits by the new bound. */
    pool_set_queue(pool, 1);
    assert_int_equal(submit(pool, &turnstile, "flood"), NG_OK);
    await_waiting(&turnstile, 1);
    assert_int_equal(submit(pool, &turnstile, "flood"), NG_OK);
    assert_int_equal(submit(pool, &turnstile, "polite"), NG_EBUSY);
    let(&turnstile, 2);
    pool_stop(pool);
    assert_int_equal(submit(pool, &turnstile, "late"), NG_EBUSY);
    pool_free(pool);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_lane_has_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
