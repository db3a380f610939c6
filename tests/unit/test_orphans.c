/* SPDX-License-Identifier: MIT */
/* test_orphans.c - reaping programs that lost their parents, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "orphans.h"

/* More than one page of a list of children. */
#define CROWD 900
#define WAIT_STEPS 60000
#define STATUS_OWN 3
#define STATUS_THREAD 5

static size_t children(pid_t thread, bool ended_only)
{
    pid_t pids[ORPHANS_MAX];
    size_t count = 0;
    size_t found = 0;
    assert_true(process_children(getpid(), thread, pids, ORPHANS_MAX, &count));
    for (size_t i = 0; i < count; i++) {
        struct process process;
        found +=
            process_read(pids[i], &process) == NG_OK && (!ended_only || process.state == 'Z');
    }
    return found;
}

static void wait_ended(pid_t thread, size_t count)
{
    const struct timespec step = {0, 1000000};
    for (int i = 0; i < WAIT_STEPS && children(thread, true) < count; i++) {
        (void)nanosleep(&step, NULL);
    }
    assert_int_equal(children(thread, true), count);
}

static pid_t start(int status)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(status);
    }
    assert_true(pid > 0);
    return pid;
}

/* Each ends when `hold` has no writer, thus when this process closes its end. */
static void make_orphans(size_t count, int hold, int writer)
{
    pid_t parent = fork();
    if (parent == 0) {
        char byte;
        (void)close(writer);
        for (size_t i = 0; i < count; i++) {
            if (fork() == 0) {
                _exit(read(hold, &byte, 1) == 0 ? 0 : 1);
            }
        }
        _exit(0);
    }
    assert_true(parent > 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
}

struct worker {
    pthread_t thread;
    pthread_barrier_t begun, go;
    pid_t thread_id, pid;
    int status;
};

static void *work(void *user)
{
    struct worker *worker = user;
    worker->thread_id = gettid();
    worker->pid = start(STATUS_THREAD);
    (void)pthread_barrier_wait(&worker->begun);
    (void)pthread_barrier_wait(&worker->go);
    if (waitpid(worker->pid, &worker->status, 0) != worker->pid) {
        worker->status = -1;
    }
    return NULL;
}

static void test_only_orphans(void **state)
{
    struct orphans *orphans = calloc(1, sizeof(*orphans));
    struct worker worker = {.status = 0};
    int hold[2];
    int status = 0;
    (void)state;
    assert_non_null(orphans);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(hold), 0);

    orphans_begin(orphans);
    pid_t own = start(STATUS_OWN);
    orphans_end(orphans);

    assert_int_equal(pthread_barrier_init(&worker.begun, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&worker.go, NULL, 2), 0);
    assert_int_equal(pthread_create(&worker.thread, NULL, work, &worker), 0);
    (void)pthread_barrier_wait(&worker.begun);
    wait_ended(worker.thread_id, 1);

    make_orphans(CROWD, hold[0], hold[1]);
    assert_int_equal(children(getpid(), false), CROWD + 1);
    for (int i = 0; i < 3; i++) { /* they run */
        assert_int_equal(orphans_reap(orphans), 0);
    }
    assert_int_equal(children(getpid(), false), CROWD + 1);
    (void)close(hold[1]);
    wait_ended(getpid(), CROWD + 1);

    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(orphans_reap(orphans), CROWD);
    assert_int_equal(orphans_reap(orphans), 0);

    /* Those who wait for theirs get how they ended. */
    assert_int_equal(waitpid(own, &status, 0), own);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS_OWN);
    (void)pthread_barrier_wait(&worker.go);
    assert_int_equal(pthread_join(worker.thread, NULL), 0);
    assert_true(WIFEXITED(worker.status));
    assert_int_equal(WEXITSTATUS(worker.status), STATUS_THREAD);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);

    /* The number of one that was waited for may be another's by now. */
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(orphans->own.count, 0);
    (void)pthread_barrier_destroy(&worker.begun);
    (void)pthread_barrier_destroy(&worker.go);
    (void)close(hold[0]);
    free(orphans);
}

/* Children from before, as of a program that became this one, are nobody's to wait for. */
static void test_children_from_before(void **state)
{
    struct orphans *orphans = calloc(1, sizeof(*orphans));
    (void)state;
    assert_non_null(orphans);
    (void)start(0);
    orphans_begin(orphans);
    orphans_end(orphans);
    wait_ended(getpid(), 1);
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(orphans_reap(orphans), 1);
    free(orphans);
}

/* More than can be noted: then nothing is taken from those who wait. */
static void test_too_many_of_its_own(void **state)
{
    struct orphans *orphans = calloc(1, sizeof(*orphans));
    (void)state;
    assert_non_null(orphans);
    orphans->own.count = ORPHANS_MAX;
    orphans_begin(orphans);
    pid_t own = start(0);
    orphans_end(orphans);
    assert_true(orphans->off);
    wait_ended(getpid(), 1);
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(waitpid(own, NULL, 0), own);
    free(orphans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_orphans),
        cmocka_unit_test(test_children_from_before),
        cmocka_unit_test(test_too_many_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
