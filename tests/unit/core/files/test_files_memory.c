/* SPDX-License-Identifier: MIT */
/* test_files_memory.c - the bytes of files that calls hold count by agent; what needs no
 * content loads none.
 */
#include "test_files_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/files/files_state.h"

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

static const char *const larger[] = {"plugins=file_editor", "file_editor.max_file_size=4MiB",
                                     NULL};

static int setup_larger(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, larger);
    *state = harness;
    return 0;
}

static void put_hole(struct harness *harness, const char *name, size_t bytes)
{
    char path[PATH_SIZE];
    put(harness, name, "head\n");
    (void)in_root(harness, path, name);
    assert_int_equal(truncate(path, (off_t)bytes), 0);
}

static struct call *call_of_agent(struct harness *harness, const char *agent)
{
    struct call *call = harness_new_call(harness);
    assert_int_equal(call_set_caller(call, ng_str_of(agent), ng_str_of(NULL), NG_ROLE_WRITER,
                                     NG_MODE_AGENT, true),
                     NG_OK);
    call->may_block = true;
    return call;
}

static int read_as(struct harness *harness, struct call *call, const char *name)
{
    char path[PATH_SIZE];
    struct ng_file file = {.size = sizeof(file)};
    return files_read(harness->gateway->files, call, in_root(harness, path, name), 0, &file);
}

static void test_bytes_count_by_agent(void **state)
{
    struct harness *harness = *state;
    put_hole(harness, "f", 400 * KIB);
    put_hole(harness, "small", 1 * KIB);
    put_hole(harness, "large", 2 * MIB);
    atomic_store(&harness->gateway->limits.buffered, 1 * MIB);
    struct call *first = call_of_agent(harness, "ann");
    struct call *second = call_of_agent(harness, "ann");
    struct call *other = call_of_agent(harness, "bob");
    assert_int_equal(read_as(harness, first, "f"), NG_OK);
    assert_int_equal(read_as(harness, second, "f"), NG_EBUSY);
    assert_non_null(strstr(second->staged.message.data, "limits.buffered"));
    assert_int_equal(read_as(harness, second, "small"), NG_OK);
    assert_int_equal(read_as(harness, other, "f"), NG_OK);
    /* A request that can never fit does not wait. */
    assert_int_equal(read_as(harness, other, "large"), NG_ETOOLARGE);
    call_unref(first);
    assert_int_equal(read_as(harness, second, "f"), NG_OK);
    call_unref(other);
    /* Alone it may take all there is, piece by piece. */
    assert_int_equal(read_as(harness, second, "f"), NG_OK);
    assert_int_equal(read_as(harness, second, "f"), NG_ETOOLARGE);
    call_unref(second);
    struct call *third = call_of_agent(harness, "cid");
    put_hole(harness, "all", 1 * MIB);
    assert_int_equal(read_as(harness, third, "all"), NG_OK);
    call_unref(third);
    atomic_store(&harness->gateway->limits.buffered, 256 * MIB);
}

/* A call that was answered gives its bytes back a moment later. */
static void await_nothing_held(struct harness *harness)
{
    while (metrics_use(harness->gateway->metrics, METRICS_BUFFERED, 0) != 0) {
        pause_us(1000);
    }
}

/* An edit holds the file as it was and as it will be; nothing is left of it afterwards. */
static void test_edits_count(void **state)
{
    struct harness *harness = *state;
    put_hole(harness, "f", 0);
    char text[900];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (size_t i = 0; i < 200; i++) {
        char path[PATH_SIZE];
        (void)in_root(harness, path, "f");
        int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
        (void)close(fd);
    }
    atomic_store(&harness->gateway->limits.buffered, 300 * KIB);
    edit_fails(harness, APPEND, "f", "TOO_LARGE", "limits.buffered");
    atomic_store(&harness->gateway->limits.buffered, 1 * MIB);
    await_nothing_held(harness);
    edit_works(harness, APPEND, "f");
    /* All of it is free again once the call has gone. */
    await_nothing_held(harness);
    struct call *call = call_of_agent(harness, "local");
    put_hole(harness, "all", 1 * MIB);
    assert_int_equal(read_as(harness, call, "all"), NG_OK);
    call_unref(call);
    atomic_store(&harness->gateway->limits.buffered, 256 * MIB);
}

static long peak_kib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

static void transfer(struct harness *harness, const char *command, const char *from,
                     const char *to)
{
    char args[2 * PATH_SIZE];
    (void)snprintf(args, sizeof(args), "\"command\":\"%s\",\"destination\":\"%s/files/%s\"",
                   command, harness->dir, to);
    edit_works(harness, args, from);
}

/* A file that is larger than any call may load is copied, moved, and both are taken back. */
static void test_large_copies(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    struct stat st;
    const size_t bytes = 300 * MIB;
    put_hole(harness, "f", bytes);
    (void)in_root(harness, path, "f");
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "middle", 6, (off_t)(200 * MIB)), 6);
    assert_int_equal(pwrite(fd, "end", 3, (off_t)(bytes - 3)), 3);
    (void)close(fd);
    transfer(harness, "copy", "f", "g");
    (void)in_root(harness, path, "g");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, bytes);
    assert_true((size_t)st.st_blocks * 512 < 8 * MIB);
    char there[6];
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, there, 6, (off_t)(200 * MIB)), 6);
    assert_memory_equal(there, "middle", 6);
    assert_int_equal(pread(fd, there, 6, (off_t)(bytes - 3)), 3);
    assert_memory_equal(there, "end", 3);
    (void)close(fd);
    transfer(harness, "move", "g", "h");
    edit_works(harness, UNDO, "h");
    edit_works(harness, UNDO, "g");
    assert_int_equal(access(path, F_OK), -1);
#ifndef NOTEGATE_SANITIZED
    assert_true((size_t)peak_kib() < 128 * KIB);
#else
    (void)peak_kib();
#endif
}

/* An edit of a larger file is taken back with its content. */
static void test_undo_of_an_edit_loads(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    const size_t bytes = 3 * MIB / 2;
    char *text = calloc(1, bytes + 1);
    assert_non_null(text);
    memset(text, 'a', bytes);
    (void)in_root(harness, path, "f");
    put(harness, "f", text);
    edit_works(harness, APPEND, "f");
    edit_works(harness, UNDO, "f");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, bytes);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_large_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_count_by_agent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_edits_count, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_of_an_edit_loads, setup_larger, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
