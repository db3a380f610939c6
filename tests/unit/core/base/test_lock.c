/* SPDX-License-Identifier: MIT */
/* test_lock.c - locks in their order, and out of it: a debug build ends the process. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/lock.h"

struct fixture {
    struct lock before, behind, sibling, recursive;
    struct rwlock shared;
};

static struct fixture fixture;

static int setup(void **state)
{
    (void)state;
    lock_init(&fixture.before, LOCK_QUOTA);
    lock_init(&fixture.behind, LOCK_TIMERS);
    lock_init(&fixture.sibling, LOCK_STORE_DOCUMENT);
    lock_init(&fixture.recursive, LOCK_STORE_ORDER);
    rwlock_init(&fixture.shared, LOCK_KEYS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lock_done(&fixture.before);
    lock_done(&fixture.behind);
    lock_done(&fixture.sibling);
    lock_done(&fixture.recursive);
    rwlock_done(&fixture.shared);
    return 0;
}

static void test_in_order(void **state)
{
    (void)state;
    struct lock other;
    lock_init(&other, LOCK_STORE_DOCUMENT);
    lock_take(&fixture.sibling);
    lock_take(&other);
    lock_take(&fixture.recursive);
    lock_take(&fixture.recursive);
    rwlock_read(&fixture.shared);
    lock_take(&fixture.before);
    lock_take(&fixture.behind);
    lock_release(&fixture.before); /* in any order */
    lock_release(&fixture.behind);
    rwlock_release(&fixture.shared);
    lock_release(&fixture.recursive);
    lock_release(&fixture.recursive);
    lock_release(&fixture.sibling);
    lock_release(&other);
    rwlock_write(&fixture.shared);
    rwlock_release(&fixture.shared);
    lock_done(&other);
}

static void test_wait_until(void **state)
{
    (void)state;
    pthread_cond_t cond;
    struct timespec now;
    lock_cond_init(&cond);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    lock_take(&fixture.before);
    assert_int_equal(ETIMEDOUT, lock_wait_until(&cond, &fixture.before, &now));
    lock_release(&fixture.before);
    assert_true(lock_try(&fixture.before));
    lock_release(&fixture.before);
    (void)pthread_cond_destroy(&cond);
}

#ifndef NDEBUG
static void wrong_order(void)
{
    lock_take(&fixture.behind);
    lock_take(&fixture.before);
}

static void wrong_order_of_read(void)
{
    lock_take(&fixture.before);
    rwlock_read(&fixture.shared);
}

static void twice(void)
{
    lock_take(&fixture.before);
    lock_take(&fixture.before);
}

static void wait_with_a_later_one(void)
{
    pthread_cond_t cond;
    struct timespec past = {0, 0};
    lock_cond_init(&cond);
    lock_take(&fixture.before);
    lock_take(&fixture.behind);
    (void)lock_wait_until(&cond, &fixture.before, &past);
}

static void release_of_a_free_one(void)
{
    lock_release(&fixture.before);
}

/* Runs it in a process of its own, which must abort and write these words. */
static void must_abort(void (*run)(void), const char *words)
{
    int pipe_fds[2];
    char text[256] = "";
    size_t len = 0;
    assert_int_equal(0, pipe(pipe_fds));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(pipe_fds[1], STDERR_FILENO);
        (void)close(pipe_fds[0]);
        run();
        _exit(0);
    }
    (void)close(pipe_fds[1]);
    for (ssize_t got = 1; got > 0 && len < sizeof(text) - 1; len += (size_t)got) {
        got = read(pipe_fds[0], text + len, sizeof(text) - 1 - len);
        if (got < 0) {
            break;
        }
    }
    (void)close(pipe_fds[0]);
    int status = 0;
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(SIGABRT, WTERMSIG(status));
    if (strstr(text, words) == NULL) {
        fail_msg("got: %s", text);
    }
}

static void test_wrong_orders_abort(void **state)
{
    (void)state;
    must_abort(wrong_order, "QUOTA is taken by a thread that holds TIMERS");
    must_abort(wrong_order_of_read, "KEYS is taken by a thread that holds QUOTA");
    must_abort(twice, "QUOTA is taken by a thread that holds QUOTA");
    must_abort(wait_with_a_later_one, "QUOTA is taken by a thread that holds TIMERS");
    must_abort(release_of_a_free_one, "QUOTA is released by a thread that does not hold it");
}
#else
static void test_wrong_orders_abort(void **state)
{
    (void)state;
    skip(); /* a release build has no ranks */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_wait_until),
        cmocka_unit_test(test_wrong_orders_abort),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
