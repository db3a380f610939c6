/* SPDX-License-Identifier: MIT */
/* test_orphans.c - reaping programs that lost their parents, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/base/orphans.h"

/* More than one page of a list of children. */
#define CROWD 900
#define WAIT_STEPS 60000
#define STATUS_OWN 3
#define STATUS_THREAD 5

/* In the place of the C library's open(): /proc/PID/stat of `pid` fails, or is read after it
 * was waited for. The label, because some build flags make the name open64. */
static struct {
    pid_t pid;
    bool wait;
} look;
int failing_open(const char *path, int flags, ...) __asm__("open");

int failing_open(const char *path, int flags, ...)
{
    char stat[64];
    (void)snprintf(stat, sizeof(stat), "/proc/%ld/stat", (long)look.pid);
    if (look.pid != 0 && strcmp(path, stat) == 0) {
        if (!look.wait) {
            errno = EMFILE;
            return -1;
        }
        (void)waitpid(look.pid, NULL, 0);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static size_t children(pid_t thread, bool ended_only)
{
    pid_t pids[ORPHANS_MAX];
    size_t count = 0;
    size_t found = 0;
    assert_true(process_children(getpid(), thread, pids, ORPHANS_MAX, &count));
    for (size_t i = 0; i < count; i++) {
        struct process process;
        siginfo_t info = {0};
        /* A zombie with other threads, as a sanitizer's, cannot be waited for until they end.
         */
        bool ended = waitid(P_PID, (id_t)pids[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                     info.si_pid == pids[i];
        found += process_read(pids[i], &process) == NG_OK &&
                 (!ended_only || (ended && process.state == 'Z'));
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

    /* Threads that wait for their own children get the exit status. */
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

/* No thread waits for children from before exec. */
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

/* The clock of processes' start times is past that of `pid`. */
static void wait_older(pid_t pid)
{
    const struct timespec step = {0, 1000000};
    struct process process;
    struct timespec now;
    uint64_t ticks = 0;
    assert_int_equal(process_read(pid, &process), NG_OK);
    do {
        (void)nanosleep(&step, NULL);
        (void)clock_gettime(CLOCK_BOOTTIME, &now);
        ticks = (uint64_t)now.tv_sec * (uint64_t)sysconf(_SC_CLK_TCK) +
                (uint64_t)now.tv_nsec * (uint64_t)sysconf(_SC_CLK_TCK) / 1000000000;
    } while (ticks <= process.start);
}

/* A reload does not make an orphan that comes meanwhile one of the plugins' own. */
static void test_orphans_that_come_during_a_reload(void **state)
{
    struct orphans *orphans = calloc(1, sizeof(*orphans));
    int go[2], told[2];
    pid_t orphan = 0;
    (void)state;
    assert_non_null(orphans);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(told), 0);
    pid_t parent = fork();
    if (parent == 0) {
        (void)close(go[1]);
        pid_t pid = fork();
        char byte;
        if (pid == 0) {
            _exit(0);
        }
        (void)!write(told[1], &pid, sizeof(pid));
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
    assert_int_equal(read(told[0], &orphan, sizeof(orphan)), sizeof(orphan));
    wait_older(orphan);

    orphans_begin(orphans);
    (void)close(go[1]);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    pid_t own = start(STATUS_OWN);
    orphans_end(orphans);
    assert_int_equal(orphans->own.count, 1);
    wait_ended(getpid(), 2);
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(orphans_reap(orphans), 1);
    assert_int_equal(waitpid(own, NULL, 0), own);
    for (int i = 0; i < 2; i++) {
        (void)close(told[i]);
    }
    (void)close(go[0]);
    free(orphans);
}

/* Else no orphan would be reaped where reloads come more often than looks. */
static void test_a_reload_between_two_looks(void **state)
{
    struct orphans *orphans = calloc(1, sizeof(*orphans));
    (void)state;
    assert_non_null(orphans);
    (void)start(0);
    wait_ended(getpid(), 1);
    assert_int_equal(orphans_reap(orphans), 0);
    orphans_begin(orphans);
    orphans_end(orphans);
    assert_int_equal(orphans_reap(orphans), 1);
    free(orphans);
}

/* A plugin has waited for its child between the list and the look at it. */
static void test_a_child_that_is_gone(void **state)
{
    struct orphans *orphans = calloc(1, sizeof(*orphans));
    (void)state;
    assert_non_null(orphans);
    (void)start(0);
    wait_ended(getpid(), 1);
    orphans_begin(orphans);
    look.pid = start(STATUS_OWN);
    look.wait = true;
    orphans_end(orphans);
    look.pid = 0;
    assert_false(orphans->off);
    assert_int_equal(orphans->own.count, 0);
    (void)orphans_reap(orphans);
    (void)orphans_reap(orphans);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    free(orphans);
}

/* Then nothing is reaped until it can be, also where a reload came in between. */
static void test_a_child_that_cannot_be_looked_at(void **state)
{
    struct orphans *orphans = calloc(1, sizeof(*orphans));
    (void)state;
    assert_non_null(orphans);
    (void)start(0);
    wait_ended(getpid(), 1);
    orphans_begin(orphans);
    pid_t own = start(STATUS_OWN);
    look.pid = own;
    look.wait = false;
    orphans_end(orphans);
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(orphans_reap(orphans), 0);
    orphans_begin(orphans);
    orphans_end(orphans);
    assert_int_equal(orphans_reap(orphans), 0);
    look.pid = 0;
    wait_ended(getpid(), 2);
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(orphans_reap(orphans), 1);
    assert_int_equal(orphans_reap(orphans), 0);
    assert_int_equal(waitpid(own, NULL, 0), own);
    free(orphans);
}

/* More than can be recorded: then no status is taken from waiting threads. */
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
        cmocka_unit_test(test_orphans_that_come_during_a_reload),
        cmocka_unit_test(test_a_reload_between_two_looks),
        cmocka_unit_test(test_a_child_that_is_gone),
        cmocka_unit_test(test_a_child_that_cannot_be_looked_at),
        cmocka_unit_test(test_too_many_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
