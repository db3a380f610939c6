/* SPDX-License-Identifier: MIT */
/* test_files_kills.c - processes are killed while they edit: no edit is lost, none is made
 * twice. */
#include "test_files_rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/dispatch/dispatch.h"

#define KILLS 25

/* Edits one file, says so after each answer, until it is killed. */
static void child_edits(const char *dir, int report)
{
    struct harness harness = {0};
    (void)snprintf(harness.dir, sizeof(harness.dir), "%s", dir);
    open_gateway(&harness);
    for (unsigned i = 0;; i++) {
        char args[200];
        (void)snprintf(args, sizeof(args),
                       "\"command\":\"insert\",\"insert_line\":0,\"new_str\":\"%d.%u\"",
                       (int)getpid(), i);
        struct answer answer = edit(&harness, args, "f");
        if (answer.rc != NG_OK) {
            (void)fprintf(stderr, "%s\n", answer.message);
            _exit(2);
        }
        answer_free(&answer);
        if (write(report, &i, sizeof(i)) != (ssize_t)sizeof(i)) {
            _exit(3);
        }
    }
}

/* Kills a child that edits after `us` more microseconds. Returns how many edits it told of. */
static unsigned kill_once(const char *dir, long us, pid_t *ret_pid)
{
    int pipes[2];
    unsigned told = 0;
    unsigned number = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(pipes[0]);
        child_edits(dir, pipes[1]);
    }
    (void)close(pipes[1]);
    /* The first answer: it is at work. */
    assert_int_equal(read(pipes[0], &number, sizeof(number)), (ssize_t)sizeof(number));
    told = number + 1;
    pause_us(us);
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (read(pipes[0], &number, sizeof(number)) == (ssize_t)sizeof(number)) {
        told = number + 1;
    }
    (void)close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    *ret_pid = pid;
    return told;
}

static void test_kills_lose_nothing(void **state)
{
    (void)state;
    struct harness harness;
    harness_open(&harness, sets);
    put(&harness, "f", "end\n");
    close_gateway(&harness);
    unsigned seed = 4711;
    for (int round = 0; round < KILLS; round++) {
        pid_t pid = 0;
        seed = seed * 1103515245U + 12345U;
        unsigned told = kill_once(harness.dir, (long)(seed >> 8) % 20000, &pid);
        /* Every edit it told of is in the file, in order, the one under way wholly or not. */
        char *text = get(&harness, "f");
        assert_non_null(text);
        char line[64];
        for (unsigned i = 0; i < told; i++) {
            (void)snprintf(line, sizeof(line), "%d.%u\n", (int)pid, i);
            assert_non_null(strstr(text, line));
        }
        (void)snprintf(line, sizeof(line), "%d.%u\n", (int)pid, told + 1);
        assert_null(strstr(text, line));
        assert_string_equal(text + strlen(text) - 4, "end\n");
        free(text);
    }
    open_gateway(&harness);
    assert_int_equal(count_intents(&harness), 0);
    assert_int_equal(count_temps(&harness), 0);
    for (int i = 0; i < 5; i++) {
        edit_works(&harness, UNDO, "f"); /* the history is that of the file */
    }
    harness_close(&harness);
}

struct ended {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void call_ended(struct call *call, void *user)
{
    struct ended *ended = user;
    (void)call;
    (void)pthread_mutex_lock(&ended->lock);
    ended->done = true;
    (void)pthread_cond_signal(&ended->wake);
    (void)pthread_mutex_unlock(&ended->lock);
}

/* One edit under an idempotency key; the answer's text, malloc'd. */
static char *edit_once(struct harness *harness, const char *key, const char *line)
{
    struct ended ended = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    char args[PATH_SIZE];
    (void)snprintf(args, sizeof(args),
                   "{\"path\":\"%s/files/f\",\"command\":\"insert\",\"insert_line\":0,"
                   "\"new_str\":\"%s\"}",
                   harness->dir, line);
    struct call *call = call_new(harness->gateway);
    if (call == NULL) {
        abort();
    }
    call->tool_name = ng_str_of("fileEditor");
    call->args_text = ng_str_of(args);
    call->idempotency_key = ng_str_of(key);
    call->done = call_ended;
    call->done_user = &ended;
    if (dispatch(call) == NG_PENDING) {
        (void)pthread_mutex_lock(&ended.lock);
        while (!ended.done) {
            (void)pthread_cond_wait(&ended.wake, &ended.lock);
        }
        (void)pthread_mutex_unlock(&ended.lock);
    }
    struct ng_str text = call->final.rc == NG_OK ? call->final.text : call->final.message;
    char *copy = strndup(text.data, text.len);
    call_unref(call);
    return copy;
}

/* A call that was cut off by a kill and is repeated with its key is done once, whenever the
 * kill came. */
static void test_kills_and_repeats(void **state)
{
    (void)state;
    struct harness harness;
    unsigned seed = 815;
    harness_open(&harness, sets);
    put(&harness, "f", "end\n");
    for (int round = 0; round < KILLS; round++) {
        char line[64];
        int pipes[2];
        char byte = 0;
        close_gateway(&harness);
        (void)snprintf(line, sizeof(line), "round %d.", round);
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            open_gateway(&harness);
            (void)!write(pipes[1], "x", 1);
            free(edit_once(&harness, line, line));
            (void)pause();
            _exit(0);
        }
        assert_int_equal(read(pipes[0], &byte, 1), 1);
        seed = seed * 1103515245U + 12345U;
        pause_us((long)(seed >> 8) % 6000);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        open_gateway(&harness);
        char *answer = edit_once(&harness, line, line);
        assert_non_null(strstr(answer, "has been edited. Here's the result"));
        assert_non_null(strstr(answer, line));
        free(answer);
        char *text = get(&harness, "f");
        assert_non_null(text);
        const char *first = strstr(text, line);
        assert_non_null(first);
        assert_null(strstr(first + 1, line));
        free(text);
    }
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills_lose_nothing),
        cmocka_unit_test(test_kills_and_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
